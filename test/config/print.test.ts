import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { FlagValues } from '../../src/config/flags.ts';
import { loadChecked, loadSettings } from '../../src/config/load.ts';
import { printConfiguration } from '../../src/config/print.ts';
import { FILE, KUBELET, OWN } from './support.ts';

const fixture = (name: string): string =>
  readFileSync(new URL(`../fixtures/kubelet/${name}`, import.meta.url), 'utf8');

function printed(values: FlagValues, text?: string): string {
  const config = text === undefined ? {} : { '--config': [FILE] };
  return printConfiguration(
    loadChecked({ ...config, ...values }, { readConfigFile: () => text ?? '' }),
  );
}

/** The settings of a text or of flags, but for what tells the two apart. */
function settingsOf(values: FlagValues, text?: string) {
  const config = text === undefined ? {} : { '--config': [FILE] };
  const io = { readConfigFile: () => text ?? '' };
  const { settings } = loadSettings({ ...config, ...values }, io);
  const { podsBy, podParents, nodeCgroup } = settings;
  const isImplied = podsBy === 'path' && podParents.length === 0 && nodeCgroup !== undefined;
  return {
    ...settings,
    compatibilityBecause: '',
    configFile: undefined,
    podsBy: undefined,
    podParents: isImplied ? ['.'] : podParents,
  };
}

const POLLING = 'memory=floor:77ms,assumedFall:123456789.5';

describe('printConfiguration', () => {
  it.each<[string, FlagValues, string | undefined]>([
    ['nothing', {}, undefined],
    [
      'every flag',
      {
        '--node-cgroup': ['n'],
        '--node-name': ['node-1.example'],
        '--pod-parent': ['.', 'a b'],
        '--runtime': ['docker'],
        '--runtime-endpoint': ['unix:///run/d.sock'],
        '--docker-pods': ['label=a b'],
        '--beside-kubelet': ['true'],
        '--pod': ['a=priority:-1,request:1.5Gi,grace:90s,protected', 'b=', 'c"\n=priority:2'],
        '--eviction-hard': ['memory.available<10%,pid.available<100'],
        '--merge-default-eviction-settings': ['true'],
        '--eviction-soft': ['memory.available<1e9'],
        '--eviction-soft-grace-period': ['memory.available=1m30.5s'],
        '--eviction-minimum-reclaim': ['memory.available=0,nodefs.available=1%'],
        '--eviction-max-pod-grace-period': ['-1'],
        '--eviction-pressure-transition-period': ['1ns'],
        '--hard-eviction-grace-period-seconds': ['7'],
        '--enforce-node-allocatable': ['kube-reserved'],
        '--memory-source': ['memavailable'],
        '--kernel-memcg-notification': ['true'],
        '--poll-interval': ['50.000001ms'],
        '--polling': [POLLING, 'inodes=assumedFall:1n', 'disk=assumedFall:9007199254740991'],
        '--nodefs-path': ['/n'],
        '--imagefs-path': ['/i: #'],
        '--containerfs-path': ['/c'],
        '--socket': ['/s'],
        '--state-dir': ['/t'],
        '--dry-run': ['true'],
        '--allow-pid-kill': ['true'],
        '--log-level': ['silent'],
        '--scheduling': ['normal'],
      },
      undefined,
    ],
    [
      'no threshold',
      { '--eviction-hard': [''], '--socket': ['none'], '--state-dir': ['none'] },
      undefined,
    ],
    ['no enforcement', { '--enforce-node-allocatable': [''] }, undefined],
    ['the kubelet’s rules', { '--compatibility': ['kubelet'] }, undefined],
    ['kubeadm.yaml', {}, fixture('kubeadm.yaml')],
    ['k3s.yaml', { '--dry-run': ['true'] }, fixture('k3s.yaml')],
    ['eks.json', { '--compatibility': ['evictd'] }, fixture('eks.json')],
    ['every-field.yaml', { '--pod-parent': ['kubepods'] }, fixture('every-field.yaml')],
    [
      'odd percentages',
      {},
      `${KUBELET}evictionHard: {memory.available: 0x1p3%%, nodefs.available: 1e1%}\n`,
    ],
    [
      'rules',
      {},
      `${OWN}pods:\n- cgroup: kubepods\n- {cgroup: a, name: "yes", memoryRequest: 100m, gracePeriod: 1m}\n` +
        '- {cgroup: "system.slice/*.service", priority: 0, protected: true}\n- cgroup: system.slice/x.service\n' +
        '- {namespace: a, name: "no", labels: {a.b/c: "1", d: ""}, image: "*", memoryRequest: 1}\n- name: b\n',
    ],
  ])('of %s gives the same settings again', (_, values, text) => {
    const yaml = printed(values, text);
    expect(settingsOf({}, yaml)).toEqual(settingsOf(values, text));
    expect(printed({}, yaml)).toBe(yaml);
  });

  it('is short of nothing', () => {
    expect(printed({})).toBe(
      [
        '# yaml-language-server: $schema=docs/schema/evictd.dev_v1alpha1.json',
        'apiVersion: evictd.dev/v1alpha1',
        'kind: EvictdConfiguration',
        'compatibility: evictd',
        'podParents: []',
        'runtime: cgroup',
        'dockerPods: container',
        'besideKubelet: false',
        'evictionHard:',
        '  memory.available: 100Mi',
        '  nodefs.available: 10%',
        '  nodefs.inodesFree: 5%',
        '  imagefs.available: 15%',
        '  imagefs.inodesFree: 5%',
        'mergeDefaultEvictionSettings: false',
        'evictionSoft: {}',
        'evictionSoftGracePeriod: {}',
        'evictionMinimumReclaim: {}',
        'evictionMaxPodGracePeriod: 0',
        'evictionPressureTransitionPeriod: 5m0s',
        'hardEvictionGracePeriodSeconds: 0',
        'enforceNodeAllocatable:',
        '  - pods',
        'memorySource: workingset',
        'kernelMemcgNotification: false',
        'pollInterval: 10s',
        'polling:',
        '  memory:',
        '    assumedFallPerSecond: 1G',
        '    floor: 50ms',
        '  disk:',
        '    assumedFallPerSecond: 1G',
        '    floor: 1s',
        '  inodes:',
        '    assumedFallPerSecond: 100k',
        '    floor: 1s',
        '  pids:',
        '    assumedFallPerSecond: 1k',
        '    floor: 100ms',
        'kubeletRootDir: /var/lib/kubelet',
        'podLogsDir: /var/log/pods',
        'nodefsPath: /var/lib',
        'containerGC: off',
        'containerGCMinimumAge: 0s',
        'containerGCMaxPerPod: 1',
        'imageGC: off',
        'imageGCHighThresholdPercent: 85',
        'imageGCLowThresholdPercent: 80',
        'imageMinimumGCAge: 2m0s',
        'imageMaximumGCAge: 0s',
        'dryRun: false',
        'allowPidKill: false',
        'logLevel: info',
        'scheduling: rr',
        '',
      ].join('\n'),
    );
  });

  it('warns of nothing that was not warned of before', () => {
    expect(
      loadSettings({ '--config': [FILE] }, { readConfigFile: () => printed({}) }).warnings,
    ).toEqual([]);
  });
});
