// npm test: builds, then runs every suite and adds up what they say.
//
//   node scripts/test.mjs                 everything; core is measured for coverage
//   node scripts/test.mjs --without=NAME  the same but for a project of vitest.config.ts
//   node scripts/test.mjs ARGUMENTS       one run of vitest with these arguments, no coverage
//
// The unit tests are a run of their own, since counting what is covered slows a process down and
// the kernel tests measure time. The last line is `N passed, N failed, N skipped`; the exit status
// is 0 only when nothing failed.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const vitest = path.join(root, 'node_modules/vitest/vitest.mjs');

/** Ends a hang, whatever hangs; well above what all suites together take. */
const limitMinutes = process.env.EVICTD_COUNTS === 'full' ? 150 : 27;
const deadlineMs = performance.now() + limitMinutes * 60_000;

const everything = [
  { projects: ['unit'], args: ['--coverage.enabled'] },
  { projects: ['native-*', 'kernel', 'e2e', 'package'], args: [] },
];

/** What vitest is run with, once for each. */
function suitesFor(args) {
  const [first = '', ...others] = args;
  const without = /^--without=(.*)$/.exec(first)?.[1];
  if (args.length > 0 && (without === undefined || others.length > 0)) return [args];
  return everything.map((one) => [
    ...one.projects.filter((name) => name !== without).flatMap((name) => ['--project', name]),
    ...one.args,
  ]);
}

/** With `EVICTD_BUILT` set it has just been done, and others may be at it: a build begins by removing. */
function build() {
  if (process.env.EVICTD_BUILT !== undefined) return existsSync(path.join(root, 'dist/main.js'));
  const { status } = spawnSync(process.execPath, [path.join(root, 'scripts/prepare.mjs')], {
    cwd: root,
    stdio: 'inherit',
  });
  return status === 0;
}

/** Without the addon much of evictd would be tested in its fallback alone, and would pass. */
async function missingAddon() {
  const { loadNative } = await import(path.join(root, 'dist/native/index.js'));
  return loadNative().reason;
}

/** One run of vitest; a run that says nothing, or fails beside its tests, counts as failed. */
async function run(args) {
  const directory = mkdtempSync(path.join(tmpdir(), 'evictd-test-'));
  const file = path.join(directory, 'totals.json');
  const child = spawn(process.execPath, [vitest, 'run', ...args], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, EVICTD_TOTALS: file },
  });
  const stop = setTimeout(() => {
    console.error(`evictd: the tests have not ended after ${limitMinutes} minutes`);
    child.kill('SIGTERM');
    setTimeout(() => child.kill('SIGKILL'), 30_000).unref();
  }, deadlineMs - performance.now());
  const status = await new Promise((resolve) => {
    child.once('exit', (code) => resolve(code ?? 1));
    child.once('error', () => resolve(1));
  });
  clearTimeout(stop);

  const totals = { passed: 0, failed: 0, skipped: 0 };
  try {
    Object.assign(totals, JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    console.error('evictd: vitest ended without a result');
  }
  rmSync(directory, { recursive: true, force: true });
  if (status !== 0 && totals.failed === 0) totals.failed = 1;
  return totals;
}

async function main() {
  const sum = { passed: 0, failed: 0, skipped: 0 };
  const refuse = (reason) => {
    console.error(`evictd: ${reason}`);
    sum.failed += 1;
  };

  const add = (totals) => {
    for (const key of Object.keys(sum)) sum[key] += totals[key];
  };

  if (!build()) {
    refuse('the build failed');
  } else {
    const missing = await missingAddon();
    if (missing !== undefined) {
      refuse(`the native addon is missing, run npm install with a compiler: ${missing}`);
    }
    const args = process.argv.slice(2);
    for (const suite of suitesFor(args)) {
      const totals = await run(suite);
      add(totals);
    }
    if (args.length === 0 && process.env.EVICTD_COUNTS === 'full') {
      const { plantFaults } = await import('./faults.mjs');
      add(await plantFaults());
    }
  }
  console.log(`${sum.passed} passed, ${sum.failed} failed, ${sum.skipped} skipped`);
  process.exitCode = sum.failed === 0 ? 0 : 1;
}

await main();
