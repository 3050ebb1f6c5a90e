import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';

import {
  createMemoryCgroup,
  killAndReap,
  MEBIBYTE,
  MemoryUser,
  requireAddon,
  settle,
  startSleeper,
  withLimit,
} from './support.ts';

const SIGKILL = 9;
const SIGTERM = 15;
/** Each takes some 20 µs. */
const ZOMBIE_LOOKS_MAX = 100_000;

describe('signal', () => {
  test('0 checks and harms nobody; a real one arrives', async () => {
    const victim = startSleeper();
    const bystander = startSleeper();
    const pidfd = requireAddon().openPidfd(victim.pid);
    expect(pidfd.pid).toBe(victim.pid);
    pidfd.signal(0);
    const exited = once(victim, 'exit');
    pidfd.signal(SIGTERM);
    expect(await withLimit(exited, 'the exit')).toEqual([null, 'SIGTERM']);
    expect(bystander.signalCode).toBeNull();
    pidfd.close();
  });

  test('the highest real-time signal is accepted', async () => {
    const victim = startSleeper();
    const pidfd = requireAddon().openPidfd(victim.pid);
    const pollable = new Promise<void>((resolve) => pidfd.onExit(resolve));
    pidfd.signal(64);
    await withLimit(pollable, 'the exit');
    pidfd.close();
  });
});

describe('onExit', () => {
  test('calls the listener once', async () => {
    const victim = startSleeper();
    const pidfd = requireAddon().openPidfd(victim.pid);
    let calls = 0;
    const ended = new Promise<void>((resolve) => {
      pidfd.onExit(() => {
        calls += 1;
        resolve();
      });
    });
    await settle();
    expect(calls).toBe(0);
    pidfd.signal(SIGKILL);
    await withLimit(ended, 'the exit');
    await settle();
    expect(calls).toBe(1);
    pidfd.close();
  });

  test('a later call replaces the listener', async () => {
    const victim = startSleeper();
    const pidfd = requireAddon().openPidfd(victim.pid);
    let replacedCalls = 0;
    pidfd.onExit(() => {
      replacedCalls += 1;
    });
    const ended = new Promise<void>((resolve) => pidfd.onExit(resolve));
    pidfd.signal(SIGKILL);
    await withLimit(ended, 'the exit');
    expect(replacedCalls).toBe(0);
    pidfd.close();
  });

  test('of a process that ended before, and again after the first call', async () => {
    const victim = startSleeper();
    const pidfd = requireAddon().openPidfd(victim.pid);
    await killAndReap(victim);
    for (let call = 0; call < 2; call += 1) {
      await withLimit(new Promise<void>((resolve) => pidfd.onExit(resolve)), `exit ${call}`);
    }
    pidfd.close();
  });

  test('a listener may wait again and may close', async () => {
    const victim = startSleeper();
    const pidfd = requireAddon().openPidfd(victim.pid);
    const ended = new Promise<void>((resolve) => {
      pidfd.onExit(() =>
        pidfd.onExit(() => {
          pidfd.close();
          resolve();
        }),
      );
    });
    pidfd.signal(SIGKILL);
    await withLimit(ended, 'the second exit');
  });

  test('is not called after close, not even for an exit before it', async () => {
    const victim = startSleeper();
    const pidfd = requireAddon().openPidfd(victim.pid);
    let calls = 0;
    pidfd.onExit(() => {
      calls += 1;
    });
    // All in one turn of the loop, so that the exit is there and not yet served.
    pidfd.signal(SIGKILL);
    waitUntilZombie(victim.pid);
    pidfd.close();
    await settle();
    expect(calls).toBe(0);
  });
});

describe('release', () => {
  test('EINVAL before the kill, frees after it (case L10)', async () => {
    const user = await MemoryUser.start(createMemoryCgroup());
    const pidfd = requireAddon().openPidfd(user.pid);
    await expect(pidfd.release()).rejects.toMatchObject({
      code: 'EINVAL',
      errno: -22,
      syscall: 'process_mrelease',
    });
    // Still alive, and still obeying.
    await user.hold(MEBIBYTE);

    pidfd.signal(SIGKILL);
    // ESRCH when the kernel was faster.
    const outcome = await pidfd.release().then(
      () => 'released',
      (error: NodeJS.ErrnoException) => error.code,
    );
    expect(['released', 'ESRCH']).toContain(outcome);
    pidfd.close();
  });

  test('ESRCH when the process is gone', async () => {
    const victim = startSleeper();
    const pidfd = requireAddon().openPidfd(victim.pid);
    await killAndReap(victim);
    await expect(pidfd.release()).rejects.toMatchObject({
      code: 'ESRCH',
      syscall: 'process_mrelease',
    });
    pidfd.close();
  });

  test('settles although the pidfd is closed meanwhile', async () => {
    const victim = startSleeper();
    const pidfd = requireAddon().openPidfd(victim.pid);
    const releases = Array.from({ length: 16 }, () => pidfd.release());
    pidfd.close();
    const refused = { status: 'rejected', reason: expect.objectContaining({ code: 'EINVAL' }) };
    expect(await Promise.allSettled(releases)).toEqual(releases.map(() => refused));
  });
});

test('capabilities: this kernel offers everything', () => {
  expect(requireAddon().capabilities()).toEqual({
    pidfd: null,
    processMrelease: null,
    eventfd: null,
  });
});

test('build facts', () => {
  const { build } = requireAddon();
  expect(build.napi).toBe(9);
  expect(build.compiler).toMatch(/^(gcc|clang) \d+/);
  expect(build.sanitized).toBe(process.env['EVICTD_NATIVE_PATH']?.includes('sanitized') ?? false);
});

/** Without giving the loop a turn, in which libuv would reap it. */
function waitUntilZombie(pid: number): void {
  for (let look = 0; look < ZOMBIE_LOOKS_MAX; look += 1) {
    if (/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))) return;
  }
  throw new Error(`process ${pid} does not end`);
}
