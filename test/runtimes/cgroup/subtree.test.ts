import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { isInCgroup } from '../../../src/kernel/hierarchy.ts';
import {
  processesBelow,
  processesOf,
  SUBTREE_LIMIT,
  subtree,
} from '../../../src/runtimes/cgroup/subtree.ts';
import { makeCgroup } from '../../support/cgroup.ts';
import { spawnMemory } from '../../support/child.ts';
import { describeWith } from '../../support/skip.ts';
import { openDescriptors, temporaryDirectory } from '../support.ts';

describe('subtree', () => {
  it('lists parents first, and directories alone', () => {
    const top = temporaryDirectory();
    mkdirSync(path.join(top, 'a/b/c'), { recursive: true });
    mkdirSync(path.join(top, 'd e'));
    writeFileSync(path.join(top, 'a/file'), '');
    const found = [...subtree(top)].map((directory) => path.relative(top, directory));
    expect([...found].sort()).toEqual(['', 'a', 'a/b', 'a/b/c', 'd e']);
    for (const directory of found.slice(1)) {
      const parent = path.dirname(directory) === '.' ? '' : path.dirname(directory);
      expect(found.indexOf(parent)).toBeLessThan(found.indexOf(directory));
    }
  });

  it('of one that is gone is itself, without processes', () => {
    expect([...subtree('/no/such')]).toEqual(['/no/such']);
    expect(processesOf('/no/such')).toEqual([]);
    expect(processesBelow('/no/such')).toEqual([]);
  });

  it('has a limit', () => {
    const top = temporaryDirectory(existsSync('/dev/shm') ? '/dev/shm' : undefined);
    const [outer, inner] = [110, 100];
    for (let i = 0; i < outer; i += 1) {
      for (let j = 0; j < inner; j += 1) {
        mkdirSync(path.join(top, String(i), String(j)), { recursive: true });
      }
    }
    expect(outer * inner).toBeGreaterThan(SUBTREE_LIMIT);
    expect([...subtree(top)]).toHaveLength(SUBTREE_LIMIT);
    expect([...subtree(top, 3)]).toHaveLength(3);
  });
});

describeWith({ root: true, cgroupV1: true }, 'the processes of real cgroups', () => {
  it('are found however deep they are, though no path leads there', async () => {
    const top = makeCgroup();
    onTestFinished(() => top.remove());
    const child = await spawnMemory({ cgroups: [] });
    onTestFinished(() => void child.kill());
    // 40 levels of 250 bytes, made step by step by a process that goes down with them.
    const program = [
      'import os, sys',
      'os.chdir(sys.argv[1])',
      'for _ in range(40):',
      '    os.mkdir("x" * 250)',
      '    os.chdir("x" * 250)',
      'open("cgroup.procs", "w").write(sys.argv[2])',
    ].join('\n');
    execFileSync('python3', ['-c', program, top.path, String(child.pid)]);
    onTestFinished(() => {
      const remove = [
        'import os, sys',
        'os.chdir(sys.argv[1])',
        'for _ in range(40): os.chdir("x" * 250)',
        'for _ in range(40):',
        '    os.chdir("..")',
        '    os.rmdir("x" * 250)',
      ].join('\n');
      execFileSync('python3', ['-c', remove, top.path]);
    });
    const before = openDescriptors();
    expect(processesBelow(top.path)).toEqual([child.pid]);
    expect(isInCgroup(child.pid, 'memory', `/${top.name}`)).toBe(true);
    expect([...subtree(top.path, 30)]).toHaveLength(30);
    expect(openDescriptors()).toBe(before);
    await child.kill();
    expect(processesBelow(top.path)).toEqual([]);
  });

  it('are listed afresh, with those of all cgroups below', async () => {
    const top = makeCgroup();
    onTestFinished(() => top.remove());
    const inner = top.child('a').child('b');
    const one = await spawnMemory({ cgroups: [top.path] });
    expect(processesBelow(top.path)).toEqual([one.pid]);
    const two = await spawnMemory({ cgroups: [inner.path] });
    onTestFinished(() => void two.kill());
    expect(processesOf(top.path)).toEqual([one.pid]);
    expect(processesBelow(top.path)).toEqual([one.pid, two.pid]);
    await one.kill();
    expect(processesBelow(top.path)).toEqual([two.pid]);
  });
});
