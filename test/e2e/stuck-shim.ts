/** The shim of one pod hangs: the others are known, and evicted, all the same. */
import { expect, it } from 'vitest';
import { isAlive, isGone, stage } from './leak-stories.ts';
import { end, processesWith } from './support/left-over.ts';
import type { MadePod, RuntimeHost } from './support/runtime-host.ts';

const LIMIT_MS = 30_000;

/**
 * @param hold what has the runtime wait for the shim, and not answer of the pod, where it would otherwise; resolves
 *   once it is over
 */
export function stuckShim(
  host: () => RuntimeHost,
  hold?: (pod: MadePod) => Promise<unknown>,
): void {
  it('evicts the pod that leaks though the shim of another hangs, and nothing was known of either', async () => {
    const { holds, leaks, watch } = stage(host());
    const stuck = await holds('stuck', 20);
    const web = await holds('web', 20);
    const leak = await leaks('leak', { mib: 600, pauseSeconds: 0.02 });
    const [shim] = processesWith(
      ([program = '', ...words]) => program.includes('containerd-shim') && words.includes(stuck.id),
    );
    if (shim === undefined) throw new Error('no shim of the pod was found');
    end(shim, 'SIGSTOP');
    const held = hold?.(stuck);
    try {
      const daemon = await watch();
      await daemon.statusWhen('the others are known', ({ pods }) =>
        [web, leak].every(({ name }) => pods.some((pod) => pod.name === name)),
      );
      if (held !== undefined) {
        await daemon.line('no pod: it is never evicted', (line) => line['pod'] === stuck.name);
      }
      leak.begin();
      const evictions = await daemon.ended(1, LIMIT_MS);
      expect(evictions.map(({ pod, outcome }) => [pod, outcome])).toEqual([[leak.name, 'evicted']]);
      await isGone(host(), leak);
      const { degraded } = await daemon.status();
      expect(degraded.map(({ part }) => part)).not.toContain('runtime');
    } finally {
      end(shim, 'SIGCONT');
      await held;
    }
    for (const pod of [web, stuck]) await isAlive(host(), pod);
  });
}
