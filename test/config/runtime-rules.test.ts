import { describe, expect, it } from 'vitest';
import { type NamedPod, type RuntimeRule, runtimeRuleOf } from '../../src/config/runtime-rules.ts';

const rule = (fields: Partial<RuntimeRule>): RuntimeRule => ({
  pod: undefined,
  labels: {},
  image: undefined,
  priority: undefined,
  memoryRequestNano: undefined,
  gracePeriodSeconds: undefined,
  protected: false,
  ...fields,
});

const POD: NamedPod = {
  name: 'shop/web-0',
  labels: { app: 'web', tier: 'front' },
  images: ['localhost/nginx:1.25', 'localhost/sidecar@sha256:00'],
};

const isAbout = (fields: Partial<RuntimeRule>, pod: NamedPod = POD): boolean =>
  runtimeRuleOf([rule(fields)], pod) !== undefined;

describe('runtimeRuleOf', () => {
  it.each<[Partial<RuntimeRule>, boolean]>([
    [{}, true],
    [{ pod: 'shop/web-0' }, true],
    [{ pod: 'shop/web-?' }, true],
    [{ pod: '*/web-*' }, true],
    [{ pod: '*' }, false],
    [{ pod: 'web-0' }, false],
    [{ pod: 'shop/web' }, false],
    [{ pod: 'shop/*/web-0' }, false],
    [{ image: '*nginx:*' }, true],
    [{ image: '*/sidecar@*' }, true],
    [{ image: 'nginx' }, false],
    [{ labels: { app: 'web' } }, true],
    [{ labels: { app: 'w*', tier: '*' } }, true],
    [{ labels: { app: 'web', zone: '*' } }, false],
    [{ labels: { app: '' } }, false],
    [{ pod: 'shop/*', image: '*nginx*', labels: { app: 'web' } }, true],
    [{ pod: 'other/*', image: '*nginx*', labels: { app: 'web' } }, false],
  ])('%j: %j', (fields, expected) => {
    expect(isAbout(fields)).toBe(expected);
  });

  it('takes the first that matches', () => {
    const rules = [
      rule({ pod: 'other/*', priority: 1 }),
      rule({ priority: 2 }),
      rule({ priority: 3 }),
    ];
    expect(runtimeRuleOf(rules, POD)?.priority).toBe(2);
    expect(runtimeRuleOf([], POD)).toBeUndefined();
  });

  it('is about no label of a prototype, and no text that is longer than it looks at', () => {
    expect(isAbout({ labels: { toString: '*' } })).toBe(false);
    const long = { ...POD, labels: { app: 'a'.repeat(1025) } };
    expect(isAbout({ labels: { app: '*' } }, long)).toBe(false);
    expect(isAbout({ labels: { app: 'a*' } }, { ...POD, labels: { app: 'a'.repeat(1024) } })).toBe(
      true,
    );
  });
});
