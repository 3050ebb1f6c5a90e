import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { isExiting, statField } from '../../../src/kernel/process-stat.ts';
import { until } from '../../support/wait.ts';

describe('statField', () => {
  it('is what procfs says of this process', () => {
    expect(statField(process.pid, 'parent')).toBe(String(process.ppid));
    expect(Number(statField(process.pid, 'startTime'))).toBeGreaterThan(0);
    expect(statField(process.pid, 'startTime')).toBe(statField(process.pid, 'startTime'));
  });

  it('is none of a process that is gone', () => {
    expect(statField(2 ** 22, 'parent')).toBeUndefined();
  });
});

describe('isExiting', () => {
  it('holds of one that has ended and is not waited for, which keeps its start time', async () => {
    // What takes the shell's place, long before the child ends, does not know of it.
    const parent = spawn('sh', ['-c', 'sleep 0.2 & echo $!; exec sleep 60'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      const [line] = (await once(parent.stdout, 'data')) as [Buffer];
      const child = Number(line.toString());
      await until('the child has ended', () => isExiting(child), { limitMs: 10_000 });
      expect(Number(statField(child, 'startTime'))).toBeGreaterThan(0);
    } finally {
      parent.kill('SIGKILL');
    }
    expect(isExiting(process.pid)).toBe(false);
  });
});
