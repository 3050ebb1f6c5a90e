import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { EvictdError } from '../../../src/core/errors.ts';
import { podParentDirectory, resolveNodeCgroup } from '../../../src/kernel/node-cgroup.ts';
import { MEMORY_HIERARCHY, makeCgroup } from '../../support/cgroup.ts';
import { describeWith } from '../../support/skip.ts';
import { temporaryDirectory } from '../support.ts';

const NEEDED = ['memory.usage_in_bytes', 'memory.stat', 'cgroup.event_control', 'cgroup.procs'];

/** A directory that stands for a hierarchy, with one node in it. */
function fakeHierarchy() {
  const mountPoint = temporaryDirectory();
  const node = path.join(mountPoint, 'a', 'node');
  mkdirSync(node, { recursive: true });
  for (const file of NEEDED) writeFileSync(path.join(node, file), '');
  return { hierarchy: { mountPoint, root: '/' }, node };
}

function refusal(action: () => unknown): EvictdError {
  try {
    action();
  } catch (error) {
    if (error instanceof EvictdError) return error;
    throw error;
  }
  throw new Error('it was not refused');
}

describe('resolveNodeCgroup', () => {
  it.each([
    ['the absolute path', (node: string) => node],
    ['a path in the hierarchy', () => 'a/node'],
    ['the same from its root', () => '/a/node'],
    ['a slash at the end', (node: string) => `${node}/`],
    ['dots that lead back', () => 'a/../a/./node'],
  ])('takes %s', (_, given) => {
    const { hierarchy, node } = fakeHierarchy();
    expect(resolveNodeCgroup(given(node), hierarchy)).toEqual({
      directory: node,
      hierarchy,
      isRoot: false,
    });
  });

  it('follows links', () => {
    const { hierarchy, node } = fakeHierarchy();
    const link = path.join(temporaryDirectory(), 'link');
    symlinkSync(node, link);
    expect(resolveNodeCgroup(link, hierarchy).directory).toBe(node);
  });

  it.each([
    ['', 'is no path'],
    ['a\0b', 'is no path'],
    ['missing', 'is no cgroup below'],
    ['/proc', 'is no cgroup below'],
    ['..', 'is no cgroup below'],
    ['a/../..', 'is no cgroup below'],
    ['/', 'has no memory.usage_in_bytes'],
    ['a', 'has no memory.usage_in_bytes'],
    ['a/node/memory.stat', 'has no memory.usage_in_bytes'],
  ])('refuses %j: %s', (given, why) => {
    const { hierarchy } = fakeHierarchy();
    const error = refusal(() => resolveNodeCgroup(given, hierarchy));
    expect(error).toMatchObject({ code: 'EVICTD_NODE_CGROUP', place: { value: given } });
    expect(error.message).toContain(why);
  });

  it.each(NEEDED)('refuses a directory without %s', (file) => {
    const { hierarchy, node } = fakeHierarchy();
    rmSync(path.join(node, file));
    const error = refusal(() => resolveNodeCgroup(node, hierarchy));
    expect(error.message).toBe(`has no ${file}`);
  });

  it('refuses a link that leads out, and one that leads nowhere', () => {
    const { hierarchy } = fakeHierarchy();
    symlinkSync('/proc', path.join(hierarchy.mountPoint, 'out'));
    symlinkSync('/no/such', path.join(hierarchy.mountPoint, 'nowhere'));
    for (const name of ['out', 'nowhere']) {
      const error = refusal(() => resolveNodeCgroup(name, hierarchy));
      expect(error.message).toContain('is no cgroup below');
    }
  });
});

describeWith({ root: true, cgroupV1: true }, 'resolveNodeCgroup, on real cgroups', () => {
  it('takes one, and the root where none is given', () => {
    const cgroup = makeCgroup();
    onTestFinished(() => cgroup.remove());
    expect(resolveNodeCgroup(cgroup.path).directory).toBe(cgroup.path);
    expect(resolveNodeCgroup(`/${cgroup.name}`).directory).toBe(cgroup.path);
    expect(resolveNodeCgroup(cgroup.path).isRoot).toBe(false);
    for (const given of [undefined, '/', MEMORY_HIERARCHY]) {
      const node = resolveNodeCgroup(given);
      expect(node).toMatchObject({ directory: MEMORY_HIERARCHY, isRoot: true });
      expect(podParentDirectory(node, 'a/b')).toBe(`${MEMORY_HIERARCHY}/a/b`);
      expect(refusal(() => podParentDirectory(node, '.'))).toMatchObject({
        code: 'EVICTD_POD_PARENT',
      });
    }
  });
});
