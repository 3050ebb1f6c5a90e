/**
 * Who frees what, and when. In processes of their own, since descriptors are counted and since
 * some of them are meant to end badly.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

import { PROGRAM_MS_MAX, runProgram } from './support.ts';

const WORKERS = 20;

test('10,000 watches and pidfds, opened and closed, leave no descriptor', async () => {
  const printed = await runProgram('open-close', ['10000']);
  expect(JSON.parse(printed)).toEqual({ opened: 0, left: 0 });
});

describe('a listener that throws', () => {
  test('surfaces as an uncaughtException with what was thrown', async () => {
    const printed = await runProgram('throwing-listener');
    expect(JSON.parse(printed)).toEqual(['42', 'from a watch', 'undefined']);
  });

  test('ends a process that does not handle it', () => {
    const program = new URL('./programs/throwing-exit-listener.mjs', import.meta.url);
    const run = spawnSync(process.execPath, [fileURLToPath(program)], {
      encoding: 'utf8',
      timeout: PROGRAM_MS_MAX,
    });
    expect(run.status).toBe(1);
    expect(run.stderr).toContain('Error: from an exit listener');
  });
});

test('the collector closes what was forgotten and keeps what waits', async () => {
  expect(JSON.parse(await runProgram('collect'))).toEqual({
    forgotten: 200,
    forgottenLeft: 0,
    waiting: 400,
    events: 200,
    exits: 200,
    collected: 200,
  });
});

describe('a registration that the kernel refuses', () => {
  test('is an unhandled rejection when nobody looks at "armed"', async () => {
    expect(await runProgram('refused', ['ignore'])).toBe('unhandled EINVAL\nexit');
  });

  for (const behaviour of ['close', 'close-later', 'handle']) {
    test(`is none with "${behaviour}"`, async () => {
      expect(await runProgram('refused', [behaviour])).toBe('exit');
    });
  }
});

describe('persistent', () => {
  test('by default a watch keeps the process', async () => {
    expect(await runProgram('persistent', ['true'])).toBe('event\nexit');
  });

  test('with false it does not', async () => {
    expect(await runProgram('persistent', ['false'])).toBe('exit');
  });
});

describe(`${WORKERS} workers that end leave nothing behind`, () => {
  for (const activity of ['wait', 'listen', 'open', 'release', 'leave', 'arm', 'settle']) {
    test(activity, async () => {
      const printed = await runProgram('terminated-workers', [activity, String(WORKERS)]);
      expect(JSON.parse(printed)).toEqual({ left: 0 });
    });
  }
});
