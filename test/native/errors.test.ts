import { readdirSync } from 'node:fs';
import { constants } from 'node:os';
import { describe, expect, test } from 'vitest';

import {
  createMemoryCgroup,
  createRefusingDirectory,
  killAndReap,
  removeCgroup,
  requireAddon,
  runProgram,
  startSleeper,
  thrownBy,
  watch,
} from './support.ts';

const listener = () => undefined;

function fieldsOf({ code, errno, syscall, path, message }: NodeJS.ErrnoException) {
  return { code, errno, syscall, path, message };
}

describe('watchMemcg', () => {
  test('ENOENT on a directory that is not there', () => {
    const directory = createMemoryCgroup();
    removeCgroup(directory);
    const error = thrownBy(() => requireAddon().watchMemcg(directory, { kind: 'oom' }, listener));
    expect(fieldsOf(error)).toEqual({
      code: 'ENOENT',
      errno: -constants.errno.ENOENT,
      syscall: 'open',
      path: directory,
      message: `ENOENT: no such file or directory, open '${directory}'`,
    });
  });

  test('ENOENT names the control file that a hierarchy does not have', () => {
    const directory = '/sys/fs/cgroup/cpu';
    const event = { kind: 'usage', bytes: 1n } as const;
    const error = thrownBy(() => requireAddon().watchMemcg(directory, event, listener));
    expect(error).toMatchObject({
      code: 'ENOENT',
      errno: -constants.errno.ENOENT,
      syscall: 'open',
      path: `${directory}/memory.usage_in_bytes`,
    });
  });

  test('ENOTDIR on a file', () => {
    const path = '/proc/version';
    const error = thrownBy(() => requireAddon().watchMemcg(path, { kind: 'oom' }, listener));
    expect(error).toMatchObject({ code: 'ENOTDIR', syscall: 'open', path });
  });

  test('"armed" rejects with what the kernel said; the watch stays open until it is closed', async () => {
    const directory = createRefusingDirectory(createMemoryCgroup());
    const refused = watch(directory, { kind: 'usage', bytes: 1n }, listener);
    const error = await refused.armed.catch((reason: unknown) => reason);
    expect(fieldsOf(error as NodeJS.ErrnoException)).toEqual({
      code: 'EINVAL',
      errno: -constants.errno.EINVAL,
      syscall: 'write',
      path: `${directory}/cgroup.event_control`,
      message: `EINVAL: invalid argument, write '${directory}/cgroup.event_control'`,
    });
    expect(error).toBeInstanceOf(Error);
    expect(refused.active).toBe(true);
    refused.close();
    expect(refused.active).toBe(false);
    await expect(refused.armed).rejects.toBe(error);
  });

  test('"armed" rejects with ENODEV when the cgroup is removed before its turn', async () => {
    const cgroup = createMemoryCgroup();
    const other = createMemoryCgroup();
    // These wait in the kernel for some milliseconds.
    const before = [1n, 2n, 3n].map((bytes) => watch(other, { kind: 'usage', bytes }, listener));
    const late = watch(cgroup, { kind: 'oom' }, listener);
    removeCgroup(cgroup);
    await expect(late.armed).rejects.toMatchObject({
      code: 'ENODEV',
      errno: -constants.errno.ENODEV,
      syscall: 'write',
    });
    // One that fails does not stop the queue.
    const after = watch(other, { kind: 'oom' }, listener);
    await Promise.all([...before, after].map((each) => each.armed));
  });
});

describe('openPidfd', () => {
  test('ESRCH on a process that is gone', async () => {
    const sleeper = startSleeper();
    await killAndReap(sleeper);
    expect(fieldsOf(thrownBy(() => requireAddon().openPidfd(sleeper.pid)))).toEqual({
      code: 'ESRCH',
      errno: -constants.errno.ESRCH,
      syscall: 'pidfd_open',
      path: undefined,
      message: 'ESRCH: no such process, pidfd_open',
    });
  });

  test('a thread that leads no group is refused', () => {
    const thread = readdirSync('/proc/self/task')
      .map(Number)
      .find((id) => id !== process.pid);
    if (thread === undefined) throw new Error('Node runs with one thread only');
    const error = thrownBy(() => requireAddon().openPidfd(thread));
    // EINVAL up to Linux 6.14, ENOENT since.
    expect(['EINVAL', 'ENOENT']).toContain(error.code);
    expect(error.syscall).toBe('pidfd_open');
  });
});

describe('signal', () => {
  test('ESRCH on a process that has ended and was reaped', async () => {
    const sleeper = startSleeper();
    const pidfd = requireAddon().openPidfd(sleeper.pid);
    await killAndReap(sleeper);
    expect(thrownBy(() => pidfd.signal(9))).toMatchObject({
      code: 'ESRCH',
      errno: -constants.errno.ESRCH,
      syscall: 'pidfd_send_signal',
    });
    pidfd.close();
  });

  test('EPERM on a process of another user without CAP_KILL', async () => {
    const sleeper = startSleeper({ uid: 65_534 });
    const command = ['setpriv', '--bounding-set=-kill', process.execPath];
    const printed = await runProgram('signal-once', [String(sleeper.pid)], { command });
    expect(JSON.parse(printed)).toEqual({
      code: 'EPERM',
      errno: -constants.errno.EPERM,
      syscall: 'pidfd_send_signal',
    });
    expect(sleeper.exitCode).toBeNull();
  });
});

describe('a closed pidfd', () => {
  test('fails with EBADF in every method but close', async () => {
    const pidfd = requireAddon().openPidfd(process.pid);
    pidfd.close();
    pidfd.close();
    expect(thrownBy(() => pidfd.signal(0)).code).toBe('EBADF');
    expect(thrownBy(() => pidfd.onExit(listener)).code).toBe('EBADF');
    await expect(pidfd.release()).rejects.toMatchObject({ code: 'EBADF' });
  });
});
