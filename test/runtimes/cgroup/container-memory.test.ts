import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { memoryBelow } from '../../../src/runtimes/cgroup/container-memory.ts';
import { copyOf, fixture } from '../support.ts';

describe('memoryBelow', () => {
  it('reads what this kernel writes: exactly, or without what the kernel has there', () => {
    const node = fixture('cgroup-v1', 'node');
    expect(memoryBelow(node, 'pod-a', 'exact')).toBe(20_938_752 - 20_000_768);
    expect(memoryBelow(node, 'pod-a', 'quick')).toBe(20_004_864 - 20_000_768);
  });

  it('is never negative, and unknown where a file is missing or is another', () => {
    const node = copyOf('cgroup-v1', 'node');
    const write = (name: string, stat: string) => {
      mkdirSync(path.join(node, 'pod-a', name), { recursive: true });
      writeFileSync(path.join(node, 'pod-a', name, 'memory.stat'), stat);
    };
    write('größe', 'cache 9\nrss 9\ntotal_cache 500\ntotal_rss 70\ntotal_inactive_file 400\n');
    expect(memoryBelow(node, 'pod-a/größe', 'quick')).toBe(170);
    expect(memoryBelow(node, 'pod-a/größe', 'exact')).toBeUndefined();
    write('odd', 'total_cache 5\ntotal_rss 70\ntotal_inactive_file 400\n');
    expect(memoryBelow(node, 'pod-a/odd', 'quick')).toBe(70);
    writeFileSync(path.join(node, 'pod-a', 'odd', 'memory.usage_in_bytes'), '300\n');
    expect(memoryBelow(node, 'pod-a/odd', 'exact')).toBe(0);
    write('other', 'anon 5\nfile 7\n');
    expect(memoryBelow(node, 'pod-a/other', 'quick')).toBeUndefined();
    rmSync(path.join(node, 'pod-a', 'odd'), { recursive: true });
    expect(memoryBelow(node, 'pod-a/odd', 'quick')).toBeUndefined();
  });
});
