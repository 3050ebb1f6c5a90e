// How many ticks a second `evictd simulate --batch` takes, parsing and printing included: the cases of
// test/fixtures/conformance/random.jsonl with 8 to 12 pods, over and over, to 100,000 ticks.
//
//   node bench/simulate/batch.mjs [TICKS]     after `npm run build`
//
// The input is written to a temporary file first, and so is the output. One process does the work; what its
// threads (garbage collection, compilation) take beside it is in the processor time, and where `taskset` is
// there it has one processor in all.
import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { availableParallelism, cpus, tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url))));
const ticksWanted = Number(process.argv[2] ?? 100_000);

const [fewestPods, mostPods] = [8, 12];
const cases = readFileSync(path.join(root, 'test/fixtures/conformance/random.jsonl'), 'utf8')
  .split('\n')
  .filter((line) => line.trim() !== '')
  .map((line) => JSON.parse(line))
  .filter(({ scenario }) => scenario.pods.length >= fewestPods && scenario.pods.length <= mostPods);
const lines = cases.map(({ scenario }) => `${JSON.stringify(scenario)}\n`);

const directory = mkdtempSync(path.join(tmpdir(), 'evictd-bench-'));
try {
  const input = path.join(directory, 'scenarios.jsonl');
  const output = path.join(directory, 'results.jsonl');
  const { ticks, scenarios, bytes } = writeInput(input);
  const [stdout, taskset] = [openSync(output, 'w'), hasTaskset()];
  const command = [
    ...(taskset ? ['taskset', '-c', String(availableParallelism() - 1)] : []),
    ...[process.execPath, path.join(root, 'dist/main.js')],
    ...['simulate', '--compatibility', 'kubelet', '--batch', input],
  ];
  const startedAtMs = performance.now();
  const [program, ...args] = command;
  const { status } = spawnSync(program, args, { stdio: ['ignore', stdout, 'inherit'] });
  const seconds = (performance.now() - startedAtMs) / 1000;
  closeSync(stdout);
  if (status !== 0) throw new Error(`the run ended with ${status}`);
  check(output, scenarios);
  console.log(
    [
      `${ticks} ticks of ${scenarios} scenarios, ${(bytes / 2 ** 20).toFixed(0)} MiB`,
      `${seconds.toFixed(2)} s${taskset ? ' on one processor' : ''}`,
      `${Math.round(ticks / seconds)} ticks/s`,
      cpus()[0]?.model ?? 'unknown processor',
    ].join(', '),
  );
} finally {
  rmSync(directory, { recursive: true, force: true });
}

function writeInput(file) {
  const descriptor = openSync(file, 'w');
  let [ticks, scenarios, bytes] = [0, 0, 0];
  while (ticks < ticksWanted) {
    const index = scenarios % lines.length;
    bytes += writeSync(descriptor, lines[index]);
    ticks += cases[index].scenario.ticks.length;
    scenarios += 1;
  }
  closeSync(descriptor);
  return { ticks, scenarios, bytes };
}

/** The figure counts only if the work was done. */
function check(output, scenarios) {
  const results = readFileSync(output, 'utf8').trimEnd().split('\n');
  if (results.length !== scenarios) throw new Error(`${results.length} results of ${scenarios}`);
  for (const [index, { expected }] of cases.entries()) {
    const result = JSON.parse(results[index]);
    const evictions = ({ ticks }) => ticks.flatMap(({ evicted }) => evicted.map(({ pod }) => pod));
    if (evictions(result).join() !== evictions(expected).join()) {
      throw new Error(`${expected.name}: another result than expected`);
    }
  }
}

function hasTaskset() {
  return spawnSync('taskset', ['--version'], { stdio: 'ignore' }).status === 0;
}
