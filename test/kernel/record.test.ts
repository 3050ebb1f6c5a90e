import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { parseDuration } from '../../src/core/duration.ts';
import { simulate } from '../../src/simulation/engine.ts';
import type { Scenario } from '../../src/simulation/scenario.ts';
import { report } from '../support/counts.ts';
import { describeWith } from '../support/skip.ts';
import { privateDirectory, runEvictd, startDaemon } from './support/daemon.ts';
import { death, fill, MI, makeNode } from './support/node.ts';

/** How far a recorded instant may lie from that of the status, whose times are whole ms. */
const ROUNDING_MS = 2;

const victimsOf = (scenario: Scenario, flags = {}) =>
  simulate(scenario, { flags }).ticks.flatMap(({ at, evicted }) =>
    evicted.map(({ pod }) => ({ atMs: parseDuration(at), pod })),
  );

describeWith({ root: true, cgroupV1: true }, 'a recorded daemon', () => {
  it('is decided again as it decided: the same victims in the same order', async () => {
    const node = makeNode(256 * MI);
    const web = await node.bystander();
    const leaks = [
      await node.pod('first').spawn({ onTerm: 'ignore' }),
      await node.pod('second').spawn({ onTerm: 'ignore' }),
    ];
    const args = [
      '--eviction-hard=memory.available<64Mi',
      '--eviction-pressure-transition-period=500ms',
      '--pod=web=priority:1000,protected',
    ];
    const daemon = await startDaemon({ node: node.path, args });
    const file = path.join(privateDirectory(), 'run.json');
    const recorded = runEvictd([
      'record',
      `--socket=${daemon.socketPath}`,
      '--interval=100ms',
      '--duration=30s',
      `--output=${file}`,
    ]);
    // Its interval has the daemon read all pods, which it would do each ten seconds else.
    await daemon.statusWhen(
      'somebody records',
      ({ pods, evictd }) =>
        pods.length === 3 && evictd.uptimeMs > 1000 && pods.every(({ ageMs }) => ageMs < 300),
    );
    for (const [index, leak] of leaks.entries()) {
      await fill(node.cgroup, leak, 200 * MI);
      expect(await death(leak)).toMatchObject({ signal: 'SIGKILL' });
      await daemon.ended(index + 1);
      await daemon.statusWhen('the pressure is over', ({ conditions }) =>
        conditions.every(({ status }) => !status),
      );
    }
    const evictions = await daemon.ended(2);
    await daemon.stop();
    const { code, stderr } = await recorded;
    expect(stderr).toMatch(
      / are written\nevictd: .*: the daemon ended: [\d.]+s of 30s were recorded /,
    );
    expect(code).toBe(6);
    web.expectAlive();

    const scenario = JSON.parse(readFileSync(file, 'utf8')) as Scenario;
    const victims = victimsOf(scenario);
    const carriedOut = victims.filter(({ pod }, at) => pod !== victims[at + 1]?.pod);
    expect(carriedOut.map(({ pod }) => pod)).toEqual(['cgroup/first', 'cgroup/second']);
    const [first, second] = carriedOut;
    const apartMs =
      Date.parse(evictions[1]?.decidedAt ?? '') - Date.parse(evictions[0]?.decidedAt ?? '');
    const recordedMs = (second?.atMs ?? 0) - (first?.atMs ?? 0);
    expect(Math.abs(recordedMs - apartMs)).toBeLessThanOrEqual(ROUNDING_MS);
    expect(scenario.evictd?.protected).toEqual({ 'cgroup/web': 'configured' });
    expect(simulate(scenario).ticks.at(-1)?.nodeConditions).toEqual([]);
    // What had been, had less been free: each a little sooner, nobody else.
    const sooner = victimsOf(scenario, { '--eviction-hard': ['memory.available<70Mi'] });
    expect(new Set(sooner.map(({ pod }) => pod))).toEqual(
      new Set(['cgroup/first', 'cgroup/second']),
    );
    report(`${scenario.ticks.length} samples, decisions ${apartMs} ms apart, replayed alike`);
  });

  it('is written up to the moment at which the daemon is killed', async () => {
    const node = makeNode(256 * MI);
    await node.bystander();
    const daemon = await startDaemon({ node: node.path });
    const file = path.join(privateDirectory(), 'run.json');
    const recorded = runEvictd([
      'record',
      `--socket=${daemon.socketPath}`,
      '--interval=100ms',
      '--duration=0',
      `--output=${file}`,
    ]);
    await daemon.statusWhen(
      'somebody records',
      ({ pods, evictd }) => evictd.uptimeMs > 1000 && pods.some(({ ageMs }) => ageMs < 300),
    );
    process.kill(daemon.pid, 'SIGKILL');
    await daemon.exited;
    const { code, stderr } = await recorded;
    expect(stderr).toMatch(/: the daemon ended: [\d.]+m?s were recorded \[EVICTD_NOT_RUNNING\]\n$/);
    expect(code).toBe(6);
    const { ticks } = JSON.parse(readFileSync(file, 'utf8')) as Scenario;
    expect(ticks.length).toBeGreaterThan(0);
  });

  it('serves four streams of samples and refuses a fifth', async () => {
    const node = makeNode(256 * MI);
    const daemon = await startDaemon({ node: node.path });
    const record = () =>
      runEvictd(['record', `--socket=${daemon.socketPath}`, '--duration=3s', '--interval=100ms']);
    const runs = await Promise.all(Array.from({ length: 5 }, record));
    expect(runs.map(({ code }) => code).sort()).toEqual([0, 0, 0, 0, 9]);
    expect(runs.map(({ stderr }) => stderr).join('')).toContain(
      'the daemon answers, but refuses: 4 streams of samples are served already (HTTP status 503)',
    );
    // And others after them.
    expect((await record()).code).toBe(0);
  });
});
