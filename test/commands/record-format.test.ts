import { describe, expect, it } from 'vitest';
import { formatScenario, plainJson } from '../../src/commands/record/format.ts';
import type { Scenario } from '../../src/simulation/scenario.ts';

const NAME = 'ns/\u009b31m\u2028\u202ebew\u2066\u007f';

describe('plainJson', () => {
  it('is the same value without a character that drives a terminal', () => {
    const json = plainJson(JSON.stringify({ name: NAME, text: 'Ä\n"' }, null, 2));
    expect(JSON.parse(json)).toEqual({ name: NAME, text: 'Ä\n"' });
    expect(json).toBe(
      '{\n  "name": "ns/\\u009b31m\\u2028\\u202ebew\\u2066\\u007f",\n  "text": "Ä\\n\\""\n}',
    );
  });
});

describe('formatScenario', () => {
  it('writes names as plainJson does', () => {
    const text = formatScenario({ name: NAME } as unknown as Scenario);
    expect(text).toBe('{"name":"ns/\\u009b31m\\u2028\\u202ebew\\u2066\\u007f"}\n');
  });
});
