// npm's "install": builds the native addon and the filesystem helper. It always exits 0, since evictd
// also works without the addon, only slower; what is missing then is said here, and by
// `evictd check-config` later.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;
const NOTICE_LINES_MAX = 12;
/** The build takes 20 s on two slow cores; a header download that hangs must not hang npm. */
const BUILD_MS_MAX = 10 * 60 * 1000;

const REASONS = [
  [/Could not find any Python/, 'Python 3 is missing'],
  [/not found: make/, 'make is missing'],
  [/make: \S+: (No such file or directory|command not found)/, 'a C++20 compiler is missing'],
  [
    /install got an error|common\.gypi not found|node_api\.h: No such file/,
    "Node's headers are missing: they can be neither downloaded nor found in npm_config_nodedir",
  ],
];
/** Of node-gyp's output: the frames of its own stack and its progress explain nothing. */
const NOISE = /^\s*$|^gyp ERR! stack at |^gyp info /;

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const build = path.join(root, 'build');
const built = ['evictd.node', 'evictd-fs', 'evictd-walk'].map((name) =>
  path.join(build, 'Release', name),
);

function main() {
  // An addon of another Node version or of an older source is worse than none.
  rmSync(build, { recursive: true, force: true });
  const failure = runNodeGyp();
  if (failure === undefined) return;
  // node-gyp may have linked it and failed after that.
  rmSync(build, { recursive: true, force: true });
  console.error(notice(failure));
}

/**
 * node-gyp's own arguments and environment. Headers that lie beside this very Node, as in its
 * container images, save a download, unless npm was told of others.
 */
export function nodeGyp(args) {
  const file = createRequire(import.meta.url).resolve('node-gyp/bin/node-gyp.js');
  const prefix = path.dirname(path.dirname(process.execPath));
  const nodedir = process.env.npm_config_nodedir ?? (hasHeaders(prefix) ? prefix : undefined);
  const env = nodedir === undefined ? process.env : { ...process.env, npm_config_nodedir: nodedir };
  return { args: [file, ...args], env };
}

function hasHeaders(prefix) {
  try {
    const text = readFileSync(path.join(prefix, 'include', 'node', 'node_version.h'), 'utf8');
    const part = (name) => text.match(new RegExp(`^#define NODE_${name}_VERSION (\\d+)`, 'm'))?.[1];
    return ['MAJOR', 'MINOR', 'PATCH'].map(part).join('.') === process.versions.node;
  } catch {
    return false;
  }
}

/** Undefined when both were built, else the reason and node-gyp's output. */
function runNodeGyp() {
  let command;
  try {
    command = nodeGyp(['rebuild']);
  } catch (error) {
    return { reason: 'node-gyp is not installed', output: String(error.message) };
  }
  const run = spawnSync(process.execPath, command.args, {
    cwd: root,
    env: command.env,
    encoding: 'utf8',
    maxBuffer: OUTPUT_BYTES_MAX,
    timeout: BUILD_MS_MAX,
    killSignal: 'SIGKILL',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  if (run.status === 0 && built.every((file) => existsSync(file))) return undefined;
  const output = `${run.stdout ?? ''}${run.stderr ?? ''}`;
  return { reason: run.error === undefined ? reasonIn(output) : run.error.message, output };
}

/** What is missing, in words, by what node-gyp, make and the compiler print. */
function reasonIn(output) {
  const known = REASONS.find(([pattern]) => pattern.test(output));
  return known === undefined ? 'the build failed' : known[1];
}

function notice({ reason, output }) {
  const lines = output.split('\n').filter((line) => !NOISE.test(line));
  return [
    `evictd: the native addon was not built: ${reason}.`,
    'evictd works without it, but then it polls instead of being woken by the kernel, and holds no',
    'pidfd on the processes that it ends; filesystems are not measured, for want of their helper. To',
    "build both later (needs Python 3, make, a C++20 compiler and Node's headers): npm rebuild evictd,",
    'or in a source checkout: npm rebuild',
    "The last lines of node-gyp's output:",
    ...lines.slice(-NOTICE_LINES_MAX).map((line) => `  ${line}`),
  ].join('\n');
}

// Not when scripts/sanitize.mjs imports it. The name on the command line may be a symbolic link.
if (realpathSync(process.argv[1] ?? '') === fileURLToPath(import.meta.url)) main();
