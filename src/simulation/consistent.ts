/** What a schema cannot say of a scenario. */
import { suggestion } from '../config/nearest.ts';
import { parseDuration } from '../core/duration.ts';
import { type ErrorPlace, EvictdError } from '../core/errors.ts';
import type { Scenario, Tick } from './scenario.ts';

/**
 * Checks that pods are told apart, that whoever is named is there, and that rounds come in the order of time.
 *
 * @throws EvictdError EVICTD_SCENARIO, with the path of what is wrong as its place's key
 */
export function checkConsistent(scenario: Scenario): void {
  const names = checkPods(scenario);
  checkNames(scenario, names);
  checkTimes(scenario);
}

/** Returns the names of all pods, `namespace/name`. */
function checkPods({ pods }: Scenario): ReadonlySet<string> {
  const uids = new Set<string>();
  const names = new Set<string>();
  for (const [index, { metadata }] of pods.entries()) {
    const { namespace, name, uid } = metadata;
    const full = `${namespace}/${name}`;
    if (uids.has(uid)) {
      throw refused({ key: `pods[${index}].metadata.uid`, value: uid }, 'another pod has it too');
    }
    if (names.has(full)) {
      throw refused(
        { key: `pods[${index}].metadata`, value: full },
        'another pod is called so too',
      );
    }
    uids.add(uid);
    names.add(full);
  }
  return names;
}

/** What is said of a pod that is not there would be left out of account unseen. */
function checkNames({ ticks, evictd }: Scenario, names: ReadonlySet<string>): void {
  const check = (path: string, name: string): void => {
    if (names.has(name)) return;
    const message = `no pod of the scenario${suggestion(name, [...names])}`;
    throw refused({ key: path, value: name }, message);
  };
  const checkKeys = (path: string, map: object | undefined): void => {
    for (const name of Object.keys(map ?? {})) check(path, name);
  };
  checkKeys('evictd.protected', evictd?.protected);
  checkKeys('evictd.kills', evictd?.kills);
  for (const [index, tick] of ticks.entries()) {
    if (tick.evictd?.kills !== undefined)
      checkKeys(`ticks[${index}].evictd.kills`, tick.evictd.kills);
    for (const [at, name] of (tick.killFails ?? []).entries()) {
      check(`ticks[${index}].killFails[${at}]`, name);
    }
    for (const [at, name] of (tick.activePods ?? []).entries()) {
      check(`ticks[${index}].activePods[${at}]`, name);
    }
  }
}

/** Rounds, and what is read between two of them, come in the order of time. */
function checkTimes({ ticks }: Scenario): void {
  let beforeMs = Number.NEGATIVE_INFINITY;
  for (const [index, tick] of ticks.entries()) {
    const key = `ticks[${index}]`;
    const atMs = durationMs(`${key}.at`, tick.at);
    if (atMs < beforeMs)
      throw refused({ key: `${key}.at`, value: tick.at }, 'before what precedes it');
    beforeMs = lastReadMs(tick, atMs, key);
  }
}

/** When the last of a round's readings is taken, ms. */
function lastReadMs({ evictd }: Tick, atMs: number, key: string): number {
  if (evictd === undefined || evictd === null) return atMs;
  const { wallClockStep, samples = [] } = evictd;
  if (wallClockStep !== undefined) durationMs(`${key}.evictd.wallClockStep`, wallClockStep);
  let lastMs = atMs;
  for (const [index, { after }] of samples.entries()) {
    const path = `${key}.evictd.samples[${index}].after`;
    const readMs = atMs + durationMs(path, after);
    if (readMs < lastMs) throw refused({ key: path, value: after }, 'before what precedes it');
    lastMs = readMs;
  }
  return lastMs;
}

function durationMs(key: string, text: string): number {
  try {
    return parseDuration(text);
  } catch (error) {
    throw error instanceof EvictdError ? refused({ key, value: text }, error.message) : error;
  }
}

/** What is wrong with a scenario, and where. */
export function refused(place: ErrorPlace, message: string): EvictdError {
  return new EvictdError('EVICTD_SCENARIO', message, place);
}
