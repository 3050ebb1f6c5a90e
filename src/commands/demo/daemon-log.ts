import { escapeControl } from '../../core/errors.ts';
import type { Happening } from './story.ts';

/** What a line of the daemon's log tells; `atMs` is the wall clock's there. */
export type DaemonNews = Happening | { readonly kind: 'started'; readonly atMs: number };

type Fields = Readonly<Record<string, unknown>>;

/**
 * What a line of the daemon's JSON log tells of the story; undefined for what does not belong to
 * it. Warnings and errors that are not foreseen are remarks. Pure.
 *
 * @returns `atMs` is the end of the millisecond, on the wall clock, that the line names
 */
export function newsOf(line: string): DaemonNews | undefined {
  const fields = parse(line);
  if (fields === undefined) return undefined;
  const atMs = Date.parse(text(fields['time'])) + 1;
  const available = { availableBytes: number(fields['available']) };
  switch (fields['msg']) {
    case 'ready':
      return { kind: 'started', atMs };
    case 'threshold met':
      return { kind: 'thresholdMet', atMs, ...available };
    case 'threshold no longer met':
      return { kind: 'thresholdOver', atMs, ...available };
    case 'node condition set':
      return { kind: 'conditionSet', atMs, condition: text(fields['condition']) };
    case 'node condition cleared':
      return { kind: 'conditionCleared', atMs, condition: text(fields['condition']) };
    case 'evicting':
      return {
        kind: 'evicting',
        atMs,
        pod: text(fields['pod']),
        reason: text(fields['reason']),
        wokenBy: fields['wakeup'] === 'wakeup' ? 'kernel' : 'timer',
      };
    case 'evicted':
      return {
        kind: 'evicted',
        atMs,
        pod: text(fields['pod']),
        killedMs: number(fields['killedMs']),
        endedMs: number(fields['endedMs']),
      };
    // What the other lines tell already.
    case 'event':
      return undefined;
    default:
      return isSevere(fields) ? { kind: 'remark', atMs, text: remark(fields) } : undefined;
  }
}

function parse(line: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? (value as Fields) : undefined;
  } catch {
    return undefined;
  }
}

function isSevere({ level }: Fields): boolean {
  return level === 'warn' || level === 'error' || level === 'fatal';
}

function remark(fields: Fields): string {
  const parts = [fields['msg'], fields['part'], fields['pod'], fields['reason']];
  return parts
    .filter((part) => typeof part === 'string')
    .map(escapeControl)
    .join(': ');
}

function text(value: unknown): string {
  return typeof value === 'string' ? escapeControl(value) : 'unknown';
}

function number(value: unknown): number {
  return typeof value === 'number' ? value : 0;
}
