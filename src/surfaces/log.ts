import { type Logger, pino, stdTimeFunctions } from 'pino';
import type { LogLevel } from '../config/settings.ts';
import type { Sink } from './sink.ts';

export type { Logger } from 'pino';

/** The log: JSON lines, or lines for a person. */
export interface Log {
  readonly logger: Logger;
  /** Lines that were dropped so far. */
  dropped(): number;
  flush(limitMs: number): Promise<void>;
}

/**
 * A pino logger on a sink.
 *
 * @param pretty formats for a terminal; loads pino-pretty
 */
export async function openLog(sink: Sink, level: LogLevel, pretty: boolean): Promise<Log> {
  const format = pretty ? await prettyFormat() : undefined;
  const write = format === undefined ? sink.write : (line: string) => sink.write(format(line));
  const logger = pino(
    {
      level,
      base: { name: 'evictd', pid: process.pid },
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write },
  );
  return { logger, dropped: () => sink.dropped, flush: (limitMs) => sink.flush(limitMs) };
}

async function prettyFormat(): Promise<(line: string) => string> {
  const { prettyFactory } = await import('pino-pretty');
  const format = prettyFactory({
    colorize: process.env['NO_COLOR'] === undefined && process.env['TERM'] !== 'dumb',
    singleLine: true,
    ignore: 'name,pid',
    translateTime: 'SYS:HH:MM:ss.l',
  });
  return (line) => escapeTerminal(format(line));
}

/** C0 characters in data are escaped by JSON already; the rest that could drive a terminal here. */
function escapeTerminal(text: string): string {
  return text.replace(
    /[\u0080-\u009f\u2028-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
