import { describe, expect, it } from 'vitest';
import { LOG_LEVELS } from '../../src/config/settings.ts';
import { openLog } from '../../src/surfaces/log.ts';
import { reportOutcome, reportPath, reportTurn } from '../../src/surfaces/report.ts';
import type { Sink } from '../../src/surfaces/sink.ts';
import { outcome } from '../support/builders.ts';
import { decisionTurn, lastLine } from './turns.ts';

/** A sink that keeps what it gets. */
function keeping(): Sink & { readonly lines: string[] } {
  const lines: string[] = [];
  return { lines, write: (line) => lines.push(line), dropped: 3, flush: async () => undefined };
}

const parsed = (lines: readonly string[]) =>
  lines.map((line) => JSON.parse(line) as Record<string, unknown>);

describe('the log', () => {
  it('writes one JSON object a line', async () => {
    const sink = keeping();
    const log = await openLog(sink, 'info', false);
    log.logger.info({ pod: 'a\nb' }, 'evicted');
    expect(sink.lines).toHaveLength(1);
    expect(sink.lines[0]).toMatch(/^\{.*\}\n$/);
    expect(parsed(sink.lines)[0]).toEqual({
      level: 'info',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      name: 'evictd',
      pid: process.pid,
      pod: 'a\nb',
      msg: 'evicted',
    });
    expect(log.dropped()).toBe(3);
    await log.flush(1);
  });

  it.each(LOG_LEVELS)('at %s writes that and what is more severe', async (level) => {
    const sink = keeping();
    const { logger } = await openLog(sink, level, false);
    const order = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const;
    for (const each of order) logger[each](each);
    const least = order.indexOf(level as (typeof order)[number]);
    const expected = least === -1 ? [] : order.slice(least);
    expect(parsed(sink.lines).map((line) => line['level'])).toEqual(expected);
  });

  it('for a person lets nothing drive the terminal', async () => {
    const sink = keeping();
    const { logger } = await openLog(sink, 'info', true);
    logger.warn({ pod: 'x\u001b[31m\u009b31m\u202e\u2028y\nz' }, 'evicting');
    const text = sink.lines.join('');
    expect(text).toContain('evicting');
    // Colours are pino-pretty's own; what came from outside is escaped.
    expect(text.trimEnd()).not.toMatch(/[\u0080-\u009f\u2028-\u202e\n]/);
    expect(text).not.toContain('x\u001b[31m');
  });

  it('keeps its own fields, whatever is reported', async () => {
    const sink = keeping();
    const { logger } = await openLog(sink, 'trace', false);
    reportTurn(logger, undefined, decisionTurn('evict'));
    reportTurn(logger, decisionTurn('evict'), decisionTurn('calm'));
    reportTurn(logger, undefined, decisionTurn('escalate'));
    reportOutcome(logger, outcome('leak'));
    reportOutcome(logger, outcome('leak', { kind: 'refused', reason: 'dryRun' }));
    reportOutcome(logger, outcome('leak', { kind: 'failed', error: 'no' }));
    reportPath(logger, undefined, {
      threshold: 'hard memory.available' as Parameters<typeof reportPath>[2]['threshold'],
      arming: undefined,
      degraded: 'EACCES',
    });
    expect(sink.lines.length).toBeGreaterThan(8);
    for (const line of sink.lines) {
      for (const key of ['level', 'time', 'name', 'pid', 'msg']) {
        expect(line.split(`"${key}":`), `${key} in ${line}`).toHaveLength(2);
      }
    }
    expect(lastLine(sink.lines, 'threshold met')).toMatchObject({
      level: 'warn',
      thresholdLevel: 100 * 2 ** 20,
    });
    expect(lastLine(sink.lines, 'evicting')).toMatchObject({ level: 'warn', pod: 'leak' });
  });
});
