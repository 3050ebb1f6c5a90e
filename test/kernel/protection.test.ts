import { expect, it } from 'vitest';
import { describeWith } from '../support/skip.ts';
import { startDaemon } from './support/daemon.ts';
import { death, fill, MI, makeNode } from './support/node.ts';

const HARD_64 = ['--eviction-hard', 'memory.available<64Mi'];

/** Moves itself into a cgroup, and becomes what follows. */
const INSIDE = ['bash', '-c', 'echo $$ > "$0/cgroup.procs" && exec "$@"'] as const;

/**
 * Moves itself into a cgroup, and runs what follows outside of it, as its child.
 * $0: its own cgroup, $1: the child's.
 */
const ABOVE = [
  'bash',
  '-c',
  `echo $$ > "$0/cgroup.procs" || exit 9
   outside=$1; shift
   (echo $BASHPID > "$outside/cgroup.procs" && exec "$@") &
   wait $!`,
] as const;

describeWith({ root: true, cgroupV1: true }, 'evictd spares itself', () => {
  it.each<[string, readonly string[]]>([
    ['in a pod', []],
    ['in a cgroup below a pod', ['a', 'b']],
  ])('%s of its own node', async (_, below) => {
    const node = makeNode(384 * MI);
    const web = await node.bystander();
    const home = node.pod('home');
    const inner = below.reduce((cgroup, name) => cgroup.child(name), home.cgroup);
    const big = await home.spawn();
    const leak = await node.pod('leak').spawn();
    await big.grow(120 * MI);
    const daemon = await startDaemon({
      node: node.path,
      wrapper: [...INSIDE, inner.path],
      args: [...HARD_64, '--pod', 'home=priority:-100', '--pod', 'web=priority:1000'],
    });
    expect(inner.pids()).toContain(daemon.pid);
    const { pods } = await daemon.status();
    expect(pods[0]).toMatchObject({ name: 'home', protected: expect.stringContaining('evictd') });

    await fill(node.cgroup, leak, 340 * MI);
    expect(await death(leak)).toMatchObject({ signal: 'SIGKILL' });
    expect((await daemon.ended(1))[0]).toMatchObject({ pod: 'leak', outcome: 'evicted' });
    process.kill(big.pid, 0);
    web.expectAlive();
    await daemon.stop();
  });

  it('and in a cgroup namespace that shares an ancestor with the pods it still evicts the right one', async () => {
    const node = makeNode(256 * MI);
    const agent = node.pod('agent');
    const web = await node.bystander();
    const leak = await node.pod('leak').spawn();
    const inside = 'echo $$ > "$0/cgroup.procs"; exec unshare -C "$@"';
    const daemon = await startDaemon({
      node: node.path,
      wrapper: ['bash', '-c', inside, agent.cgroup.path],
      args: [...HARD_64, '--pod', 'agent=priority:-100', '--pod', 'web=priority:1000'],
    });
    const { pods } = await daemon.status();
    expect(pods.find(({ name }) => name === 'agent')?.protected).toContain('evictd');
    await fill(node.cgroup, leak, 210 * MI);
    expect(await death(leak)).toMatchObject({ signal: 'SIGKILL' });
    expect((await daemon.ended(1))[0]).toMatchObject({ pod: 'leak', outcome: 'evicted' });
    web.expectAlive();
    await daemon.stop();
  });

  it('and its ancestors', async () => {
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const home = node.pod('home');
    const leak = await node.pod('leak').spawn();
    const outside = makeNode(1024 * MI);
    const daemon = await startDaemon({
      node: node.path,
      wrapper: [...ABOVE, home.cgroup.path, outside.path],
      args: [...HARD_64, '--pod', 'home=priority:-100', '--pod', 'web=priority:1000'],
    });
    expect(home.cgroup.pids()).toEqual([daemon.child.pid]);
    expect(daemon.pid).not.toBe(daemon.child.pid);
    expect(outside.cgroup.pids()).toEqual([daemon.pid]);
    const { pods } = await daemon.status();
    expect(pods.find(({ name }) => name === 'home')?.protected).toContain('ancestors');

    await fill(node.cgroup, leak, 210 * MI);
    expect(await death(leak)).toMatchObject({ signal: 'SIGKILL' });
    expect((await daemon.ended(1))[0]).toMatchObject({ pod: 'leak', outcome: 'evicted' });
    web.expectAlive();
    await daemon.stop();
  });
});
