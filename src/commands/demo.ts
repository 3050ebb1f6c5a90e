import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { interval, mergeMap, type Observable, throwError } from 'rxjs';
import { describeError, EvictdError } from '../core/errors.ts';
import { liveScheduler, monotonicMs } from '../sources/live-scheduler.ts';
import {
  catchInterruptions,
  type EndSignal,
  Interrupted,
  type Interruption,
  SIGNAL_STATUS,
} from './demo/interruption.ts';
import { type DemoNode, makeNode } from './demo/node.ts';
import { FRAME_MS } from './demo/plan.ts';
import { play } from './demo/play.ts';
import { replay } from './demo/replay.ts';
import { type Machine, requireMachine } from './demo/requirements.ts';
import { emptyStory, type Happening, type Story, tell } from './demo/story.ts';
import { openSurface } from './demo/surface.ts';
import { Undo } from './demo/undo.ts';
import { type Evidence, judge } from './demo/verdict.ts';

/**
 * `evictd demo`: shows an eviction of real processes on this machine, and leaves nothing behind. Where
 * something is missing for that, it says what, and replays a recorded run.
 *
 * @returns 0 when all went as it should, else the exit status of the signal that ended it
 * @throws EvictdError EVICTD_REPLAYED after a replay; EVICTD_DEMO when it went otherwise, or when
 * something is left behind
 */
export async function demoCommand({ plain }: { readonly plain: boolean }): Promise<number> {
  const interruptions = catchInterruptions();
  try {
    return await performOrReplay(plain, interruptions.first$);
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error;
    const { interruption } = error;
    if (interruption.kind === 'error') throw interruption.error;
    interruptions.release();
    return endedBy(interruption.signal);
  } finally {
    interruptions.release();
  }
}

async function performOrReplay(
  plain: boolean,
  interruptions$: Observable<Interruption>,
): Promise<number> {
  try {
    const evidence = await perform(requireMachine(), plain, interruptions$);
    const verdict = judge(evidence);
    if (verdict.kind === 'differed') {
      throw new EvictdError('EVICTD_DEMO', `it went otherwise: ${verdict.differences.join('; ')}`);
    }
    process.stdout.write(`${verdict.line}\n`);
    return 0;
  } catch (error) {
    if (!(error instanceof EvictdError) || error.code !== 'EVICTD_UNSUPPORTED') throw error;
    process.stderr.write(`evictd: ${describeError(error)} [${error.code}]\n`);
    await replay(plain, interruptions$);
    const message = 'nothing was evicted: what was shown is a replay of a recorded run';
    throw new EvictdError('EVICTD_REPLAYED', message, {}, error);
  }
}

/**
 * The exit status of a signal. Node aborts when it ends on a terminal that has gone away (20.20,
 * `ResetStdio`), so SIGHUP takes its own course there, now that nothing is left to tidy up.
 */
function endedBy(signal: EndSignal): number {
  if (signal === 'SIGHUP' && process.stdout.isTTY) process.kill(process.pid, signal);
  return SIGNAL_STATUS[signal];
}

/** Plays the demo on a stage of its own, shows it, and takes the stage down in any case. */
async function perform(
  machine: Machine,
  plain: boolean,
  interruptions$: Observable<Interruption>,
): Promise<Evidence> {
  const undo = new Undo();
  try {
    const directory = mkdtempSync(path.join(tmpdir(), 'evictd-demo-'));
    undo.add(directory, () => rmSync(directory, { recursive: true, force: true }));
    const node = makeNode(machine.hierarchy);
    undo.add(node.directory, () => node.remove());
    const show = openShow(node, plain);
    undo.add('the screen', show.end);
    show.tell({ kind: 'nodeMade', atMs: monotonicMs(), directory: node.directory });
    const evidence = await play({
      machine,
      node,
      socketPath: path.join(directory, 'evictd.sock'),
      tell: show.tell,
      interrupted$: interruptions$.pipe(
        mergeMap((interruption) => throwError(() => new Interrupted(interruption))),
      ),
      defer: (what, step) => undo.add(what, step),
    });
    show.end();
    return evidence;
  } finally {
    await undo.run();
  }
}

/** The story so far, and where it is shown. */
function openShow(node: DemoNode, plain: boolean) {
  const surface = openSurface(process.stdout, plain);
  let story: Story = emptyStory(monotonicMs());
  const tellMore = (happening: Happening): void => {
    story = tell(story, happening);
  };
  const frames = interval(FRAME_MS, liveScheduler).subscribe(() => {
    const atMs = monotonicMs();
    tellMore({ kind: 'usage', atMs, ...node.usage() });
    surface.show(story, atMs);
  });
  return {
    tell: tellMore,
    end: (): void => {
      if (frames.closed) return;
      frames.unsubscribe();
      surface.end(story);
    },
  };
}
