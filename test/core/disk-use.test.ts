import { describe, expect, it } from 'vitest';
import { diskOf, type FoundUse } from '../../src/core/disk-use.ts';

const NODE = '8:1';
const IMAGES = '8:2';
const OTHER = '0:99';
const APART = { nodefs: NODE, containerfs: IMAGES };

const use = (part: FoundUse['part'], fields: Partial<FoundUse> = {}): FoundUse => ({
  part,
  bytes: 100,
  inodes: 10,
  device: undefined,
  type: undefined,
  ...fields,
});

const bytesOf = (found: readonly FoundUse[], devices = APART as Parameters<typeof diskOf>[1]) => {
  const { root, logs, localVolumes } = diskOf(found, devices);
  return [root.bytes, logs.bytes, localVolumes.bytes];
};

describe('diskOf', () => {
  it('adds up each part', () => {
    const found = [
      use('root'),
      use('root', { bytes: 1, inodes: 2 }),
      use('logs', { device: NODE }),
    ];
    expect(diskOf(found, APART)).toStrictEqual({
      root: { bytes: 101, inodes: 12 },
      logs: { bytes: 100, inodes: 10 },
      localVolumes: { bytes: 0, inodes: 0 },
    });
  });

  it('inodes that nobody counts are unknown, whatever others are', () => {
    const found = [use('root', { inodes: undefined }), use('root')];
    expect(diskOf(found, APART).root).toStrictEqual({ bytes: 200, inodes: undefined });
    expect(diskOf([...found].reverse(), APART).root.inodes).toBeUndefined();
  });

  it('what may be more is so in the sum, whatever others are', () => {
    const found = [use('root', { isLeast: true }), use('root'), use('logs', { device: NODE })];
    for (const order of [found, [...found].reverse()]) {
      const { root, logs } = diskOf(order, APART);
      expect(root).toStrictEqual({ bytes: 200, inodes: 20, isLeast: true });
      expect(logs).toStrictEqual({ bytes: 100, inodes: 10 });
    }
    const cut = use('root', { isLeast: true, isCut: true });
    for (const order of [
      [cut, use('root')],
      [use('root', { isLeast: true }), cut],
    ]) {
      expect(diskOf(order, APART).root).toMatchObject({ bytes: 200, isLeast: true, isCut: true });
    }
  });

  it.each<[string, Partial<FoundUse>, readonly [number, number, number]]>([
    ['on nodefs are what they are', { device: NODE }, [0, 100, 100]],
    ['where layers are count as layers do', { device: IMAGES }, [200, 0, 0]],
    ['on neither are left out', { device: OTHER }, [0, 0, 0]],
    ['of a btrfs have a device each', { device: OTHER, type: 0x9123683e }, [0, 100, 100]],
    ['in memory are no disk use', { device: NODE, type: 0x01021994 }, [0, 0, 0]],
    ['in huge pages neither', { device: OTHER, type: 0x958458f6 }, [0, 0, 0]],
    ['of an unknown place are what they are', {}, [0, 100, 100]],
  ])('logs and volumes that lie %s', (_, fields, expected) => {
    expect(bytesOf([use('logs', fields), use('localVolumes', fields)])).toStrictEqual(expected);
  });

  it('a layer is one wherever it lies', () => {
    expect(bytesOf([use('root', { device: OTHER })])).toStrictEqual([100, 0, 0]);
  });

  it('nothing is told apart where all is one, or nodefs is not known yet', () => {
    const found = [use('logs', { device: NODE }), use('localVolumes', { device: OTHER })];
    expect(bytesOf(found, { nodefs: NODE, containerfs: NODE })).toStrictEqual([0, 100, 0]);
    expect(bytesOf(found, { nodefs: undefined, containerfs: undefined })).toStrictEqual([
      0, 100, 100,
    ]);
  });
});
