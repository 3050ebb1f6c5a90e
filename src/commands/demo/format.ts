import { MEBI } from './plan.ts';

/** Bytes in Mi, rounded to `digits` decimals: "448Mi". For people; not to be read back. */
export function mebibytes(bytes: number, digits = 0): string {
  return `${(bytes / MEBI).toFixed(digits)}Mi`;
}

/** "3.4 ms"; from 100 ms on without decimals. */
export function milliseconds(ms: number): string {
  return `${ms.toFixed(ms < 100 ? 1 : 0)} ms`;
}

/** The time since the start: "+1.234 s". */
export function offset(ms: number): string {
  return `+${(Math.max(0, ms) / 1000).toFixed(3)} s`;
}

/** "web, cache and batch". */
export function list(words: readonly string[]): string {
  const last = words.at(-1) ?? '';
  return words.length < 2 ? last : `${words.slice(0, -1).join(', ')} and ${last}`;
}
