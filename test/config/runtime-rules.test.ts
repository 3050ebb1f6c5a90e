import { describe, expect, it } from 'vitest';
import { compileRuntimeRules, type NamedPod } from '../../src/config/runtime-rules.ts';
import type { CgroupRule, PodRule, RuntimeRule } from '../../src/config/settings.ts';

const NOTHING = {
  name: undefined,
  priority: undefined,
  memoryRequestNano: undefined,
  gracePeriodSeconds: undefined,
  protected: false,
} as const;

const rule = (fields: Partial<RuntimeRule>): RuntimeRule => ({
  ...NOTHING,
  namespace: undefined,
  labels: {},
  image: undefined,
  ...fields,
});

const cgroupRule = (cgroup: string, priority: number): CgroupRule => ({
  ...NOTHING,
  cgroup,
  priority,
});

const POD: NamedPod = {
  namespace: 'shop',
  name: 'web-0',
  paths: ['kubepods/pod1'],
  labels: [{ app: 'web', tier: 'front' }],
  images: ['localhost/nginx:1.25', 'localhost/sidecar@sha256:00'],
};

const ruleOf = (rules: readonly PodRule[], pod: NamedPod = POD) => compileRuntimeRules(rules)(pod);

const isAbout = (fields: Partial<RuntimeRule>, pod: NamedPod = POD): boolean =>
  ruleOf([rule(fields)], pod) !== undefined;

describe('compileRuntimeRules', () => {
  it.each<[Partial<RuntimeRule>, boolean]>([
    [{ name: 'web-0' }, true],
    [{ name: 'web-?' }, true],
    [{ name: '*' }, true],
    [{ name: 'web' }, false],
    [{ namespace: 'shop' }, true],
    [{ namespace: 's*', name: 'w*' }, true],
    [{ namespace: 'other', name: '*' }, false],
    [{ image: '*nginx:*' }, true],
    [{ image: '*/sidecar@*' }, true],
    [{ image: 'nginx' }, false],
    [{ labels: { app: 'web' } }, true],
    [{ labels: { app: 'w*', tier: '*' } }, true],
    [{ labels: { app: 'web', zone: '*' } }, false],
    [{ labels: { app: '' } }, false],
    [{ namespace: 'shop', name: 'web-*', image: '*nginx*', labels: { app: 'web' } }, true],
    [{ namespace: 'other', image: '*nginx*', labels: { app: 'web' } }, false],
  ])('%j: %j', (fields, expected) => {
    expect(isAbout(fields)).toBe(expected);
  });

  it('is about no namespace where there is none', () => {
    const pod = { ...POD, namespace: undefined };
    expect(isAbout({ namespace: '*' }, pod)).toBe(false);
    expect(isAbout({ name: 'web-0' }, pod)).toBe(true);
  });

  it('protects where it may be about an image that is not known, and in nothing else', () => {
    const pod = { ...POD, images: ['localhost/nginx:1.25', undefined] };
    const db = rule({ image: '*/db:*', priority: -10 });
    expect(ruleOf([db, rule({ name: '*' })], pod)).toEqual({ ...db, protected: true });
    expect(ruleOf([db])).toBeUndefined();
    // What is known decides where it suffices.
    const nginx = rule({ image: '*nginx*', priority: 1 });
    expect(ruleOf([nginx], pod)).toBe(nginx);
    expect(ruleOf([rule({ image: '*/db:*', namespace: 'other' })], pod)).toBeUndefined();
    const named = rule({ name: '*', priority: 4 });
    expect(ruleOf([named, db], pod)).toBe(named);
  });

  it('wants all labels of one set', () => {
    const pod = { ...POD, labels: [{}, { app: 'web' }, { app: 'db', tier: 'back' }] };
    expect(isAbout({ labels: { app: 'db', tier: 'back' } }, pod)).toBe(true);
    expect(isAbout({ labels: { app: 'web', tier: 'back' } }, pod)).toBe(false);
  });

  it('takes the first that matches, of either kind', () => {
    const rules = [
      rule({ namespace: 'other', priority: 1 }),
      cgroupRule('kubepods/pod2', 2),
      cgroupRule('kubepods/*', 3),
      rule({ name: '*', priority: 4 }),
    ];
    expect(ruleOf(rules)?.priority).toBe(3);
    expect(ruleOf([...rules].reverse())?.priority).toBe(4);
    expect(ruleOf([])).toBeUndefined();
  });

  it('is about no label of a prototype, and no text that is longer than it looks at', () => {
    expect(isAbout({ labels: { toString: '*' } })).toBe(false);
    const labelled = (app: string) => ({ ...POD, labels: [{ app }] });
    expect(isAbout({ labels: { app: '*' } }, labelled('a'.repeat(1025)))).toBe(false);
    expect(isAbout({ labels: { app: 'a*' } }, labelled('a'.repeat(1024)))).toBe(true);
  });
});
