import { plainLine, render } from './render.ts';
import type { Story, StoryLine } from './story.ts';

/** The terminal or pipe to write to; a part of `NodeJS.WriteStream`. */
export interface Output {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
  write(text: string): boolean;
}

/** Where the story is shown. */
export interface Surface {
  show(story: Story, nowMs: number): void;
  /** Shows what is left, and gives the terminal back. */
  end(story: Story): void;
}

/**
 * How long a line is held back where it cannot be moved later, ms: what happens within a few ms is
 * heard of in any order.
 */
const HOLD_MS = 150;

/** Control sequences. Source: ECMA-48; the cursor's is DEC private mode 25. */
const CURSOR = {
  hide: '\u001b[?25l',
  show: '\u001b[?25h',
  up: (lines: number) => `\u001b[${lines}A`,
};
const ERASE = { lineEnd: '\u001b[K', below: '\u001b[J' };

/** Sizes of a terminal that does not tell its own. */
const DEFAULT_COLUMNS = 80;
const DEFAULT_ROWS = 24;

/** A screen on a terminal that can be drawn on, else plain lines. */
export function openSurface(
  output: Output,
  plain: boolean,
  environment: NodeJS.ProcessEnv = process.env,
): Surface {
  if (plain || output.isTTY !== true || environment['TERM'] === 'dumb') return plainLines(output);
  return screen(output, (environment['NO_COLOR'] ?? '') === '');
}

function plainLines(output: Output): Surface {
  const printed = new Set<StoryLine>();
  const print = (story: Story, untilMs: number): void => {
    for (const line of story.lines) {
      if (printed.has(line) || line.atMs > untilMs) continue;
      printed.add(line);
      output.write(`${plainLine(story, line)}\n`);
    }
  };
  return {
    show: (story, nowMs) => print(story, nowMs - HOLD_MS),
    end: (story) => print(story, Number.POSITIVE_INFINITY),
  };
}

/** Draws over its last frame, below what the terminal showed before. */
function screen(output: Output, color: boolean): Surface {
  let height = 0;
  const draw = (story: Story): string => {
    const columns = sizeOr(output.columns, DEFAULT_COLUMNS);
    const rows = sizeOr(output.rows, DEFAULT_ROWS);
    const lines = render(story, { columns, rows, color });
    const back = height === 0 ? '\r' : `\r${CURSOR.up(height)}`;
    height = lines.length;
    return `${back}${lines.map((line) => `${line}${ERASE.lineEnd}\n`).join('')}${ERASE.below}`;
  };
  return {
    show: (story) => {
      const start = height === 0 ? CURSOR.hide : '';
      output.write(start + draw(story));
    },
    end: (story) => {
      output.write(draw(story) + CURSOR.show);
    },
  };
}

/** A terminal that was given no size tells 0. */
function sizeOr(size: number | undefined, fallback: number): number {
  return size === undefined || size <= 0 ? fallback : size;
}
