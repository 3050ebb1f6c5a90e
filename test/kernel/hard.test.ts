import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { describeWith } from '../support/skip.ts';
import { cpuMs } from './support/cpu.ts';
import { privateDirectory, startDaemon } from './support/daemon.ts';
import { death, fill, isAlive, MI, makeNode, oomKills } from './support/node.ts';

const HARD_64 = ['--eviction-hard', 'memory.available<64Mi'];

/**
 * One line for each change, and no other: the threshold goes to and fro, an eviction has one outcome.
 * The kernel's counter wavers by its batches of 64 pages, so that a crossing may be undone at once.
 */
function expectStory(said: readonly string[]): void {
  const only = (...msgs: readonly string[]) => said.filter((msg) => msgs.includes(msg));
  const threshold = only('threshold met', 'threshold no longer met');
  const inTurns = ['threshold met', 'threshold no longer met'];
  expect(threshold).toEqual(threshold.map((_, at) => inTurns[at % 2]));
  expect(threshold.at(-1)).toBe('threshold no longer met');
  const condition = only('node condition set', 'node condition cleared');
  expect(condition).toEqual(['node condition set']);
  const evicting = only('evicting');
  const ended = only('evicted', 'eviction not carried out');
  expect(ended).toEqual([...evicting.slice(1).map(() => 'eviction not carried out'), 'evicted']);
  expect(said.at(0)).toContain('drops the default thresholds of the others');
  expect([said.at(1), said.at(-1)]).toEqual(['ready', 'stopped']);
  // One that the resource is short, and one for each decision.
  const events = only('event');
  expect(events).toHaveLength(1 + evicting.length);
  const told = [threshold, condition, evicting, ended, events].flat().length;
  expect(told).toBe(said.length - 3);
}

describeWith({ root: true, cgroupV1: true }, 'a hard threshold', () => {
  it.each<[string, boolean]>([
    ['with kernel notification', true],
    ['by polling alone', false],
  ])('evicts the leaker and nobody else: %s', async (_, notify) => {
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const leak = await node.pod('leak').spawn({ onTerm: 'ignore' });
    const daemon = await startDaemon({ node: node.path, notify, args: HARD_64 });
    const calm = await daemon.status();
    expect(calm.thresholds[0]).toMatchObject({ met: false, due: false });
    expect(calm.conditions).toEqual([
      { type: 'MemoryPressure', status: false, lastObservedAgeMs: null, flapping: null },
      { type: 'DiskPressure', status: false, lastObservedAgeMs: null, flapping: null },
      { type: 'PIDPressure', status: false, lastObservedAgeMs: null, flapping: null },
    ]);
    expect(calm.thresholds[0]?.notification.path).toBe(notify ? 'memcg-threshold' : 'polling');

    await fill(node.cgroup, leak, 210 * MI);

    expect(await death(leak)).toMatchObject({ signal: 'SIGKILL' });
    const [eviction] = await daemon.ended(1);
    expect(eviction).toMatchObject({
      pod: 'leak',
      outcome: 'evicted',
      reason: null,
      hard: true,
      gracePeriodMs: 0,
      processes: 1,
      message: expect.stringContaining('The node was low on resource: memory'),
    });
    const { firstSignalMs, killedMs, emptyMs, endedMs } = eviction?.timing ?? {};
    expect(firstSignalMs).toBe(killedMs);
    expect(killedMs).toBeGreaterThanOrEqual(0);
    expect(emptyMs).toBeGreaterThanOrEqual(killedMs ?? Number.NaN);
    // Its effect was awaited: two readings 20 ms apart that no longer fall.
    expect(endedMs).toBeGreaterThanOrEqual((emptyMs ?? Number.NaN) + 20);

    await daemon.line('threshold no longer met');
    const after = await daemon.status();
    expect(after.conditions[0]).toMatchObject({ type: 'MemoryPressure', status: true });
    expect(after.evicting).toBeNull();
    web.expectAlive();
    await daemon.stop();
    expectStory(daemon.said());
    expect(await daemon.line('evicting')).toMatchObject({ pod: 'leak', kind: 'hard' });
    const met = { level: 'warn', thresholdLevel: 64 * MI, capacity: 256 * MI };
    expect(await daemon.line('threshold met')).toMatchObject(met);
  });

  it('takes all processes of all cgroups of a pod, and none of its neighbour', async () => {
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const pod = node.pod('leak');
    const inner = pod.cgroup.child('a').child('b');
    const children = await Promise.all([
      pod.spawn({ onTerm: 'ignore' }),
      pod.spawn({ below: inner }),
      pod.spawn({ below: inner, onTerm: 'ignore' }),
    ]);
    const daemon = await startDaemon({ node: node.path, args: HARD_64 });
    await fill(node.cgroup, children[1], 210 * MI);

    const deaths = await Promise.all(children.map((child) => death(child)));
    expect(deaths.map(({ signal }) => signal)).toEqual(['SIGKILL', 'SIGKILL', 'SIGKILL']);
    expect((await daemon.ended(1))[0]).toMatchObject({
      pod: 'leak',
      outcome: 'evicted',
      processes: 3,
    });
    web.expectAlive();
    await daemon.stop();
  });

  it('evicts a pod that no poll has seen', async () => {
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const args = [...HARD_64, '--poll-interval', '1h'];
    const daemon = await startDaemon({ node: node.path, args });
    const leak = await node.pod('late').spawn();
    const before = await daemon.status();
    expect(before.pods.map(({ name }) => name)).toEqual(['web']);

    await fill(node.cgroup, leak, 210 * MI);
    expect(await death(leak)).toMatchObject({ signal: 'SIGKILL' });
    expect((await daemon.ended(1))[0]).toMatchObject({ pod: 'late', outcome: 'evicted' });
    web.expectAlive();
    await daemon.stop();
  });

  it('with a grace of its own sends TERM first', async () => {
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const leak = await node.pod('leak').spawn({ onTerm: 'ignore' });
    const args = [...HARD_64, '--hard-eviction-grace-period-seconds', '1'];
    const daemon = await startDaemon({ node: node.path, args });
    await fill(node.cgroup, leak, 210 * MI);
    expect(await death(leak)).toMatchObject({ signal: 'SIGKILL' });
    const [eviction] = await daemon.ended(1);
    expect(eviction).toMatchObject({ outcome: 'evicted', hard: true, gracePeriodMs: 1000 });
    expect(eviction?.timing.firstSignalMs).toBeLessThan(100);
    expect(eviction?.timing.killedMs).toBeGreaterThanOrEqual(1000);
    web.expectAlive();
    await daemon.stop();
  });

  it('goes on until the minimum reclaim is regained', async () => {
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const [a, b, c] = await Promise.all([
      node.pod('a').spawn(),
      node.pod('b').spawn(),
      node.pod('c').spawn(),
    ]);
    await Promise.all([a.grow(80 * MI), b.grow(70 * MI)]);
    const args = [...HARD_64, '--eviction-minimum-reclaim', 'memory.available=100Mi'];
    const daemon = await startDaemon({ node: node.path, args });
    // Above the threshold after the first eviction, but not by the minimum reclaim.
    await fill(node.cgroup, c, 210 * MI);

    expect(await death(a)).toMatchObject({ signal: 'SIGKILL' });
    expect(await death(b)).toMatchObject({ signal: 'SIGKILL' });
    const evictions = await daemon.ended(2);
    expect(evictions.map(({ pod, outcome }) => [pod, outcome])).toEqual([
      ['a', 'evicted'],
      ['b', 'evicted'],
    ]);
    await daemon.line('threshold no longer met');
    const reclaiming = await daemon.line('evicting', ({ pod }) => pod === 'b');
    expect(reclaiming).toMatchObject({ reclaiming: true });
    const { signals, thresholds } = await daemon.status();
    expect(thresholds[0]?.minimumReclaimLevel).toBe(100 * MI);
    expect(signals[0]?.available).toBeGreaterThanOrEqual(164 * MI);
    process.kill(c.pid, 0);
    web.expectAlive();
    await daemon.stop();
  });

  it('takes pods over their request first, by priority, then by usage', async () => {
    const node = makeNode(512 * MI);
    const [low, high, vast, modest] = await Promise.all([
      node.pod('low').spawn(),
      node.pod('high').spawn(),
      node.pod('vast').spawn(),
      node.pod('modest', { softLimitBytes: 200 * MI }).spawn(),
    ]);
    await Promise.all([
      low.grow(40 * MI),
      high.grow(90 * MI),
      vast.grow(60 * MI),
      modest.grow(120 * MI),
    ]);
    const daemon = await startDaemon({
      node: node.path,
      args: [
        ...['--eviction-hard', 'memory.available<96Mi'],
        ...['--eviction-minimum-reclaim', 'memory.available=130Mi'],
        ...['--pod', 'low=priority:-5', '--pod', 'high=priority:5,request:10Mi'],
        ...['--pod', 'vast=priority:-5,request:80Mi', '--pod', 'modest=priority:-100'],
      ],
    });
    const { pods } = await daemon.status();
    expect(pods.map(({ name, qosClass }) => [name, qosClass])).toEqual([
      ['low', 'BestEffort'],
      ['high', 'Burstable'],
      // Within their request, so that not even the lowest priority puts them before the others.
      ['modest', 'Burstable'],
      ['vast', 'Burstable'],
    ]);
    expect(pods[2]?.requestBytes).toBe(200 * MI);

    // Exceeds its request now, and takes its place by priority: usage over request, then.
    await fill(node.cgroup, vast, 430 * MI);
    const evictions = await daemon.ended(1);
    expect(evictions[0]).toMatchObject({ pod: 'vast', outcome: 'evicted' });
    expect(await death(vast)).toMatchObject({ signal: 'SIGKILL' });
    await daemon.statusWhen('calm', ({ thresholds }) => thresholds[0]?.met === false);

    await fill(node.cgroup, low, 430 * MI);
    expect(await death(low)).toMatchObject({ signal: 'SIGKILL' });
    await daemon.statusWhen('calm', ({ thresholds }) => thresholds[0]?.met === false);
    const all = await daemon.ended(2);
    expect(all.map(({ pod }) => pod)).toEqual(['vast', 'low']);
    process.kill(high.pid, 0);
    process.kill(modest.pid, 0);
    await daemon.stop();
  });

  it('never takes a protected pod, and says once that nobody may be evicted', async () => {
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const safe = await node.pod('safe').spawn();
    const other = await node.pod('other').spawn();
    const daemon = await startDaemon({
      node: node.path,
      args: [...HARD_64, '--pod', 'safe=priority:-100,protected', '--pod', 'web=protected'],
    });
    await fill(node.cgroup, safe, 230 * MI);
    expect(await death(other)).toMatchObject({ signal: 'SIGKILL' });
    await daemon.line('pressure, but no pod may be evicted');

    // The threshold stays met: polled each 250 ms, without a second word.
    const before = await daemon.status();
    const cpuBefore = cpuMs(daemon.pid);
    const { uptimeMs } = before.evictd;
    const after = await daemon.statusWhen('a second has passed', ({ evictd }) => {
      return evictd.uptimeMs >= uptimeMs + 1000;
    });
    const samples = after.counters.samples - before.counters.samples;
    expect(samples).toBeGreaterThanOrEqual(3);
    expect(samples).toBeLessThanOrEqual(20);
    expect(cpuMs(daemon.pid) - cpuBefore).toBeLessThan(500);

    expect(after.pods.find(({ name }) => name === 'safe')?.protected).toBe('configured');
    expect(after.evictions.map(({ pod, outcome, reason }) => [pod, outcome, reason])).toEqual([
      ['other', 'evicted', null],
    ]);
    // Its cgroup is still there, and no candidate until a process joins it.
    expect(after.pods.find(({ name }) => name === 'other')?.protected).toBe('holds no process');
    process.kill(safe.pid, 0);
    web.expectAlive();
    await daemon.stop();
    const words = daemon.said().filter((msg) => msg.startsWith('pressure'));
    expect(words).toHaveLength(1);
  });

  it('passes over a pod without processes and takes the next', async () => {
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const leak = await node.pod('leak').spawn();
    // A rehearsal would find out that nobody is in it: by polling alone there is none but the first.
    const daemon = await startDaemon({
      node: node.path,
      notify: false,
      args: [...HARD_64, '--pod', 'empty=priority:-100', '--pod', 'web=request:100Mi'],
    });
    node.pod('empty');
    // What a dead process has left: charged, and nobody to kill for it.
    const shm = tmpfs('64m');
    const writer = nodePodShell(node.path, 'empty', shm, 24);
    expect(writer.status).toBe(0);
    await fill(node.cgroup, leak, 210 * MI);
    expect(await death(leak)).toMatchObject({ signal: 'SIGKILL' });
    const evictions = await daemon.ended(2);
    expect(evictions.map(({ pod, outcome, reason }) => [pod, outcome, reason])).toEqual([
      ['empty', 'refused', 'nothingToKill'],
      ['leak', 'evicted', null],
    ]);
    const { pods } = await daemon.status();
    expect(pods.find(({ name }) => name === 'empty')?.protected).toBe('holds no process');
    web.expectAlive();
    await daemon.stop();
  });

  it.each([60, 80])(
    'with %i descriptors sees all pods and takes the leak alone',
    async (descriptors) => {
      const node = makeNode(256 * MI);
      const web = await node.bystander();
      const others = Array.from({ length: 30 }, (_, index) => node.pod(`idle-${index}`));
      const idle = await Promise.all(others.slice(0, 4).map((pod) => pod.spawn()));
      const leak = await node.pod('leak').spawn();
      const daemon = await startDaemon({
        node: node.path,
        args: ['--eviction-hard', 'memory.available<64Mi'],
        wrapper: ['bash', '-c', `ulimit -n ${descriptors}; exec "$@"`, 'bash'],
      });
      const { pods } = await daemon.status();
      expect(pods).toHaveLength(32);
      await fill(node.cgroup, leak, 200 * MI);
      expect((await death(leak)).signal).toBe('SIGKILL');
      const evictions = await daemon.ended(1);
      expect(evictions.map(({ pod, outcome }) => [pod, outcome])).toEqual([['leak', 'evicted']]);
      web.expectAlive();
      for (const { pid } of idle) expect(isAlive(pid)).toBe(true);
      await daemon.stop();
    },
  );

  it('names what a pod has left charged', async () => {
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const pod = node.pod('leak');
    const shm = tmpfs('128m');
    const holder = pod.shell('head -c 67108864 /dev/zero > "$1/file" && echo done && sleep 1000', [
      shm,
    ]);
    expect(await holder.said).toBe('done');
    const leak = await pod.spawn();
    const daemon = await startDaemon({ node: node.path, args: HARD_64 });
    await fill(node.cgroup, leak, 210 * MI);
    expect(await death(leak)).toMatchObject({ signal: 'SIGKILL' });
    const [eviction] = await daemon.ended(1);
    expect(eviction).toMatchObject({ pod: 'leak', outcome: 'evicted' });
    expect(eviction?.chargedBytes).toBeGreaterThanOrEqual(64 * MI);
    expect(eviction?.chargedBytes).toBeLessThan(96 * MI);
    web.expectAlive();
    await daemon.stop();
  });

  it('evicts two leakers, the second before the limit', async () => {
    const node = makeNode(512 * MI);
    const web = await node.bystander();
    const pods = [node.pod('one'), node.pod('two')];
    const leaks = await Promise.all(pods.map((pod) => pod.spawn()));
    const args = ['--eviction-hard', 'memory.available<128Mi', '--pod', 'web=priority:1000'];
    const daemon = await startDaemon({ node: node.path, args });
    const leakOn = async (leak: (typeof leaks)[number]) => {
      for (;;) await leak.grow(4 * MI);
    };
    const ends = await Promise.allSettled(leaks.map(leakOn));
    expect(ends.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    const evictions = await daemon.ended(2);
    expect(evictions.map(({ pod }) => pod).sort()).toEqual(['one', 'two']);
    expect(node.cgroup.read('memory.failcnt').trim()).toBe('0');
    expect(pods.map(({ cgroup }) => oomKills(cgroup))).toEqual([0, 0]);
    web.expectAlive();
    await daemon.stop();
  });
});

/** A tmpfs of our own, unmounted with the test. */
function tmpfs(size: string): string {
  const directory = path.join(privateDirectory(), 'tmpfs');
  mkdirSync(directory);
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', directory]);
  expect(mounted.status).toBe(0);
  onTestFinished(() => void spawnSync('umount', [directory]));
  return directory;
}

/** Writes a file from within a pod, by a process that is gone afterwards. */
function nodePodShell(node: string, pod: string, directory: string, mebibytes: number) {
  const script = 'echo $$ > "$0/cgroup.procs" && head -c "$2" /dev/zero > "$1/left"';
  const bytes = String(mebibytes * MI);
  return spawnSync('bash', ['-c', script, `${node}/${pod}`, directory, bytes]);
}
