import { spawn } from 'node:child_process';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { count, report } from '../support/counts.ts';
import { describeWith } from '../support/skip.ts';
import { within } from '../support/wait.ts';
import { compile } from './support/compile.ts';
import { privateDirectory, startDaemon } from './support/daemon.ts';
import { expectOneAtATime } from './support/evictions.ts';
import { MI, makeNode, oomKills, type TestPod } from './support/node.ts';

const LIMIT = 512 * MI;
const LEAKERS = 10;
const RATE_MB_PER_SECOND = 50;

/** How a leak that takes more than the limit ended. */
function startLeak(
  program: string,
  pod: TestPod,
  directory: string,
): Promise<NodeJS.Signals | number | null> {
  const record = path.join(directory, pod.cgroup.name);
  const rate = String(RATE_MB_PER_SECOND);
  const argv = [record, String(2 * LIMIT), rate, 'small', pod.cgroup.path];
  const child = spawn(program, argv, { stdio: ['ignore', 'ignore', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  return new Promise((resolve) => child.once('exit', (code, signal) => resolve(signal ?? code)));
}

describeWith({ root: true, cgroupV1: true, programs: ['cc'] }, 'ten leakers at once', () => {
  it('are all evicted one after another, none by the kernel', async () => {
    for (let round = 1; round <= count(1, 5); round += 1) await leak();
  });
});

async function leak(): Promise<void> {
  const program = compile(new URL('../../bench/race/leak.c', import.meta.url));
  const node = makeNode(LIMIT);
  const web = await node.bystander();
  const pods = Array.from({ length: LEAKERS }, (_, n) => node.pod(`leak-${n}`));
  const args = ['--eviction-hard', 'memory.available<64Mi', '--pod', 'web=priority:1000'];
  const daemon = await startDaemon({ node: node.path, args });
  node.cgroup.write('memory.max_usage_in_bytes', 0);
  // In memory, so that its pages are never written back in the middle of it.
  const directory = privateDirectory('/dev/shm');
  const endings = await within(
    Promise.all(pods.map((pod) => startLeak(program, pod, directory))),
    60_000,
    'all leaks have ended',
  );
  expect(endings).toEqual(pods.map(() => 'SIGKILL'));
  const evictions = await daemon.ended(LEAKERS);
  expect(new Set(evictions.map(({ pod }) => pod))).toEqual(
    new Set(pods.map(({ cgroup }) => cgroup.name)),
  );
  expect(evictions).toMatchObject(pods.map(() => ({ outcome: 'evicted' })));
  expectOneAtATime((await daemon.status()).evictions);
  for (const { cgroup } of pods) expect(oomKills(cgroup)).toBe(0);
  const { counters } = await daemon.status();
  expect(counters.lostRaces).toBe(0);
  const peak = Number(node.cgroup.read('memory.max_usage_in_bytes'));
  const firsts = evictions.map(({ timing }) => timing.firstSignalMs ?? Infinity);
  const ends = evictions.map(({ timing }) => timing.endedMs ?? Infinity);
  report(
    `${evictions.length} evicted, peak ${((LIMIT - peak) / MI).toFixed(1)} MiB below the limit, ` +
      `first signal after at most ${Math.max(...firsts).toFixed(2)} ms, ` +
      `ended after at most ${Math.max(...ends).toFixed(0)} ms`,
  );
  web.expectAlive();
  await daemon.stop();
}
