import { spawn } from 'node:child_process';
import { copyFileSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ancestry, DESCENDANT_LIMIT, descendants } from '../../../src/kernel/ancestry.ts';
import { until, within } from '../../support/wait.ts';
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

describe('descendants', () => {
  /** A shell that runs `script`; resolves with what it prints first. */
  async function firstLine(script: string): Promise<{ pid: number; line: string }> {
    const shell = spawn('bash', ['-c', script], { stdio: ['pipe', 'pipe', 'inherit'] });
    onTestFinished(() => void shell.stdin.end());
    const lines = createInterface({ input: shell.stdout });
    const line = new Promise<string>((resolve) => lines.once('line', resolve));
    return { pid: shell.pid ?? 0, line: await within(line, 5000, 'the shell prints') };
  }

  it('are the children and theirs, without the process itself', async () => {
    const { pid, line } = await firstLine('(cat & echo $BASHPID $!; wait) <&0 & wait');
    const [child, grandchild] = line.split(' ').map(Number);
    expect(descendants(pid)).toEqual([child, grandchild]);
    expect(descendants(process.pid)).toContain(grandchild);
  });

  it('have a limit', async () => {
    const script = `for _ in $(seq ${DESCENDANT_LIMIT + 5}); do cat <&0 & done; echo; wait`;
    const { pid } = await firstLine(script);
    expect(descendants(pid)).toHaveLength(DESCENDANT_LIMIT);
  });

  it('are none of a process that is gone, nor of init, which is given all orphans', () => {
    expect(descendants(2 ** 22)).toEqual([]);
    expect(descendants(0)).toEqual([]);
    expect(descendants(1)).toEqual([]);
  });
});
