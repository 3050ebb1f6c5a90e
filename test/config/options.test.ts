import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { settingsFromFlags } from '../../src/config/flags.ts';
import {
  isCommand,
  OPTION_LIST,
  type Option,
  optionsOf,
  optionTerm,
} from '../../src/config/options.ts';
import { ERRORS } from '../../src/core/errors.ts';

/** The rows of the tables in a page under docs/reference, without their head. */
function documentedRows(page: string): readonly string[] {
  const text = readFileSync(new URL(`../../docs/reference/${page}`, import.meta.url), 'utf8');
  return text.split('\n').filter((line) => line.startsWith('| `'));
}

function optionRow(option: Option): string {
  const names = [option.name, ...option.aliases].map((name) => `\`${name}\``).join(', ');
  const value =
    option.value === undefined ? 'switch' : `\`${option.value.replaceAll('|', '\\|')}\``;
  const repeatable = option.repeatable ? 'yes' : 'no';
  const byDefault = option.default === undefined ? 'none' : `\`${option.default}\``;
  const commands = option.commands.join(', ');
  return `| ${names} | ${value} | ${repeatable} | ${byDefault} | ${commands} | ${option.description} |`;
}

describe('docs/reference', () => {
  it('flags.md has the rows of the table of options, no more and no fewer', () => {
    expect(documentedRows('flags.md')).toEqual(OPTION_LIST.map(optionRow));
  });

  it('errors.md has the rows of the table of errors, no more and no fewer', () => {
    const rows = Object.entries(ERRORS).map(
      ([code, { exitStatus, meaning }]) => `| \`${code}\` | ${exitStatus} | ${meaning} |`,
    );
    expect(documentedRows('errors.md')).toEqual(rows);
  });
});

describe('the table of options', () => {
  it('gives no name to two options', () => {
    const names = OPTION_LIST.flatMap(({ name, aliases }) => [name, ...aliases]);
    expect(new Set(names).size).toBe(names.length);
  });

  it('has defaults that pass their own checks', () => {
    const defaults = OPTION_LIST.flatMap((option) =>
      option.default === undefined ? [] : [[option.name, [option.default]] as const],
    );
    const { settings } = settingsFromFlags({});
    expect(settingsFromFlags(Object.fromEntries(defaults)).settings).toEqual({
      ...settings,
      socket: { path: '/run/evictd/evictd.sock', explicit: true },
    });
  });

  it('gives every switch a default', () => {
    const switches = OPTION_LIST.filter(({ value }) => value === undefined);
    expect(switches.map((option) => option.default)).toEqual(switches.map(() => 'false'));
  });

  it('gives check-config what it gives run', () => {
    expect(optionsOf('check-config')).toEqual(optionsOf('run'));
  });

  it('gives the clients their own', () => {
    expect(optionsOf('status').map(optionTerm)).toEqual(['--socket PATH|none', '--json']);
    expect(optionsOf('demo').map(optionTerm)).toEqual(['--plain']);
    expect(optionsOf('version')).toEqual([]);
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
