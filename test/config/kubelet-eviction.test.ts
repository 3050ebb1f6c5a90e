import { describe, expect, it } from 'vitest';
import { kubeletEviction } from '../../src/config/kubelet-eviction.ts';
import { EvictdError } from '../../src/core/errors.ts';

const KUBELET = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
const OFF =
  '{memory.available: "0%", nodefs.available: 0%, nodefs.inodesFree: 100%, imagefs.available: 0%}';

/** What follows of a command line, where a file says `text`. */
function evictionBy(args: readonly string[], text = '') {
  return kubeletEviction(['/usr/bin/kubelet', ...args], {
    readConfigFile: (file) => {
      if (file === '/k.yaml') return `${KUBELET}${text}`;
      throw new EvictdError('EVICTD_CONFIG_FILE', 'no such file', { source: file });
    },
  });
}

const DEFAULTS = [
  'hard: memory.available<100Mi',
  'hard: nodefs.available<10%',
  'hard: nodefs.inodesFree<5%',
  'hard: imagefs.available<15%',
  'hard: imagefs.inodesFree<5%',
];

describe('kubeletEviction', () => {
  it.each<[readonly string[], string, readonly string[]]>([
    [[], '', DEFAULTS],
    [['--v=2', '--config', '/k.yaml'], '', DEFAULTS],
    [['--config=/k.yaml'], 'evictionHard: {memory.available: 1Gi}', ['hard: memory.available<1Gi']],
    [['--eviction-hard=memory.available<1Gi'], '', ['hard: memory.available<1Gi']],
    [
      ['--config=/k.yaml', '--eviction-hard', 'nodefs.available<1Gi'],
      `evictionHard: ${OFF}`,
      ['hard: nodefs.available<1Gi'],
    ],
    [
      ['--config=/k.yaml'],
      `evictionHard: ${OFF}\nevictionSoft: {memory.available: 1Gi}\n` +
        'evictionSoftGracePeriod: {memory.available: 1m}',
      ['soft: memory.available<1Gi'],
    ],
    [
      ['--config=/k.yaml'],
      'evictionHard: {imagefs.available: 5%, containerfs.available: 5%}',
      ['hard: imagefs.available<5%', 'hard: containerfs.available<5%'],
    ],
  ])('of %j with %j is active by %j', (args, text, thresholds) => {
    expect(evictionBy(args, text)).toEqual({ kind: 'active', thresholds });
  });

  it.each<[readonly string[], string]>([
    [['--config=/k.yaml'], `evictionHard: ${OFF}`],
    [['--config=/k.yaml'], 'evictionHard: {memory.available: 0%}'],
    [['--eviction-hard=memory.available<100%'], ''],
    [['--config=/k.yaml', '--eviction-hard=memory.available<0%'], ''],
    [['--eviction-hard='], ''],
  ])('of %j with %j is none', (args, text) => {
    expect(evictionBy(args, text)).toEqual({ kind: 'inactive' });
  });

  it.each<[readonly string[], string, string]>([
    [['--config=/other.yaml'], '', '/other.yaml: no such file'],
    [['--config-dir=/etc/k.d'], '', 'what is in its --config-dir is not read'],
    [['--config-dir', '/etc/k.d', '--eviction-hard=memory.available<0%'], '', 'what is in its'],
    [['--config=/k.yaml'], 'evictonHard: {}', '/k.yaml:3: evictonHard'],
    [['--config=/k.yaml'], 'evictionHard: {memory.available: soon}', '/k.yaml:3: evictionHard'],
  ])('of %j with %j cannot be told', (args, text, reason) => {
    const eviction = evictionBy(args, text);
    expect(eviction.kind).toBe('unknown');
    expect(eviction.kind === 'unknown' && eviction.reason.slice(0, reason.length)).toBe(reason);
  });
});
