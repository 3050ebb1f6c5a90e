import { describe, expect, it } from 'vitest';
import { MEBI, PODS } from '../../src/commands/demo/plan.ts';
import { plainLine } from '../../src/commands/demo/render.ts';
import { emptyStory, type Happening, tell } from '../../src/commands/demo/story.ts';

const START_MS = 1000;

const storyOf = (...happenings: readonly Happening[]) =>
  happenings.reduce(tell, emptyStory(START_MS));

const linesOf = (...happenings: readonly Happening[]) => {
  const story = storyOf(...happenings);
  return story.lines.map((line) => plainLine(story, line).trim());
};

const crossed: Happening = { kind: 'crossed', atMs: 3000 };
const witnessing: Happening = { kind: 'witnessing', atMs: 2000, levelBytes: 448 * MEBI };

describe('a line for each thing that happens', () => {
  it.each<[string, readonly Happening[], string]>([
    [
      'the node',
      [{ kind: 'nodeMade', atMs: 1001, directory: '/sys/fs/cgroup/memory/evictd-demo-7' }],
      '+0.001 s  demo    a node of 512Mi: /sys/fs/cgroup/memory/evictd-demo-7',
    ],
    [
      'a Guaranteed pod',
      [{ kind: 'podRunning', atMs: 1500, pod: 'web', pid: 8 }],
      '+0.500 s  web     runs (pid 8): Guaranteed, request 128Mi, limit 128Mi, priority 1000, takes 72Mi',
    ],
    [
      'a Burstable pod',
      [{ kind: 'podRunning', atMs: 1500, pod: 'cache', pid: 8 }],
      '+0.500 s  cache   runs (pid 8): Burstable, request 128Mi, takes 88Mi',
    ],
    [
      'a BestEffort pod',
      [{ kind: 'podRunning', atMs: 1500, pod: 'leak', pid: 8 }],
      '+0.500 s  leak    runs (pid 8): BestEffort, takes 8Mi',
    ],
    [
      'a pod that nobody knows',
      [{ kind: 'podRunning', atMs: 1500, pod: 'other', pid: 8 }],
      '+0.500 s  other   runs (pid 8)',
    ],
    [
      'the daemon',
      [{ kind: 'ready', atMs: 1800, pid: 9, levelsBytes: [448 * MEBI, 449 * MEBI] }],
      '+0.800 s  evictd  ready (pid 9): memory.available<64Mi, armed at 448Mi, 449Mi',
    ],
    ['the witness', [witnessing], '+1.000 s  demo    listens to the kernel too, at 448Mi'],
    [
      'the leak',
      [{ kind: 'leaking', atMs: 2500 }],
      '+1.500 s  leak    grows by 60Mi/s, after 180Mi by 500Mi/s',
    ],
    [
      'the event at no known level',
      [crossed],
      "+2.000 s  kernel  event: the node's usage crossed the level",
    ],
    [
      'pressure',
      [{ kind: 'thresholdMet', atMs: 3001, availableBytes: 63.5 * MEBI }],
      '+2.001 s  evictd  threshold met: memory.available is 63.5Mi',
    ],
    [
      'the decision',
      [
        {
          kind: 'evicting',
          atMs: 3002,
          pod: 'leak',
          reason: 'The node was low',
          wokenBy: 'kernel',
        },
      ],
      '+2.002 s  evictd  woken by the kernel, evicts leak: The node was low',
    ],
    [
      'the outcome',
      [{ kind: 'evicted', atMs: 3100, pod: 'leak', killedMs: 0.61, endedMs: 104.6 }],
      '+2.100 s  evictd  leak is evicted: SIGKILL 0.6 ms after the decision, its effect seen after 105 ms',
    ],
    [
      'a death without an event',
      [{ kind: 'podEnded', atMs: 3050, pod: 'web', how: 'by SIGKILL' }],
      '+2.050 s  web     ended: by SIGKILL',
    ],
    [
      'the recovery',
      [{ kind: 'thresholdOver', atMs: 3004, availableBytes: 300 * MEBI }],
      '+2.004 s  evictd  threshold no longer met: memory.available is 300.0Mi',
    ],
    [
      'a condition',
      [{ kind: 'conditionSet', atMs: 3004, condition: 'MemoryPressure' }],
      '+2.004 s  evictd  MemoryPressure is True',
    ],
    [
      'the end of a condition',
      [{ kind: 'conditionCleared', atMs: 4004, condition: 'MemoryPressure' }],
      '+3.004 s  evictd  MemoryPressure is False',
    ],
    [
      'whatever else the daemon says',
      [{ kind: 'remark', atMs: 1400, text: 'degraded: scheduling' }],
      '+0.400 s  evictd  degraded: scheduling',
    ],
  ])('%s', (_name, happenings, line) => {
    expect(linesOf(...happenings)).toEqual([line]);
  });

  it('none for a reading', () => {
    const podBytes = new Map([['web', 1]]);
    expect(linesOf({ kind: 'usage', atMs: 2000, nodeBytes: 1, podBytes })).toEqual([]);
  });

  it('the event with its level, and a death with its distance from it', () => {
    const ended: Happening = { kind: 'podEnded', atMs: 3012.34, pod: 'leak', how: 'by SIGKILL' };
    expect(linesOf(witnessing, crossed, ended).slice(1)).toEqual([
      "+2.000 s  kernel  event: the node's usage crossed 448Mi",
      "+2.012 s  leak    ended: by SIGKILL, 12.3 ms after the kernel's event",
    ]);
  });
});

describe('the order of lines', () => {
  it('is that of their times, however late they are told', () => {
    const told = storyOf(
      { kind: 'leaking', atMs: 2500 },
      { kind: 'podEnded', atMs: 3050, pod: 'leak', how: 'by SIGKILL' },
      { kind: 'evicting', atMs: 3002, pod: 'leak', reason: 'low', wokenBy: 'timer' },
      crossed,
      { kind: 'nodeMade', atMs: 1000, directory: '/x' },
    );
    expect(told.lines.map(({ atMs }) => atMs)).toEqual([1000, 2500, 3000, 3002, 3050]);
  });

  it('is that of the telling where the times are the same', () => {
    const told = storyOf(crossed, { kind: 'thresholdMet', atMs: 3000, availableBytes: 0 });
    expect(told.lines.map(({ who }) => who)).toEqual(['kernel', 'evictd']);
  });
});

describe('the pods', () => {
  const stateOf = (name: string, ...happenings: readonly Happening[]) =>
    storyOf(...happenings).pods.find(({ pod }) => pod.name === name)?.state;
  const running: Happening = { kind: 'podRunning', atMs: 1, pod: 'leak', pid: 1 };
  const evicting: Happening = {
    kind: 'evicting',
    atMs: 2,
    pod: 'leak',
    reason: '',
    wokenBy: 'kernel',
  };
  const ended: Happening = { kind: 'podEnded', atMs: 3, pod: 'leak', how: 'by SIGKILL' };

  it.each([
    ['starting', []],
    ['running', [running]],
    ['evicting', [running, evicting]],
    ['ended', [running, evicting, ended]],
    ['ended', [running, ended, evicting]],
  ] as const)('are %s', (state, happenings) => {
    expect(stateOf('leak', ...happenings)).toBe(state);
  });

  it('know nothing of each other', () => {
    expect(stateOf('web', running, evicting, ended)).toBe('starting');
  });

  it('keep a usage that was not read again', () => {
    const told = storyOf(
      { kind: 'usage', atMs: 1, nodeBytes: 9, podBytes: new Map([['web', 5]]) },
      { kind: 'usage', atMs: 2, nodeBytes: 8, podBytes: new Map([['leak', 3]]) },
    );
    expect(told.nodeBytes).toBe(8);
    const usage = Object.fromEntries(
      told.pods.map(({ pod, usageBytes }) => [pod.name, usageBytes]),
    );
    expect(usage).toEqual({ web: 5, cache: 0, batch: 0, leak: 3 });
  });

  it('fit beside each other below the level, and the leak does not', () => {
    const held = PODS.reduce((sum, { holdsBytes }) => sum + holdsBytes, 0);
    expect(held).toBeLessThan((448 * MEBI) / 2);
  });
});
