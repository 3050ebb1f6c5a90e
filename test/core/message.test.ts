import { describe, expect, it } from 'vitest';
import { evictionMessage } from '../../src/core/message.ts';
import { cause, MI, observation, pod, threshold, value } from '../support/builders.ts';

describe('evictionMessage', () => {
  const low = cause({ level: 100 * MI, observation: observation(50 * MI) });
  const node = 'The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi.';

  it('is the kubelet’s, with the figures of node and pod', () => {
    const leak = pod('leak', { workingSetBytes: 300 * MI, memoryRequestNano: 10n ** 9n * 64n });
    expect(evictionMessage(low, leak)).toBe(`${node} The pod was using 300Mi, request is 64.`);
  });

  it('says so when the usage is unknown', () => {
    expect(evictionMessage(low, pod('quiet', { workingSetBytes: undefined }))).toBe(
      `${node} The pod was using an unknown amount, request is 0.`,
    );
  });

  it('leaves the pod out where it is not about one', () => {
    expect(evictionMessage(low, undefined)).toBe(node);
  });

  it('gives bytes that are no multiple exactly', () => {
    const odd = cause({
      threshold: threshold({ value: value('104857601') }),
      observation: observation(1),
    });
    expect(evictionMessage(odd, undefined)).toContain(
      'Threshold quantity: 104857601, available: 1.',
    );
  });

  it('names the threshold, not the threshold with its minimum reclaim', () => {
    const reclaiming = cause({
      level: 130 * MI,
      reclaiming: true,
      observation: observation(110 * MI),
    });
    expect(evictionMessage(reclaiming, undefined)).toContain(
      'Threshold quantity: 100Mi, available: 110Mi.',
    );
  });

  it.each([
    [
      'nodefs.available',
      '2Gi',
      2 ** 30,
      'ephemeral-storage. Threshold quantity: 2Gi, available: 1Gi.',
    ],
    ['nodefs.inodesFree', '10k', 2048, 'inodes. Threshold quantity: 10k, available: 2048.'],
    ['pid.available', '1000', 250, 'pids. Threshold quantity: 1k, available: 250.'],
  ] as const)('counts %s in its unit', (signal, text, available, expected) => {
    const low = cause({
      threshold: threshold({ signal, value: value(text) }),
      observation: observation(available, { signal, capacity: 2 ** 40 }),
    });
    expect(evictionMessage(low, undefined)).toBe(`The node was low on resource: ${expected}`);
  });

  it('tells the tasks of a pod where they are short', () => {
    const signal = 'pid.available';
    const short = cause({
      threshold: threshold({ signal }),
      observation: observation(5, { signal }),
    });
    expect(evictionMessage(short, pod('bomb', { pids: 480 }))).toMatch(/ The pod had 480 tasks\.$/);
    expect(evictionMessage(short, pod('bomb'))).toMatch(
      / The pod had an unknown number of tasks\.$/,
    );
  });

  it('does not repeat the name of the pod: it is text from outside', () => {
    expect(evictionMessage(low, pod('leak\u001b[2J'))).not.toContain('leak');
  });
});
