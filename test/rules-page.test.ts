import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { renderRules } from '../src/commands/check-config.ts';
import { RULE_SETS, RULES, type RuleRow } from '../src/core/rules.ts';

const PAGE = readFileSync(new URL('../docs/reference/rules.md', import.meta.url), 'utf8');

const cell = (text: string): string => text.replaceAll('|', '\\|');

function rowOf([name, { kubelet, evictd, why, since }]: readonly [string, RuleRow]): string {
  return `| \`${name}\` | ${cell(kubelet)} | ${cell(evictd)} | ${cell(why)} | ${since} |`;
}

describe('docs/reference/rules.md', () => {
  const documented = PAGE.split('\n').filter((line) => line.startsWith('| `'));
  const rows = Object.entries(RULES).map(rowOf);
  const instead = 'npm run build && node scripts/rules.mjs writes the table';

  it('has every row of the table of rules', () => {
    expect(
      rows.filter((row) => !documented.includes(row)),
      instead,
    ).toEqual([]);
  });

  it('has no other, and each in its place', () => {
    expect(
      documented.filter((row) => !rows.includes(row)),
      instead,
    ).toEqual([]);
    expect(documented, instead).toEqual(rows);
  });
});

describe('the table of rules', () => {
  it.each(Object.entries<RuleRow>(RULES))('%s says all, in one line', (_, row) => {
    for (const text of [row.kubelet, row.evictd, row.why]) expect(text).toMatch(/^\S[^\n]*\S$/);
    expect(row.since).toMatch(/^\d+\.\d+\.\d+$/);
    expect(row.kubelet).not.toBe(row.evictd);
  });
});

describe('check-config --explain', () => {
  it.each(['kubelet', 'evictd'] as const)('shows the same rows, %s marked', (side) => {
    const text = renderRules(RULE_SETS[side]);
    const blocks = Object.entries<RuleRow>(RULES).map(([name, row]) => [
      `${name} (since ${row.since})`,
      `  ${side === 'kubelet' ? '*' : ' '} kubelet: ${row.kubelet}`,
      `  ${side === 'evictd' ? '*' : ' '} evictd:  ${row.evictd}`,
      `    why:     ${row.why}`,
    ]);
    expect(text).toBe(`${blocks.flat().join('\n')}\n`);
  });

  it('marks each point for itself', () => {
    const text = renderRules({ ...RULE_SETS.kubelet, hardGrace: 'evictd' });
    const marked = text.split('\n').filter((line) => line.startsWith('  * evictd:'));
    expect(marked).toEqual([`  * evictd:  ${RULES.hardGrace.evictd}`]);
  });
});
