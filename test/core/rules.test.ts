import { describe, expect, it } from 'vitest';
import { RULE_SETS, RULES } from '../../src/core/rules.ts';

describe('RULES', () => {
  it.each(Object.entries(RULES))('%s says what either does, why, and since when', (name, row) => {
    expect(name).toMatch(/^[a-z][a-zA-Z]+$/);
    const { kubelet, evictd, why, since } = row;
    for (const text of [kubelet, evictd, why]) expect(text.trim()).not.toBe('');
    // A point on which both agree is none.
    expect(kubelet).not.toBe(evictd);
    expect(since).toMatch(/^\d+\.\d+\.\d+$/);
  });
});

describe('RULE_SETS', () => {
  it.each(['kubelet', 'evictd'] as const)('%s: every point is its own', (compatibility) => {
    const rules = RULE_SETS[compatibility];
    expect(Object.keys(rules)).toStrictEqual(Object.keys(RULES));
    expect([...new Set(Object.values(rules))]).toStrictEqual([compatibility]);
  });
});
