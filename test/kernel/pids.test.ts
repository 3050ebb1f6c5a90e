import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { report } from '../support/counts.ts';
import { describeWith } from '../support/skip.ts';
import { until, within } from '../support/wait.ts';
import { expectCalm } from './support/calm.ts';
import { startDaemon } from './support/daemon.ts';
import { MI, makeNode, type TestNode, type TestPod, twinOf } from './support/node.ts';

const PIDS = 500;
const LIMIT_MS = 30_000;
const BOMB_SECONDS = '60';
const program = fileURLToPath(new URL('support/pid-bomb.py', import.meta.url));

/** A node of 500 PIDs, and the group of the same path of each pod. */
function makePidNode(limitBytes = 512 * MI) {
  const node = makeNode(limitBytes);
  const twin = twinOf(node.cgroup, 'pids');
  twin.write('pids.max', PIDS);
  return { node, twin };
}

async function bombIn(pod: TestPod, kind: 'fork' | 'thread') {
  const twin = twinOf(pod.cgroup, 'pids');
  const child = spawn('python3', [program, kind, BOMB_SECONDS, twin.path, pod.cgroup.path], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  child.stdin.on('error', () => undefined);
  await within(once(child.stdout, 'data'), LIMIT_MS, 'the bomb is ready');
  return { child, twin, ignite: () => void child.stdin.write('go\n') };
}

const bystandersOf = async (node: TestNode) =>
  Promise.all(
    ['web', 'db'].map(async (name) => {
      const pod = node.pod(name);
      return pod.spawn({ beside: [twinOf(pod.cgroup, 'pids')] });
    }),
  );

const tasksOf = (pid: number) => readdirSync(`/proc/${pid}/task`).length;

/** No task more than it has now can be started by the process and what it starts. */
function holdTasks(pid: number, node: TestNode) {
  const own = twinOf(node.cgroup.child('evictd-itself'), 'pids');
  own.join(pid);
  own.write('pids.max', tasksOf(pid));
  return own;
}

const death = (child: ChildProcess) =>
  within(
    once(child, 'exit').then(([, signal]) => signal as NodeJS.Signals | null),
    LIMIT_MS,
    'the bomb dies',
  );

describeWith({ root: true, cgroupV1: true, pidsV1: true }, 'PID exhaustion', () => {
  it.each(['fork', 'thread'] as const)(
    'a %s bomb is evicted, the others live, and evictd starts nothing for it',
    async (kind) => {
      const { node, twin } = makePidNode();
      const others = await bystandersOf(node);
      const daemon = await startDaemon({
        node: node.path,
        args: [
          '--eviction-hard=pid.available<100,memory.available<16Mi',
          '--eviction-pressure-transition-period=2s',
          // What evictd is in is no pod of its own node: it has been moved there for its PIDs alone.
          '--scheduling=normal',
        ],
      });
      const bomb = await bombIn(node.pod('bomb'), kind);
      const calm = await daemon.status();
      expect(calm.signals).toContainEqual(
        expect.objectContaining({ signal: 'pid.available', unit: 'tasks', capacity: PIDS }),
      );
      const descriptors = readdirSync(`/proc/${daemon.pid}/fd`).length + 4;
      const held = holdTasks(daemon.pid, makeNode(64 * MI));
      const tasks = tasksOf(daemon.pid);

      const ended = death(bomb.child);
      bomb.ignite();
      expect(await ended).toBe('SIGKILL');
      const [eviction] = await daemon.ended(1);
      expect(eviction).toMatchObject({ pod: 'bomb', outcome: 'evicted', hard: true });
      expect(eviction?.message).toMatch(
        /^The node was low on resource: pids\. Threshold quantity: 100, available: \d+\. The pod had \d+ tasks\.$/,
      );
      report(
        `${kind} bomb: KILL ${eviction?.timing.killedMs} ms after the decision: ${eviction?.message}`,
      );
      const under = await daemon.line('node condition set');
      expect(under['condition']).toBe('PIDPressure');
      await daemon.line('node condition cleared');
      await until('the PIDs are back', () => Number(twin.read('pids.current')) < 50, {
        limitMs: LIMIT_MS,
      });
      for (const { pid } of others) expect(() => process.kill(pid, 0)).not.toThrow();
      expect(tasksOf(daemon.pid)).toBe(tasks);
      expect(Number(held.read('pids.events').split(' ')[1] ?? 0)).toBe(0);
      held.write('pids.max', 'max');
      await expectCalm(daemon, descriptors);
      expect((await daemon.status()).evictions).toHaveLength(1);
    },
  );

  it('who has many tasks that are not the node’s is not evicted for them', async () => {
    const { node } = makePidNode();
    const elsewhere = twinOf(makeNode(64 * MI).cgroup, 'pids');
    const far = await node.pod('far').spawn({ beside: [elsewhere] });
    const daemon = await startDaemon({
      node: node.path,
      args: ['--eviction-hard=pid.available<100,memory.available<16Mi', '--pod=far=priority:-10'],
    });
    const bomb = await bombIn(node.pod('bomb'), 'thread');
    const ended = death(bomb.child);
    bomb.ignite();
    expect(await ended).toBe('SIGKILL');
    await daemon.ended(1);
    const { evictions } = await daemon.status();
    expect(evictions.map(({ pod, outcome }) => [pod, outcome])).toEqual([['bomb', 'evicted']]);
    process.kill(far.pid, 0);
    await daemon.stop();
  });

  it('the condition begins and ends on time, and nobody goes while there is no threshold', async () => {
    const { node } = makePidNode();
    const daemon = await startDaemon({
      node: node.path,
      args: ['--eviction-hard=memory.available<16Mi'],
    });
    const bomb = await bombIn(node.pod('bomb'), 'thread');
    bomb.ignite();
    await until('the PIDs are gone', () => Number(bomb.twin.read('pids.current')) > 450, {
      limitMs: LIMIT_MS,
    });
    const status = await daemon.status();
    expect(status.evictions).toEqual([]);
    expect(status.signals.map(({ signal }) => signal)).toEqual(['memory.available']);
    expect(bomb.child.exitCode).toBeNull();
  });
});
