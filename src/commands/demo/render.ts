import { mebibytes, offset } from './format.ts';
import { NODE_BYTES, THRESHOLD_TEXT } from './plan.ts';
import type { PodView, Story, StoryLine, Tone } from './story.ts';

/** What the lines are for. */
export interface Canvas {
  readonly columns: number;
  readonly rows: number;
  readonly color: boolean;
}

const NAME_WIDTH = 8;
/** "  448Mi  Guaranteed 128Mi" and a blank before it. */
const FIGURES_WIDTH = 27;
const BAR_LIMITS = { least: 8, most: 64 } as const;
const WHO_WIDTH = 7;
/** "+12.345 s " */
const OFFSET_WIDTH = 10;
/** What each line of a replay begins with. */
const REPLAY = 'replay ';

/** SGR parameters. Source: ECMA-48, 8.3.117. */
const COLORS: Record<Tone | 'dim' | 'title', string> = {
  plain: '0',
  pressure: '33',
  death: '31',
  good: '32',
  dim: '2',
  title: '1',
};

/**
 * The story as the lines of a terminal screen, none wider than its columns and, as far as the bars
 * allow, no more than its rows less one: the oldest lines of the timeline give way. Pure.
 */
export function render(story: Story, canvas: Canvas): readonly string[] {
  const what = story.isReplay ? 'REPLAY of a recorded run' : 'evictd demo';
  const title = `${what}: a node of ${mebibytes(NODE_BYTES)}, ${THRESHOLD_TEXT}`;
  const bars = [
    paint(cut(title, canvas), 'title', canvas),
    nodeBar(story, canvas),
    levelMark(story, canvas),
    ...story.pods.map((view) => podBar(view, canvas)),
    '',
  ];
  const room = Math.max(1, canvas.rows - 1 - bars.length);
  const timeline = story.lines.flatMap((line) => timelineLines(story, line, canvas));
  return [...bars, ...timeline.slice(-room)];
}

/** A line of the timeline without a terminal. */
export function plainLine(story: Story, { atMs, who, text }: StoryLine): string {
  const start = `${story.isReplay ? REPLAY : ''}${offset(atMs - story.startMs).padStart(OFFSET_WIDTH)}`;
  return `${start}  ${who.padEnd(WHO_WIDTH)} ${text}`;
}

function nodeBar(story: Story, canvas: Canvas): string {
  const { nodeBytes, levelBytes } = story;
  const width = barWidth(canvas);
  const filled = filledCells(nodeBytes, width);
  const mark = levelBytes === undefined ? undefined : levelCell(levelBytes, width);
  const cells = Array.from({ length: width }, (_, cell) => {
    if (cell === mark) return '┃';
    return cell < filled ? '█' : '░';
  }).join('');
  const over = levelBytes !== undefined && nodeBytes > levelBytes;
  const figures = `${mebibytes(nodeBytes).padStart(7)}  of ${mebibytes(NODE_BYTES)}`;
  return row('node', cells, figures, over ? 'death' : 'plain', canvas);
}

function levelMark({ levelBytes }: Story, canvas: Canvas): string {
  if (levelBytes === undefined) return '';
  const text = `evicts above ${mebibytes(levelBytes)} ▲`;
  const end = NAME_WIDTH + levelCell(levelBytes, barWidth(canvas)) + 1;
  return paint(cut(text.padStart(end), canvas), 'dim', canvas);
}

function podBar({ pod, usageBytes, state }: PodView, canvas: Canvas): string {
  const width = barWidth(canvas);
  const cells = '█'.repeat(filledCells(usageBytes, width)).padEnd(width);
  const request = pod.requestBytes === 0 ? '' : ` ${mebibytes(pod.requestBytes)}`;
  const words = { starting: 'starting', evicting: 'SIGKILL', ended: 'evicted' } as const;
  const word = state === 'running' ? `${pod.qosClass}${request}` : words[state];
  const tone = state === 'evicting' || state === 'ended' ? 'death' : 'good';
  return row(pod.name, cells, `${mebibytes(usageBytes).padStart(7)}  ${word}`, tone, canvas);
}

function row(name: string, cells: string, figures: string, tone: Tone, canvas: Canvas): string {
  const text = cut(`${name.padEnd(NAME_WIDTH)}${cells} ${figures}`, canvas);
  const [start, end] = [NAME_WIDTH, NAME_WIDTH + cells.length];
  return text.slice(0, start) + paint(text.slice(start, end), tone, canvas) + text.slice(end);
}

function barWidth({ columns }: Canvas): number {
  const free = columns - NAME_WIDTH - FIGURES_WIDTH;
  return Math.min(BAR_LIMITS.most, Math.max(BAR_LIMITS.least, free));
}

function filledCells(bytes: number, width: number): number {
  return Math.min(width, Math.round((bytes / NODE_BYTES) * width));
}

function levelCell(bytes: number, width: number): number {
  return Math.min(width - 1, Math.round((bytes / NODE_BYTES) * width));
}

/** A line of the timeline, its text wrapped and indented below itself. */
function timelineLines(story: Story, line: StoryLine, canvas: Canvas): readonly string[] {
  const head = plainLine(story, { ...line, text: '' });
  const indent = head.length;
  return wrap(line.text, Math.max(20, canvas.columns - indent)).map((text, at) => {
    const start = at === 0 ? head : (story.isReplay ? REPLAY : '').padEnd(indent);
    return paint(cut(start + text, canvas), line.tone, canvas);
  });
}

/** Breaks at blanks; a word that is longer than the width stays whole. */
function wrap(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  let current = '';
  for (const word of text.split(' ')) {
    if (current !== '' && current.length + 1 + word.length > width) {
      lines.push(current);
      current = word;
    } else {
      current = current === '' ? word : `${current} ${word}`;
    }
  }
  return [...lines, current];
}

function cut(text: string, { columns }: Canvas): string {
  return text.length <= columns ? text : `${text.slice(0, columns - 1)}…`;
}

function paint(text: string, tone: keyof typeof COLORS, { color }: Canvas): string {
  return color && tone !== 'plain' && text !== ''
    ? `\u001b[${COLORS[tone]}m${text}\u001b[0m`
    : text;
}
