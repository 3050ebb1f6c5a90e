import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { execute, type Invocation, parseCommandLine } from '../../src/commands/command-line.ts';
import { COMMANDS, isCommand, optionsOf, optionTerm } from '../../src/config/options.ts';
import { EvictdError } from '../../src/core/errors.ts';

function refusalOf(argv: readonly string[]): EvictdError {
  try {
    parseCommandLine(argv);
  } catch (error) {
    if (error instanceof EvictdError) return error;
    throw error;
  }
  throw new Error(`not refused: ${argv.join(' ')}`);
}

function helpOf(...argv: readonly string[]): string {
  const invocation = parseCommandLine(argv);
  return invocation.command === 'help' ? invocation.text : '';
}

describe('parseCommandLine', () => {
  it.each<[readonly string[], Invocation]>([
    [['run'], { command: 'run', values: {} }],
    [['check-config', '/f'], { command: 'check-config', values: { '--config': ['/f'] } }],
    [
      ['check-config', '--config', '/f', '--print-config'],
      { command: 'check-config', values: { '--config': ['/f'], '--print-config': ['true'] } },
    ],
    [
      ['check-config', '--dry-run', '/f'],
      {
        command: 'check-config',
        values: { '--config': ['/f'], '--dry-run': ['true'] },
      },
    ],
    [['admit', '-'], { command: 'admit', values: {}, files: ['-'] }],
    [
      ['admit', '--conditions', '', '/f', '--json'],
      { command: 'admit', values: { '--conditions': [''], '--json': ['true'] }, files: ['/f'] },
    ],
    [['version'], { command: 'version', values: {} }],
    [['--version'], { command: 'version', values: {} }],
    [['demo', '--plain'], { command: 'demo', values: { '--plain': ['true'] } }],
    [
      ['status', '--json', '--socket', '/s'],
      { command: 'status', values: { '--socket': ['/s'], '--json': ['true'] } },
    ],
    [
      ['run', '--eviction-hard', 'memory.available<1Gi', '--eviction-hard='],
      { command: 'run', values: { '--eviction-hard': ['memory.available<1Gi', ''] } },
    ],
    [['run', '--eviction-hard', ''], { command: 'run', values: { '--eviction-hard': [''] } }],
    [['run', '--pod=a=b=grace:1'], { command: 'run', values: { '--pod': ['a=b=grace:1'] } }],
    [
      ['run', '--eviction-max-pod-grace-period', '-1'],
      { command: 'run', values: { '--eviction-max-pod-grace-period': ['-1'] } },
    ],
    [
      ['run', '--dry-run', '--dry-run=false'],
      { command: 'run', values: { '--dry-run': ['true', 'false'] } },
    ],
    [['run', '--dry-run='], { command: 'run', values: { '--dry-run': [''] } }],
    [
      ['run', '--experimental-kernel-memcg-notification'],
      { command: 'run', values: { '--kernel-memcg-notification': ['true'] } },
    ],
    [
      [
        'check-config',
        '--experimental-kernel-memcg-notification=false',
        '--kernel-memcg-notification',
      ],
      { command: 'check-config', values: { '--kernel-memcg-notification': ['false', 'true'] } },
    ],
    // An option takes the next argument, whatever it looks like.
    [
      ['run', '--pod', '--dry-run', '--socket', '--', '--node-cgroup', '--pod=x'],
      {
        command: 'run',
        values: { '--node-cgroup': ['--pod=x'], '--pod': ['--dry-run'], '--socket': ['--'] },
      },
    ],
    [['run', '--'], { command: 'run', values: {} }],
    [['simulate', 'a', '-'], { command: 'simulate', values: {}, files: ['a', '-'] }],
    [
      ['simulate', '--batch', '-', '--eviction-hard', 'memory.available<1Gi'],
      {
        command: 'simulate',
        values: { '--batch': ['-'], '--eviction-hard': ['memory.available<1Gi'] },
        files: [],
      },
    ],
    [
      ['simulate', '--explain', '--', '--diff'],
      { command: 'simulate', values: { '--explain': ['true'] }, files: ['--diff'] },
    ],
  ])('%j', (argv, invocation) => {
    expect(parseCommandLine(argv)).toEqual(invocation);
  });

  it.each<[readonly string[], RegExp]>([
    [
      [],
      /^expected one of the commands run, check-config, simulate, demo, status, summary, record, admit, gc, version$/,
    ],
    [[''], /unknown command/],
    [['nope'], /^unknown command 'nope'$/],
    [['runn'], /^unknown command 'runn' \(Did you mean run\?\)$/],
    [['help', 'nope'], /expected one of the commands/],
    [['--nope'], /unknown option '--nope'/],
    [['--dry-run'], /unknown option '--dry-run'/],
    [['--version', 'run'], /unknown option '--version'/],
    [['run', '--nope'], /^unknown option '--nope'$/],
    [['run', '--dry-rum'], /^unknown option '--dry-rum' \(Did you mean --dry-run\?\)$/],
    [['run', '--json'], /unknown option '--json'/],
    [['run', '-x'], /unknown option '-x'/],
    [['run', '--nope=\u001b[31m'], /^unknown option '--nope=\\u001b\[31m'$/],
    [['run', 'extra'], /too many arguments/],
    [['check-config', '/f', 'extra'], /too many arguments/],
    [['check-config', '/f', '--config', '/f'], /^either FILE or --config FILE, not both$/],
    [['run', '--dry-run', 'false'], /too many arguments/],
    [['admit'], /^missing required argument 'FILE'$/],
    [['admit', '/a', '/b'], /too many arguments/],
    [['run', '--', '--dry-run'], /too many arguments/],
    [['run', '--pod'], /option '--pod <VALUE>' argument missing/],
    [['demo', '--socket', '/s'], /unknown option '--socket'/],
    [['status', '--plain'], /unknown option '--plain'/],
    [['version', '--json'], /unknown option '--json'/],
    [['simulate', '--pod', 'x'], /unknown option '--pod'/],
  ])('refuses %j', (argv, message) => {
    const error = refusalOf(argv);
    expect(error).toMatchObject({ code: 'EVICTD_USAGE', exitStatus: 2 });
    expect(error.message).toMatch(message);
    expect(error.message).not.toContain('\n');
  });

  it.each([['--help'], ['-h'], ['help']])('answers %s with all commands', (argument) => {
    const text = helpOf(argument);
    for (const [name, description] of Object.entries(COMMANDS)) {
      expect(text).toContain(`  ${name}`);
      expect(text).toContain(description);
    }
  });

  it.each(Object.keys(COMMANDS).filter(isCommand))(
    '%s --help has its options and defaults',
    (name) => {
      const text = helpOf(name, '--help');
      expect(helpOf('help', name)).toBe(text);
      const unwrapped = text.replaceAll(/\s+/g, ' ');
      for (const option of optionsOf(name)) {
        expect(text).toContain(`  ${optionTerm(option)}`);
        expect(unwrapped).toContain(option.description);
        const isScenarios = name === 'simulate' && option.key !== undefined;
        expect(unwrapped.includes(`${option.description} (default: `)).toBe(
          option.value !== undefined && option.default !== undefined && !isScenarios,
        );
        if (option.value !== undefined && option.default !== undefined && !isScenarios) {
          expect(unwrapped).toContain(`${option.description} (default: ${option.default})`);
        }
      }
      expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
    },
  );

  it('throws nothing but EVICTD_USAGE', () => {
    const word = fc.oneof(
      fc.string(),
      fc.constantFrom(
        'run',
        'status',
        'help',
        '--',
        '--pod',
        '--dry-run',
        '--dry-run=x',
        '-h',
        '--json',
      ),
    );
    fc.assert(
      fc.property(fc.array(word, { maxLength: 5 }), (argv) => {
        try {
          parseCommandLine(argv);
        } catch (error) {
          expect(error).toMatchObject({ code: 'EVICTD_USAGE' });
        }
      }),
    );
  });
});

describe('execute', () => {
  it.each<[Invocation, string]>([
    [{ command: 'run', values: { '--node-cgroup': ['/n'], '--dry-run': ['x'] } }, 'EVICTD_CHOICE'],
    [{ command: 'run', values: { '--pod-parent': ['..'] } }, 'EVICTD_POD_PARENT'],
    [{ command: 'status', values: { '--socket': ['none'] } }, 'EVICTD_SOCKET_PATH'],
    [{ command: 'status', values: { '--json': ['1'] } }, 'EVICTD_CHOICE'],
    [{ command: 'demo', values: { '--plain': ['1'] } }, 'EVICTD_CHOICE'],
    [{ command: 'check-config', values: { '--pod': ['web'] } }, 'EVICTD_POD'],
    [{ command: 'run', values: { '--config': ['/no/such/file'] } }, 'EVICTD_CONFIG_FILE'],
    [{ command: 'check-config', values: { '--config': ['/dev/null'] } }, 'EVICTD_CONFIG_FILE'],
  ])('refuses wrong values before anything is started: %j', async (invocation, code) => {
    await expect(execute(invocation)).rejects.toMatchObject({ code, exitStatus: 2 });
  });
});
