/** An ext4 in a file, mounted below a directory that goes with the suite. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, statfsSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export interface LoopDisk {
  /** Where it is mounted: short, for the sockets below it. */
  readonly directory: string;
  readonly bytes: number;
  availableBytes(): number;
  inodesFree(): number;
  /** Takes it away, also where it is in use. */
  remove(): void;
}

export function makeDisk(size: { readonly mebibytes: number; readonly inodes: number }): LoopDisk {
  const parent = mkdtempSync('/var/tmp/ed-');
  const directory = path.join(parent, 'm');
  const image = path.join(parent, 'image');
  mkdirSync(directory);
  writeFileSync(image, '');
  truncateSync(image, size.mebibytes * 2 ** 20);
  const { inodes } = size;
  execFileSync('mkfs.ext4', ['-q', '-F', '-m', '0', '-N', String(inodes), image]);
  execFileSync('mount', ['-o', 'loop', image, directory]);
  return {
    directory,
    bytes: size.mebibytes * 2 ** 20,
    availableBytes: () => {
      const { bavail, bsize } = statfsSync(directory);
      return bavail * bsize;
    },
    inodesFree: () => statfsSync(directory).ffree,
    remove: () => {
      execFileSync('umount', ['-l', directory]);
      rmSync(parent, { recursive: true, force: true });
    },
  };
}
