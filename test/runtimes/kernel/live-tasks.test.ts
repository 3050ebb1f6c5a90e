import { spawn } from 'node:child_process';
import { describe, expect, it, onTestFinished } from 'vitest';
import { liveTasks } from '../../../src/kernel/live-tasks.ts';
import { isExiting } from '../../../src/kernel/process-stat.ts';
import { until } from '../../support/wait.ts';

const LIMIT_MS = 10_000;

/** No process has this number: the kernel's limit is below it. */
const NOBODY = 2 ** 22 + 1;

describe('liveTasks', () => {
  it('is the leading thread of a process that lives', () => {
    expect(isExiting(process.pid)).toBe(false);
    expect(liveTasks(process.pid)).toEqual([process.pid]);
  });

  it('is nothing of a process that is gone, or that has ended and is not reaped', async () => {
    expect(isExiting(NOBODY)).toBe(true);
    expect(liveTasks(NOBODY)).toEqual([]);
    // The shell does not wait for what it has started while it sleeps in the foreground.
    const shell = spawn('bash', ['-c', 'sleep 0 & echo $!; exec sleep 1000']);
    onTestFinished(() => void shell.kill('SIGKILL'));
    const pid = await new Promise<number>((resolve) =>
      shell.stdout.once('data', (text: Buffer) => resolve(Number(text.toString()))),
    );
    await until('it has ended', () => isExiting(pid), { limitMs: LIMIT_MS });
    expect(liveTasks(pid)).toEqual([]);
  });

  it('are the other threads once the leading one has ended', async () => {
    const script = [
      'import ctypes, threading, time',
      'threading.Thread(target=time.sleep, args=(1000,)).start()',
      'ctypes.CDLL(None).syscall(60 if __import__("os").uname().machine == "x86_64" else 93, 0)',
    ].join('\n');
    const child = spawn('python3', ['-c', script], { stdio: 'inherit' });
    onTestFinished(() => void child.kill('SIGKILL'));
    const pid = child.pid as number;
    await until('its leader has ended', () => isExiting(pid), { limitMs: LIMIT_MS });
    const tasks = liveTasks(pid);
    expect(tasks).toHaveLength(1);
    expect(tasks[0]).toMatch(new RegExp(`^${pid}/task/(?!${pid}$)\\d+$`));
  });
});
