import { type IncomingMessage, request } from 'node:http';
import { createInterface } from 'node:readline';
import { Observable } from 'rxjs';
import { formatDuration } from '../../core/duration.ts';
import { readQuantity } from '../../core/quantity.ts';
import type { RecordedOutcome, RecordedPod, RecordedTurn } from '../../core/recorded.ts';
import { partFault } from '../../simulation/part.ts';
import { SAMPLES_VERSION, type SampleLine, type SamplesHead } from '../../surfaces/samples.ts';
import {
  type Check,
  isCount,
  isSwitch,
  isText,
  listOf,
  objectOf,
  oneOf,
  orNull,
} from '../shape.ts';
import { foreign, refusedWith, unanswered } from '../unanswered.ts';

/** How long the daemon may take to answer, ms. */
const ANSWER_LIMIT_MS = 5000;
/** What is read of an answer that is an error, characters. */
const REFUSAL_LENGTH = 1000;

/**
 * The samples of a running daemon, its head first. Completes when the daemon ends the stream. Cold;
 * holds a connection.
 *
 * Errors with EVICTD_NOT_RUNNING when nobody listens, EVICTD_UNREACHABLE when nobody answers, or not
 * with samples.
 */
export function daemonSamples(socketPath: string, intervalMs: number): Observable<SampleLine> {
  return new Observable((subscriber) => {
    const path = `/v1/samples?interval=${encodeURIComponent(formatDuration(intervalMs))}`;
    const fail = (cause: unknown): void => subscriber.error(unanswered(socketPath, cause));
    const late = setTimeout(() => asked.destroy(new Error('no answer in time')), ANSWER_LIMIT_MS);
    let isHeadRead = false;
    const take = (text: string): void => {
      const line = parse(text);
      const isHead = line?.kind === 'Samples' && line.apiVersion === SAMPLES_VERSION;
      if (line === undefined || (!isHeadRead && !isHead)) {
        fail(foreign(socketPath));
        return;
      }
      isHeadRead = true;
      subscriber.next(line);
    };
    const asked = request({ socketPath, path, agent: false }, (response) => {
      clearTimeout(late);
      if (response.statusCode === 200) readLines(response, take, () => subscriber.complete());
      else
        readRefusal(response, (text) => fail(refusedWith(socketPath, response.statusCode, text)));
    });
    asked.on('error', (error) => {
      if (isHeadRead) subscriber.complete();
      else fail(error);
    });
    asked.end();
    return () => {
      clearTimeout(late);
      asked.destroy();
    };
  });
}

/** A daemon that ends, or is ended, takes the connection with it: what came stays. */
function readLines(response: IncomingMessage, take: (text: string) => void, end: () => void): void {
  const lines = createInterface({ input: response, crlfDelay: Number.POSITIVE_INFINITY });
  lines.on('line', take);
  lines.on('close', end);
  lines.on('error', end);
}

/** What came of it counts, also where that is not all. */
function readRefusal(response: IncomingMessage, tell: (text: string) => void): void {
  let text = '';
  response.setEncoding('utf8');
  response.on('data', (part: string) => {
    text = (text + part).slice(0, REFUSAL_LENGTH);
  });
  response.on('error', () => tell(text));
  response.on('end', () => tell(text));
}

/** Undefined for what is no sample; of a kind that is not known it is one of a later daemon. */
function parse(text: string): SampleLine | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (!isLine(value)) return undefined;
    const line = value as SampleLine;
    const isKnown = Object.hasOwn(LINES, line.kind);
    return !isKnown || LINES[line.kind](line) ? line : undefined;
  } catch {
    return undefined;
  }
}

const isLine = objectOf({ kind: isText });

/** Milliseconds: with a fraction, and no more than can be counted. */
const isInstant: Check = (value) =>
  typeof value === 'number' && Math.abs(value) <= Number.MAX_SAFE_INTEGER;

const isQuantity: Check = (value) => {
  try {
    return typeof value === 'string' && readQuantity(value) !== undefined;
  } catch {
    return false;
  }
};

const isConfig: Check = (config) => partFault({ config }) === undefined;

/** What is left out where there is none. */
function orMissing(check: Check): Check {
  return (value) => value === undefined || check(value);
}

const isDisk = objectOf({ bytes: isCount, inodes: orNull(isCount) });

const POD: Readonly<Record<keyof RecordedPod, Check>> = {
  id: isText,
  name: isText,
  namespace: orMissing(isText),
  priority: isCount,
  qosClass: isText,
  memoryRequest: isQuantity,
  workingSetBytes: orNull(isCount),
  pids: orNull(isCount),
  disk: orMissing(objectOf({ root: isDisk, logs: isDisk, localVolumes: isDisk })),
  exclusiveImageBytes: orMissing(isCount),
  gracePeriodSeconds: orNull(isCount),
  protected: orNull(isText),
};

const OUTCOMES = [
  'evicted',
  'timedOut',
  'failed',
  'nothingToKill',
  'pressureGone',
  'dryRun',
] as const satisfies readonly RecordedOutcome[];

const isDecision = objectOf({ kind: oneOf('none', 'reclaim', 'observePods') });
const isEviction = objectOf({
  kind: oneOf('evict', 'escalate'),
  podId: isText,
  gracePeriodMs: isInstant,
});

const HEAD: Readonly<Record<keyof SamplesHead, Check>> = {
  apiVersion: isText,
  kind: isText,
  version: isText,
  nodeCgroup: isText,
  startedAt: isText,
  config: isConfig,
  dedicatedImageFs: isSwitch,
  splitImageFs: isSwitch,
  pods: listOf(objectOf(POD)),
  evicting: isSwitch,
  pressure: isSwitch,
};

const TURN: Readonly<Record<keyof RecordedTurn, Check>> = {
  kind: isText,
  atMs: isInstant,
  reason: isText,
  signals: listOf(objectOf({ signal: isText, capacity: isCount, available: isCount })),
  pods: orNull(listOf(objectOf(POD))),
  calm: isSwitch,
  decision: (value) => isDecision(value) || isEviction(value),
  outcome: orNull(objectOf({ podId: isText, kind: oneOf(...OUTCOMES) })),
  spaceHeld: orMissing(isSwitch),
  reclaimed: orMissing(isSwitch),
};

const LINES: Readonly<Record<SampleLine['kind'], Check>> = {
  Samples: objectOf(HEAD),
  turn: objectOf(TURN),
  config: objectOf({ config: isConfig }),
  dropped: objectOf({ count: isCount }),
};
