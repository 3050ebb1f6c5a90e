import { cpSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { handleCache } from '../../../src/runtimes/cgroup/handle-cache.ts';
import { LIMIT_AGE_MS, openPod } from '../../../src/runtimes/cgroup/pod-handle.ts';
import { makeCgroup } from '../../support/cgroup.ts';
import { describeWith } from '../../support/skip.ts';
import { copyOf, fixture, openDescriptors } from '../support.ts';

const MI = 2 ** 20;

function podIn(directory: string, name: string) {
  const pod = openPod(directory, name);
  onTestFinished(() => pod.close());
  return pod;
}

describe('a pod handle', () => {
  it('reads the files of this kernel', () => {
    const pod = podIn(fixture('cgroup-v1', 'node'), 'pod-a');
    expect(pod.workingSetBytes()).toBe(20_938_752 - 20_000_768);
    expect(pod.chargedBytes()).toBe(20_938_752);
    expect(pod.limitBytes(0)).toBe(128 * MI);
    expect(pod.softLimitBytes(0)).toBe(128 * MI);
    expect(pod.identity()).toBe('same');
    expect(pod.id).toMatch(/^pod-a@\d+$/);
    expect(readFileSync(`${pod.held}/memory.usage_in_bytes`, 'utf8')).toBe('20938752\n');
  });

  it('reads usage afresh, and limits when they are old', () => {
    const node = copyOf('cgroup-v1', 'node');
    const pod = podIn(node, 'pod-b');
    const unlimited = Number.MAX_SAFE_INTEGER;
    expect([pod.limitBytes(0), pod.softLimitBytes(0)]).toEqual([unlimited, unlimited]);
    for (const file of ['usage', 'limit', 'soft_limit']) {
      writeFileSync(path.join(node, 'pod-b', `memory.${file}_in_bytes`), `${96 * MI}\n`);
    }
    expect(pod.workingSetBytes()).toBe(96 * MI);
    expect(pod.limitBytes(LIMIT_AGE_MS - 1)).toBe(unlimited);
    expect(pod.limitBytes(LIMIT_AGE_MS)).toBe(96 * MI);
    expect(pod.softLimitBytes(LIMIT_AGE_MS)).toBe(96 * MI);
  });

  it('has no working set below 0', () => {
    const node = copyOf('cgroup-v1', 'node');
    const pod = podIn(node, 'pod-a');
    writeFileSync(path.join(node, 'pod-a', 'memory.usage_in_bytes'), '4096\n');
    expect(pod.workingSetBytes()).toBe(0);
  });

  it('knows when its name leads nowhere any more', () => {
    const node = copyOf('cgroup-v1', 'node');
    const pod = podIn(node, 'pod-a');
    rmSync(path.join(node, 'pod-a'), { recursive: true });
    expect(pod.identity()).toBe('gone');
  });

  it.each([
    ['a missing directory', 'no-such', 'ENOENT'],
    ['a file', 'memory.stat', 'ENOTDIR'],
  ])('is not opened on %s, and nothing stays open', (_, name, code) => {
    const before = openDescriptors();
    for (let n = 0; n < 10; n += 1) {
      expect(() => openPod(fixture('cgroup-v1', 'node'), name)).toThrow(
        expect.objectContaining({ code }),
      );
    }
    expect(openDescriptors()).toBe(before);
  });

  it('is not opened through a link, nor without its counters', () => {
    const node = copyOf('cgroup-v1', 'node');
    symlinkSync(path.join(node, 'pod-a'), path.join(node, 'link'));
    expect(() => openPod(node, 'link')).toThrow(expect.objectContaining({ code: 'ENOTDIR' }));
    rmSync(path.join(node, 'pod-b', 'memory.stat'));
    const before = openDescriptors();
    expect(() => openPod(node, 'pod-b')).toThrow(expect.objectContaining({ code: 'ENOENT' }));
    expect(openDescriptors()).toBe(before);
  });
});

describeWith({ root: true, cgroupV1: true }, 'a pod handle, on real cgroups', () => {
  it('is not mistaken for a cgroup that is made again', async () => {
    const node = makeCgroup();
    onTestFinished(() => node.remove());
    const first = node.child('pod');
    const pod = podIn(node.path, 'pod');
    await first.remove();
    expect(pod.identity()).toBe('gone');
    expect(pod.chargedBytes()).toBeUndefined();
    expect(() => pod.workingSetBytes()).toThrow(expect.objectContaining({ code: 'ENODEV' }));
    node.child('pod');
    expect(pod.identity()).toBe('replaced');
    const again = podIn(node.path, 'pod');
    expect(again.identity()).toBe('same');
    expect(again.id).not.toBe(pod.id);
  });
});

describe('the cache of handles', () => {
  const node = fixture('cgroup-v1', 'node');
  /** A node with pods of these names. */
  function nodeWith(names: readonly string[]): string {
    const directory = copyOf('cgroup-v1', 'node');
    for (const name of names) {
      symlinkSync(path.join(directory, 'pod-a'), path.join(directory, `${name}.link`));
    }
    return directory;
  }

  it('opens once', () => {
    const cache = handleCache(node);
    onTestFinished(() => cache.close());
    expect(cache.get('pod-a')).toBe(cache.get('pod-a'));
    expect(cache.get('pod-b')).not.toBe(cache.get('pod-a'));
  });

  it('closes the newest beyond its limit', () => {
    const cache = handleCache(node, 1);
    onTestFinished(() => cache.close());
    const before = openDescriptors();
    const a = cache.get('pod-a');
    const perPod = openDescriptors() - before;
    expect(perPod).toBe(3);
    for (let n = 0; n < 50; n += 1) {
      cache.get('pod-b');
      cache.get('pod-a');
    }
    expect(openDescriptors()).toBe(before + perPod);
    expect(cache.get('pod-a')).not.toBe(a);
  });

  it('keeps what it has beyond its limit, since all are read in one order', () => {
    const directory = copyOf('cgroup-v1', 'node');
    for (const name of ['a', 'b', 'c', 'd']) {
      cpSync(path.join(directory, 'pod-a'), path.join(directory, name), { recursive: true });
    }
    const cache = handleCache(directory, 3);
    onTestFinished(() => cache.close());
    const pass = () => ['a', 'b', 'c', 'd'].map((name) => cache.get(name));
    const before = openDescriptors();
    const [a, b, c, d] = pass();
    expect(openDescriptors()).toBe(before + 9);
    const again = pass();
    expect([again[0], again[1]]).toEqual([a, b]);
    expect(again[2]).not.toBe(c);
    expect(again[3]).not.toBe(d);
    // Also where the newest is gone itself.
    cache.drop('d');
    cache.get('c');
    cache.drop('c');
    cache.get('c');
    cache.get('d');
    expect(openDescriptors()).toBe(before + 9);
    expect(cache.get('a')).toBe(a);
  });

  it('opens anew what was dropped, and closes what is not retained', () => {
    const cache = handleCache(node);
    const before = openDescriptors();
    const [a, b] = [cache.get('pod-a'), cache.get('pod-b')];
    cache.drop('pod-a');
    cache.drop('no-such');
    expect(openDescriptors()).toBe(before + 3);
    expect(cache.get('pod-a')).not.toBe(a);
    cache.retain(new Set(['pod-b', 'no-such']));
    expect(openDescriptors()).toBe(before + 3);
    expect(cache.get('pod-b')).toBe(b);
    cache.close();
    cache.close();
    expect(openDescriptors()).toBe(before);
  });

  it('keeps nothing of a pod that cannot be opened', () => {
    const directory = nodeWith(['x']);
    const cache = handleCache(directory);
    onTestFinished(() => cache.close());
    const before = openDescriptors();
    expect(() => cache.get('x.link')).toThrow();
    expect(() => cache.get('no-such')).toThrow();
    expect(openDescriptors()).toBe(before);
  });
});
