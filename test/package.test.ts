import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

/**
 * evictd as its users get it: packed, installed in an empty folder, and run. Takes dist/ as it is,
 * which scripts/test.mjs has just built; packing must not build it under the other suites.
 */

const ROOT = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const TIMEOUT_MS = 240_000;
const MISSING = /addon.*(missing|not (built|loaded|found|available))|no (native )?addon/i;

let work: string;
let tarball: string;
let packed: readonly string[];

/** npm tells its scripts which package they belong to; an npm that is started here must not know. */
const cleanEnvironment = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) =>
      !/^npm_(config_local_prefix|package_|lifecycle_|command$)|^EVICTD_|^VITEST/.test(name),
  ),
);

interface Ran {
  readonly status: number;
  readonly stdout: string;
  /** Both streams, for messages and for what may be printed on either. */
  readonly output: string;
}

/** Runs a program to its end; a failure is a status, with what was printed. */
async function run(cwd: string, command: string, args: string[], env = {}): Promise<Ran> {
  try {
    const { stdout, stderr } = await promisify(execFile)(command, args, {
      cwd,
      env: { ...cleanEnvironment, ...env },
      timeout: TIMEOUT_MS,
      maxBuffer: 64 * 1024 * 1024,
    });
    return { status: 0, stdout, output: stdout + stderr };
  } catch (error) {
    const { code, stdout, stderr, message } = error as NodeJS.ErrnoException &
      Record<string, string>;
    const status = typeof code === 'number' ? code : 1;
    return { status, stdout: stdout ?? '', output: `${stdout ?? ''}${stderr ?? ''}${message}` };
  }
}

/** Installs the tarball into a new, empty folder. */
async function install(name: string, env = {}): Promise<Ran & { readonly directory: string }> {
  const directory = path.join(work, name);
  await mkdir(directory);
  await writeFile(path.join(directory, 'package.json'), '{ "private": true }\n');
  const flags = ['--prefer-offline', '--no-audit', '--no-fund', '--foreground-scripts'];
  const ran = await run(directory, 'npm', ['install', ...flags, tarball], env);
  return { ...ran, directory };
}

const builtIn = (directory: string, name: string) =>
  existsSync(path.join(directory, 'node_modules/evictd/build/Release', name));
const evictd = (directory: string, ...args: string[]) =>
  run(directory, 'npx', ['--no-install', 'evictd', ...args]);

beforeAll(async () => {
  work = await mkdtemp(path.join(tmpdir(), 'evictd-package-'));
  const { status, stdout, output } = await run(ROOT, 'npm', [
    ...['pack', '--json', '--ignore-scripts', '--loglevel=error', '--pack-destination', work],
  ]);
  expect(status, output).toBe(0);
  const [made] = JSON.parse(stdout) as {
    readonly filename: string;
    readonly files: readonly { readonly path: string }[];
  }[];
  tarball = path.join(work, made?.filename ?? '');
  packed = made?.files.map((file) => file.path) ?? [];
});

afterAll(async () => {
  await rm(work, { recursive: true, force: true });
});

describe('the tarball', () => {
  it.each([
    ...['package.json', 'README.md', 'CHANGELOG.md', 'ARCHITECTURE.md', 'LICENSE'],
    ...['dist/main.js', 'dist/index.js', 'dist/index.d.ts', 'binding.gyp', 'native/addon.cc'],
    ...['native/filesystem_helper.cc', 'scripts/build-native.mjs', 'docs/README.md'],
    ...['data/incident.yaml', 'data/demo-recording.json', 'docs/guides/simulate.md'],
  ])('has %s', (file) => {
    expect(packed).toContain(file);
  });

  it('has nothing that only a checkout needs', () => {
    const wanted = /^(dist|native|docs|data)\/|^[^/]+$|^scripts\/build-native\.mjs$/;
    expect(packed.filter((file) => !wanted.test(file))).toEqual([]);
    expect(packed.filter((file) => /\.(o|node|tgz|log)$|\.test\./.test(file))).toEqual([]);
  });
});

describe('installed with a compiler', () => {
  let installed: Awaited<ReturnType<typeof install>>;
  beforeAll(async () => {
    installed = await install('with-compiler');
  });

  it('installs', () => {
    expect(installed.status, installed.output).toBe(0);
  });

  it.each(['evictd.node', 'evictd-fs', 'evictd-walk'])('has built %s there', (name) => {
    expect(builtIn(installed.directory, name), installed.output).toBe(true);
  });

  it('measures filesystems', async () => {
    const modules = path.join(installed.directory, 'node_modules/evictd/dist/sources');
    const script = `
      const { filesystems } = await import('${modules}/filesystem.js');
      const { liveScheduler: scheduler } = await import('${modules}/live-scheduler.js');
      const subscription = filesystems({ paths: ['/'], scheduler, pollAfterMs: () => 1000 })
        .subscribe(({ kind }) => { console.log(kind); subscription.unsubscribe(); });`;
    const ran = await run(installed.directory, process.execPath, [
      ...['--input-type=module', '-e', script],
    ]);
    expect(ran.output.trim()).toBe('read');
  });

  it('runs from npx', async () => {
    const help = await evictd(installed.directory, '--help');
    expect(help.status, help.output).toBe(0);
    expect(help.output).toMatch(/Usage: evictd/);
    const version = await evictd(installed.directory, 'version');
    expect(version.status, version.output).toBe(0);
    expect(version.output).not.toMatch(MISSING);
  });

  it('has the scenario of the guide', async () => {
    const folder = path.join(installed.directory, 'node_modules/evictd');
    const args = ['dist/main.js', 'simulate', 'data/incident.yaml'];
    const result = await run(folder, process.execPath, args);
    expect(result.status, result.output).toBe(0);
    expect(result.stdout).toMatch(/"evicted":\[\{"pod":"batch\/report"/);
  });

  it('can be imported', async () => {
    const script =
      "const evictd = await import('evictd'); console.log(Object.keys(evictd).length);";
    const imported = await run(installed.directory, process.execPath, [
      ...['--input-type=module', '-e', script],
    ]);
    expect(imported.status, imported.output).toBe(0);
    expect(Number(imported.stdout)).toBeGreaterThan(0);
  });
});

describe('installed without a compiler', () => {
  /** A PATH with what npm itself needs, and no compiler, make or Python. */
  async function bareOfCompilers(): Promise<string> {
    const bin = path.join(work, 'bin');
    await mkdir(bin);
    const lookUp = 'for name; do command -v "$name"; done';
    const { stdout } = await run(work, 'sh', ['-c', lookUp, 'sh', 'npm', 'npx', 'sh', 'env']);
    for (const program of [process.execPath, ...stdout.split('\n').filter(path.isAbsolute)]) {
      await symlink(program, path.join(bin, path.basename(program)));
    }
    return bin;
  }

  it.each([
    ['nothing to build with on the PATH', async () => ({ PATH: await bareOfCompilers() })],
    ['a compiler that fails', async () => ({ CC: '/bin/false', CXX: '/bin/false' })],
  ])('%s: a notice, exit 0, and evictd says what is missing', async (name, environment) => {
    const installed = await install(name.replaceAll(' ', '-'), await environment());
    expect(installed.status, installed.output).toBe(0);
    expect(installed.output).toMatch(/evictd: the native addon was not built/);
    for (const name of ['evictd.node', 'evictd-fs', 'evictd-walk']) {
      expect(builtIn(installed.directory, name)).toBe(false);
    }

    const version = await evictd(installed.directory, 'version');
    expect(version.status, version.output).toBe(0);
    expect(version.output).toMatch(MISSING);
  });
});
