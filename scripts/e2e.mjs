// npm run test:e2e:cri, npm run test:e2e:docker: the end-to-end tests of one kind of runtime. `npm test` runs
// them too, where the programs are there.
//
//   node scripts/e2e.mjs cri [ARGUMENTS]      containerd through CRI
//   node scripts/e2e.mjs docker [ARGUMENTS]   Docker Engine and Podman
//   node scripts/e2e.mjs packages             what all of them need, and no test
//
// What is missing of Debian's packages is installed where that can be done, and starts no daemon; where it cannot
// the tests are skipped and say why. ARGUMENTS go to vitest. The last line is `N passed, N failed, N skipped`.
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));

/** Ends a registry or a lock that hangs. */
const INSTALL_MS_MAX = 5 * 60_000;

/** By package: a program of it that must be there. */
const COMMON = {
  runc: 'runc',
  'busybox-static': 'busybox',
  e2fsprogs: 'mkfs.ext4',
};
const SUITES = {
  cri: {
    packages: { ...COMMON, containerd: 'containerd' },
    files: ['cri', 'cri-disk', 'hostile', 'reclaim', 'reclaim-scripted'],
  },
  docker: {
    packages: {
      ...COMMON,
      containerd: 'containerd',
      'docker.io': 'dockerd',
      podman: 'podman',
      conmon: 'conmon',
    },
    files: ['docker', 'docker-disk', 'joined', 'podman', 'reclaim-engines'],
  },
};

/** Asked by every package that would start a daemon. */
const POLICY = '/usr/sbin/policy-rc.d';

// Where a shell's own PATH does not look.
process.env.PATH = `${process.env.PATH}:/usr/sbin:/sbin`;

function pathOf(program) {
  const { status, stdout } = spawnSync('sh', ['-c', 'command -v "$1"', 'sh', program], {
    encoding: 'utf8',
  });
  return status === 0 ? stdout.trim() : undefined;
}

/** An image is made of it, in which there is no library. */
function isDynamic(program) {
  return spawnSync('ldd', [program], { stdio: 'ignore' }).status === 0;
}

function isMissing(program) {
  const found = pathOf(program);
  return found === undefined || (program === 'busybox' && isDynamic(found));
}

/** Why the packages cannot be installed; undefined once they are. */
function install(packages) {
  if (process.getuid?.() !== 0) return 'not root';
  if (pathOf('apt-get') === undefined) return 'no apt-get on this machine';
  const before = existsSync(POLICY)
    ? { text: readFileSync(POLICY), mode: statSync(POLICY).mode }
    : undefined;
  const apt = (...args) =>
    spawnSync('apt-get', ['-q', '-y', ...args], {
      stdio: ['ignore', 'inherit', 'inherit'],
      timeout: INSTALL_MS_MAX,
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    }).status === 0;
  try {
    writeFileSync(POLICY, '#!/bin/sh\nexit 101\n');
    chmodSync(POLICY, 0o755);
    if (!apt('update')) return 'apt-get update failed';
    if (!apt('install', '--no-install-recommends', ...packages)) return 'apt-get install failed';
  } finally {
    if (before === undefined) rmSync(POLICY, { force: true });
    else {
      writeFileSync(POLICY, before.text);
      chmodSync(POLICY, before.mode);
    }
  }
  return undefined;
}

/** Says what is missing and stays so. */
function ensure(packages) {
  const missing = Object.keys(packages).filter((name) => isMissing(packages[name]));
  if (missing.length === 0) return;
  console.log(`evictd: installing ${missing.join(' ')}`);
  const reason = install(missing);
  if (reason !== undefined) {
    console.log(`evictd: tests are skipped for want of ${missing.join(' ')}: ${reason}`);
  }
}

const fileOf = (name) => `test/e2e/${name}.test.ts`;

/** Tests of runtimes that none of the suites has; the demo has none. */
function forgotten() {
  const known = Object.values(SUITES).flatMap(({ files }) => files.map(fileOf));
  const all = readdirSync(path.join(root, 'test/e2e')).filter((name) => name.endsWith('.test.ts'));
  return all
    .map((name) => `test/e2e/${name}`)
    .filter((name) => name !== fileOf('demo') && !known.includes(name));
}

function main() {
  const [name, ...args] = process.argv.slice(2);
  if (name === 'packages') {
    ensure({ ...SUITES.cri.packages, ...SUITES.docker.packages });
    return 0;
  }
  const suite = Object.hasOwn(SUITES, name ?? '') ? SUITES[name] : undefined;
  if (suite === undefined) {
    console.error(`evictd: which tests? ${Object.keys(SUITES).join(', ')}; or packages`);
    return 2;
  }
  const left = forgotten();
  if (left.length > 0) {
    console.error(`evictd: no suite of scripts/e2e.mjs has ${left.join(', ')}`);
    return 2;
  }
  ensure(suite.packages);
  const script = path.join(root, 'scripts/test.mjs');
  const { status } = spawnSync(
    process.execPath,
    [script, '--project', 'e2e', ...suite.files.map(fileOf), ...args],
    { stdio: 'inherit' },
  );
  return status ?? 1;
}

process.exitCode = main();
