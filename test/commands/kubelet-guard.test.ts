import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { concernsKubelets, kubeletConflict } from '../../src/commands/kubelet-guard.ts';
import type { FlagValues } from '../../src/config/flags.ts';
import { loadSettings } from '../../src/config/load.ts';
import type { KubeletProcess } from '../../src/kernel/kubelets.ts';
import type { NodeCgroup } from '../../src/kernel/node-cgroup.ts';

function temporary(): string {
  const directory = mkdtempSync(path.join(tmpdir(), 'evictd-guard-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return directory;
}

/** A node at such a path of a hierarchy that is a temporary directory. */
function nodeAt(place = '/'): NodeCgroup {
  const mountPoint = temporary();
  const directory = path.join(mountPoint, place);
  mkdirSync(directory, { recursive: true });
  const hierarchy = { mountPoint, root: '/', namespace: undefined };
  return { directory, hierarchy, isRoot: place === '/' } as unknown as NodeCgroup;
}

const settingsOf = (values: FlagValues, text?: string) =>
  loadSettings(text === undefined ? values : { ...values, '--config': ['f'] }, {
    readConfigFile: () => `apiVersion: evictd.dev/v1alpha1\nkind: EvictdConfiguration\n${text}`,
  }).settings;

const rules = (pods: string) => settingsOf({}, `pods: ${pods}\n`);

describe('concernsKubelets', () => {
  it.each<[string, ReturnType<typeof settingsOf>, string, boolean]>([
    ['any runtime', settingsOf({ '--runtime': ['cri'] }), '/', true],
    ['nothing named on the host', settingsOf({}), '/', false],
    ['a parent', settingsOf({ '--pod-parent': ['kubepods'] }), '/', true],
    ['another parent', settingsOf({ '--pod-parent': ['system.slice'] }), '/', false],
    ['a pod', settingsOf({ '--pod': ['kubepods/pod1='] }), '/', true],
    ['a node among a kubelet’s pods', settingsOf({}), '/kubepods/burstable', true],
    ['another node', settingsOf({}), '/node', false],
    ['a rule', rules('[{cgroup: kubepods}]'), '/', true],
    ['a glob', rules('[{cgroup: "**/pod*"}]'), '/', true],
    ['another glob', rules('[{cgroup: "system.slice/*"}]'), '/', false],
  ])('of %s', (_, settings, place, expected) => {
    expect(concernsKubelets(settings, nodeAt(place))).toBe(expected);
  });

  it.each([
    ['kubepods', {}, true],
    ['sub/kubepods.slice', { '--pod-parent': ['sub'] }, true],
    ['sub/kubepods', {}, false],
  ] as const)('of a node that has %s: %j', (below, values, expected) => {
    const node = nodeAt('/node');
    mkdirSync(path.join(node.directory, below), { recursive: true });
    expect(concernsKubelets(settingsOf(values), node)).toBe(expected);
  });
});

describe('kubeletConflict', () => {
  const settings = settingsOf({ '--runtime': ['cri'] });
  const conflictWith = (kubelet: Partial<KubeletProcess>) =>
    kubeletConflict(settings, nodeAt(), () => [
      { pid: 7, name: 'kubelet', args: [], root: '/nonexistent', cwd: '/nonexistent', ...kubelet },
    ]);
  const configured = (text: string): Partial<KubeletProcess> => {
    const root = temporary();
    const kind = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
    writeFileSync(path.join(root, 'k.yaml'), `${kind}${text}\n`);
    return { root, args: ['kubelet', '--config=/k.yaml'] };
  };

  it('is none without a kubelet, and where its pods are not those', async () => {
    expect(await kubeletConflict(settings, nodeAt(), () => [])).toBeUndefined();
    const others = kubeletConflict(settingsOf({}), nodeAt(), () => {
      throw new Error('not looked for');
    });
    expect(await others).toBeUndefined();
  });

  it('says by what a kubelet evicts', async () => {
    expect(await conflictWith(configured('evictionHard: {memory.available: 1Gi}'))).toBe(
      'kubelet (pid 7) evicts by hard: memory.available<1Gi',
    );
  });

  it('is none where its eviction is off', async () => {
    expect(await conflictWith(configured('evictionHard: {memory.available: 0%}'))).toBeUndefined();
  });

  it('reads a file where the kubelet works', async () => {
    const { root = '' } = configured('evictionHard: {memory.available: 0%}');
    const args = ['kubelet', '--config', 'k.yaml'];
    expect(await conflictWith({ cwd: root, args })).toBeUndefined();
  });

  it.each<[string, Partial<KubeletProcess>, RegExp]>([
    ['holds one', { name: 'k3s-server' }, /k3s-server \(pid 7\) evicts: it holds a kubelet/],
    ['hides', { args: undefined }, /its command line cannot be read$/],
    ['has no file', { args: ['kubelet', '--config=/k.yaml'] }, /no such file/i],
  ])('counts what cannot be told against one that %s', async (_, kubelet, said) => {
    expect(await conflictWith(kubelet)).toMatch(/^it cannot be told by what /);
    expect(await conflictWith(kubelet)).toMatch(said);
  });
});
