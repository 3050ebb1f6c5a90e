import { describe, expect, it } from 'vitest';
import { emptyStory, type Happening, tell } from '../../src/commands/demo/story.ts';
import { type Output, openSurface } from '../../src/commands/demo/surface.ts';

const ESCAPE = String.fromCharCode(27);
const HIDE = `${ESCAPE}[?25l`;
const SHOW = `${ESCAPE}[?25h`;

/** What is written, one element a call. */
function outputOf(terminal: Omit<Output, 'write'>) {
  const written: string[] = [];
  const write = (text: string) => {
    written.push(text);
    return true;
  };
  return { written, output: { ...terminal, write } };
}

const leaking: Happening = { kind: 'leaking', atMs: 1000 };
const crossed: Happening = { kind: 'crossed', atMs: 1200 };
const STORY = [leaking, crossed].reduce(tell, emptyStory(0));

describe('plain lines', () => {
  it.each([
    ['no terminal', {}, false, {}],
    ['a terminal and --plain', { isTTY: true }, true, {}],
    ['a terminal that cannot be drawn on', { isTTY: true }, false, { TERM: 'dumb' }],
  ])('on %s', (_name, terminal, plain, environment) => {
    const { written, output } = outputOf(terminal);
    openSurface(output, plain, environment).end(STORY);
    expect(written).toHaveLength(2);
    expect(written.join('')).not.toContain(ESCAPE);
  });

  it('are held back for what is told late, and come once each', () => {
    const { written, output } = outputOf({});
    const surface = openSurface(output, true, {});
    const counts = [1149, 1150, 1200, 1349, 1350].map((nowMs) => {
      surface.show(STORY, nowMs);
      return written.length;
    });
    expect(counts).toEqual([0, 1, 1, 1, 2]);
    surface.end(STORY);
    expect(written).toHaveLength(2);
  });

  it('come in the order of their times', () => {
    const { written, output } = outputOf({});
    const surface = openSurface(output, true, {});
    const first = tell(emptyStory(0), crossed);
    surface.show(first, 1210);
    surface.show(tell(first, { kind: 'leaking', atMs: 1100 }), 1400);
    expect(written.map((line) => line.trim().split(/\s+/)[2])).toEqual(['leak', 'kernel']);
  });
});

describe('a screen', () => {
  const terminal = { isTTY: true, columns: 80, rows: 24 };

  it('hides the cursor first and shows it last', () => {
    const { written, output } = outputOf(terminal);
    const surface = openSurface(output, false, {});
    surface.show(STORY, 1);
    surface.show(STORY, 2);
    surface.end(STORY);
    const all = written.join('');
    expect(all.split(HIDE)).toHaveLength(2);
    expect(all.startsWith(HIDE)).toBe(true);
    expect(all.split(SHOW)).toHaveLength(2);
    expect(all.endsWith(SHOW)).toBe(true);
  });

  it('draws over its last frame', () => {
    const { written, output } = outputOf(terminal);
    const surface = openSurface(output, false, {});
    surface.show(STORY, 1);
    surface.show(STORY, 2);
    const height = (written[0] ?? '').split('\n').length - 1;
    expect(written[1]?.startsWith(`\r${ESCAPE}[${height}A`)).toBe(true);
  });

  it.each([
    [{}, true],
    [{ NO_COLOR: '' }, true],
    [{ NO_COLOR: '1' }, false],
  ])('with %j has colours: %s', (environment, colored) => {
    const { written, output } = outputOf(terminal);
    openSurface(output, false, environment).show(STORY, 1);
    expect(written.join('').includes(`${ESCAPE}[33m`)).toBe(colored);
  });

  it('takes 80 by 24 where the terminal has no size', () => {
    const { written, output } = outputOf({ isTTY: true, columns: 0, rows: 0 });
    openSurface(output, false, {}).show(STORY, 1);
    const sized = outputOf(terminal);
    openSurface(sized.output, false, {}).show(STORY, 1);
    expect(written).toEqual(sized.written);
  });
});
