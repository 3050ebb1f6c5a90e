import { expect, it } from 'vitest';
import { report } from '../support/counts.ts';
import { describeWith } from '../support/skip.ts';
import { type Daemon, startDaemon } from './support/daemon.ts';
import { death, fill, isAlive, MI, makeNode } from './support/node.ts';
import { startVictim } from './support/victim.ts';

const GRACE_MS = 3000;
/** How late the first signal may be, ms. */
const LATE_MS = 50;

function soft(grace: string, ...more: readonly string[]): readonly string[] {
  return [
    ...['--eviction-hard', 'memory.available<32Mi'],
    ...['--eviction-soft', 'memory.available<96Mi'],
    ...['--eviction-soft-grace-period', `memory.available=${grace}`],
    ...['--eviction-max-pod-grace-period', '30'],
    ...more,
  ];
}

/** How long the daemon's own log says that it waited, ms of the wall clock. */
function waitedMs(daemon: Daemon): number {
  const at = (msg: string) => Date.parse(daemon.lines.find((line) => line.msg === msg)?.time ?? '');
  return at('evicting') - at('threshold met');
}

describeWith({ root: true, cgroupV1: true }, 'a soft threshold', () => {
  it.each<[string, boolean, number]>([
    ['with kernel notification', true, LATE_MS],
    // A poll sees the crossing up to a poll late, from when on the grace is counted.
    ['by polling alone', false, LATE_MS + 250],
  ])('evicts when its grace is over, not before: %s', async (_, notify, lateMs) => {
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const pod = node.pod('leak');
    const victim = await startVictim(pod.cgroup);
    const daemon = await startDaemon({ node: node.path, notify, args: soft('3s') });

    // The victim's own record, on CLOCK_MONOTONIC: the threshold is crossed while it grows, and
    // its handler notes when TERM came.
    const grown = await victim.grow(180 * MI - node.cgroup.usageBytes());
    const termMs = await victim.terminated();
    const [least, most] = [termMs - grown.endMs, termMs - grown.startMs];
    report(`TERM ${least.toFixed(1)} to ${most.toFixed(1)} ms after the crossing`);
    expect(most).toBeGreaterThanOrEqual(GRACE_MS);
    expect(least).toBeLessThanOrEqual(GRACE_MS + lateMs);

    const [eviction] = await daemon.ended(1);
    await daemon.line('evicted');
    report(`evictd's log: ${waitedMs(daemon)} ms from crossing to decision`);
    expect(waitedMs(daemon)).toBeGreaterThanOrEqual(GRACE_MS - 1);
    expect(waitedMs(daemon)).toBeLessThanOrEqual(GRACE_MS + LATE_MS);
    // Ends itself on TERM: never sent KILL.
    expect(eviction).toMatchObject({ pod: 'leak', outcome: 'evicted', hard: false });
    expect(eviction?.gracePeriodMs).toBe(30_000);
    expect(eviction?.timing).toMatchObject({ killedMs: null });
    expect(eviction?.timing.firstSignalMs).toBeLessThan(LATE_MS);
    expect(await victim.exited).toBe(0);
    web.expectAlive();
    await daemon.stop();
  });

  it('evicts nobody when the pressure is gone at 2 s', async () => {
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const leak = await node.pod('leak').spawn();
    const daemon = await startDaemon({ node: node.path, args: soft('3s') });
    await fill(node.cgroup, leak, 180 * MI);
    const met = await daemon.statusWhen('a second is left of the grace', ({ thresholds }) =>
      thresholds.some(({ kind, met, graceRemainingMs }) => {
        return kind === 'soft' && met && (graceRemainingMs ?? 3000) <= 1000;
      }),
    );
    expect(met.conditions[0]?.status).toBe(true);
    expect(met.evictions).toEqual([]);
    await leak.shrink();
    await daemon.line('threshold no longer met');
    // Beyond the instant at which the grace would have ended.
    const { uptimeMs } = met.evictd;
    const after = await daemon.statusWhen('the grace would be over', ({ evictd }) => {
      return evictd.uptimeMs >= uptimeMs + 1500;
    });
    expect(after.evictions).toEqual([]);
    process.kill(leak.pid, 0);
    web.expectAlive();
    await daemon.stop();
    expect(daemon.said()).toEqual([
      expect.stringContaining('naming some signals drops the default thresholds'),
      'ready',
      'threshold met',
      'node condition set',
      'threshold no longer met',
      'stopped',
    ]);
  });

  it.each<[string, number, readonly string[]]>([
    ['its own, below the longest', 1000, ['--pod', 'leak=grace:1s']],
    [
      'the longest, below its own',
      1000,
      ['--pod', 'leak=grace:30s', '--eviction-max-pod-grace-period', '1'],
    ],
    [
      'its own, where the longest is left to the pod',
      1000,
      ['--pod', 'leak=grace:1s', '--eviction-max-pod-grace-period', '-1'],
    ],
    ['none', 0, ['--eviction-max-pod-grace-period', '0']],
  ])('L10: a pod that ignores TERM dies at its grace: %s', async (_, graceMs, flags) => {
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const leak = await node.pod('leak').spawn({ onTerm: 'ignore' });
    let termAtMs: number | undefined;
    void leak.terminated.then((atMs) => {
      termAtMs = atMs;
    });
    const daemon = await startDaemon({ node: node.path, args: soft('1s', ...flags) });
    await fill(node.cgroup, leak, 180 * MI);
    const { signal, atMs } = await death(leak);
    expect(signal).toBe('SIGKILL');
    const [eviction] = await daemon.ended(1);
    // process_mrelease of a process that was only sent TERM is EINVAL: it comes after KILL alone,
    // and what it says is nobody's business.
    expect(eviction).toMatchObject({ outcome: 'evicted', reason: null, gracePeriodMs: graceMs });
    const killedMs = eviction?.timing.killedMs ?? Number.NaN;
    expect(killedMs).toBeGreaterThanOrEqual(graceMs);
    expect(killedMs).toBeLessThanOrEqual(graceMs + 100);
    expect(eviction?.timing.firstSignalMs).toBeLessThan(LATE_MS);
    if (graceMs === 0) expect(termAtMs).toBeUndefined();
    else expect(atMs - (termAtMs ?? Number.NaN)).toBeGreaterThan(graceMs - LATE_MS);
    report(`KILL ${killedMs} ms after the decision`);
    web.expectAlive();
    await daemon.stop();
    expect(daemon.lines.filter((line) => JSON.stringify(line).includes('EINVAL'))).toEqual([]);
  });

  it('a hard crossing in the middle of a 60 s grace ends it at once', async () => {
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const leak = await node.pod('leak').spawn({ onTerm: 'ignore' });
    const flags = ['--eviction-max-pod-grace-period', '60', '--pod', 'leak=grace:60s'];
    const daemon = await startDaemon({ node: node.path, args: soft('1s', ...flags) });
    await fill(node.cgroup, leak, 180 * MI);
    await leak.terminated;
    const inGrace = await daemon.status();
    expect(inGrace.evicting).toEqual({ pod: 'leak', hard: false });
    const startedMs = performance.now();
    await fill(node.cgroup, leak, 240 * MI);
    const { signal, atMs } = await death(leak);
    expect(signal).toBe('SIGKILL');
    expect(atMs - startedMs).toBeLessThan(2000);
    report(`dead ${(atMs - startedMs).toFixed(0)} ms after it began to fill the rest`);
    const evictions = await daemon.ended(1);
    expect(evictions).toHaveLength(1);
    expect(evictions[0]).toMatchObject({
      pod: 'leak',
      outcome: 'evicted',
      hard: true,
      gracePeriodMs: 0,
    });
    expect(evictions[0]?.timing.killedMs).toBeLessThan(5000);
    web.expectAlive();
    await daemon.stop();
    const cut = daemon.said().filter((msg) => msg.startsWith('hard threshold crossed'));
    expect(cut).toHaveLength(1);
  });

  it('SIGTERM ends evictd in the middle of a grace, and the victim goes on', async () => {
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const leak = await node.pod('leak').spawn({ onTerm: 'ignore' });
    const daemon = await startDaemon({ node: node.path, args: soft('1s') });
    await fill(node.cgroup, leak, 180 * MI);
    await leak.terminated;
    expect(await daemon.stop()).toBeLessThan(3000);
    expect(isAlive(leak.pid)).toBe(true);
    web.expectAlive();
  });
});
