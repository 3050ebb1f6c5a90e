import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { count, FULL, report } from '../support/counts.ts';
import { describeWith } from '../support/skip.ts';
import { privateDirectory } from './support/daemon.ts';
import {
  describeRace,
  type RaceOptions,
  race,
  raceWithFloor,
  type Summary,
} from './support/race.ts';

/** How far above the floor of the same sitting the plain race may be, ms. */
const MEDIAN_ABOVE_FLOOR_MS = 3;
const P90_ABOVE_FLOOR_MS = 8;

const REQUIREMENTS = { root: true, cgroupV1: true, programs: ['cc'] } as const;

function expectAllEvicted(summary: Summary): void {
  expect(summary).toMatchObject({
    runs: summary.runs,
    outcomes: { evicted: summary.runs, oom: 0, bystander: 0, early: 0, none: 0 },
    agentEnded: 0,
  });
}

/** Runs that compare with the floor: what it did is told, not judged. */
async function beside(options: RaceOptions) {
  const comparison = await raceWithFloor(options, Math.min(options.runs, 10));
  report(describeRace('evictd', comparison.agent));
  report(describeRace('floor', comparison.floor));
  const { difference } = comparison;
  if (difference !== null) {
    const { medianMs, p90Ms } = difference;
    report(`above the floor: median ${medianMs.toFixed(2)} ms, p90 ${p90Ms.toFixed(2)} ms`);
  }
  expectAllEvicted(comparison.agent);
  return comparison;
}

async function alone(options: RaceOptions): Promise<Summary> {
  const summary = await race(options);
  report(describeRace('evictd', summary));
  expectAllEvicted(summary);
  return summary;
}

describeWith(REQUIREMENTS, 'the leak race is won', () => {
  it('at a headroom of 32Mi, close to the floor', async () => {
    const { difference } = await beside({ runs: count(5, 50), headroom: '32Mi' });
    // A figure of a few runs on a machine that does other things says nothing.
    if (!FULL) return;
    expect(difference?.medianMs).toBeLessThanOrEqual(MEDIAN_ABOVE_FLOOR_MS);
    expect(difference?.p90Ms).toBeLessThanOrEqual(P90_ABOVE_FLOOR_MS);
  });

  it.each<[string, Partial<RaceOptions>]>([
    ['on a busy machine', { busy: 4, headroom: '32Mi' }],
    ['against a pod that no poll saw', { late: true, headroom: '32Mi' }],
    ['against huge pages', { huge: true, headroom: '128Mi' }],
    ['over page cache', { pagecache: '128Mi', headroom: '192Mi' }],
  ])('%s', async (_, options) => {
    await beside({ runs: count(3, 20), ...options });
  });

  it('over more page cache than headroom, where the kernel sends no event', async () => {
    await alone({ runs: count(3, 20), pagecache: '128Mi', headroom: '32Mi' });
  });

  it('against two leaks at once', async () => {
    const { atLimit } = await alone({ runs: count(2, 20), leakers: 2, headroom: '128Mi' });
    expect(atLimit).toBe(0);
  });

  it('against ten leaks at 50 MB/s each', async () => {
    const options = { runs: count(1, 20), leakers: 10, rate: 50, headroom: '64Mi' };
    const { atLimit } = await alone(options);
    expect(atLimit).toBe(0);
  });

  it('by polling alone, at 200 MB/s', async () => {
    await alone({ runs: count(3, 20), notify: false, headroom: '64Mi', rate: 200 });
  });

  it.each<[string, Partial<RaceOptions>]>([
    ['by cgroup.kill', { twin: true }],
    ['by pid, where that is permitted', { flags: ['--allow-pid-kill'] }],
  ])('without the addon, at 100 MB/s: %s', async (_, options) => {
    await alone({
      runs: count(2, 20),
      notify: false,
      withoutAddon: true,
      limit: '512Mi',
      headroom: '64Mi',
      rate: 100,
      ...options,
    });
  });

  it('while nobody reads the log', async () => {
    const flags = ['--log-level', 'trace'];
    await alone({ runs: count(3, 20), headroom: '32Mi', stdout: 'unread', flags });
  });

  it('with the log on a full disk', async () => {
    const directory = privateDirectory();
    const disk = path.join(directory, 'disk');
    const socket = path.join(directory, 'evictd.sock');
    mkdirSync(disk);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', disk]);
    onTestFinished(() => void spawnSync('umount', [disk]));
    const log = path.join(disk, 'log');
    closeSync(openSync(log, 'w'));
    fillDisk(path.join(disk, 'filler'));
    await alone({
      runs: count(3, 20),
      headroom: '32Mi',
      stdout: `file:${log}`,
      // The line that says that it is ready finds no place.
      askOn: socket,
    });
  });

  it('L17: 200 MB/s against a threshold of 100Mi in 512Mi', async () => {
    const options = { runs: count(5, 50), limit: '512Mi', headroom: '100Mi', rate: 200 };
    const { outcomes } = await alone(options);
    expect(outcomes.oom).toBe(0);
  });
});

/** Leaves no byte free. */
function fillDisk(file: string): void {
  const fd = openSync(file, 'w');
  try {
    for (;;) writeSync(fd, Buffer.alloc(4096));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  } finally {
    closeSync(fd);
  }
}
