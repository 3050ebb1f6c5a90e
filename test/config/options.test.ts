import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { KUBELET_FIELDS, USED_KUBELET_FIELDS } from '../../src/config/kubelet-fields.ts';
import { loadSettings } from '../../src/config/load.ts';
import {
  type CommandName,
  isCommand,
  KEYS,
  type Key,
  OPTION_LIST,
  type Option,
  type OptionName,
  optionsOf,
  optionTerm,
} from '../../src/config/options.ts';
import { configurationSchema } from '../../src/config/schema.ts';
import { ERRORS } from '../../src/core/errors.ts';

const readDocs = (page: string) =>
  readFileSync(new URL(`../../docs/${page}`, import.meta.url), 'utf8');

/** The rows of the tables in a page under docs, without their head. */
function documentedRows(page: string): readonly string[] {
  return readDocs(page)
    .split('\n')
    .filter((line) => line.startsWith('| `'));
}

function optionRow(option: Option): string {
  const names = [option.name, ...option.aliases].map((name) => `\`${name}\``).join(', ');
  const value =
    option.value === undefined ? 'switch' : `\`${option.value.replaceAll('|', '\\|')}\``;
  const repeatable = option.repeatable ? 'yes' : 'no';
  const byDefault = option.default === undefined ? 'none' : `\`${option.default}\``;
  const commands = option.commands.join(', ');
  const key = option.key === undefined ? 'none' : `\`${option.key.name}\``;
  const { instead } = option;
  const other =
    instead === undefined ? '' : `; of ${instead.commands.join(', ')}: ${instead.description}`;
  const meaning = `${option.description}${other}`;
  return `| ${names} | ${value} | ${repeatable} | ${byDefault} | ${key} | ${commands} | ${meaning} |`;
}

describe('docs', () => {
  it('flags.md has the rows of the table of options, no more and no fewer', () => {
    expect(documentedRows('reference/flags.md')).toEqual(OPTION_LIST.map(optionRow));
  });

  it('errors.md has the rows of the table of errors, no more and no fewer', () => {
    const rows = Object.entries(ERRORS).map(
      ([code, { exitStatus, meaning }]) => `| \`${code}\` | ${exitStatus} | ${meaning} |`,
    );
    expect(documentedRows('errors.md')).toEqual(rows);
  });

  it('the schema is the one that the table of options makes', () => {
    expect(readDocs('schema/evictd.dev_v1alpha1.json')).toBe(
      `${JSON.stringify(configurationSchema(), null, 2)}\n`,
    );
  });

  it('configuration.md has every key, with its option', () => {
    const rows = documentedRows('reference/configuration.md');
    const keyRow = ({ name, option, type }: Key) => `| \`${name}\` | ${type} | \`${option}\` |`;
    expect(rows.slice(0, KEYS.length)).toEqual(KEYS.map(keyRow));
  });
});

describe('the table of options', () => {
  it('says of an option to each command what it is to that command', () => {
    const said = (command: CommandName, name: OptionName) =>
      optionsOf(command).find((option) => option.name === name);
    for (const command of ['status', 'admit', 'record'] as const) {
      expect(said(command, '--socket')).toMatchObject({
        value: 'PATH',
        description: 'the unix socket on which the running daemon is asked, an absolute path',
      });
    }
    expect(said('run', '--socket')?.value).toBe('PATH|none');
    expect(said('run', '--config')?.description).toMatch(/flags win over it, key by key$/);
    expect(said('record', '--config')?.description).toMatch(/^with --kubelet: /);
    expect(said('check-config', '--explain')?.description).toMatch(/^print each point/);
    expect(said('simulate', '--explain')?.description).toMatch(/^tell the story/);
  });

  it('speaks to commands of what they have alone', () => {
    const meant = OPTION_LIST.flatMap(({ name, commands, instead }) =>
      instead === undefined ? [] : [{ name, commands, instead: instead.commands }],
    );
    expect(meant.map(({ name }) => name)).toEqual([
      '--config',
      '--runtime',
      '--nodefs-path',
      '--imagefs-path',
      '--container-gc-max-per-pod',
      '--socket',
      '--dry-run',
      '--explain',
    ]);
    for (const { commands, instead } of meant) {
      expect(instead.filter((command) => !commands.includes(command))).toEqual([]);
      expect(instead.length).toBeLessThan(commands.length);
    }
  });

  it('gives no name to two options', () => {
    const names = OPTION_LIST.flatMap(({ name, aliases }) => [name, ...aliases]);
    expect(new Set(names).size).toBe(names.length);
  });

  it('has defaults that pass their own checks', () => {
    const defaults = OPTION_LIST.flatMap((option) =>
      option.default === undefined ? [] : [[option.name, [option.default]] as const],
    );
    const { settings } = loadSettings({});
    expect(loadSettings(Object.fromEntries(defaults)).settings).toEqual({
      ...settings,
      compatibilityBecause: '--compatibility',
      socket: { path: '/run/evictd/evictd.sock', explicit: true },
      stateDir: { path: '/var/lib/evictd', explicit: true },
    });
  });

  it('gives every switch a default', () => {
    const switches = OPTION_LIST.filter(({ value }) => value === undefined);
    expect(switches.map((option) => option.default)).toEqual(switches.map(() => 'false'));
  });

  it('gives check-config what it gives run, and its own', () => {
    const names = optionsOf('check-config').map(({ name }) => name);
    const own = ['--print-config', '--explain'];
    expect(names.filter((name) => !own.includes(name))).toEqual(
      optionsOf('run').map(({ name }) => name),
    );
  });

  it('gives every option of run but --config a key of its own, and no other option one', () => {
    const keyed = OPTION_LIST.filter(({ key }) => key !== undefined).map(({ name }) => name);
    const ofRun = optionsOf('run').map(({ name }) => name);
    expect(keyed).toEqual(ofRun.filter((name) => name !== '--config'));
    expect(new Set(KEYS.map(({ name }) => name)).size).toBe(keyed.length);
  });

  it('calls what both kinds have by the kubelet’s names', () => {
    const names = KEYS.map(({ name }) => name);
    expect(USED_KUBELET_FIELDS.filter((name) => !names.includes(name))).toEqual([]);
    expect(names.filter((name) => KUBELET_FIELDS.includes(name)).sort()).toEqual(
      [...USED_KUBELET_FIELDS].sort(),
    );
  });

  it('gives the clients their own', () => {
    expect(optionsOf('status').map(optionTerm)).toEqual(['--socket PATH', '--json']);
    expect(optionsOf('admit').map(optionTerm)).toEqual([
      '--socket PATH',
      '--conditions CONDITION,…',
      '--json',
    ]);
    expect(optionsOf('demo').map(optionTerm)).toEqual(['--plain']);
    expect(optionsOf('version')).toEqual([]);
    expect(
      optionsOf('simulate')
        .filter(({ key }) => key === undefined)
        .map(optionTerm),
    ).toEqual(['--batch FILE', '--format json|text', '--explain', '--diff']);
  });

  it.each([
    ['run', true],
    ['check-config', true],
    ['help', false],
    ['', false],
    ['constructor', false],
  ])('isCommand(%j) is %j', (text, expected) => {
    expect(isCommand(text)).toBe(expected);
  });
});
