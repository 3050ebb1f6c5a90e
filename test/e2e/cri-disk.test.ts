import { execFileSync } from 'node:child_process';
import { renameSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { criClient } from '../../src/runtimes/cri/client.ts';
import { describeWith } from '../support/skip.ts';
import { type DiskHost, diskStage, diskStories } from './disk-stories.ts';
import { startContainerd } from './support/containerd.ts';
import { criHost } from './support/cri-host.ts';
import { makeDisk } from './support/loop-disk.ts';
import { untilAnswer } from './support/until-answer.ts';

const LIMIT_MS = 60_000;
const PROGRAMS = ['containerd', 'runc', 'busybox', 'tar', 'mkfs.ext4', 'mount', 'umount'];
const SIZE = { mebibytes: 320, inodes: 6000 } as const;

describeWith(
  { root: true, cgroupV1: true, programs: [...PROGRAMS, 'ctr'] },
  'containerd on a disk of its own',
  () => {
    let own: DiskHost;

    beforeAll(async () => {
      const disk = makeDisk(SIZE);
      const containerd = await startContainerd(path.join(disk.directory, 'c'));
      const host = criHost(containerd);
      own = {
        host,
        disk,
        removeDead: async ({ id }) => {
          const client = criClient(`unix://${containerd.socketPath}`, () => Date.now());
          // A container of a sandbox that has stopped may be running to containerd for a moment longer.
          await untilAnswer(
            'the sandbox is removed',
            () => client.call<object>('RemovePodSandbox', { podSandboxId: id }, LIMIT_MS),
            LIMIT_MS,
          );
          client.close();
        },
      };
    });
    afterAll(async () => {
      await own.host.remove();
      own.disk.remove();
    });

    diskStories(() => own);

    const snapshotsOf = ({ disk }: DiskHost) =>
      path.join(disk.directory, 'c/root/io.containerd.snapshotter.v1.overlayfs');

    it('C16: a path of the runtime’s that is not there has one event, and its root in its place', async () => {
      const snapshots = snapshotsOf(own);
      renameSync(snapshots, `${snapshots}.away`);
      onTestFinished(() => renameSync(`${snapshots}.away`, snapshots));
      const { daemon } = await diskStage(own, ['--eviction-hard=imagefs.available<15%']);
      const { events, filesystems } = await daemon.statusWhen(
        'imagefs is measured',
        (status) => status.signals.some(({ signal }) => signal === 'imagefs.available'),
        LIMIT_MS,
      );
      expect(events.map(({ reason, count }) => [reason, count])).toEqual([
        ['InvalidDiskCapacity', 1],
      ]);
      const imagefs = filesystems.find(({ name }) => name === 'imagefs');
      expect(imagefs).toMatchObject({
        path: path.dirname(snapshots),
        mountPoint: own.disk.directory,
        error: null,
      });
    });

    it('L15: what is mounted over the images is another filesystem', async () => {
      const snapshots = snapshotsOf(own);
      const { daemon } = await diskStage(own, ['--eviction-hard=imagefs.available<1Mi']);
      const layoutIs = (kind: string) =>
        daemon.statusWhen(`the layout is ${kind}`, ({ layout }) => layout?.kind === kind, LIMIT_MS);
      await layoutIs('dedicatedImagefs');
      execFileSync('mount', ['--bind', '/var/lib', snapshots]);
      try {
        await layoutIs('single');
      } finally {
        execFileSync('umount', ['-l', snapshots]);
      }
      await layoutIs('dedicatedImagefs');
    });
  },
);
