import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { count, FULL, report } from '../support/counts.ts';
import { describeWith } from '../support/skip.ts';
import { within } from '../support/wait.ts';
import { cpuMs, residentBytes } from './support/cpu.ts';
import { privateDirectory, startDaemon } from './support/daemon.ts';
import { MI, makeNode } from './support/node.ts';

const PODS = 100;
const SPAN_MS = count(10_000, 60_000);
const CPU_SHARE_LIMIT = 0.005;
const RESIDENT_LIMIT = 1.6;

/** A Node that does nothing, after it has started. */
async function bareNode(): Promise<number> {
  const program = 'setInterval(() => {}, 1e6); console.log("idle")';
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  await within(
    new Promise((resolve) => child.stdout.once('data', resolve)),
    10_000,
    'a bare Node starts',
  );
  return child.pid ?? Number.NaN;
}

describeWith({ root: true, cgroupV1: true }, 'idle, over 100 pods', () => {
  it.each([
    ['512Mi', 512 * MI],
    ['16Gi', 16_384 * MI],
  ])('costs little at a limit of %s', async (_, limitBytes) => {
    const node = makeNode(limitBytes);
    for (let n = 0; n < PODS; n += 1) node.pod(`pod-${n}`);
    const log = path.join(privateDirectory(), 'log');
    const stdout = openSync(log, 'w');
    // Passes as often as they come by default would be one in ten seconds, six in the minute.
    const interval = FULL ? '10s' : '2s';
    const daemon = await startDaemon({
      node: node.path,
      stdout,
      args: ['--log-level', 'debug', '--poll-interval', interval],
    });
    closeSync(stdout);
    const bare = await bareNode();
    const start = await daemon.status();
    expect(start.pods).toHaveLength(PODS);
    const cpuBefore = cpuMs(daemon.pid);
    await new Promise((resolve) => setTimeout(resolve, SPAN_MS));
    const usedMs = cpuMs(daemon.pid) - cpuBefore;
    const [resident, bareResident] = [residentBytes(daemon.pid), residentBytes(bare)];
    const end = await daemon.status();
    const share = usedMs / SPAN_MS;
    report(`CPU ${(100 * share).toFixed(3)} % of a core over ${SPAN_MS / 1000} s`);
    report(
      `RSS ${(resident / MI).toFixed(1)} MiB, ${(resident / bareResident).toFixed(2)} times ` +
        `the ${(bareResident / MI).toFixed(1)} MiB of a bare Node`,
    );
    await daemon.stop();

    const passes = readFileSync(log, 'utf8')
      .split('\n')
      .filter((line) => line.includes('"msg":"pods read"'));
    report(`${passes.length} passes over the pods, ${end.counters.samples} samples`);
    expect(passes.length).toBeGreaterThanOrEqual(SPAN_MS / (FULL ? 10_000 : 2000));
    for (const line of passes) expect(JSON.parse(line)).toMatchObject({ pods: PODS });
    expect(end.evictions).toEqual([]);
    expect(resident / bareResident).toBeLessThan(RESIDENT_LIMIT);
    if (FULL) expect(share).toBeLessThan(CPU_SHARE_LIMIT);
  });
});
