/** What runs the pods hangs or dies in the middle of memory pressure, over and over. */
import { expect, it } from 'vitest';
import type { Daemon } from '../kernel/support/daemon.ts';
import { MI } from '../kernel/support/node.ts';
import { count, report } from '../support/counts.ts';
import { until } from '../support/wait.ts';
import { isAlive, isGone, type Leak, type Stage, stage } from './leak-stories.ts';
import { end, isRunning } from './support/left-over.ts';
import type { RuntimeHost } from './support/runtime-host.ts';

const LIMIT_MS = 30_000;

/** On time: the pod's processes have KILL, and are dead, so long after the reading at the latest, ms. */
const KILLED_WITHIN_MS = 250;
const DEAD_WITHIN_MS = 2000;

/** What happens to it, and what makes it well again. */
const FAULTS = {
  'is stopped': {
    begin: (host: RuntimeHost) => end(host.pid(), 'SIGSTOP'),
    mend: async (host: RuntimeHost) => end(host.pid(), 'SIGCONT'),
  },
  'is killed': {
    begin: (host: RuntimeHost) => end(host.pid(), 'SIGKILL'),
    mend: async (host: RuntimeHost) => {
      await until('it is gone', () => !isRunning(host.pid()), { limitMs: LIMIT_MS });
      await host.start();
    },
  },
} as const;

/** When it does. */
const MOMENTS: readonly {
  readonly name: string;
  readonly reached: (leak: Leak, daemon: Daemon, stage: Stage, before: number) => Promise<unknown>;
}[] = [
  { name: 'before the pod leaks', reached: async () => undefined },
  {
    name: 'while it leaks',
    reached: (leak, _, { node }) => {
      leak.begin();
      const isHalfWay = () => node.cgroup.usageBytes() > 250 * MI;
      return until('it has begun', isHalfWay, { limitMs: LIMIT_MS, intervalMs: 1 });
    },
  },
  {
    name: 'when it is evicted',
    reached: (leak, daemon, _, before) => {
      leak.begin();
      const isDecided = () => daemon.lines.filter(({ msg }) => msg === 'evicting').length > before;
      return until('it is evicted', isDecided, { limitMs: LIMIT_MS, intervalMs: 1 });
    },
  },
];

/** @param name what is stopped and killed */
export function faultRounds(name: string, host: () => RuntimeHost): void {
  it(`evicts on time though ${name} hangs or dies, and knows its pods afterwards`, async () => {
    const on = stage(host());
    const innocent = [await on.holds('web', 40), await on.holds('cache', 40)];
    const daemon = await on.watch();
    const expected: string[] = [];
    const dead: number[] = [];
    for (let round = 0; round < count(5, 50); round += 1) {
      const fault = Object.values(FAULTS)[round % 2] as (typeof FAULTS)['is killed'];
      const moment = MOMENTS[round % MOMENTS.length] as (typeof MOMENTS)[number];
      const leak = await on.leaks(`leak-${round}`, { mib: 600, pauseSeconds: 0.03 });
      await on.knows(daemon, [...innocent, leak]);
      const before = daemon.lines.filter(({ msg }) => msg === 'evicting').length;
      await moment.reached(leak, daemon, on, before);
      fault.begin(host());
      if (round % MOMENTS.length === 0) leak.begin();
      expected.push(leak.name);
      const evictions = await daemon.ended(expected.length, LIMIT_MS);
      expect(evictions.map(({ pod, outcome }) => [pod, outcome])).toEqual(
        expected.map((pod) => [pod, 'evicted']),
      );
      const { killedMs, emptyMs } = evictions.at(-1)?.timing ?? {};
      expect(killedMs).toBeLessThan(KILLED_WITHIN_MS);
      expect(emptyMs).toBeLessThan(DEAD_WITHIN_MS);
      dead.push(emptyMs ?? Number.NaN);
      await fault.mend(host());
      await isGone(host(), leak);
      await on.knows(daemon, innocent);
      for (const pod of innocent) await isAlive(host(), pod);
    }
    const { lostRaces, degraded } = await daemon.status();
    expect([lostRaces, degraded]).toEqual([[], []]);
    report(
      `${dead.length} rounds, dead ${Math.max(...dead).toFixed(0)} ms after the reading at most`,
    );
  });
}
