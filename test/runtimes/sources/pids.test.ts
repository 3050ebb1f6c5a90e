import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { pidReader } from '../../../src/sources/pids.ts';
import { openDescriptors } from '../support.ts';

interface Host {
  readonly pidMax?: string;
  readonly threadsMax?: string;
  readonly loadavg?: string;
}

function temporary(): string {
  const directory = mkdtempSync(path.join(tmpdir(), 'evictd-pids-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return directory;
}

/** A procfs of 32,768 pids, 40,000 threads and 100 tasks. */
function procfs({ pidMax = '32768', threadsMax = '40000', loadavg }: Host = {}): string {
  const directory = temporary();
  mkdirSync(`${directory}/sys/kernel`, { recursive: true });
  writeFileSync(`${directory}/sys/kernel/pid_max`, `${pidMax}\n`);
  writeFileSync(`${directory}/sys/kernel/threads-max`, `${threadsMax}\n`);
  writeFileSync(`${directory}/loadavg`, loadavg ?? '0.20 0.18 0.12 1/100 11206\n');
  return directory;
}

function group(limit: string, current: string): string {
  const directory = temporary();
  writeFileSync(`${directory}/pids.max`, `${limit}\n`);
  writeFileSync(`${directory}/pids.current`, `${current}\n`);
  return directory;
}

function readerOf(directory: string | undefined, proc: string) {
  const reader = pidReader({ directory, procfs: proc, nowMs: () => 7 });
  onTestFinished(() => reader.close());
  return reader;
}

const signal = 'pid.available';

describe('pidReader', () => {
  it('of the host: the lower of pid_max and threads-max, less all tasks', () => {
    const read = (host: Host) => readerOf(undefined, procfs(host)).read();
    expect(read({})).toStrictEqual({ signal, capacity: 32_768, available: 32_668, atMs: 7 });
    // k/k#107111
    expect(read({ threadsMax: '16000' })).toMatchObject({ capacity: 16_000, available: 15_900 });
  });

  it('L12: of a cgroup with a limit: that, less what runs in it', () => {
    const reader = readerOf(group('500', '490'), procfs());
    expect(reader.read()).toStrictEqual({ signal, capacity: 500, available: 10, atMs: 7 });
  });

  it('of what binds the node the one counts that leaves least: the host, a group above', () => {
    expect(readerOf(group('4000000', '10'), procfs()).read()).toMatchObject({
      capacity: 32_768,
      available: 32_668,
    });
    const top = temporary();
    mkdirSync(`${top}/above/node`, { recursive: true });
    writeFileSync(`${top}/above/pids.max`, '200\n');
    writeFileSync(`${top}/above/pids.current`, '190\n');
    writeFileSync(`${top}/above/node/pids.max`, '500\n');
    writeFileSync(`${top}/above/node/pids.current`, '20\n');
    const inputs = { directory: `${top}/above/node`, mountPoint: top, procfs: procfs() };
    const reader = pidReader({ ...inputs, nowMs: () => 7 });
    onTestFinished(() => reader.close());
    expect(reader.read()).toMatchObject({ capacity: 200, available: 10 });
  });

  it('of a cgroup without a limit: the host', () => {
    expect(readerOf(group('max', '3'), procfs()).read()).toMatchObject({
      capacity: 32_768,
      available: 32_668,
    });
  });

  it('is never below 0: a limit may be set below what there is', () => {
    expect(readerOf(group('10', '490'), procfs()).read()).toMatchObject({
      capacity: 10,
      available: 0,
    });
  });

  it('reads afresh each time, and a group that is made again', () => {
    const directory = group('500', '100');
    const reader = readerOf(directory, procfs());
    expect(reader.read()).toMatchObject({ available: 400 });
    writeFileSync(`${directory}/pids.current`, '450\n');
    expect(reader.read()).toMatchObject({ available: 50 });
  });

  it('says what cannot be read, tries again, and keeps no descriptor', () => {
    const directory = group('500', '100');
    rmSync(`${directory}/pids.current`);
    const before = openDescriptors();
    const reader = readerOf(directory, procfs());
    expect(reader.read()).toStrictEqual({ error: expect.stringContaining('pids.current') });
    expect(openDescriptors()).toBe(before);
    writeFileSync(`${directory}/pids.current`, '1\n');
    expect(reader.read()).toMatchObject({ available: 499 });
    reader.close();
    expect(openDescriptors()).toBe(before);
  });

  it.each(['', 'nonsense', '0.2 0.2 0.2 1 7', '0.2 0.2 0.2 1/x 7'])(
    'refuses the loadavg %j',
    (loadavg) => {
      expect(readerOf(undefined, procfs({ loadavg: `${loadavg}\n` })).read()).toStrictEqual({
        error: expect.stringContaining('not a loadavg'),
      });
    },
  );

  it('reads this kernel', () => {
    const read = readerOf(undefined, '/proc').read();
    const pidMax = Number(readFileSync('/proc/sys/kernel/pid_max', 'utf8'));
    expect(read).toMatchObject({ capacity: expect.any(Number) });
    const { capacity, available } = read as { capacity: number; available: number };
    expect(capacity).toBeLessThanOrEqual(pidMax);
    expect(available).toBeGreaterThan(0);
    expect(available).toBeLessThan(capacity);
  });
});
