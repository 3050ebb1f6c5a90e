// Plants each fault of test/sim/faults.ts in a copy of the sources and runs the suite of generated nodes on
// it, which must fail. Part of npm run accept (scripts/test.mjs); by itself:
//
//   node scripts/faults.mjs [TEXT]   all, or those whose description has TEXT
//
// Prints one line `accept: STATE: planted fault: …` for each, and last how many were found. The exit status is
// 0 only when all were. A fault whose text is not in its file exactly once is an error.
import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));

/** What the suite needs; the rest of the checkout stays where it is. */
const COPIED = ['src', 'test/sim', 'test/support', 'package.json', 'vitest.config.ts'];

/** A fault that is not found in so many nodes would hardly be in a run of the suite. */
const NODES = 3000;
const LIMIT_MS = 5 * 60_000;
/** Each run is one process that computes. */
const AT_ONCE = Math.min(4, availableParallelism());

async function faultList() {
  const source = readFileSync(path.join(root, 'test/sim/faults.ts'), 'utf8');
  const options = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2023 };
  const { outputText } = ts.transpileModule(source, { compilerOptions: options });
  const { FAULTS } = await import(`data:text/javascript,${encodeURIComponent(outputText)}`);
  return FAULTS;
}

/** A copy of the sources with the fault in it; undefined where there is no place for it. */
function planted({ file, text, replacement }) {
  const source = readFileSync(path.join(root, file), 'utf8');
  if (source.split(text).length !== 2) return undefined;
  const directory = mkdtempSync(path.join(tmpdir(), 'evictd-fault-'));
  for (const name of COPIED) {
    cpSync(path.join(root, name), path.join(directory, name), { recursive: true });
  }
  symlinkSync(path.join(root, 'node_modules'), path.join(directory, 'node_modules'));
  writeFileSync(
    path.join(directory, file),
    source.replace(text, () => replacement),
  );
  return directory;
}

/** Runs the suite there; says what broke, or undefined where nothing did. */
async function found(directory) {
  const child = spawn(
    process.execPath,
    [
      path.join(directory, 'node_modules/vitest/vitest.mjs'),
      ...['run', '--project', 'unit', 'test/sim/nodes.test.ts'],
    ],
    {
      cwd: directory,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...process.env,
        EVICTD_COUNTS: '',
        EVICTD_TOTALS: path.join(directory, 'totals.json'),
        EVICTD_SIM_NODES: `${NODES}`,
        EVICTD_SIM_SHRINK: 'no',
        NO_COLOR: '1',
      },
    },
  );
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8');
    stream.on('data', (text) => {
      output += text;
    });
  }
  const stop = setTimeout(() => child.kill('SIGKILL'), LIMIT_MS);
  const status = await new Promise((resolve) => {
    child.once('close', (code) => resolve(code));
    child.once('error', () => resolve(null));
  });
  clearTimeout(stop);
  // Only the suite's own finding counts: a run that cannot start has found nothing.
  const said = /scenario \S+ node (\d+) of seed -?\d+: (\w+)/.exec(output.replace(/\s+/g, ' '));
  if (status === 0) return { missed: `not in ${NODES} nodes` };
  if (said === null) return { missed: `the run failed otherwise: ${output.slice(-600)}` };
  return { by: said[2], nodes: Number(said[1]) };
}

async function judged(fault) {
  const { file, breaks } = fault;
  const directory = planted(fault);
  if (directory === undefined) {
    console.log(`accept: failed: planted fault: ${file}: ${breaks}: its text is not there once`);
    return false;
  }
  try {
    const { missed, by, nodes } = await found(directory);
    const state = missed === undefined ? 'passed' : 'failed';
    const figures = missed ?? `found at node ${nodes} by ${by}`;
    console.log(`accept: ${state}: planted fault: ${file}: ${breaks}: ${figures}`);
    return missed === undefined;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Plants all; how many were found, and how many were not. */
export async function plantFaults(pattern = '') {
  const left = (await faultList()).filter(({ breaks }) => breaks.includes(pattern));
  const totals = { passed: 0, failed: 0, skipped: 0 };
  const worker = async () => {
    for (let fault = left.shift(); fault !== undefined; fault = left.shift()) {
      totals[(await judged(fault)) ? 'passed' : 'failed'] += 1;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  const { passed, failed } = totals;
  console.log(`planted faults: ${passed + failed} planted, ${passed} found, ${failed} missed`);
  return totals;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { passed, failed } = await plantFaults(process.argv[2]);
  process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
}
