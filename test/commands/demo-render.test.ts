import { describe, expect, it } from 'vitest';
import { list, mebibytes, milliseconds, offset } from '../../src/commands/demo/format.ts';
import { MEBI } from '../../src/commands/demo/plan.ts';
import { render } from '../../src/commands/demo/render.ts';
import { emptyStory, type Happening, tell } from '../../src/commands/demo/story.ts';

const usage = (web: number, leak: number): Happening => ({
  kind: 'usage',
  atMs: 2,
  nodeBytes: (web + leak) * MEBI,
  podBytes: new Map([
    ['web', web * MEBI],
    ['leak', leak * MEBI],
  ]),
});

const STORY = (
  [
    { kind: 'podRunning', atMs: 700, pod: 'web', pid: 8 },
    { kind: 'podRunning', atMs: 800, pod: 'leak', pid: 9 },
    { kind: 'witnessing', atMs: 900, levelBytes: 448 * MEBI },
    usage(64, 192),
  ] as const satisfies readonly Happening[]
).reduce(tell, emptyStory(0));

const plain = (columns: number, rows = 24) => render(STORY, { columns, rows, color: false });

const STYLE = new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*m`, 'g');

describe('render', () => {
  it('draws bars to the scale of the node, and the level in the node’s', () => {
    expect(plain(67).slice(0, 8)).toEqual([
      'evictd demo: a node of 512Mi, memory.available<64Mi',
      'node    ████████████████░░░░░░░░░░░░┃░░░   256Mi  of 512Mi',
      '                 evicts above 448Mi ▲',
      'web     ████                                64Mi  Guaranteed 128Mi',
      'cache                                        0Mi  starting',
      'batch                                        0Mi  starting',
      'leak    ████████████                       192Mi  BestEffort',
      '',
    ]);
  });

  it('says what became of a pod', () => {
    const evicting = tell(STORY, {
      kind: 'evicting',
      atMs: 950,
      pod: 'leak',
      reason: 'low',
      wokenBy: 'kernel',
    });
    const ended = tell(evicting, { kind: 'podEnded', atMs: 960, pod: 'leak', how: 'by SIGKILL' });
    const leakOf = (story: typeof STORY) =>
      render(story, { columns: 80, rows: 24, color: false })[6]?.trim().split(/\s+/).at(-1);
    expect([STORY, evicting, ended].map(leakOf)).toEqual(['BestEffort', 'SIGKILL', 'evicted']);
  });

  it.each([20, 40, 60, 80, 200])('keeps to %i columns', (columns) => {
    const widths = plain(columns).map((line) => [...line].length);
    expect(Math.max(...widths)).toBeLessThanOrEqual(columns);
  });

  it.each([10, 12, 24])('keeps to %i rows: the oldest lines give way', (rows) => {
    const lines = plain(80, rows);
    expect(lines.length).toBeLessThanOrEqual(rows - 1);
    expect(lines.at(-1)).toContain('listens to the kernel too');
  });

  it('keeps the bars, and the last line, on a lower terminal', () => {
    expect(plain(80, 3)).toHaveLength(9);
  });

  it('wraps a long line below itself', () => {
    const lines = plain(60).slice(8, 10);
    expect(lines).toEqual([
      '  +0.700 s  web     runs (pid 8): Guaranteed, request 128Mi,',
      '                    limit 128Mi, priority 1000, takes 72Mi',
    ]);
  });

  it('colours what is otherwise the same text', () => {
    const colored = render(STORY, { columns: 80, rows: 24, color: true });
    expect(colored).not.toEqual(plain(80));
    expect(colored.map((line) => line.replace(STYLE, ''))).toEqual(plain(80));
  });

  it('never draws beyond a bar’s end', () => {
    const full = tell(STORY, usage(500, 500));
    const lines = render(full, { columns: 67, rows: 24, color: false });
    expect(lines[1]).toContain(`${'█'.repeat(28)}┃${'█'.repeat(3)}  1000Mi`);
  });
});

describe('format', () => {
  it.each([
    [mebibytes(448 * MEBI), '448Mi'],
    [mebibytes(1.26 * MEBI, 1), '1.3Mi'],
    [milliseconds(3.44), '3.4 ms'],
    [milliseconds(99.94), '99.9 ms'],
    [milliseconds(104.6), '105 ms'],
    [offset(12_345.4), '+12.345 s'],
    [offset(-3), '+0.000 s'],
    [list([]), ''],
    [list(['web']), 'web'],
    [list(['web', 'cache']), 'web and cache'],
    [list(['web', 'cache', 'batch']), 'web, cache and batch'],
  ])('gives %s', (given, wanted) => {
    expect(given).toBe(wanted);
  });
});
