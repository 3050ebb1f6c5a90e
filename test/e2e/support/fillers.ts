/** Images that are there to take up room: one layer each, of random bytes or of many empty files. */
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export interface Filler {
  readonly mebibytes?: number;
  readonly files?: number;
}

const MI = 2 ** 20;

/** The archive of an image, as `docker save` writes them; it is for whoever makes it to remove. */
export function fillerArchive(directory: string, name: string, filler: Filler): string {
  const stage = path.join(directory, 'filler');
  const root = path.join(stage, 'root');
  mkdirSync(path.join(root, 'files'), { recursive: true });
  writeFileSync(path.join(root, 'name'), name);
  if (filler.mebibytes !== undefined) {
    writeFileSync(path.join(root, 'bytes'), randomBytes(filler.mebibytes * MI));
  }
  for (let count = 0; count < (filler.files ?? 0); count += 1) {
    writeFileSync(path.join(root, 'files', `${count}`), '');
  }
  const layer = path.join(stage, 'layer.tar');
  execFileSync('tar', ['-C', root, '-cf', layer, '.']);
  const config = JSON.stringify({
    architecture: 'amd64',
    os: 'linux',
    created: '1970-01-01T00:00:00Z',
    config: { Cmd: ['/none'] },
    rootfs: { type: 'layers', diff_ids: [`sha256:${sha256(readFileSync(layer))}`] },
    history: [{ created: '1970-01-01T00:00:00Z', created_by: 'evictd tests' }],
  });
  const configName = `${sha256(config)}.json`;
  writeFileSync(path.join(stage, configName), config);
  const manifest = [{ Config: configName, RepoTags: [name], Layers: ['layer.tar'] }];
  writeFileSync(path.join(stage, 'manifest.json'), JSON.stringify(manifest));
  const archive = path.join(directory, `${sha256(name).slice(0, 12)}.tar`);
  execFileSync('tar', ['-C', stage, '-cf', archive, 'manifest.json', configName, 'layer.tar']);
  rmSync(stage, { recursive: true });
  return archive;
}

function sha256(data: Buffer | string): string {
  return createHash('sha256').update(data).digest('hex');
}
