import { describe, expect, it } from 'vitest';
import { formatStatus } from '../../src/commands/status.ts';
import { EMPTY_MODEL, type Model, statusDocument } from '../../src/surfaces/status.ts';
import { GI, MI, policy, reading } from '../support/builders.ts';

function textOf(model: Partial<Model>, memorySource: 'workingset' | 'memavailable'): string {
  const document = statusDocument(
    { ...EMPTY_MODEL, ...model },
    {
      version: '0.1.0',
      pid: 4711,
      policy: policy({}),
      nodeCgroup: '/sys/fs/cgroup/memory',
      podParents: ['kubepods'],
      memorySource,
      dryRun: false,
      kernelMemcgNotification: true,
      killing: { by: 'pidfd', detail: 'by pidfd' },
      startedAtMs: 0,
      nowMs: 1000,
      wallMs: 0,
      droppedLogLines: 0,
    },
  );
  return formatStatus(document);
}

describe('formatStatus', () => {
  const readings = [
    reading({ figures: 'meminfo', availableBytes: { workingset: GI, memavailable: 1536 * MI } }),
  ];

  it.each([
    ['workingset', 'memory available 1Gi by workingset (1.5Gi by memavailable), from meminfo'],
    ['memavailable', 'memory available 1.5Gi by memavailable (1Gi by workingset), from meminfo'],
  ] as const)('shows both memory sources, the one that counts first: %s', (source, line) => {
    expect(textOf({ readings }, source).split('\n').slice(1, 3)).toEqual([
      'node /sys/fs/cgroup/memory',
      line,
    ]);
  });

  it('has no figures before the first reading', () => {
    expect(textOf({}, 'workingset')).not.toContain('memory available');
  });
});
