import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { fromText } from '../../../src/kernel/byte-path.ts';
import {
  cgroupOf,
  findHierarchy,
  findUnified,
  isInCgroup,
  pathIn,
  sameGroupIn,
} from '../../../src/kernel/hierarchy.ts';
import { makeCgroup } from '../../support/cgroup.ts';
import { spawnMemory } from '../../support/child.ts';
import { describeWith } from '../../support/skip.ts';
import { fixture } from '../support.ts';

const mounts = (name: string) => readFileSync(fixture('proc', `mountinfo-${name}`), 'latin1');

describe('findHierarchy', () => {
  it.each([
    ['v1', 'memory', '/sys/fs/cgroup/memory', '/'],
    ['v1', 'freezer', '/sys/fs/cgroup/freezer', '/'],
    ['v1', 'name=systemd', '/sys/fs/cgroup/systemd', '/'],
    ['hybrid', 'memory', '/sys/fs/cgroup/memory', '/'],
    ['hybrid', 'cpuacct', '/sys/fs/cgroup/cpu,cpuacct', '/'],
    ['hybrid', 'net_prio', '/sys/fs/cgroup/net_cls,net_prio', '/'],
    ['container', 'memory', '/sys/fs/cgroup/memory', '/docker/0123 abc\\x'],
    ['container', 'cpu', '/mnt/odd place\there', '/docker/0123'],
  ])('%s: finds %s', (file, controller, mountPoint, root) => {
    expect(findHierarchy(controller, mounts(file))).toEqual({ mountPoint, root });
  });

  it.each([
    ['hybrid', 'freezer', 'not mounted'],
    ['hybrid', 'mem', 'only a part of a name'],
    ['hybrid', 'systemd', 'a named hierarchy is no controller'],
    ['v2', 'memory', 'cgroup2 has no v1 hierarchies'],
  ])('%s: no %s (%s)', (file, controller) => {
    expect(findHierarchy(controller, mounts(file))).toBeUndefined();
  });

  it.each(['', '\n\n', 'nonsense', '1 2 3 - cgroup', ' - cgroup cgroup rw,memory'])(
    'takes no harm from %j',
    (text) => {
      expect(findHierarchy('memory', text)).toBeUndefined();
    },
  );
});

describe('findUnified', () => {
  it.each([
    ['hybrid', '/sys/fs/cgroup/unified'],
    ['v2', '/sys/fs/cgroup'],
  ])('%s: finds %s', (file, mountPoint) => {
    expect(findUnified(mounts(file))).toEqual({ mountPoint, root: '/' });
  });

  it('finds none where all is v1, or in nonsense', () => {
    expect(findUnified(mounts('container'))).toBeUndefined();
    expect(findUnified('1 2 3 - cgroup2')).toBeUndefined();
  });
});

describe('a mount that shows more than the cgroup namespace', () => {
  const hierarchy = { mountPoint: '/m', root: '/../..', namespace: '/a/b' };
  const plain = { mountPoint: '/u', root: '/' };

  it.each([
    ['/m/a/b', '/'],
    ['/m/a/b/c', '/c'],
    ['/m/a/c', '/../c'],
    ['/m/a', '/..'],
    ['/m/x/y', '/../../x/y'],
    ['/m', '/../..'],
  ])('%s is %s there', (directory, path) => {
    expect(pathIn(hierarchy, directory)).toBe(path);
    expect(sameGroupIn(hierarchy, plain, `/u${path}`)).toBe(directory);
  });

  it('ends at the mount point', () => {
    expect(sameGroupIn(hierarchy, plain, '/u/../../../x')).toBeUndefined();
  });
});

describe('sameGroupIn', () => {
  const memory = { mountPoint: '/m', root: '/' };
  const inner = { mountPoint: '/käse', root: '/docker/1' };

  it('is the directory of the same path', () => {
    expect(pathIn(memory, '/m')).toBe('/');
    expect(pathIn(memory, '/m/a/b')).toBe('/a/b');
    expect(sameGroupIn({ mountPoint: '/u', root: '/' }, memory, '/m/a/\xff')).toBe('/u/a/\xff');
  });

  it('takes in what each mount shows as its root', () => {
    const path = '/docker/1/pod';
    expect(pathIn(inner, `${fromText('/käse')}/pod`)).toBe(path);
    expect(sameGroupIn(inner, memory, `/m${path}`)).toBe(`${fromText('/käse')}/pod`);
    expect(sameGroupIn(inner, memory, '/m/docker/2/pod')).toBeUndefined();
    expect(sameGroupIn(memory, inner, fromText('/käse/pod'))).toBe(`/m${path}`);
  });
});

describe('cgroupOf', () => {
  it('is undefined for a process that is gone, or a controller that is not there', () => {
    const hierarchy = { mountPoint: '/m', root: '/' };
    expect(cgroupOf(2 ** 22, 'memory', hierarchy)).toBeUndefined();
    expect(isInCgroup(2 ** 22, 'memory', '/')).toBe(false);
    expect(cgroupOf('self', 'no-such-controller', hierarchy)).toBeUndefined();
  });
});

describeWith({ root: true, cgroupV1: true }, 'cgroupOf, on real cgroups', () => {
  it.each(['plain', 'with space', 'käse-☃', 'a:b,c=d', '-x'])('finds %j', async (name) => {
    const top = makeCgroup();
    onTestFinished(() => top.remove());
    const cgroup = top.child(name);
    const child = await spawnMemory({ cgroups: [cgroup.path] });
    onTestFinished(() => void child.kill());
    const hierarchy = findHierarchy('memory');
    expect(hierarchy && cgroupOf(child.pid, 'memory', hierarchy)).toBe(cgroup.path);
    if (hierarchy === undefined) return;
    const isIn = (directory: string) =>
      isInCgroup(child.pid, 'memory', pathIn(hierarchy, fromText(directory)));
    expect([cgroup.path, top.path, `${cgroup.path}/x`, `${top.path}/y`].map(isIn)).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });

  it('is told apart from what a bind mount or a namespace shows', async () => {
    const top = makeCgroup();
    onTestFinished(() => top.remove());
    const cgroup = top.child('pod');
    const child = await spawnMemory({ cgroups: [cgroup.path] });
    onTestFinished(() => void child.kill());
    const at = (root: string) => cgroupOf(child.pid, 'memory', { mountPoint: '/mnt', root });
    expect(at(`/${top.name}`)).toBe('/mnt/pod');
    expect(at(`/${top.name}/pod`)).toBe('/mnt');
    // Neither the same, nor above: only the beginning of a name.
    expect(at(`/${top.name}/po`)).toBeUndefined();
    expect(at('/elsewhere')).toBeUndefined();
  });

  it('is the mount point for a process of the root', async () => {
    const child = await spawnMemory();
    onTestFinished(() => void child.kill());
    const freezer = findHierarchy('freezer');
    if (freezer === undefined) return;
    const group = path.join(freezer.mountPoint, `evictd-test-${process.pid}-h`);
    mkdirSync(group);
    onTestFinished(() => rmdirSync(group));
    writeFileSync(path.join(group, 'cgroup.procs'), String(child.pid));
    expect(cgroupOf(child.pid, 'freezer', freezer)).toBe(group);
    writeFileSync(path.join(freezer.mountPoint, 'cgroup.procs'), String(child.pid));
    expect(cgroupOf(child.pid, 'freezer', freezer)).toBe(freezer.mountPoint);
  });
});
