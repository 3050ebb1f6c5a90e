import { readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import type { StatusDocument } from '../../src/surfaces/status.ts';
import { count, report } from '../support/counts.ts';
import { describeWith } from '../support/skip.ts';
import { until, within } from '../support/wait.ts';
import { expectCalm } from './support/calm.ts';
import { type Daemon, privateDirectory, startDaemon } from './support/daemon.ts';
import { death, fill, MI, makeNode, oomKills } from './support/node.ts';

const RELOADS = count(30, 500);
/** Long enough for all reloads to fall into the grace. */
const GRACE_S = count(8, 150);
const LIMIT_MS = 200_000;

const RELOADED = 'configuration reloaded';
const REFUSED = 'configuration not reloaded: the former one stays in force';

/** A configuration of evictd's own kind, and what writes it anew. */
function configuration(fields: Readonly<Record<string, unknown>>) {
  const file = path.join(privateDirectory(), 'evictd.yaml');
  const text = (more: Readonly<Record<string, unknown>>) =>
    JSON.stringify({
      apiVersion: 'evictd.dev/v1alpha1',
      kind: 'EvictdConfiguration',
      ...fields,
      ...more,
    });
  const write = (more: Readonly<Record<string, unknown>> = {}) => writeFileSync(file, text(more));
  write();
  return { file, write, spoil: (garbage: string) => writeFileSync(file, garbage) };
}

/** Has the daemon read its configuration again; the line that it says then. */
async function reload(daemon: Daemon) {
  const from = daemon.lines.length;
  process.kill(daemon.pid, 'SIGHUP');
  const said = () =>
    daemon.lines.slice(from).find(({ msg }) => msg === RELOADED || msg === REFUSED);
  await until('the reload is told', () => said() !== undefined, { limitMs: LIMIT_MS });
  return said();
}

const isArmed = ({ thresholds }: StatusDocument) =>
  thresholds.every(({ notification }) => notification.path === 'memcg-threshold');

const descriptorsOf = (daemon: Daemon) => readdirSync(`/proc/${daemon.pid}/fd`).length;

describeWith({ root: true, cgroupV1: true }, 'SIGHUP', () => {
  it('takes in a good file and keeps the old one for a bad one, saying why', async () => {
    const { file, write, spoil } = configuration({ evictionHard: { 'memory.available': '16Mi' } });
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const leak = await node.pod('leak').spawn();
    const daemon = await startDaemon({
      node: node.path,
      args: ['--config', file, '--pod=web=priority:1000'],
    });
    await fill(node.cgroup, leak, 200 * MI);
    spoil('apiVersion: evictd.dev/v1alpha1\nkind: EvictdConfiguration\nevictonHard: {}\n');
    expect(await reload(daemon)).toMatchObject({
      level: 'error',
      reason: expect.stringMatching(/:3: evictonHard.*did you mean evictionHard/),
    });
    expect((await daemon.status()).thresholds[0]?.value).toBe('16Mi');
    // What only a start can change is said, and stays.
    write({ socket: '/elsewhere/evictd.sock', dryRun: true });
    expect(await reload(daemon)).toMatchObject({ msg: RELOADED });
    expect((await daemon.status()).evictd.dryRun).toBe(true);
    write({ evictionHard: { 'memory.available': '64Mi' } });
    expect(await reload(daemon)).toMatchObject({
      msg: RELOADED,
      thresholds: ['hard: memory.available<64Mi'],
    });
    expect(await death(leak)).toMatchObject({ signal: 'SIGKILL' });
    expect((await daemon.ended(1))[0]).toMatchObject({ pod: 'leak', outcome: 'evicted' });
    await daemon.statusWhen('it is armed anew', isArmed);
    web.expectAlive();
    await daemon.stop();
  });

  it.each([
    ['protects it', { pods: [{ cgroup: 'leak', protected: true }] }, 'configured'],
    [
      'says nothing of it any more',
      { pods: [{ cgroup: 'we*' }] },
      'nothing makes it a pod any more',
    ],
    [
      'drops its threshold',
      { evictionSoft: {}, evictionSoftGracePeriod: {} },
      'its threshold is gone',
    ],
    ['is a dry run', { dryRun: true }, 'dry run'],
  ] as const)(
    'a victim in its grace gets no KILL where the new file %s',
    async (_, change, why) => {
      const { file, write } = configuration({
        evictionHard: { 'memory.available': '8Mi' },
        evictionSoft: { 'memory.available': '64Mi' },
        evictionSoftGracePeriod: { 'memory.available': '100ms' },
        evictionMaxPodGracePeriod: 2,
        pods: [{ cgroup: '*' }],
      });
      const node = makeNode(256 * MI);
      const leak = await node.pod('leak').spawn({ onTerm: 'ignore' });
      const daemon = await startDaemon({ node: node.path, args: ['--config', file] });
      await fill(node.cgroup, leak, 200 * MI);
      await within(leak.terminated, LIMIT_MS, 'it gets TERM');
      write(change);
      expect((await reload(daemon))?.msg).toBe(RELOADED);
      const line = await daemon.line('eviction not carried out');
      expect(line['reason']).toBe(`protected: in its grace: ${why}`);
      process.kill(leak.pid, 0);
      await daemon.stop();
    },
  );

  it('ends a dry run under pressure: the pod goes at once', async () => {
    const { file, write } = configuration({
      evictionHard: { 'memory.available': '64Mi' },
      dryRun: true,
    });
    const node = makeNode(256 * MI);
    const leak = await node.pod('leak').spawn();
    const daemon = await startDaemon({ node: node.path, args: ['--config', file] });
    await fill(node.cgroup, leak, 200 * MI);
    await daemon.line('dry run: would have evicted');
    write({ dryRun: false });
    await reload(daemon);
    expect(await death(leak)).toMatchObject({ signal: 'SIGKILL' });
    await daemon.stop();
  });

  it(`${RELOADS} times under pressure: no grace, no eviction, no descriptor is lost`, async () => {
    const soft = {
      evictionHard: { 'memory.available': '16Mi' },
      evictionSoft: { 'memory.available': '64Mi' },
      evictionSoftGracePeriod: { 'memory.available': `${GRACE_S}s` },
      evictionPressureTransitionPeriod: '1s',
    };
    const { file, write, spoil } = configuration(soft);
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const leak = await node.pod('leak').spawn();
    const daemon = await startDaemon({
      node: node.path,
      args: ['--config', file, '--pod=web=priority:1000'],
    });
    await reload(daemon);
    await daemon.statusWhen('it is armed', isArmed);
    const descriptors = descriptorsOf(daemon);
    await fill(node.cgroup, leak, 210 * MI);
    const met = await daemon.line('threshold met', ({ kind }) => kind === 'soft');
    const metMs = Date.parse(met.time);
    const bad = ['{', 'kind: Nonsense\n', 'evictionHard: {memory.available: 64MiB}\n', ''];
    for (let round = 0; round < RELOADS; round += 1) {
      if (round % 2 === 0) {
        write({ evictionMinimumReclaim: { 'memory.available': `${round}Ki` } });
        expect((await reload(daemon))?.msg).toBe(RELOADED);
      } else {
        spoil(bad[(round >> 1) % bad.length] as string);
        expect((await reload(daemon))?.msg).toBe(REFUSED);
      }
    }
    const tookMs = Date.now() - metMs;
    report(`${RELOADS} reloads in ${tookMs} ms of a grace of ${GRACE_S} s`);
    expect(tookMs).toBeLessThan(1000 * GRACE_S);
    expect((await daemon.status()).conditions).toContainEqual(
      expect.objectContaining({ type: 'MemoryPressure', status: true }),
    );

    expect(await death(leak, LIMIT_MS)).toMatchObject({ signal: 'SIGKILL' });
    const evicting = await daemon.line('evicting');
    const graceMs = Date.parse(evicting.time) - metMs;
    report(`decided ${graceMs - 1000 * GRACE_S} ms after the grace`);
    expect(graceMs).toBeGreaterThanOrEqual(1000 * GRACE_S - 2);
    expect(graceMs).toBeLessThan(1000 * GRACE_S + 100);
    await daemon.ended(1);
    expect(oomKills(node.cgroup)).toBe(0);
    expect(daemon.lines.filter(({ msg }) => msg === 'node condition set')).toHaveLength(1);

    // A hard crossing right after a reload is heard as one before it.
    const again = await node.pod('again').spawn();
    write({ evictionHard: { 'memory.available': '32Mi' } });
    await reload(daemon);
    await again.grow(220 * MI).catch(() => undefined);
    expect(await death(again)).toMatchObject({ signal: 'SIGKILL' });
    expect(oomKills(node.cgroup)).toBe(0);
    web.expectAlive();
    await expectCalm(daemon, descriptors + 4);
    await daemon.stop();
  });
});
