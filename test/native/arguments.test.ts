import { readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';

import type { MemcgEvent } from '../../src/native/index.ts';
import { createMemoryCgroup, requireAddon, startSleeper, thrownBy, watch } from './support.ts';

const DIRECTORY = '/sys/fs/cgroup/memory';
const OOM: MemcgEvent = { kind: 'oom' };
const TYPE = 'ERR_INVALID_ARG_TYPE';
const VALUE = 'ERR_INVALID_ARG_VALUE';
const RANGE = 'ERR_OUT_OF_RANGE';
const listener = () => undefined;

/** What JavaScript can pass and TypeScript would not. */
type Unchecked = (...args: readonly unknown[]) => unknown;

const watchRefusals: ReadonlyArray<readonly [string, readonly unknown[], string]> = [
  ['no arguments', [], TYPE],
  ['directory: a number', [1, OOM, listener], TYPE],
  ['directory: a buffer', [Buffer.from(DIRECTORY), OOM, listener], TYPE],
  ['directory: empty', ['', OOM, listener], VALUE],
  ['directory: relative', ['sys/fs/cgroup/memory', OOM, listener], VALUE],
  ['directory: with NUL', [`${DIRECTORY}\0/x`, OOM, listener], VALUE],
  ['event: missing', [DIRECTORY, undefined, listener], TYPE],
  ['event: null', [DIRECTORY, null, listener], TYPE],
  ['event: a string', [DIRECTORY, 'oom', listener], TYPE],
  ['kind: missing', [DIRECTORY, {}, listener], TYPE],
  ['kind: unknown', [DIRECTORY, { kind: 'Usage', bytes: 1n }, listener], VALUE],
  ['kind: empty', [DIRECTORY, { kind: '' }, listener], VALUE],
  ['kind: with NUL', [DIRECTORY, { kind: 'oom\0' }, listener], VALUE],
  ['bytes: missing', [DIRECTORY, { kind: 'usage' }, listener], TYPE],
  ['bytes: a number', [DIRECTORY, { kind: 'usage', bytes: 1 }, listener], TYPE],
  ['bytes: a string', [DIRECTORY, { kind: 'memsw', bytes: '1' }, listener], TYPE],
  ['bytes: negative', [DIRECTORY, { kind: 'usage', bytes: -1n }, listener], RANGE],
  ['bytes: 2^63', [DIRECTORY, { kind: 'memsw', bytes: 2n ** 63n }, listener], RANGE],
  ['bytes: 2^64', [DIRECTORY, { kind: 'usage', bytes: 2n ** 64n }, listener], RANGE],
  ['level: missing', [DIRECTORY, { kind: 'pressure' }, listener], TYPE],
  ['level: unknown', [DIRECTORY, { kind: 'pressure', level: 'high' }, listener], VALUE],
  ['level: with mode', [DIRECTORY, { kind: 'pressure', level: 'low,local' }, listener], VALUE],
  ['mode: null', [DIRECTORY, { kind: 'pressure', level: 'low', mode: null }, listener], TYPE],
  ['mode: unknown', [DIRECTORY, { kind: 'pressure', level: 'low', mode: 'all' }, listener], VALUE],
  ['listener: missing', [DIRECTORY, OOM], TYPE],
  ['listener: an object', [DIRECTORY, OOM, {}], TYPE],
  ['options: null', [DIRECTORY, OOM, listener, null], TYPE],
  ['options: a boolean', [DIRECTORY, OOM, listener, true], TYPE],
  ['persistent: a number', [DIRECTORY, OOM, listener, { persistent: 1 }], TYPE],
];

describe('watchMemcg refuses', () => {
  for (const [name, args, code] of watchRefusals) {
    test(`${name} with ${code}`, () => {
      expectRefusal(() => (requireAddon().watchMemcg as Unchecked)(...args), code);
    });
  }

  test('what a getter of the event throws, unchanged', () => {
    const failure = new Error('from the getter');
    const event = {
      get kind(): 'oom' {
        throw failure;
      },
    };
    expect(thrownBy(() => requireAddon().watchMemcg(DIRECTORY, event, listener))).toBe(failure);
  });
});

describe('watchMemcg accepts', () => {
  test('options left out, empty or with undefined', () => {
    const cgroup = createMemoryCgroup();
    for (const options of [undefined, {}, { persistent: undefined }, { persistent: false }]) {
      const opened = (watch as Unchecked)(cgroup, OOM, listener, options);
      expect(opened).toHaveProperty('active', true);
    }
  });
});

describe('setRoundRobin refuses', () => {
  const refusals: ReadonlyArray<readonly [string, readonly unknown[], string]> = [
    ['no argument', [], TYPE],
    ['a string', ['1'], TYPE],
    ['0', [0], RANGE],
    ['100', [100], RANGE],
    ['a fraction', [1.5], RANGE],
  ];
  for (const [name, args, code] of refusals) {
    test(`${name} with ${code}`, () => {
      expectRefusal(() => (requireAddon().setRoundRobin as Unchecked)(...args), code);
    });
  }
});

describe('openPidfd refuses', () => {
  const refusals: ReadonlyArray<readonly [string, readonly unknown[], string]> = [
    ['no argument', [], TYPE],
    ['a string', ['1'], TYPE],
    ['a bigint', [1n], TYPE],
    ['0', [0], RANGE],
    ['a negative number', [-1], RANGE],
    ['a fraction', [1.5], RANGE],
    ['NaN', [Number.NaN], RANGE],
    ['Infinity', [Number.POSITIVE_INFINITY], RANGE],
    ['2^22 + 1', [2 ** 22 + 1], RANGE],
    ['2^32 + 1, which cut to 32 bits would be init', [2 ** 32 + 1], RANGE],
  ];
  for (const [name, args, code] of refusals) {
    test(`${name} with ${code}`, () => {
      expectRefusal(() => (requireAddon().openPidfd as Unchecked)(...args), code);
    });
  }
});

describe('a pidfd refuses', () => {
  const signals: ReadonlyArray<readonly [string, unknown, string]> = [
    ['a missing signal', undefined, TYPE],
    ['a name', 'SIGKILL', TYPE],
    ['-1', -1, RANGE],
    ['65', 65, RANGE],
    ['9.5', 9.5, RANGE],
  ];
  for (const [name, signal, code] of signals) {
    test(`${name} with ${code}`, () => {
      const pidfd = requireAddon().openPidfd(startSleeper().pid);
      expectRefusal(() => (pidfd.signal.bind(pidfd) as Unchecked)(signal), code);
      pidfd.signal(0);
      pidfd.close();
    });
  }

  test('an exit listener that is no function', () => {
    const pidfd = requireAddon().openPidfd(process.pid);
    expectRefusal(() => (pidfd.onExit.bind(pidfd) as Unchecked)('exit'), TYPE);
    pidfd.close();
  });
});

test('a method or getter on an object of another kind is a TypeError', () => {
  const pidfd = requireAddon().openPidfd(process.pid);
  const opened = watch(createMemoryCgroup(), OOM, listener);
  const prototype = Object.getPrototypeOf(opened) as object;
  for (const receiver of [pidfd, prototype, {}, undefined, Object.create(prototype)]) {
    expect(() => Reflect.get(prototype, 'active', receiver)).toThrow(TypeError);
    expect(() => opened.close.call(receiver as typeof opened)).toThrow();
    if (receiver !== pidfd) {
      expect(() => pidfd.signal.call(receiver as typeof pidfd, 0)).toThrow();
    }
  }
  expect(opened.active).toBe(true);
  pidfd.close();
});

test('nothing stays open after a refusal', () => {
  const before = pidfdsAndControlFiles();
  for (const [, args] of watchRefusals) {
    thrownBy(() => (requireAddon().watchMemcg as Unchecked)(...args));
  }
  expect(pidfdsAndControlFiles()).toBe(before);
});

function expectRefusal(action: () => unknown, code: string): void {
  const error = thrownBy(action);
  expect(error).toHaveProperty('code', code);
  expect(error).toBeInstanceOf(code === RANGE ? RangeError : TypeError);
}

/** All descriptors of this process: valid as a comparison only within one turn of the loop. */
function pidfdsAndControlFiles(): number {
  return readdirSync('/proc/self/fd').length;
}
