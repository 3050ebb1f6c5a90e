// Builds the addon with AddressSanitizer and UndefinedBehaviorSanitizer, in build-sanitized/ so
// that it never takes the place of the real one, and runs the native tests on it. Fails on a
// failed or skipped test and on any report, also of a process that the tests start.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { nodeGyp } from './build-native.mjs';

const BUILD_MS_MAX = 90_000;
/** 135 s measured beside another test run; with the build, less than the 480 s of .ci/run. */
const TEST_MS_MAX = 300_000;

const require = createRequire(import.meta.url);
const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const directory = path.join(root, 'build-sanitized');
const reports = path.join(directory, 'reports');
const results = path.join(directory, 'results.json');

function run(file, args, options) {
  return spawnSync(file, args, { stdio: 'inherit', killSignal: 'SIGKILL', ...options });
}

/** node-gyp always builds in `build/` beside binding.gyp, so it gets a binding.gyp of its own. */
function build() {
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(reports, { recursive: true });
  for (const name of ['binding.gyp', 'native']) {
    symlinkSync(path.join(root, name), path.join(directory, name));
  }
  const command = nodeGyp(['rebuild', '--loglevel=warn', '--', '-Dsanitize=1', '-Dwerror=1']);
  const options = { cwd: directory, env: command.env, timeout: BUILD_MS_MAX };
  return run(process.execPath, command.args, options).status === 0;
}

/** Where gcc keeps a library: the sanitizers' runtime must be in the process before Node is. */
function libraryPath(name) {
  const { stdout } = spawnSync('gcc', [`-print-file-name=${name}`], { encoding: 'utf8' });
  const file = stdout.trim();
  if (!path.isAbsolute(file)) throw new Error(`gcc has no ${name}`);
  return file;
}

function test() {
  const vitest = path.join(path.dirname(require.resolve('vitest/package.json')), 'vitest.mjs');
  const args = ['run', '--project', 'native-*', '--reporter=default', '--reporter=json'];
  run(process.execPath, [vitest, ...args, `--outputFile=${results}`], {
    cwd: root,
    timeout: TEST_MS_MAX,
    env: {
      ...process.env,
      EVICTD_NATIVE_PATH: path.join(directory, 'build', 'Release', 'evictd.node'),
      LD_PRELOAD: libraryPath('libasan.so'),
      // Leaks are Node's own by the thousand; the tests count descriptors and collected objects.
      ASAN_OPTIONS: `detect_leaks=0:log_path=${path.join(reports, 'address')}`,
      UBSAN_OPTIONS: `print_stacktrace=1:log_path=${path.join(reports, 'undefined')}`,
    },
  });
  // None when it was ended at its limit.
  return existsSync(results) ? JSON.parse(readFileSync(results, 'utf8')) : undefined;
}

function main() {
  const result = build() ? test() : undefined;
  if (result === undefined) {
    console.error('sanitize: the build failed, or the tests did not end in time');
    console.log('0 passed, 1 failed, 0 skipped');
    return 1;
  }
  const reported = readdirSync(reports);
  for (const name of reported) console.error(readFileSync(path.join(reports, name), 'utf8'));
  const passed = result.numPassedTests;
  const failed = result.numFailedTests + reported.length;
  const skipped = result.numPendingTests;
  console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
  return result.success && passed > 0 && failed === 0 && skipped === 0 ? 0 : 1;
}

process.exitCode = main();
