import { describe, expect, it } from 'vitest';
import { loadSettings } from '../../src/config/load.ts';
import { describeError, type ErrorCode, type EvictdError } from '../../src/core/errors.ts';
import { POLL_PACES } from '../../src/core/polling.ts';

const pollingOf = (...given: readonly string[]) =>
  loadSettings({ '--polling': given }).settings.polling;

describe('--polling', () => {
  it('has the paces of the core, and changes what it names', () => {
    expect(pollingOf()).toEqual(POLL_PACES);
    expect(
      pollingOf('disk=floor:10ms', 'pids=floor:1h,assumedFall:1n', 'disk=assumedFall:2G'),
    ).toEqual({
      ...POLL_PACES,
      disk: { floorMs: 10, assumedFallPerSecond: 2e9 },
      pids: { floorMs: 3_600_000, assumedFallPerSecond: 1e-9 },
    });
  });

  it.each<[string, ErrorCode, string]>([
    [
      'disk',
      'EVICTD_POLLING',
      '"disk": expected KIND=floor:DURATION,assumedFall:QUANTITY, one of the two at least',
    ],
    [
      'disk=',
      'EVICTD_POLLING',
      '"disk=": expected KIND=floor:DURATION,assumedFall:QUANTITY, one of the two at least',
    ],
    [
      '',
      'EVICTD_POLLING',
      '"": expected KIND=floor:DURATION,assumedFall:QUANTITY, one of the two at least',
    ],
    [
      'disc=floor:1s',
      'EVICTD_POLLING',
      '"disc=floor:1s": unknown kind (did you mean disk?); known: memory, disk, inodes, pids',
    ],
    [
      'disk=flor:1s',
      'EVICTD_POLLING',
      ': disk "flor:1s": expected floor:DURATION or assumedFall:QUANTITY',
    ],
    [
      'disk=floor',
      'EVICTD_POLLING',
      ': disk "floor": expected floor:DURATION or assumedFall:QUANTITY',
    ],
    [
      'disk=floor:1s,',
      'EVICTD_POLLING',
      ': disk "": expected floor:DURATION or assumedFall:QUANTITY',
    ],
    [
      'disk=assumedFallPerSecond:1',
      'EVICTD_POLLING',
      ': disk "assumedFallPerSecond:1": expected floor:DURATION or assumedFall:QUANTITY',
    ],
    ['disk=floor:1s,floor:1s', 'EVICTD_POLLING', ': disk: floor "1s": is given twice'],
    ['disk=floor:9.999ms', 'EVICTD_DURATION', ': disk: floor "9.999ms": shorter than 10ms'],
    ['disk=floor:1h1ns', 'EVICTD_DURATION', ': disk: floor "1h1ns": longer than 1h0m0s'],
    [
      'disk=floor:1',
      'EVICTD_DURATION',
      ': disk: floor "1": a number lacks its unit (ns, us, µs, μs, ms, s, m, h)',
    ],
    ['disk=assumedFall:0', 'EVICTD_QUANTITY', ': disk: assumedFall "0": a fall must be above zero'],
    [
      'disk=assumedFall:-1',
      'EVICTD_QUANTITY',
      ': disk: assumedFall "-1": a fall must be above zero',
    ],
    [
      'disk=assumedFall:fast',
      'EVICTD_QUANTITY',
      ': disk: assumedFall "fast": not a quantity such as 100Mi, 1.5Gi, 129e6 or 104857600',
    ],
  ])('refuses %j', (given, code, printed) => {
    let error: EvictdError | undefined;
    try {
      pollingOf(given);
    } catch (thrown) {
      error = thrown as EvictdError;
    }
    expect(error).toMatchObject({ code, exitStatus: 2 });
    const separator = printed.startsWith(':') ? '' : ' ';
    expect(error === undefined ? '' : describeError(error)).toBe(`--polling${separator}${printed}`);
  });
});

describe('the paths of filesystems', () => {
  const refusal = (flag: string, value: string) => () => loadSettings({ [flag]: [value] });

  it.each(['--nodefs-path', '--imagefs-path', '--containerfs-path'])('%s is absolute', (flag) => {
    const name = flag.slice(2, -5);
    const longest = `/${'a'.repeat(4094)}`;
    for (const value of ['/', '/var lib', longest]) {
      expect(loadSettings({ [flag]: [value] }).settings.filesystems).toMatchObject({
        [name]: value,
      });
    }
    for (const value of ['', 'var', './a', 'none', '/a\0', `${longest}a`]) {
      expect(refusal(flag, value)).toThrow(
        expect.objectContaining({ code: 'EVICTD_PATH', place: { source: flag, value } }),
      );
    }
  });
});
