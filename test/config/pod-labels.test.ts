import { describe, expect, it } from 'vitest';
import { labelledPod, POD_LABELS } from '../../src/config/pod-labels.ts';

const GI_NANO = 2n ** 30n * 1_000_000_000n;

describe('labelledPod', () => {
  it('reads what a runtime has no field for', () => {
    const labels = {
      'evictd.priority': '-5',
      'evictd.memory-request': '1Gi',
      'evictd.grace-period': '1m',
      app: 'web',
    };
    expect(labelledPod(labels, {})).toStrictEqual({
      priority: -5,
      memoryRequestNano: GI_NANO,
      gracePeriodSeconds: 60,
      protected: false,
      faults: [],
    });
  });

  it('says nothing where there is nothing', () => {
    expect(labelledPod({}, {})).toStrictEqual({
      priority: undefined,
      memoryRequestNano: undefined,
      gracePeriodSeconds: undefined,
      protected: false,
      faults: [],
    });
  });

  it.each([
    ['true', true],
    ['yes', true],
    ['', true],
    ['False', true],
    ['false', false],
  ])('protected=%j: %j', (text, expected) => {
    expect(labelledPod({ [POD_LABELS.protected]: text }, {}).protected).toBe(expected);
  });

  it.each<[Readonly<Record<string, string>>, boolean]>([
    [{ 'kubernetes.io/config.source': 'file' }, true],
    [{ 'kubernetes.io/config.source': 'api' }, false],
    [{ 'kubernetes.io/config.mirror': 'x' }, true],
  ])('protects static and mirror pods: %j', (annotations, expected) => {
    expect(labelledPod({}, annotations).protected).toBe(expected);
  });

  it('protects by a critical priority', () => {
    expect(labelledPod({ 'evictd.priority': '2000000000' }, {}).protected).toBe(true);
  });

  it.each([
    ['evictd.priority', '1e3', 'label evictd.priority: '],
    ['evictd.memory-request', '-1Gi', 'label evictd.memory-request: "-1Gi": a request'],
    ['evictd.grace-period', 'soon', 'label evictd.grace-period: '],
    ['evictd.priority', '9'.repeat(2 ** 20), 'label evictd.priority: longer than 128 characters'],
  ])('leaves out what cannot be read: %s', (name, text, said) => {
    const found = labelledPod({ [name]: text }, {});
    expect(found).toMatchObject({ priority: undefined, protected: false });
    expect(found.faults.map((fault) => fault.slice(0, said.length))).toEqual([said]);
  });

  it('tells labels of its own that it does not know, with what may have been meant', () => {
    const labels = {
      'evictd.prioriy': '5',
      'evictd.Protected': 'true',
      'evictd.x\u001b[2J\n': '',
      'evictdx.priority': '1',
      app: 'web',
    };
    expect(labelledPod(labels, {})).toMatchObject({
      priority: undefined,
      protected: false,
      faults: [
        'label "evictd.prioriy": evictd knows no such label (did you mean evictd.priority?)',
        'label "evictd.Protected": evictd knows no such label (did you mean evictd.protected?)',
        'label "evictd.x\\u001b[2J\\n": evictd knows no such label',
      ],
    });
  });

  it('tells no more than five, and none at length', () => {
    const many = Array.from({ length: 1000 }, (_, at) => [`evictd.${at}-${'x'.repeat(2000)}`, '']);
    const { faults } = labelledPod(Object.fromEntries(many), {});
    expect(faults).toHaveLength(5);
    expect(Math.max(...faults.map(({ length }) => length))).toBeLessThan(200);
  });

  it('looks at no label of a prototype', () => {
    expect(labelledPod(Object.create({ 'evictd.protected': 'true' }), {}).protected).toBe(false);
  });
});
