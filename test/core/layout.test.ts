import { describe, expect, it } from 'vitest';
import {
  type FilesystemIdentity,
  filesystemLayout,
  isSameFilesystem,
} from '../../src/core/layout.ts';

/** `8:1 /dev/sda1 ext4`, and the device of the mount where that is another. */
function fs(text: string, mountDevice?: string): FilesystemIdentity {
  const [device = '', source = '', type = ''] = text.split(' ');
  return { device, source, type, mountDevice: mountDevice ?? device };
}

const SDA = fs('8:1 /dev/sda1 ext4');
const SDB = fs('8:17 /dev/sdb1 ext4');
const SDC = fs('8:33 /dev/sdc1 xfs');
const ROOT_SUBVOLUME = fs('0:26 /dev/sda2 btrfs', '0:25');
const IMAGES_SUBVOLUME = fs('0:27 /dev/sda2 btrfs', '0:25');
const TMPFS = fs('0:40 tmpfs tmpfs');
const OTHER_TMPFS = fs('0:41 tmpfs tmpfs');

describe('isSameFilesystem', () => {
  it.each([
    ['one device', SDA, SDA],
    ['one device, mounts unknown', fs('8:1', ''), SDA],
    ['one device under two names', SDA, fs('8:1 /dev/root ext4')],
    ['btrfs subvolumes', ROOT_SUBVOLUME, IMAGES_SUBVOLUME],
    [
      'btrfs of two disks, by the device of the mount',
      ROOT_SUBVOLUME,
      fs('0:28 /dev/sdb btrfs', '0:25'),
    ],
    [
      'btrfs subvolumes by source alone',
      fs('0:26 /dev/sda2 btrfs', ''),
      fs('0:27 /dev/sda2 btrfs', ''),
    ],
    ['a tmpfs bound elsewhere', TMPFS, TMPFS],
    ['one NFS export mounted twice', fs('0:50 nas:/a nfs4'), fs('0:50 nas:/a nfs4')],
    ['a disk behind fuseblk', fs('0:60 /dev/sdd1 fuseblk', ''), fs('0:61 /dev/sdd1 fuseblk', '')],
  ])('%s: yes, both ways round', (_, one, other) => {
    expect(isSameFilesystem(one, other)).toBe(true);
    expect(isSameFilesystem(other, one)).toBe(true);
  });

  it.each([
    ['two disks', SDA, SDB],
    ['two tmpfs', TMPFS, OTHER_TMPFS],
    ['two without a source', fs('0:40 none ramfs'), fs('0:41 none ramfs')],
    ['two overlays', fs('0:40 overlay overlay'), fs('0:41 overlay overlay')],
    ['two NFS mounts of one export', fs('0:50 nas:/a nfs4'), fs('0:51 nas:/a nfs4')],
    ['two ZFS data sets of a pool', fs('0:50 pool/a zfs'), fs('0:51 pool/b zfs')],
    ['two FUSE mounts of the default name', fs('0:50 /dev/fuse fuse'), fs('0:51 /dev/fuse fuse')],
    ['FUSE under a disk’s name', fs('0:50 /dev/sda1 fuse.x'), fs('0:51 /dev/sda1 fuse.x')],
    ['two types with one source', fs('0:50 /dev/sda1 ext4'), fs('0:51 /dev/sda1 btrfs')],
    ['mounts unknown', fs('0:50', ''), fs('0:51', '')],
  ])('%s: no, neither way round', (_, one, other) => {
    expect(isSameFilesystem(one, other)).toBe(false);
    expect(isSameFilesystem(other, one)).toBe(false);
  });
});

describe('filesystemLayout', () => {
  it.each([
    ['nothing', {}, 'single', ''],
    ['nodefs alone', { nodefs: SDA }, 'single', 'nodefs'],
    ['imagefs on nodefs', { nodefs: SDA, imagefs: SDA }, 'single', 'nodefs = imagefs'],
    ['containerfs on nodefs', { nodefs: SDA, containerfs: SDA }, 'single', 'nodefs = containerfs'],
    [
      'all on one',
      { nodefs: SDA, imagefs: SDA, containerfs: SDA },
      'single',
      'nodefs = imagefs = containerfs',
    ],
    ['imagefs apart', { nodefs: SDA, imagefs: SDB }, 'dedicatedImagefs', 'nodefs, imagefs'],
    [
      'imagefs and containerfs apart together',
      { nodefs: SDA, imagefs: SDB, containerfs: SDB },
      'dedicatedImagefs',
      'nodefs, imagefs = containerfs',
    ],
    [
      'imagefs apart, containerfs on nodefs',
      { nodefs: SDA, imagefs: SDB, containerfs: SDA },
      'splitImagefs',
      'nodefs = containerfs, imagefs',
    ],
    [
      'three',
      { nodefs: SDA, imagefs: SDB, containerfs: SDC },
      'separateContainerfs',
      'nodefs, imagefs, containerfs',
    ],
    [
      'containerfs apart, imagefs on nodefs',
      { nodefs: SDA, imagefs: SDA, containerfs: SDB },
      'separateContainerfs',
      'nodefs = imagefs, containerfs',
    ],
    [
      'containerfs apart, imagefs not known',
      { nodefs: SDA, containerfs: SDB },
      'separateContainerfs',
      'nodefs, containerfs',
    ],
    ['imagefs alone', { imagefs: SDB }, 'dedicatedImagefs', 'imagefs'],
    [
      'nodefs not known',
      { imagefs: SDB, containerfs: SDC },
      'separateContainerfs',
      'imagefs, containerfs',
    ],
    [
      'btrfs subvolumes',
      { nodefs: ROOT_SUBVOLUME, imagefs: IMAGES_SUBVOLUME, containerfs: ROOT_SUBVOLUME },
      'single',
      'nodefs = imagefs = containerfs',
    ],
    [
      'three tmpfs of one name',
      { nodefs: TMPFS, imagefs: OTHER_TMPFS, containerfs: fs('0:42 tmpfs tmpfs') },
      'separateContainerfs',
      'nodefs, imagefs, containerfs',
    ],
    [
      'a third that joins the two others',
      {
        nodefs: fs('8:1 /dev/root ext4', ''),
        imagefs: fs('0:9 /dev/sda1 ext4', ''),
        containerfs: fs('8:1 /dev/sda1 ext4', ''),
      },
      'single',
      'nodefs = imagefs = containerfs',
    ],
  ] as const)('%s', (_, identities, layout, text) => {
    const found = filesystemLayout(identities);
    expect(found).toMatchObject({ layout, text });
    expect(found.groups.flat().toSorted()).toEqual(Object.keys(identities).toSorted());
  });
});
