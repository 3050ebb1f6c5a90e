import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { bootClock, readBootId } from '../../../src/kernel/boot.ts';

/** A machine whose two clocks are so far apart, ms; each look at a clock takes `stepMs`. */
function machine(apartMs: number, stepMs: number) {
  let nowMs = 123_456.789;
  const clocks = { apartMs, looks: 0 };
  return {
    clocks,
    advance: (ms: number) => {
      nowMs += ms;
    },
    monotonic: () => {
      nowMs += stepMs;
      return nowMs;
    },
    now: () => nowMs + clocks.apartMs,
    uptime: () => {
      clocks.looks += 1;
      // As procfs writes it: whole hundredths, rounded down.
      const hundredths = Math.floor((nowMs + clocks.apartMs) / 10);
      return `${Math.floor(hundredths / 100)}.${String(hundredths % 100).padStart(2, '0')} 77.00\n`;
    },
  };
}

describe('bootClock', () => {
  it.each([0, 0.4, 3, 7_654_321.25])('is told to a millisecond, %d ms apart', (apartMs) => {
    const host = machine(apartMs, 0.02);
    const clock = bootClock(host.monotonic, host.uptime, 'id');
    const { earliestMs, latestMs } = clock.now();
    expect(earliestMs).toBeLessThanOrEqual(host.now());
    expect(latestMs).toBeGreaterThanOrEqual(host.now());
    expect(latestMs - earliestMs).toBeLessThanOrEqual(1);
    // One step of procfs is enough, and is not waited for twice.
    expect(host.clocks.looks).toBeLessThan(400);
  });

  it('gives up on a slow machine, and says less', () => {
    const host = machine(50, 7);
    const clock = bootClock(host.monotonic, host.uptime, 'id');
    expect(host.clocks.looks).toBeLessThan(4);
    const { earliestMs, latestMs } = clock.now();
    expect(earliestMs).toBeLessThanOrEqual(host.now());
    expect(latestMs).toBeGreaterThanOrEqual(host.now());
  });

  it('notices that the machine was suspended', () => {
    const host = machine(0, 0.02);
    const clock = bootClock(host.monotonic, host.uptime, 'id');
    host.advance(1000);
    host.clocks.apartMs = 60_000;
    const { earliestMs, latestMs } = clock.now();
    expect(earliestMs).toBeLessThanOrEqual(host.now());
    expect(latestMs).toBeGreaterThanOrEqual(host.now());
    expect(latestMs - earliestMs).toBeLessThan(11);
  });

  it.each([
    ['says something else', () => 'soon\n'],
    [
      'cannot be read',
      () => {
        throw new Error('ENOENT');
      },
    ],
  ])('is the monotonic clock where procfs %s', (_, uptime) => {
    const clock = bootClock(() => 1234, uptime, '');
    expect(clock.now()).toEqual({ earliestMs: 1234, latestMs: 1234 });
  });

  it('agrees with this machine', () => {
    const clock = bootClock(() => performance.now());
    const { earliestMs, latestMs } = clock.now();
    const upMs = 1000 * Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]);
    expect(upMs).toBeGreaterThanOrEqual(earliestMs - 10);
    expect(upMs).toBeLessThan(latestMs + 1000);
    expect(clock.bootId).toBe(readBootId());
  });
});

describe('readBootId', () => {
  it('is what the kernel says, and nothing where it does not', () => {
    expect(readBootId()).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    expect(readBootId('/no/such')).toBe('');
  });
});
