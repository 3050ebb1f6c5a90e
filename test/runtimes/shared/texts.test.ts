import { describe, expect, it } from 'vitest';
import {
  keptLabels,
  keptName,
  MOST_LABELS,
  MOST_NAME,
} from '../../../src/runtimes/shared/texts.ts';

const MIB = 2 ** 20;

describe('keptName', () => {
  it.each(['', 'web-0', 'a\n{"level":"error"}', '../../etc', 'ж'.repeat(MOST_NAME)])(
    'leaves %j as it is',
    (name) => {
      expect(keptName(name)).toBe(name);
    },
  );

  it('cuts a longer one', () => {
    expect(keptName('ж'.repeat(MIB))).toBe(`${'ж'.repeat(MOST_NAME - 1)}…`);
  });
});

describe('keptLabels', () => {
  it('keeps what is there', () => {
    const labels = { app: 'web', 'evictd.priority': '-5', __proto__x: '' };
    expect(keptLabels(labels)).toStrictEqual(labels);
  });

  it('cuts long values, so that they still are too long to be read', () => {
    expect(keptLabels({ app: 'x'.repeat(MIB), other: 'y' })).toStrictEqual({
      app: 'x'.repeat(2048),
      other: 'y',
    });
  });

  it('leaves out what has a long key', () => {
    expect(keptLabels({ ['x'.repeat(MIB)]: 'a', b: 'c' })).toStrictEqual({ b: 'c' });
  });

  it('keeps so many, those of evictd in any case', () => {
    const many = Object.fromEntries(
      Array.from({ length: 5 * MOST_LABELS }, (_, at) => [`l${at}`, 'x']),
    );
    const kept = keptLabels({ ...many, 'evictd.protected': 'true' });
    expect(Object.keys(kept).length).toBeLessThanOrEqual(MOST_LABELS);
    expect(kept['evictd.protected']).toBe('true');
    expect(kept['l0']).toBe('x');
  });
});
