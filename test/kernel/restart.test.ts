import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { Snapshot } from '../../src/core/snapshot.ts';
import { decodeState, stateFileName } from '../../src/state/file.ts';
import type { MemoryChild } from '../support/child.ts';
import { count, report } from '../support/counts.ts';
import { describeWith } from '../support/skip.ts';
import { until, within } from '../support/wait.ts';
import {
  askStatus,
  type Daemon,
  type LogLine,
  privateDirectory,
  runArguments,
  startDaemon,
} from './support/daemon.ts';
import { mountTmpfs } from './support/filesystems.ts';
import { death, fill, isAlive, MI, makeNode, type TestNode } from './support/node.ts';

const LIMIT_MS = 15_000;
const GRACE_MS = 3000;
const HARD_64 = ['--eviction-hard', 'memory.available<64Mi'];

function soft(...more: readonly string[]): readonly string[] {
  return [
    ...['--eviction-hard', 'memory.available<16Mi'],
    ...['--eviction-soft', 'memory.available<96Mi'],
    ...['--eviction-soft-grace-period', `memory.available=${GRACE_MS}ms`],
    ...more,
  ];
}

function stateOf(directory: string, node: TestNode): Snapshot | undefined {
  const file = path.join(directory, stateFileName(node.path, false));
  if (!existsSync(file)) return undefined;
  const found = decodeState(readFileSync(file), node.path);
  if ('fault' in found) throw new Error(found.fault);
  return found.snapshot;
}

const timeOf = ({ time }: LogLine): number => Date.parse(time);

/** SIGKILL, and its end. */
async function killed(daemon: Daemon): Promise<void> {
  process.kill(daemon.pid, 'SIGKILL');
  await within(daemon.exited, LIMIT_MS, 'evictd dies');
}

describeWith({ root: true, cgroupV1: true }, 'a restart', () => {
  it.each(['SIGTERM', 'SIGKILL'] as const)(
    'by %s: a grace goes on where it was',
    async (signal) => {
      const node = makeNode(256 * MI);
      const web = await node.bystander();
      const leak = await node.pod('leak').spawn();
      const stateDir = privateDirectory();
      const options = { node: node.path, stateDir, args: soft('--pod=web=priority:1000') };
      const first = await startDaemon(options);
      await fill(node.cgroup, leak, 180 * MI);
      const metMs = timeOf(await first.line('threshold met'));
      await first.statusWhen('half of the grace is over', ({ thresholds }) =>
        thresholds.some(({ kind, graceRemainingMs }) => {
          return kind === 'soft' && graceRemainingMs !== null && graceRemainingMs < GRACE_MS / 2;
        }),
      );
      if (signal === 'SIGKILL') await killed(first);
      else await first.stop();
      const ranMs = Date.now() - metMs;
      const second = await startDaemon(options);
      const restored = await second.line('state restored');
      expect(restored['thresholds']).toEqual(['soft:memory.available']);
      expect(await death(leak)).toMatchObject({ signal: 'SIGKILL' });
      const goesOnMs = timeOf(await second.line('evicting')) - timeOf(restored);
      const totalMs = ranMs + goesOnMs;
      report(`${signal}: ${ranMs} ms before, ${goesOnMs} ms after: ${totalMs - GRACE_MS} ms over`);
      // The end of the first run is noticed a little after it.
      expect(totalMs).toBeGreaterThanOrEqual(GRACE_MS - 20);
      expect(totalMs).toBeLessThan(GRACE_MS + (signal === 'SIGKILL' ? 1700 : 500));
      const evictions = await second.ended(1);
      await second.stop();

      // The third one knows whom the second one evicted, and when.
      const third = await startDaemon(options);
      const status = await third.statusWhen(
        'it has looked',
        ({ evictions: all }) => all.length > 0,
      );
      expect(status.evictions).toEqual(evictions);
      expect(status.state).toMatchObject({ file: expect.stringContaining(stateDir), error: null });
      const { mode } = statSync(status.state?.file ?? '');
      expect(mode & 0o777).toBe(0o600);
      web.expectAlive();
      await third.stop();
    },
  );

  it('in a transition period: the time in between counts', async () => {
    const node = makeNode(256 * MI);
    const leak = await node.pod('leak').spawn();
    const stateDir = privateDirectory();
    const args = [
      ...['--eviction-soft', 'memory.available<96Mi', '--eviction-hard', ''],
      ...['--eviction-soft-grace-period', 'memory.available=1h'],
      ...['--eviction-pressure-transition-period', '5s'],
    ];
    const options = { node: node.path, stateDir, args };
    const first = await startDaemon(options);
    await fill(node.cgroup, leak, 180 * MI);
    await first.line('node condition set');
    await until(
      'it is kept',
      () => stateOf(stateDir, node)?.conditions.some(({ caused }) => caused) === true,
      { limitMs: LIMIT_MS },
    );
    const lastMs = Date.now();
    await killed(first);
    await leak.shrink();
    const second = await startDaemon(options);
    const restored = await second.line('state restored');
    expect(restored['conditions']).toEqual(['MemoryPressure']);
    expect((await second.status()).conditions[0]).toMatchObject({ status: true });
    const cleared = await second.line('node condition cleared');
    const heldMs = timeOf(cleared) - lastMs;
    report(`held for ${heldMs} ms of 5000`);
    expect(heldMs).toBeGreaterThanOrEqual(4990);
    // What was caused may have been seen up to 1.5 s after it was written.
    expect(heldMs).toBeLessThan(7000);
    await second.stop();
  });

  it('in the grace of a victim: it gets what was left, and nobody else goes', async () => {
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const leak = await node.pod('leak').spawn({ onTerm: 'ignore' });
    const stateDir = privateDirectory();
    const options = {
      node: node.path,
      stateDir,
      args: [
        ...['--eviction-soft', 'memory.available<96Mi', '--eviction-hard', ''],
        ...['--eviction-soft-grace-period', 'memory.available=100ms'],
        ...['--eviction-max-pod-grace-period', '4'],
      ],
    };
    const first = await startDaemon(options);
    await fill(node.cgroup, leak, 180 * MI);
    const decidedMs = timeOf(await first.line('evicting'));
    await until('it is kept', () => stateOf(stateDir, node)?.inFlight !== undefined, {
      limitMs: LIMIT_MS,
    });
    await killed(first);
    const second = await startDaemon(options);
    const resumed = await second.line('the eviction of a former run goes on');
    expect(resumed).toMatchObject({ pod: 'leak' });
    expect(isAlive(leak.pid)).toBe(true);
    expect(await death(leak)).toMatchObject({ signal: 'SIGKILL' });
    const graceMs = Date.now() - decidedMs;
    report(`KILL ${graceMs} ms after the decision`);
    expect(graceMs).toBeGreaterThanOrEqual(3990);
    expect(graceMs).toBeLessThan(4500);
    const evictions = await second.ended(1);
    expect(evictions).toMatchObject([{ pod: 'leak', outcome: 'evicted', hard: false }]);
    web.expectAlive();
    await second.stop();
  });

  it('with a tighter threshold: the condition holds, one goes after the other', async () => {
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const pods: MemoryChild[] = [];
    for (const name of ['one', 'two', 'three']) {
      const child = await node.pod(name).spawn();
      await child.grow(34 * MI);
      pods.push(child);
    }
    const stateDir = privateDirectory();
    const options = (headroom: string) => ({
      node: node.path,
      stateDir,
      args: [
        ...['--eviction-hard', `memory.available<${headroom}`],
        ...['--eviction-minimum-reclaim', 'memory.available=1Mi', '--pod=web=priority:1000'],
      ],
    });
    const free = () => 256 * MI - node.cgroup.usageBytes();
    // Pressure that the first one ends by one eviction.
    const headroom = free() + 8 * MI;
    const first = await startDaemon(options(String(headroom)));
    await first.ended(1);
    await first.stop();
    expect(pods.filter(({ pid }) => isAlive(pid))).toHaveLength(2);
    // One eviction more is not enough.
    const tighter = free() + 50 * MI;
    const second = await startDaemon(options(String(tighter)));
    expect((await second.line('state restored'))['conditions']).toEqual(['MemoryPressure']);
    const evictions = await second.ended(3);
    expect(evictions.map(({ outcome }) => outcome)).toEqual(['evicted', 'evicted', 'evicted']);
    const decided = evictions.map(({ decidedAt }) => Date.parse(decidedAt));
    const [, , endedMs = 0] = evictions.map(({ timing }) => timing.endedMs ?? 0);
    expect(decided[2]).toBeGreaterThanOrEqual((decided[1] ?? 0) + Math.floor(endedMs > 0 ? 1 : 0));
    expect(free()).toBeGreaterThanOrEqual(tighter);
    expect((await second.status()).conditions[0]).toMatchObject({ status: true });
    web.expectAlive();
    await second.stop();
  });

  it('with a damaged file: it is set aside, and everything begins anew', async () => {
    const node = makeNode(256 * MI);
    const stateDir = privateDirectory();
    const file = path.join(stateDir, stateFileName(node.path, false));
    const options = { node: node.path, stateDir, args: HARD_64 };
    for (const round of [1, 2, 3, 4, 5]) {
      writeFileSync(file, `not of evictd: ${round}`);
      const daemon = await startDaemon(options);
      const said = await daemon.line('the state file cannot be used and is set aside');
      expect(said).toMatchObject({ file, movedTo: `${file}.bad-1` });
      await daemon.statusWhen('it is written', ({ state }) => (state?.writtenAt ?? null) !== null);
      await daemon.stop();
    }
    const names = readdirSync(stateDir).sort();
    expect(names).toEqual(
      ['', '.bad-1', '.bad-2', '.bad-3'].map((end) => path.basename(file) + end),
    );
    expect(readFileSync(`${file}.bad-3`, 'utf8')).toBe('not of evictd: 3');
  });

  it('beside one that lives: the other one’s state is left alone', async () => {
    const node = makeNode(256 * MI);
    const stateDir = privateDirectory();
    const options = { node: node.path, stateDir, args: HARD_64 };
    const first = await startDaemon(options);
    await first.statusWhen('it is written', ({ state }) => (state?.writtenAt ?? null) !== null);
    const second = await startDaemon(options);
    expect((await second.line('degraded', ({ part }) => part === 'state'))['reason']).toContain(
      `another evictd for this node, process ${first.pid}`,
    );
    // A dry run has a file of its own.
    const dry = await startDaemon({ ...options, args: [...HARD_64, '--dry-run'] });
    await dry.statusWhen('it is written', ({ state }) => (state?.writtenAt ?? null) !== null);
    await first.stop();
    await second.line('state is kept again');
    await dry.stop();
    await second.stop();
  });
});

describeWith({ root: true, cgroupV1: true }, 'a full disk', () => {
  it('costs the persistence, and not the daemon', async () => {
    const stateDir = mountTmpfs('size=64k,mode=700');
    const filler = path.join(stateDir, 'filler');
    expect(() => writeFileSync(filler, Buffer.alloc(128 * 1024))).toThrow('ENOSPC');
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const leak = await node.pod('leak').spawn();
    const daemon = await startDaemon({
      node: node.path,
      stateDir,
      args: [...HARD_64, '--pod=web=priority:1000'],
    });
    const degraded = await daemon.line('degraded', ({ part }) => part === 'state');
    expect(degraded['reason']).toContain('ENOSPC');
    await fill(node.cgroup, leak, 210 * MI);
    expect(await death(leak)).toMatchObject({ signal: 'SIGKILL' });
    await daemon.ended(1);
    expect((await daemon.status()).state).toMatchObject({
      writtenAt: null,
      error: expect.stringContaining('ENOSPC'),
    });
    expect(readdirSync(stateDir)).toEqual(['filler']);
    rmSync(filler);
    await daemon.line('state is kept again');
    expect(stateOf(stateDir, node)?.evictions).toMatchObject([{ podName: 'leak' }]);
    expect((await daemon.status()).degraded).toEqual([]);
    web.expectAlive();
    await daemon.stop();
  });
});

const ROUNDS = count(20, 200);
const SEED = Number(process.env['EVICTD_SEED'] ?? 6);
const TRANSITION_MS = 10_000;
/** A line is written after the turn that it tells of, ms: by so much on a busy machine. */
const LINE_MS = 50;
/** In one round of so many it is killed while it starts. */
const STARTS = 5;
/** From there, or from the pressure on: until well after the eviction. */
const KILL_WITHIN_MS = 600;

/** The same numbers for the same seed, from 0 to 1. Source: Steele and others, SplitMix. */
function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x9e3779b9) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  };
}

/** A daemon that may die at any moment, before it says a word too. */
function startMortal(node: TestNode, stateDir: string) {
  const socketPath = path.join(privateDirectory(), 'evictd.sock');
  const args = [
    ...HARD_64,
    ...['--eviction-pressure-transition-period', `${TRANSITION_MS}ms`],
    '--pod=web=priority:1000',
  ];
  const child: ChildProcess = spawn(
    process.execPath,
    runArguments({ node: node.path, stateDir, args }, socketPath),
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  let text = '';
  child.stdout?.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  const exited = new Promise<unknown>((resolve) => child.once('close', resolve));
  onTestFinished(() => void child.kill('SIGKILL'));
  return {
    socketPath,
    ready: () =>
      until('it is ready', () => text.includes('"msg":"ready"'), { limitMs: 2 * LIMIT_MS }),
    end: async () => {
      child.kill('SIGKILL');
      await within(exited, LIMIT_MS, 'evictd dies');
      const lines = text.split('\n').slice(0, -1);
      return lines.map((line) => JSON.parse(line) as LogLine);
    },
  };
}

describeWith({ root: true, cgroupV1: true }, 'kill -9', () => {
  it(`${ROUNDS} times at random instants: nothing is lost, and nobody goes twice`, async () => {
    const next = random(SEED);
    const node = makeNode(256 * MI);
    // The next in rank, were two to be evicted for one.
    const other = await node.bystander('other');
    const web = await node.bystander();
    const stateDir = privateDirectory();
    let leak: MemoryChild | undefined;
    let [restored, evicted, cut, leaks] = [0, 0, 0, 0];
    let lastMetMs: number | undefined;
    for (let round = 1; round <= ROUNDS; round += 1) {
      const before = stateOf(stateDir, node);
      const isFresh = leak === undefined || !isAlive(leak.pid);
      if (isFresh) {
        leaks += 1;
        leak = await node.pod(`leak-${leaks}`).spawn();
      }
      const daemon = startMortal(node, stateDir);
      if (round % STARTS !== 0) await daemon.ready();
      const killMs = performance.now() + next() * KILL_WITHIN_MS;
      // It may be killed for it right away.
      if (isFresh && leak !== undefined) await fill(node.cgroup, leak, 210 * MI);
      await until('the instant has come', () => performance.now() >= killMs, {
        limitMs: LIMIT_MS,
        intervalMs: 1,
      });
      const lines = await daemon.end();
      const said = (msg: string) => lines.filter((line) => line.msg === msg);
      expect(said('the state file cannot be used and is set aside')).toEqual([]);
      const loaded = said('state restored');
      restored += loaded.length;
      if (loaded.length > 0) {
        expect(loaded[0]?.['evictions']).toBe(before?.evictions.length);
        // No transition period is lost: what was held before is held until it has passed.
        const held = before?.conditions.find((one) => one.held);
        const isOver = lastMetMs !== undefined && Date.now() - lastMetMs > TRANSITION_MS;
        if (held !== undefined && !isOver) {
          expect(loaded[0]?.['conditions'], `round ${round}, seed ${SEED}`).toEqual([
            'MemoryPressure',
          ]);
        }
      }
      evicted += said('evicted').length;
      cut += said('evicting').length - said('evicted').length;
      const met = said('threshold met').at(-1);
      if (met !== undefined) lastMetMs = Math.max(lastMetMs ?? 0, timeOf(met));
      other.expectAlive();
      web.expectAlive();
      const { evictions = [], savedAtMs } = stateOf(stateDir, node) ?? {};
      const ids = evictions.flatMap(({ podId, outcome }) =>
        outcome?.kind === 'evicted' ? [podId] : [],
      );
      expect(new Set(ids).size, `round ${round}, seed ${SEED}`).toBe(ids.length);
      expect(evictions.length).toBeGreaterThanOrEqual(Math.min(100, before?.evictions.length ?? 0));
      if (before !== undefined) expect(savedAtMs).toBeGreaterThanOrEqual(before.savedAtMs);
    }
    report(
      `${ROUNDS} rounds, seed ${SEED}: ${restored} restored, ${leaks} leaks, ${evicted} evicted, ` +
        `${cut} evictions cut off`,
    );
    expect(restored).toBeGreaterThan(ROUNDS / 2);
    expect(evicted).toBeGreaterThan(0);
    expect(readdirSync(stateDir).filter((name) => name.includes('bad'))).toEqual([]);

    // The last one is left alone: the condition ends when its period has passed, not before.
    if (leak !== undefined && isAlive(leak.pid)) await leak.shrink();
    const daemon = startMortal(node, stateDir);
    const held = stateOf(stateDir, node)?.conditions.some((one) => one.held);
    await until('the condition has ended', hasEnded(daemon.socketPath), {
      limitMs: TRANSITION_MS + LIMIT_MS,
      intervalMs: 20,
    });
    const lines = await daemon.end();
    const cleared = lines.find(({ msg }) => msg === 'node condition cleared');
    if (held === true && cleared !== undefined) {
      const heldMs = timeOf(cleared) - (lastMetMs ?? Number.NaN);
      report(`held for ${heldMs} ms after the last pressure, of ${TRANSITION_MS}`);
      expect(heldMs).toBeGreaterThanOrEqual(TRANSITION_MS - LINE_MS);
    }
    other.expectAlive();
    web.expectAlive();
  });
});

/** Whether the daemon has no condition any more. */
function hasEnded(socketPath: string): () => boolean {
  let over = false;
  let asking = false;
  return () => {
    if (!asking) {
      asking = true;
      askStatus(socketPath)
        .then(({ conditions, signals }) => {
          over = signals.length > 0 && conditions.every(({ status }) => !status);
        })
        .catch(() => undefined)
        .finally(() => {
          asking = false;
        });
    }
    return over;
  };
}
