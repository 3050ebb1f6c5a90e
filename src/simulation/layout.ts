/** Text in lines and columns. */
import { formatDuration, parseDuration } from '../core/duration.ts';
import { escapeControl } from '../core/errors.ts';

/** A moment for a person: what was recorded has nanoseconds. As it stands where it is whole ms. */
export function shortMoment(at: string): string {
  const ms = parseDuration(at);
  return Number.isInteger(ms) ? at : formatDuration(Math.round(ms));
}

/** Columns with two spaces between them; what could drive a terminal is escaped. */
export function table(
  head: readonly string[],
  rows: readonly (readonly string[])[],
): readonly string[] {
  const cells = [head, ...rows].map((row) => row.map(escapeControl));
  const widths = head.map((_, column) =>
    cells.reduce((width, row) => Math.max(width, row[column]?.length ?? 0), 0),
  );
  return cells.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

/** Parts with two spaces between them, in lines of at most `width`; a longer part stands alone. */
export function flow(parts: readonly string[], width: number): readonly string[] {
  const lines: string[] = [];
  for (const part of parts) {
    const line = lines.at(-1);
    if (line !== undefined && line.length + 2 + part.length <= width) {
      lines[lines.length - 1] = `${line}  ${part}`;
    } else {
      lines.push(part);
    }
  }
  return lines;
}

/** A sentence in lines of at most `width`, broken between words, or within one that is too long. */
export function wrap(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = '';
    }
    let rest = line === '' ? word : ` ${word}`;
    while (line.length + rest.length > width) {
      const room = width - line.length;
      lines.push(line + rest.slice(0, room));
      rest = rest.slice(room);
      line = '';
    }
    line += rest;
  }
  return line === '' && lines.length > 0 ? lines : [...lines, line];
}

/** The lines of one round, and what it has in common with others that say nothing more. */
export interface Round {
  readonly lines: readonly string[];
  /** Undefined where it tells of something that was done or found. */
  readonly alike: string | undefined;
}

/** So many rounds that are alike are all shown. */
const FEW_ALIKE = 3;

/** The rounds' lines; of many in a row that are alike the first and the last stand for all. */
export function foldRounds(rounds: readonly Round[], indent: number): readonly string[] {
  const lines: string[] = [];
  for (let from = 0; from < rounds.length; ) {
    const { alike } = rounds[from] as Round;
    let to = from + 1;
    while (alike !== undefined && to < rounds.length && rounds[to]?.alike === alike) to += 1;
    const run = rounds.slice(from, to);
    const left = run.length - 2;
    const shown = run.length > FEW_ALIKE ? [run[0], run.at(-1)] : run;
    const parts = shown.map((round) => round?.lines ?? []);
    const fold = run.length > FEW_ALIKE ? [`${' '.repeat(indent)}… ${left} rounds like it`] : [];
    const [first = [], ...others] = parts;
    lines.push(...first, ...fold, ...others.flat());
    from = to;
  }
  return lines;
}
