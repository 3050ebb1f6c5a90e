/**
 * Images without a registry: Debian's static busybox, as archives that containerd, Docker and Podman read.
 * Made anew in each directory; the same input gives the same image.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';

export const BUSYBOX_IMAGE = 'localhost/evictd-test-busybox:1';
export const PAUSE_IMAGE = 'localhost/evictd-test-pause:1';
/** The same as busybox, but that it wants to be stopped by SIGQUIT. */
export const QUIT_IMAGE = 'localhost/evictd-test-quit:1';

/**
 * Takes memory and holds it: `hog MIB [STEP_MIB [SECONDS]]`. Each step is a process of its own, which fills a
 * block and waits to write it to nobody.
 */
const HOG = `#!/bin/sh
total=$1 step=\${2:-$1} pause=\${3:-0} taken=0
while [ "$taken" -lt "$total" ]; do
  dd if=/dev/zero bs=\${step}M count=1 2>/dev/null | sleep 1000000 &
  taken=$((taken + step))
  [ "$taken" -ge "$total" ] || sleep "$pause"
done
wait
`;

/** As the real one it does nothing, and ends by TERM. */
const PAUSE = ['/bin/sh', '-c', 'trap exit TERM; /bin/sleep 1000000 & wait'];

/** `fill PATH MIB`: real blocks of a file. */
const FILL = `#!/bin/sh
exec dd if=/dev/zero of="$1/fill" bs=1M count="$2" conv=fsync 2>/dev/null
`;

/** `litter PATH N`: empty files. */
const LITTER = `#!/bin/sh
mkdir -p "$1/litter"
seq 1 "$2" | sed "s|^|$1/litter/|" | xargs -n 200 touch
`;

/** The archives of the images below `directory`, by their names. */
export function makeImages(directory: string): Readonly<Record<string, string>> {
  const busybox = execFileSync('sh', ['-c', 'command -v busybox'], { encoding: 'utf8' }).trim();
  const applets = execFileSync(busybox, ['--list'], { encoding: 'utf8' }).trim().split('\n');
  const root = path.join(directory, 'busybox');
  for (const name of ['bin', 'dev', 'etc', 'proc', 'sys', 'tmp']) {
    mkdirSync(path.join(root, name), { recursive: true });
  }
  chmodSync(path.join(root, 'tmp'), 0o1777);
  copyFileSync(busybox, path.join(root, 'bin/busybox'));
  for (const applet of applets.filter((name) => name !== 'busybox')) {
    symlinkSync('busybox', path.join(root, 'bin', applet));
  }
  for (const [name, script] of Object.entries({ hog: HOG, fill: FILL, litter: LITTER })) {
    writeFileSync(path.join(root, 'bin', name), script, { mode: 0o755 });
  }
  const pause = path.join(directory, 'pause');
  mkdirSync(path.join(pause, 'bin'), { recursive: true });
  for (const name of ['sh', 'sleep']) copyFileSync(busybox, path.join(pause, 'bin', name));
  const sleep = ['/bin/sleep', '1000000'];
  return {
    [BUSYBOX_IMAGE]: pack({ directory, root, name: BUSYBOX_IMAGE, config: { Cmd: sleep } }),
    [QUIT_IMAGE]: pack({
      directory,
      root,
      name: QUIT_IMAGE,
      config: { Cmd: sleep, StopSignal: 'SIGQUIT' },
    }),
    [PAUSE_IMAGE]: pack({
      directory,
      root: pause,
      name: PAUSE_IMAGE,
      config: { Entrypoint: PAUSE },
    }),
  };
}

interface Packing {
  readonly directory: string;
  readonly root: string;
  readonly name: string;
  /** What an image says of its containers. */
  readonly config: Readonly<Record<string, unknown>>;
}

/** One layer and its description, as `docker save` writes them. */
function pack({ directory, root, name, config: own }: Packing): string {
  const base = path.basename(name).replace(':', '-');
  const stage = path.join(directory, `${base}.stage`);
  const layer = path.join(stage, 'layer.tar');
  mkdirSync(stage);
  tar(['-C', root, '-cf', layer, '.']);
  const config = JSON.stringify({
    architecture: 'amd64',
    os: 'linux',
    created: '1970-01-01T00:00:00Z',
    config: { Env: ['PATH=/bin'], ...own },
    rootfs: { type: 'layers', diff_ids: [`sha256:${sha256(readFileSync(layer))}`] },
    history: [{ created: '1970-01-01T00:00:00Z', created_by: 'evictd tests' }],
  });
  const configName = `${sha256(config)}.json`;
  writeFileSync(path.join(stage, configName), config);
  const manifest = [{ Config: configName, RepoTags: [name], Layers: ['layer.tar'] }];
  writeFileSync(path.join(stage, 'manifest.json'), JSON.stringify(manifest));
  const archive = path.join(directory, `${base}.tar`);
  tar(['-C', stage, '-cf', archive, 'manifest.json', configName, 'layer.tar']);
  return archive;
}

function tar(args: readonly string[]): void {
  const owner = ['--sort=name', '--owner=0', '--group=0', '--numeric-owner', '--mtime=@0'];
  execFileSync('tar', [...owner, ...args]);
}

function sha256(data: Buffer | string): string {
  return createHash('sha256').update(data).digest('hex');
}
