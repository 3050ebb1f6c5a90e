import { spawn } from 'node:child_process';
import { copyFileSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ancestry } from '../../../src/kernel/ancestry.ts';
import { until } from '../../support/wait.ts';
import { temporaryDirectory } from '../support.ts';

describe('ancestry', () => {
  it('goes from the process up to one without a parent', () => {
    const chain = ancestry(process.pid);
    expect(chain.slice(0, 2)).toEqual([process.pid, process.ppid]);
    expect(new Set(chain).size).toBe(chain.length);
    const top = chain.at(-1) ?? 0;
    const stat = readFileSync(`/proc/${top}/status`, 'utf8');
    expect(stat).toMatch(/^PPid:\t0$/m);
  });

  it.each(['x) S 1 (', ') R 7 ', 'a b'])('is not misled by the name %j', async (name) => {
    const program = path.join(temporaryDirectory(), name);
    copyFileSync('/bin/sleep', program);
    const child = spawn(program, ['1000'], { stdio: 'ignore' });
    onTestFinished(() => void child.kill('SIGKILL'));
    const pid = child.pid ?? 0;
    const comm = () => readFileSync(`/proc/${pid}/comm`, 'utf8').slice(0, -1);
    await until('it has its name', () => comm() === name, { limitMs: 5000 });
    expect(ancestry(pid).slice(0, 2)).toEqual([pid, process.pid]);
  });

  it('of a process that is gone is itself alone; of no process it is empty', () => {
    expect(ancestry(2 ** 22)).toEqual([2 ** 22]);
    expect(ancestry(0)).toEqual([]);
    expect(ancestry(-1)).toEqual([]);
  });
});
