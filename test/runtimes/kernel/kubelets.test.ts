import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { kubeletProcesses } from '../../../src/kernel/kubelets.ts';

interface Process {
  readonly pid: number;
  readonly comm: string;
  readonly cmdline?: string;
  readonly namespace?: string;
  readonly uid?: number;
}

/** A procfs with these processes. */
function procfs(...processes: readonly Process[]): string {
  const proc = mkdtempSync(path.join(tmpdir(), 'evictd-proc-'));
  onTestFinished(() => rmSync(proc, { recursive: true }));
  writeFileSync(path.join(proc, 'uptime'), '1');
  for (const { pid, comm, cmdline, namespace, uid } of processes) {
    const directory = path.join(proc, String(pid));
    mkdirSync(path.join(directory, 'ns'), { recursive: true });
    writeFileSync(path.join(directory, 'comm'), `${comm}\n`);
    if (cmdline !== undefined) writeFileSync(path.join(directory, 'cmdline'), cmdline);
    if (uid !== undefined) {
      // As a process looks that has dropped its root, and may take it back.
      const status = `Name:\t${comm}\nUid:\t0\t${uid}\t0\t0\nGid:\t0\t0\t0\t0\n`;
      writeFileSync(path.join(directory, 'status'), status);
    }
    if (namespace !== undefined) symlinkSync(namespace, path.join(directory, 'ns/pid'));
  }
  return proc;
}

const INIT = { pid: 1, comm: 'systemd', cmdline: '/sbin/init\0', namespace: 'pid:[1]' };

describe('kubeletProcesses', () => {
  it('finds kubelets and what holds one, with their command lines', () => {
    const proc = procfs(
      INIT,
      { pid: 7, comm: 'kubelet', cmdline: '/k\0--config\0/ä b\0', namespace: 'pid:[1]' },
      { pid: 8, comm: 'k3s-server', cmdline: 'k3s\0', namespace: 'pid:[1]' },
      { pid: 9, comm: 'kubelet-proxy', cmdline: 'x\0', namespace: 'pid:[1]' },
    );
    expect(kubeletProcesses(proc)).toEqual([
      {
        pid: 7,
        name: 'kubelet',
        args: ['/k', '--config', '/ä b'],
        root: `${proc}/7/root`,
        cwd: `${proc}/7/cwd`,
      },
      { pid: 8, name: 'k3s-server', args: ['k3s'], root: `${proc}/8/root`, cwd: `${proc}/8/cwd` },
    ]);
  });

  it('leaves out that of a node in a container, and none where that cannot be told', () => {
    const other = { pid: 7, comm: 'kubelet', cmdline: 'a\0', namespace: 'pid:[2]' };
    const unread = { pid: 8, comm: 'kubelet', cmdline: 'b\0' };
    const pids = (...processes: readonly Process[]) =>
      kubeletProcesses(procfs(...processes)).map(({ pid }) => pid);
    expect(pids(INIT, other, unread)).toEqual([8]);
    expect(pids(other, unread)).toEqual([7, 8]);
  });

  it('leaves out that of any other user than root', () => {
    const proc = procfs(
      INIT,
      { pid: 7, comm: 'kubelet', namespace: 'pid:[1]', uid: 65_534 },
      { pid: 8, comm: 'kubelet', namespace: 'pid:[1]', uid: 0 },
    );
    expect(kubeletProcesses(proc).map(({ pid }) => pid)).toEqual([8]);
  });

  it('says where a command line cannot be read', () => {
    const proc = procfs(
      INIT,
      { pid: 7, comm: 'kubelet' },
      { pid: 8, comm: 'kubelet', cmdline: '' },
    );
    expect(kubeletProcesses(proc).map(({ args }) => args)).toEqual([undefined, undefined]);
  });

  it('finds none where there is no procfs', () => {
    expect(kubeletProcesses('/nonexistent')).toEqual([]);
  });
});
