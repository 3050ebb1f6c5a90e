import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { describeWith } from '../support/skip.ts';
import { until } from '../support/wait.ts';
import { startDaemon } from './support/daemon.ts';
import { death, fill, isAlive, MI, makeNode } from './support/node.ts';

const HARD_64 = ['--eviction-hard', 'memory.available<64Mi'];

let made = 0;

/** A group in the freezer hierarchy, thawed and removed with the test. */
async function makeFreezer(pids: readonly number[]) {
  made += 1;
  const directory = path.join('/sys/fs/cgroup/freezer', `evictd-test-${process.pid}-${made}`);
  mkdirSync(directory);
  const state = path.join(directory, 'freezer.state');
  const procs = path.join(directory, 'cgroup.procs');
  const read = () => readFileSync(state, 'utf8').trim();
  const thaw = () => writeFileSync(state, 'THAWED');
  onTestFinished(async () => {
    thaw();
    // Back to where they came from: a group with a process cannot go.
    for (const pid of readFileSync(procs, 'utf8').split('\n').filter(Boolean)) {
      writeFileSync('/sys/fs/cgroup/freezer/cgroup.procs', pid);
    }
    await until(`${directory} is removed`, () => isRemoved(directory), { limitMs: 10_000 });
  });
  for (const pid of pids) writeFileSync(procs, String(pid));
  const freeze = async () => {
    writeFileSync(state, 'FROZEN');
    await until('it is frozen', () => read() === 'FROZEN', { limitMs: 5000 });
  };
  return { directory, freeze, thaw, read };
}

function isRemoved(directory: string): boolean {
  try {
    rmdirSync(directory);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EBUSY') return false;
    throw error;
  }
}

describeWith({ root: true, cgroupV1: true, freezerV1: true }, 'a frozen pod', () => {
  it('is thawed and dies when nobody else is in its freezer group', async () => {
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const big = await node.pod('frozen').spawn();
    const filler = await node.pod('filler').spawn();
    await big.grow(120 * MI);
    const daemon = await startDaemon({ node: node.path, args: HARD_64 });
    const freezer = await makeFreezer([big.pid]);
    await freezer.freeze();
    await fill(node.cgroup, filler, 200 * MI);
    expect(await death(big)).toMatchObject({ signal: 'SIGKILL' });
    expect(freezer.read()).toBe('THAWED');
    const evictions = await daemon.ended(1);
    expect(evictions).toHaveLength(1);
    expect(evictions[0]).toMatchObject({ pod: 'frozen', outcome: 'evicted', processes: 1 });
    process.kill(filler.pid, 0);
    web.expectAlive();
    await daemon.stop();
  });

  it('is thawed where a group above its own is frozen, too', async () => {
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const big = await node.pod('frozen').spawn();
    const filler = await node.pod('filler').spawn();
    await big.grow(120 * MI);
    const daemon = await startDaemon({ node: node.path, args: HARD_64 });
    const above = await makeFreezer([]);
    const inner = path.join(above.directory, 'inner');
    mkdirSync(inner);
    onTestFinished(async () => {
      await until('inner is removed', () => isRemoved(inner), { limitMs: 10_000 });
    });
    writeFileSync(path.join(inner, 'cgroup.procs'), String(big.pid));
    await above.freeze();
    await fill(node.cgroup, filler, 200 * MI);
    expect(await death(big)).toMatchObject({ signal: 'SIGKILL' });
    expect(above.read()).toBe('THAWED');
    expect((await daemon.ended(1))[0]).toMatchObject({ pod: 'frozen', outcome: 'evicted' });
    process.kill(filler.pid, 0);
    web.expectAlive();
    await daemon.stop();
  });

  it('stays frozen beside a foreign process: timed out, and the next candidate goes', async () => {
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const big = await node.pod('frozen').spawn();
    const next = await node.pod('next').spawn();
    const foreign = await makeNode(64 * MI).bystander('foreign');
    await big.grow(120 * MI);
    // The kernel reaps the memory even of what cannot die (process_mrelease): more is asked for.
    const daemon = await startDaemon({
      node: node.path,
      args: [
        ...HARD_64,
        ...['--eviction-minimum-reclaim', 'memory.available=150Mi'],
        ...['--pod', 'web=priority:1000'],
      ],
    });
    const freezer = await makeFreezer([big.pid, foreign.child.pid]);
    await freezer.freeze();
    await fill(node.cgroup, next, 200 * MI);

    // The frozen one cannot die within the 5 s that a hard victim is given.
    expect(await death(next)).toMatchObject({ signal: 'SIGKILL' });
    const evictions = await daemon.ended(2);
    expect(evictions[0]).toMatchObject({ pod: 'frozen', outcome: 'timedOut' });
    expect(evictions[0]?.reason).toContain('holds other processes');
    expect(evictions[0]?.timing.endedMs).toBeGreaterThanOrEqual(5000);
    expect(evictions[1]).toMatchObject({ pod: 'next', outcome: 'evicted' });
    expect(freezer.read()).toBe('FROZEN');
    expect(isAlive(foreign.child.pid)).toBe(true);
    expect(isAlive(big.pid)).toBe(true);
    const { pods } = await daemon.status();
    expect(pods.find(({ name }) => name === 'frozen')?.passedOver).toBe(true);
    web.expectAlive();
    freezer.thaw();
    expect(await death(big)).toMatchObject({ signal: 'SIGKILL' });
    await daemon.stop();
  });

  it('is not waited for while another takes what it should give back', async () => {
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const big = await node.pod('frozen').spawn();
    const leak = await node.pod('leak').spawn();
    const foreign = await makeNode(64 * MI).bystander('foreign');
    await big.grow(120 * MI);
    const daemon = await startDaemon({
      node: node.path,
      args: [...HARD_64, '--pod', 'web=priority:1000'],
    });
    const freezer = await makeFreezer([big.pid, foreign.child.pid]);
    await freezer.freeze();
    await fill(node.cgroup, leak, 198 * MI);
    await daemon.statusWhen('the frozen one is being evicted', ({ evicting }) => {
      return evicting?.pod === 'frozen';
    });
    // In steps, until the figures say that it is not dying fast enough.
    const leakOn = async () => {
      for (;;) {
        if (node.cgroup.usageBytes() < 244 * MI) await leak.grow(2 * MI);
        const { evicting } = await daemon.status();
        if (evicting?.pod !== 'frozen') return;
      }
    };
    await leakOn().catch(() => undefined);
    expect(await death(leak)).toMatchObject({ signal: 'SIGKILL' });
    const evictions = await daemon.ended(2);
    expect(evictions[0]).toMatchObject({ pod: 'frozen', outcome: 'timedOut' });
    expect(evictions[0]?.reason).toMatch(/^stillDying/);
    expect(evictions[0]?.timing.endedMs).toBeLessThan(4000);
    expect(evictions[1]).toMatchObject({ pod: 'leak', outcome: 'evicted' });
    expect(isAlive(foreign.child.pid)).toBe(true);
    web.expectAlive();
    await daemon.stop();
  });
});
