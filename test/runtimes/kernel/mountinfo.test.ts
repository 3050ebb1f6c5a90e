import { describe, expect, it } from 'vitest';
import { parseMount, parseMounts, readMountinfo } from '../../../src/kernel/mountinfo.ts';

const BTRFS = [
  '28 1 0:25 /root / rw,relatime shared:1 - btrfs /dev/nvme0n1p3 rw,ssd,subvolid=256,subvol=/root',
  '51 28 0:25 /home /home rw,relatime shared:27 - btrfs /dev/nvme0n1p3 rw,ssd,subvolid=257,subvol=/home',
].join('\n');

describe('parseMount', () => {
  it('reads every field', () => {
    expect(
      parseMount('36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue'),
    ).toStrictEqual({
      id: 36,
      device: '98:0',
      root: '/mnt1',
      mountPoint: '/mnt2',
      type: 'ext3',
      source: '/dev/root',
      superOptions: 'rw,errors=continue',
    });
  });

  it.each([
    ['no optional field', '1 0 8:1 / / rw - ext4 /dev/sda1 rw'],
    ['one', '1 0 8:1 / / rw shared:1 - ext4 /dev/sda1 rw'],
    ['three', '1 0 8:1 / / rw shared:1 master:2 propagate_from:3 - ext4 /dev/sda1 rw'],
  ])('takes %s', (_, line) => {
    expect(parseMount(line)).toMatchObject({ type: 'ext4', source: '/dev/sda1' });
  });

  it.each([
    ['a space and a tab', '/mnt/odd\\040place\\011there', '/mnt/odd place\tthere'],
    ['a newline', '/mnt/two\\012lines', '/mnt/two\nlines'],
    ['a backslash before digits', '/mnt/\\134040', '/mnt/\\040'],
    ['a number sign', '/mnt/\\0431', '/mnt/#1'],
    ['no ASCII', '/mnt/größe', '/mnt/größe'],
    ['a hyphen alone in a name', '/mnt/a\\040-\\040b', '/mnt/a - b'],
    ['255 bytes', `/${'n'.repeat(255)}`, `/${'n'.repeat(255)}`],
  ])('decodes %s', (_, escaped, mountPoint) => {
    expect(parseMount(`7 1 0:9 / ${escaped} rw - tmpfs tmpfs rw`)?.mountPoint).toBe(mountPoint);
  });

  it('takes a source that is empty, and a root that is a hyphen', () => {
    expect(parseMount('7 1 0:9 - /x rw - tmpfs  rw')).toMatchObject({ root: '-', source: '' });
  });

  it.each([
    '',
    ' ',
    '7',
    'x 1 0:9 / /x rw - tmpfs tmpfs rw',
    '7 1 09 / /x rw - tmpfs tmpfs rw',
    '7 1 0:9 / /x rw tmpfs tmpfs rw',
    '7 1 0:9 / /x rw - tmpfs tmpfs',
    '7 1 0:9 / /x rw -',
    '7 1 0:9 / /x - tmpfs tmpfs rw',
  ])('refuses %j', (line) => {
    expect(parseMount(line)).toBeUndefined();
  });
});

describe('parseMounts', () => {
  it('btrfs subvolumes have one device', () => {
    const mounts = [...parseMounts(BTRFS).values()];
    expect(mounts.map(({ device, root }) => `${device} ${root}`)).toEqual([
      '0:25 /root',
      '0:25 /home',
    ]);
  });

  it('a bind mount has the device and the source of what it shows', () => {
    const mounts = parseMounts(
      [
        '27 1 254:0 / / rw - ext4 /dev/vda rw',
        '80 27 254:0 /var/lib/images /images rw - ext4 /dev/vda rw',
      ].join('\n'),
    );
    expect(mounts.get(80)).toMatchObject({ device: '254:0', root: '/var/lib/images' });
    expect(mounts.get(80)?.source).toBe(mounts.get(27)?.source);
  });

  it('keeps the order, skips what is no mount', () => {
    const mounts = parseMounts(`${BTRFS}\nnonsense\n9 1 0:9 / /x rw - tmpfs t rw\n`);
    expect([...mounts.keys()]).toEqual([28, 51, 9]);
  });
});

describe('readMountinfo', () => {
  it('has the root of this process', () => {
    const mounts = [...parseMounts(readMountinfo()).values()];
    expect(mounts.some(({ mountPoint }) => mountPoint === '/')).toBe(true);
  });
});
