import { mebibytes, milliseconds } from './format.ts';
import { type DemoPod, LEAK_RATES, NODE_BYTES, PODS, THRESHOLD_TEXT } from './plan.ts';

/** Something that happened, with the monotonic time in ms. */
export type Happening = { readonly atMs: number } & (
  | { readonly kind: 'nodeMade'; readonly directory: string }
  /** What follows was recorded: all pods run, and the threshold lies at this usage. */
  | { readonly kind: 'replaying'; readonly levelBytes: number }
  | { readonly kind: 'podRunning'; readonly pod: string; readonly pid: number }
  | { readonly kind: 'ready'; readonly pid: number; readonly levelsBytes: readonly number[] }
  | { readonly kind: 'witnessing'; readonly levelBytes: number }
  | { readonly kind: 'leaking' }
  | {
      readonly kind: 'usage';
      readonly nodeBytes: number;
      readonly podBytes: ReadonlyMap<string, number>;
    }
  | { readonly kind: 'crossed' }
  | { readonly kind: 'thresholdMet'; readonly availableBytes: number }
  | { readonly kind: 'thresholdOver'; readonly availableBytes: number }
  | { readonly kind: 'conditionSet'; readonly condition: string }
  | { readonly kind: 'conditionCleared'; readonly condition: string }
  | {
      readonly kind: 'evicting';
      readonly pod: string;
      readonly reason: string;
      /** What had evictd read: the kernel, or a timer of its own; a recording does not tell. */
      readonly wokenBy: 'kernel' | 'timer' | 'recording';
    }
  | {
      readonly kind: 'evicted';
      readonly pod: string;
      readonly killedMs: number;
      readonly endedMs: number;
    }
  | { readonly kind: 'podEnded'; readonly pod: string; readonly how: string }
  | { readonly kind: 'remark'; readonly text: string }
);

export type HappeningKind = Happening['kind'];

/** How a line is to be read: decides its colour. */
export type Tone = 'plain' | 'pressure' | 'death' | 'good';

/** One line of the timeline. */
export interface StoryLine {
  readonly atMs: number;
  readonly who: string;
  readonly text: string;
  readonly tone: Tone;
}

export interface PodView {
  readonly pod: DemoPod;
  readonly usageBytes: number;
  readonly state: 'starting' | 'running' | 'evicting' | 'ended';
}

/** All that is to be shown. */
export interface Story {
  readonly startMs: number;
  /** Whether it happened another time: each line and each screen says so. */
  readonly isReplay: boolean;
  readonly nodeBytes: number;
  /** The usage at which the threshold is crossed. */
  readonly levelBytes: number | undefined;
  readonly crossedAtMs: number | undefined;
  readonly pods: readonly PodView[];
  /** In the order of their times. */
  readonly lines: readonly StoryLine[];
}

/** The story before anything happened. */
export function emptyStory(startMs: number, isReplay = false): Story {
  return {
    startMs,
    isReplay,
    nodeBytes: 0,
    levelBytes: undefined,
    crossedAtMs: undefined,
    pods: PODS.map((pod) => ({ pod, usageBytes: 0, state: 'starting' })),
    lines: [],
  };
}

/** The story with what happened added; what is told late stands where it belongs. Pure. */
export function tell(story: Story, happening: Happening): Story {
  const told = withFacts(story, happening);
  const line = lineOf(told, happening);
  if (line === undefined) return told;
  const after = story.lines.findIndex(({ atMs }) => atMs > line.atMs);
  const at = after === -1 ? story.lines.length : after;
  return { ...told, lines: story.lines.toSpliced(at, 0, line) };
}

function withFacts(story: Story, happening: Happening): Story {
  switch (happening.kind) {
    case 'podRunning':
      return withPod(story, happening.pod, { state: 'running' });
    case 'evicting':
      return withPod(story, happening.pod, { state: 'evicting' });
    case 'podEnded':
      return withPod(story, happening.pod, { state: 'ended' });
    case 'witnessing':
      return { ...story, levelBytes: happening.levelBytes };
    case 'replaying':
      return {
        ...story,
        levelBytes: happening.levelBytes,
        pods: story.pods.map((view) => ({ ...view, state: 'running' })),
      };
    case 'crossed':
      return { ...story, crossedAtMs: happening.atMs };
    case 'usage':
      return {
        ...story,
        nodeBytes: happening.nodeBytes,
        pods: story.pods.map((view) => ({
          ...view,
          usageBytes: happening.podBytes.get(view.pod.name) ?? view.usageBytes,
        })),
      };
    case 'nodeMade':
    case 'ready':
    case 'leaking':
    case 'thresholdMet':
    case 'thresholdOver':
    case 'conditionSet':
    case 'conditionCleared':
    case 'evicted':
    case 'remark':
      return story;
  }
}

function withPod(story: Story, name: string, change: Partial<PodView>): Story {
  const pods = story.pods.map((view) => {
    // Told late or not, what has ended does not come back.
    const isOver = view.state === 'ended';
    return view.pod.name === name && !isOver ? { ...view, ...change } : view;
  });
  return { ...story, pods };
}

function lineOf(story: Story, happening: Happening): StoryLine | undefined {
  const line = (who: string, text: string, tone: Tone = 'plain'): StoryLine => ({
    atMs: happening.atMs,
    who,
    text,
    tone,
  });
  switch (happening.kind) {
    case 'nodeMade':
      return line('demo', `a node of ${mebibytes(NODE_BYTES)}: ${happening.directory}`);
    case 'replaying':
      return line(
        'demo',
        `a node of ${mebibytes(NODE_BYTES)}, ${THRESHOLD_TEXT}: recorded samples, decided anew; nothing is killed`,
      );
    case 'podRunning':
      return line(happening.pod, podText(story, happening.pod, happening.pid));
    case 'ready': {
      const levels = happening.levelsBytes.map((bytes) => mebibytes(bytes)).join(', ');
      return line('evictd', `ready (pid ${happening.pid}): ${THRESHOLD_TEXT}, armed at ${levels}`);
    }
    case 'witnessing':
      return line('demo', `listens to the kernel too, at ${mebibytes(happening.levelBytes)}`);
    case 'leaking':
      return line('leak', leakText());
    case 'usage':
      return undefined;
    case 'crossed':
      return line('kernel', crossedText(story), 'pressure');
    case 'thresholdMet':
      return line('evictd', `threshold met: ${availableText(happening)}`, 'pressure');
    case 'conditionSet':
      return line('evictd', `${happening.condition} is True`, 'pressure');
    case 'evicting':
      return line('evictd', evictingText(happening), 'death');
    case 'podEnded':
      return line(happening.pod, `ended: ${happening.how}${sinceEvent(story, happening)}`, 'death');
    case 'evicted':
      return line('evictd', evictedText(happening), 'good');
    case 'thresholdOver':
      return line('evictd', `threshold no longer met: ${availableText(happening)}`, 'good');
    case 'conditionCleared':
      return line('evictd', `${happening.condition} is False`, 'good');
    case 'remark':
      return line('evictd', happening.text, 'pressure');
  }
}

function podText(story: Story, name: string, pid: number): string {
  const pod = story.pods.find((view) => view.pod.name === name)?.pod;
  if (pod === undefined) return `runs (pid ${pid})`;
  return `runs (pid ${pid}): ${describePod(pod)}, takes ${mebibytes(pod.holdsBytes)}`;
}

/** A pod's class, request and priority in a few words. */
export function describePod({ qosClass, requestBytes, limitBytes, priority }: DemoPod): string {
  const request = requestBytes === 0 ? '' : `, request ${mebibytes(requestBytes)}`;
  const limit = limitBytes === undefined ? '' : `, limit ${mebibytes(limitBytes)}`;
  return `${qosClass}${request}${limit}${priority === 0 ? '' : `, priority ${priority}`}`;
}

function leakText(): string {
  const { slow, untilBytes, fast } = LEAK_RATES;
  return `grows by ${mebibytes(slow)}/s, after ${mebibytes(untilBytes)} by ${mebibytes(fast)}/s`;
}

function crossedText({ levelBytes }: Story): string {
  const level = levelBytes === undefined ? 'the level' : mebibytes(levelBytes);
  return `event: the node's usage crossed ${level}`;
}

function availableText({ availableBytes }: { readonly availableBytes: number }): string {
  return `memory.available is ${mebibytes(availableBytes, 1)}`;
}

function sinceEvent({ crossedAtMs }: Story, { atMs }: Happening): string {
  if (crossedAtMs === undefined) return '';
  return `, ${milliseconds(atMs - crossedAtMs)} after the kernel's event`;
}

function evictingText(happening: Extract<Happening, { kind: 'evicting' }>): string {
  const { pod, reason, wokenBy } = happening;
  if (wokenBy === 'recording') return `evicts ${pod}: ${reason}`;
  return `woken by ${wokenBy === 'kernel' ? 'the kernel' : 'a timer'}, evicts ${pod}: ${reason}`;
}

function evictedText(happening: Extract<Happening, { kind: 'evicted' }>): string {
  const { pod, killedMs, endedMs } = happening;
  const kill = `SIGKILL ${milliseconds(killedMs)} after the decision`;
  return `${pod} is evicted: ${kill}, its effect seen after ${milliseconds(endedMs)}`;
}
