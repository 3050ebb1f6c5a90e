import { describe, expect, it } from 'vitest';
import { parsePods } from '../../src/config/pod-flag.ts';
import { type ErrorCode, EvictdError } from '../../src/core/errors.ts';

const NOTHING = {
  priority: undefined,
  memoryRequestNano: undefined,
  gracePeriodSeconds: undefined,
  protected: false,
};

function refusalOf(values: readonly string[]): EvictdError {
  try {
    parsePods(values);
  } catch (error) {
    if (error instanceof EvictdError) return error;
    throw error;
  }
  throw new Error(`not refused: ${values.join(' ')}`);
}

describe('parsePods', () => {
  it.each([
    ['web=', 'web', {}],
    ['web=protected', 'web', { protected: true }],
    ['web=priority:1000', 'web', { priority: 1000 }],
    ['web=priority:-2147483648', 'web', { priority: -2_147_483_648 }],
    ['web=priority:2147483647', 'web', { priority: 2_147_483_647 }],
    ['web=request:64Mi', 'web', { memoryRequestNano: 67_108_864_000_000_000n }],
    ['web=request:0', 'web', { memoryRequestNano: 0n }],
    ['web=request:100m', 'web', { memoryRequestNano: 100_000_000n }],
    ['web=grace:30', 'web', { gracePeriodSeconds: 30 }],
    ['web=grace:0', 'web', { gracePeriodSeconds: 0 }],
    ['web=grace:30s', 'web', { gracePeriodSeconds: 30 }],
    ['web=grace:1m30s', 'web', { gracePeriodSeconds: 90 }],
    ['web=grace:2000ms', 'web', { gracePeriodSeconds: 2 }],
    ['web=grace:2147483647', 'web', { gracePeriodSeconds: 2_147_483_647 }],
    ['web=grace:2147483647s', 'web', { gracePeriodSeconds: 2_147_483_647 }],
    [
      'web=priority:5,request:1Gi,grace:1m,protected',
      'web',
      {
        priority: 5,
        memoryRequestNano: (1n << 30n) * 10n ** 9n,
        gracePeriodSeconds: 60,
        protected: true,
      },
    ],
    ['web=protected,priority:5', 'web', { priority: 5, protected: true }],
    // The name ends at the last "=".
    ['a=b=priority:5', 'a=b', { priority: 5 }],
    ['a,b:c=priority:5', 'a,b:c', { priority: 5 }],
    ['a==', 'a=', {}],
    ['...=protected', '...', { protected: true }],
    [' =protected', ' ', { protected: true }],
    ['__proto__=protected', '__proto__', { protected: true }],
    [`${'n'.repeat(255)}=`, 'n'.repeat(255), {}],
  ])('%s', (value, name, fields) => {
    expect([...parsePods([value])]).toEqual([[name, { name, ...NOTHING, ...fields }]]);
  });

  it('takes several pods, and none', () => {
    expect([...parsePods(['a=', 'b=']).keys()]).toEqual(['a', 'b']);
    expect(parsePods([]).size).toBe(0);
  });

  it.each<[string, ErrorCode, RegExp]>([
    ['', 'EVICTD_POD', /expected NAME=/],
    ['web', 'EVICTD_POD', /expected NAME=/],
    ['web:priority:5', 'EVICTD_POD', /expected NAME=/],
    ['=protected', 'EVICTD_POD', /named ""/],
    ['.=protected', 'EVICTD_POD', /named "."/],
    ['..=protected', 'EVICTD_POD', /named ".."/],
    ['/a=protected', 'EVICTD_POD', /without "\/"/],
    ['a//b=protected', 'EVICTD_POD', /no cgroup can be named ""/],
    ['a/=protected', 'EVICTD_POD', /no cgroup can be named ""/],
    ['a/../b=protected', 'EVICTD_POD', /no cgroup can be named "\.\."/],
    [`${'a/'.repeat(2047)}ab=protected`, 'EVICTD_POD', /at most 4095 bytes/],
    ['a\0=protected', 'EVICTD_POD', /NUL/],
    [`${'n'.repeat(256)}=`, 'EVICTD_POD', /at most 255 bytes/],
    [`${'ä'.repeat(128)}=`, 'EVICTD_POD', /at most 255 bytes/],
  ])('refuses %j for its name', (value, code, message) => {
    const error = refusalOf([value]);
    expect(error).toMatchObject({ code, exitStatus: 2, place: { source: '--pod', value } });
    expect(error.message).toMatch(message);
  });

  it.each<[string, ErrorCode, string, string, RegExp]>([
    ['web=,', 'EVICTD_POD', 'web', '', /unknown field ""/],
    ['web=priority:5,', 'EVICTD_POD', 'web', '', /unknown field/],
    [
      'web=priorty:5',
      'EVICTD_POD',
      'web',
      'priorty:5',
      /did you mean priority\?\); known fields: priority, request, grace, protected/,
    ],
    ['web=cpu:5', 'EVICTD_POD', 'web', 'cpu:5', /unknown field "cpu"; known/],
    ['web=Protected', 'EVICTD_POD', 'web', 'Protected', /did you mean protected/],
    ['web=constructor:5', 'EVICTD_POD', 'web', 'constructor:5', /unknown field/],
    ['web= priority:5', 'EVICTD_POD', 'web', ' priority:5', /did you mean priority/],
    ['web=priority', 'EVICTD_POD', 'web', 'priority', /expected priority:VALUE/],
    ['web=protected:true', 'EVICTD_POD', 'web', 'protected:true', /takes no value/],
    ['web=protected,protected', 'EVICTD_POD', 'web', 'protected', /given twice/],
    ['web=priority:5,priority:5', 'EVICTD_POD', 'web', 'priority:5', /given twice/],
    ['web=priority:', 'EVICTD_INTEGER', 'web: priority', '', /whole number/],
    ['web=priority:high', 'EVICTD_INTEGER', 'web: priority', 'high', /whole number/],
    ['web=priority:2147483648', 'EVICTD_INTEGER', 'web: priority', '2147483648', /whole number/],
    ['web=priority:-2147483649', 'EVICTD_INTEGER', 'web: priority', '-2147483649', /whole number/],
    ['web=request:', 'EVICTD_QUANTITY', 'web: request', '', /empty/],
    ['web=request:5 Gi', 'EVICTD_QUANTITY', 'web: request', '5 Gi', /not a quantity/],
    ['web=request:5%', 'EVICTD_QUANTITY', 'web: request', '5%', /not a quantity/],
    ['web=request:-1n', 'EVICTD_QUANTITY', 'web: request', '-1n', /negative/],
    ['web=grace:', 'EVICTD_DURATION', 'web: grace', '', /not a duration/],
    ['web=grace:-1s', 'EVICTD_DURATION', 'web: grace', '-1s', /whole number of seconds/],
    ['web=grace:-1', 'EVICTD_INTEGER', 'web: grace', '-1', /not a whole number from 0/],
    ['web=grace:1.5s', 'EVICTD_DURATION', 'web: grace', '1.5s', /whole number of seconds/],
    ['web=grace:1.5', 'EVICTD_DURATION', 'web: grace', '1.5', /lacks its unit/],
    ['web=grace:2147483648', 'EVICTD_INTEGER', 'web: grace', '2147483648', /whole number/],
    [
      'web=grace:2147483648s',
      'EVICTD_DURATION',
      'web: grace',
      '2147483648s',
      /whole number of seconds/,
    ],
  ])('refuses %j for a field', (value, code, key, shown, message) => {
    const error = refusalOf([value]);
    expect(error).toMatchObject({ code, exitStatus: 2 });
    expect(error.place).toEqual({ source: '--pod', key, value: shown });
    expect(error.message).toMatch(message);
  });

  it('refuses a pod given twice', () => {
    const error = refusalOf(['web=priority:5', 'cache=', 'web=protected']);
    expect(error.code).toBe('EVICTD_POD');
    expect(error.place).toEqual({ source: '--pod', key: 'web', value: 'web=protected' });
    expect(error.message).toMatch(/given twice/);
  });
});
