import { describe, expect, it } from 'vitest';
import { newsOf } from '../../src/commands/demo/daemon-log.ts';

const TIME = '2026-01-02T03:04:05.678Z';
/** The end of the millisecond. */
const AT_MS = Date.parse(TIME) + 1;

const lineOf = (fields: object) =>
  JSON.stringify({ level: 'info', time: TIME, name: 'evictd', ...fields });

describe('newsOf', () => {
  it.each([
    [{ msg: 'ready' }, { kind: 'started' }],
    [
      { msg: 'threshold met', available: 5, level: 7 },
      { kind: 'thresholdMet', availableBytes: 5 },
    ],
    [
      { msg: 'threshold no longer met', available: 9 },
      { kind: 'thresholdOver', availableBytes: 9 },
    ],
    [
      { msg: 'node condition set', condition: 'MemoryPressure' },
      { kind: 'conditionSet', condition: 'MemoryPressure' },
    ],
    [
      { msg: 'node condition cleared', condition: 'MemoryPressure' },
      { kind: 'conditionCleared', condition: 'MemoryPressure' },
    ],
    [
      { msg: 'evicting', pod: 'leak', reason: 'low', wakeup: 'wakeup' },
      { kind: 'evicting', pod: 'leak', reason: 'low', wokenBy: 'kernel' },
    ],
    [
      { msg: 'evicting', pod: 'leak', reason: 'low', wakeup: 'due' },
      { kind: 'evicting', pod: 'leak', reason: 'low', wokenBy: 'timer' },
    ],
    [
      { msg: 'evicted', pod: 'leak', killedMs: 0.5, endedMs: 60 },
      { kind: 'evicted', pod: 'leak', killedMs: 0.5, endedMs: 60 },
    ],
    [
      { level: 'error', msg: 'eviction failed', pod: 'leak', reason: 'EPERM' },
      { kind: 'remark', text: 'eviction failed: leak: EPERM' },
    ],
    [
      { level: 'warn', msg: 'degraded', part: 'scheduling', reason: 'refused' },
      { kind: 'remark', text: 'degraded: scheduling: refused' },
    ],
  ])('%j', (fields, news) => {
    expect(newsOf(lineOf(fields))).toEqual({ atMs: AT_MS, ...news });
  });

  it('lets nothing through that drives a terminal', () => {
    const line = lineOf({ msg: 'evicting', pod: 'a\u001b[2J', reason: 'x\ny' });
    expect(newsOf(line)).toMatchObject({ pod: 'a\\u001b[2J', reason: 'x\\u000ay' });
  });

  it.each([
    ['a line that is no story', lineOf({ msg: 'stopped' })],
    ['a debug line', lineOf({ level: 'debug', msg: 'armed' })],
    ['what other lines tell', lineOf({ level: 'warn', msg: 'event', reason: 'Evicted' })],
    ['no JSON', 'node: warning'],
    ['no object', '7'],
    ['null', 'null'],
    ['nothing', ''],
  ])('is undefined for %s', (_name, line) => {
    expect(newsOf(line)).toBeUndefined();
  });
});
