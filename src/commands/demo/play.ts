import { setPriority } from 'node:os';
import {
  filter,
  firstValueFrom,
  map,
  merge,
  mergeMap,
  NEVER,
  Observable,
  race,
  shareReplay,
  take,
  tap,
  throwError,
  timeout,
  timer,
  toArray,
} from 'rxjs';
import { EvictdError } from '../../core/errors.ts';
import { liveScheduler, monotonicMs } from '../../sources/live-scheduler.ts';
import { STATUS_VERSION, type StatusDocument } from '../../surfaces/status.ts';
import { type Child, demoFile, describeEnd, startChild } from './child.ts';
import { type DaemonNews, newsOf } from './daemon-log.ts';
import type { DemoNode } from './node.ts';
import { CALM_MS, daemonArguments, LEAK, LIMITS_MS, PODS } from './plan.ts';
import type { Machine } from './requirements.ts';
import type { Happening, HappeningKind } from './story.ts';
import type { Evidence, ToldDecision } from './verdict.ts';

/** What a play needs; all that it opens is given to `defer`. */
export interface Stage {
  readonly machine: Machine;
  readonly node: DemoNode;
  readonly socketPath: string;
  readonly tell: (happening: Happening) => void;
  /** Errors when the demo is to end early; never emits. */
  readonly interrupted$: Observable<never>;
  /** Keeps what undoes a step, the last one first. */
  readonly defer: (what: string, undo: () => void | Promise<void>) => void;
}

/** The value stays after completion; what gives it is closed when nobody listens any more. */
const ONE_WHILE_WANTED = { bufferSize: 1, refCount: true } as const;

/**
 * Plays the demo from the first pod to the recovery and gives what was seen. Every step has a
 * limit.
 *
 * @throws EvictdError EVICTD_DEMO for a step that did not happen, a pod or a daemon that ended;
 * whatever `interrupted$` errors with
 */
export async function play(stage: Stage): Promise<Evidence> {
  const pods = await startPods(stage);
  const [leak, others] = [podNamed(pods, LEAK), pods.filter(({ name }) => name !== LEAK)];
  const daemon = await startDaemon(stage, others);
  const witness = watchNode(stage);
  const leakEnd$ = watchEnd(stage, leak);
  becomePunctual();

  const { wait } = daemon;
  await wait(timer(CALM_MS, liveScheduler), 2 * CALM_MS, 'the pause before the leak');
  stage.tell({ kind: 'leaking', atMs: monotonicMs() });
  leak.send('leak');
  const leakEnd = await wait(leakEnd$, LIMITS_MS.leak, `the end of ${LEAK}`);
  const crossedAtMs = await wait(
    race(witness.crossed$, timer(LIMITS_MS.event, liveScheduler).pipe(map(() => undefined))),
    2 * LIMITS_MS.event,
    "the kernel's event",
  );
  const evicting = await wait(daemon.heard('evicting'), LIMITS_MS.outcome, 'the decision');
  await wait(daemon.heard('evicted'), LIMITS_MS.outcome, "the eviction's outcome");
  await wait(daemon.heard('thresholdOver'), LIMITS_MS.recovery, 'the recovery');
  await wait(daemon.heard('conditionCleared'), LIMITS_MS.recovery, 'the end of MemoryPressure');

  const { evictions } = await askStatus(stage, wait);
  const own = evictions.find(({ pod }) => pod === LEAK);
  return {
    crossedAtMs,
    decision: own === undefined ? undefined : decisionOf(own, evicting),
    leakEnd,
    evictions: evictions.map(({ pod, outcome }) => ({ pod, outcome })),
    recovered: true,
    oomKills: stage.node.oomKills(),
    others: others.map((pod) => ({ pod: pod.name, lives: pod.lives() })),
    peakBytes: stage.node.peakBytes(),
    levelBytes: witness.levelBytes,
  };
}

/** Waits for the first value; for no longer than the limit, and not when the demo is to end. */
type Wait = <T>(source$: Observable<T>, limitMs: number, what: string) => Promise<T>;

function waiting(trouble$: Observable<never>): Wait {
  return (source$, limitMs, what) => {
    const late = () => demoError(`${what} was awaited for ${limitMs / 1000} s in vain`);
    const limit = { first: limitMs, scheduler: liveScheduler, with: () => throwError(late) };
    return firstValueFrom(merge(trouble$, source$).pipe(timeout(limit)));
  };
}

function demoError(message: string): EvictdError {
  return new EvictdError('EVICTD_DEMO', message);
}

/** Errors when the child ends, whenever that is. */
function troubleOf(child: Child): Observable<never> {
  return child.end$.pipe(
    mergeMap((end) => {
      const complaint = child.complaint();
      const why = complaint === '' ? '' : `: ${complaint}`;
      return throwError(() => demoError(`${child.name} ended ${describeEnd(end)}${why}`));
    }),
  );
}

async function startPods(stage: Stage): Promise<readonly Child[]> {
  const children = PODS.map(({ name, holdsBytes }) => {
    const group = stage.node.podDirectory(name);
    const child = startChild(name, [demoFile('pod-process.js'), group, String(holdsBytes)]);
    stage.defer(`the process of ${name}`, () => child.stop('atOnce'));
    return child;
  });
  const wait = waiting(merge(stage.interrupted$, ...children.map(troubleOf)));
  const holding$ = merge(...children.map(holding)).pipe(
    tap((child) => {
      const atMs = monotonicMs();
      stage.tell({ kind: 'podRunning', atMs, pod: child.name, pid: child.pid });
    }),
    toArray(),
  );
  await wait(holding$, LIMITS_MS.podStart, 'the start of the pods');
  return children;
}

function holding(child: Child): Observable<Child> {
  return child.lines$.pipe(
    filter(({ text }) => text === 'holding'),
    take(1),
    map(() => child),
  );
}

function podNamed(pods: readonly Child[], name: string): Child {
  const pod = pods.find((child) => child.name === name);
  if (pod === undefined) throw demoError(`there is no pod ${name}`);
  return pod;
}

interface RunningDaemon {
  /** Waits for anything that happens after its start. */
  readonly wait: Wait;
  /** Emits when its log tells of this, or has told. */
  heard(kind: HappeningKind | 'started'): Observable<DaemonNews>;
}

/** Starts the real daemon and waits until it is ready, with the kernel's notification live. */
async function startDaemon(stage: Stage, others: readonly Child[]): Promise<RunningDaemon> {
  const args = daemonArguments(stage.node.directory, stage.socketPath);
  const child = startChild('evictd', [`--import=${TETHER}`, MAIN, ...args]);
  stage.defer('the daemon', () => child.stop('gently'));
  const news$ = child.lines$.pipe(
    mergeMap(({ text, atMs }) => {
      const news = newsOf(text);
      return news === undefined ? [] : [{ ...news, atMs: Math.min(monotonicOf(news.atMs), atMs) }];
    }),
    shareReplay(),
  );
  const telling = news$.subscribe((news) => {
    if (news.kind !== 'started') stage.tell(news);
  });
  stage.defer("the daemon's log", () => telling.unsubscribe());
  const trouble$ = merge(stage.interrupted$, ...[child, ...others].map(troubleOf));
  const wait = waiting(trouble$);
  const heard: RunningDaemon['heard'] = (kind) =>
    news$.pipe(
      filter((news) => news.kind === kind),
      take(1),
    );
  const { atMs } = await wait(heard('started'), LIMITS_MS.daemonReady, 'evictd to be ready');
  const { notification } = onlyThreshold(await askStatus(stage, wait));
  if (notification.path !== 'memcg-threshold') {
    throw demoError(`evictd hears nothing from the kernel: ${notification.detail}`);
  }
  stage.tell({ kind: 'ready', atMs, pid: child.pid, levelsBytes: notification.levels });
  return { wait, heard };
}

/** Files of the compiled package. */
const TETHER = new URL('tether.js', import.meta.url).href;
const MAIN = demoFile('../../main.js');

function onlyThreshold({ thresholds }: StatusDocument): StatusDocument['thresholds'][number] {
  const [threshold] = thresholds;
  if (threshold === undefined) throw demoError('evictd has no threshold');
  return threshold;
}

/** What `evictd status --json` says. */
async function askStatus({ socketPath, defer }: Stage, wait: Wait): Promise<StatusDocument> {
  const child = startChild('evictd status', [MAIN, 'status', '--json', `--socket=${socketPath}`]);
  defer('evictd status', () => child.stop('atOnce'));
  const text = await wait(
    merge(child.lines$, failureOf(child)).pipe(map((line) => line.text)),
    LIMITS_MS.status,
    'an answer of evictd status',
  );
  const document = JSON.parse(text) as StatusDocument;
  if (document.apiVersion !== STATUS_VERSION) throw demoError('evictd status has another version');
  return document;
}

function failureOf(child: Child): Observable<never> {
  return child.end$.pipe(mergeMap(({ code }) => (code === 0 ? NEVER : troubleOf(child))));
}

/**
 * When the daemon decided and sent SIGKILL, on the monotonic clock. The status has whole
 * milliseconds, cut twice, so that an instant lies 1 ms later on average.
 */
function decisionOf(
  { decidedAt, timing }: StatusDocument['evictions'][number],
  evicting: DaemonNews,
): ToldDecision | undefined {
  if (timing.killedMs === null || evicting.kind !== 'evicting') return undefined;
  const decidedAtMs = monotonicOf(Date.parse(decidedAt) + 1);
  return {
    decidedAtMs,
    killedAtMs: decidedAtMs + timing.killedMs,
    wokenBy: evicting.wokenBy,
  };
}

/** An instant of the wall clock on the monotonic one. */
function monotonicOf(wallMs: number): number {
  return wallMs - Date.now() + monotonicMs();
}

/** The demo's own ear on the node, at the threshold's level. */
function watchNode({ machine, node, tell, defer }: Stage) {
  node.resetPeak();
  const levelBytes = node.levelBytes();
  const crossed$ = new Observable<number>((subscriber) => {
    const watch = machine.addon.watchMemcg(
      node.directory,
      { kind: 'usage', bytes: BigInt(levelBytes) },
      () => subscriber.next(monotonicMs()),
    );
    return () => watch.close();
  }).pipe(take(1), shareReplay(ONE_WHILE_WANTED));
  const telling = crossed$.subscribe((atMs) => tell({ kind: 'crossed', atMs }));
  defer("the demo's own watch", () => telling.unsubscribe());
  tell({ kind: 'witnessing', atMs: monotonicMs(), levelBytes });
  return { levelBytes, crossed$ };
}

/** The end of a pod's process by its pidfd, and how the parent saw it end. */
function watchEnd({ machine, tell, defer }: Stage, pod: Child) {
  const atMs$ = new Observable<number>((subscriber) => {
    const pidfd = machine.addon.openPidfd(pod.pid);
    pidfd.onExit(() => subscriber.next(monotonicMs()));
    return () => pidfd.close();
  }).pipe(take(1));
  const end$ = atMs$.pipe(
    mergeMap((atMs) => pod.end$.pipe(map((end) => ({ ...end, atMs })))),
    shareReplay(ONE_WHILE_WANTED),
  );
  const telling = end$.subscribe((end) => {
    tell({ kind: 'podEnded', atMs: end.atMs, pod: pod.name, how: describeEnd(end) });
  });
  defer(`the pidfd of ${pod.name}`, () => telling.unsubscribe());
  return end$;
}

/** What the demo hears it should hear at once, as the daemon does; its children have started. */
function becomePunctual(): void {
  try {
    setPriority(process.pid, -20);
  } catch {
    // Without it the event may be heard a little later than it came.
  }
}
