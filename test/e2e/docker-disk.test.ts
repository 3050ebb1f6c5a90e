import path from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { describeWith } from '../support/skip.ts';
import { type DiskHost, diskStories } from './disk-stories.ts';
import { startDockerd } from './support/dockerd.ts';
import { engineHost } from './support/engine-host.ts';
import { makeDisk } from './support/loop-disk.ts';

const PROGRAMS = ['containerd', 'runc', 'busybox', 'tar', 'mkfs.ext4', 'mount', 'umount'];
const SIZE = { mebibytes: 320, inodes: 6000 } as const;

describeWith(
  { root: true, cgroupV1: true, programs: [...PROGRAMS, 'dockerd'] },
  'Docker Engine on a disk of its own',
  () => {
    let own: DiskHost;

    beforeAll(async () => {
      const disk = makeDisk(SIZE);
      const dockerd = await startDockerd(path.join(disk.directory, 'd'), { liveRestore: false });
      own = {
        host: engineHost(dockerd),
        disk,
        removeDead: ({ id }) =>
          dockerd.docker.getContainer(id).remove({ force: true }) as Promise<void>,
      };
    });
    afterAll(async () => {
      await own.host.remove();
      own.disk.remove();
    });

    diskStories(() => own);
  },
);
