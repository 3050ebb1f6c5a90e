import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  KEPT_EVICTIONS,
  KEPT_IMAGES,
  KEPT_LIMIT,
  KEPT_TEXT,
  type KeptEviction,
  type KeptOutcome,
  parseSnapshot,
  type Snapshot,
} from '../../src/core/snapshot.ts';

const TIMING = { firstSignalMs: 0.5, killedMs: 1, emptyMs: 2, endedMs: 40 };

const EVICTION: KeptEviction = {
  podId: 'leak@7',
  podName: 'leak',
  hard: true,
  gracePeriodMs: 0,
  message: 'The node was low on resource: memory.',
  decidedAtMs: -5,
  decidedWallMs: 1_700_000_000_000,
  outcome: { kind: 'evicted', timing: TIMING, processes: 3, chargedBytes: 4096 },
};

const SNAPSHOT: Snapshot = {
  bootId: 'boot',
  savedAtMs: 1000,
  unsavedMs: 1500,
  thresholds: [
    {
      id: 'soft:memory.available',
      value: 'quantity 1n',
      gracePeriodMs: 30_000,
      firstObservedAtMs: 1000,
      due: false,
    },
  ],
  conditions: [{ type: 'MemoryPressure', lastObservedAtMs: 900, held: true, caused: true }],
  inFlight: { podId: 'leak@7', podName: 'leak', signal: 'memory.available', hard: true },
  evictions: [EVICTION],
  images: {
    savedWallMs: 1_700_000_000_000,
    seen: [
      { id: 'sha256:1', firstSeenAtMs: -5, lastUsedAtMs: 1000, wasThere: true },
      { id: 'sha256:2', firstSeenAtMs: 1000, wasThere: false },
    ],
  },
};

/** The snapshot with another value at a place such as `evictions.0.hard`; undefined leaves it out. */
function withValue(place: string, value: unknown): unknown {
  const copy = JSON.parse(JSON.stringify(SNAPSHOT)) as Record<string, unknown>;
  const keys = place.split('.');
  const last = keys.pop() as string;
  const holder = keys.reduce<Record<string, unknown>>(
    (one, key) => one[key] as Record<string, unknown>,
    copy,
  );
  if (value === undefined) delete holder[last];
  else holder[last] = value;
  return copy;
}

const evictionOf = (outcome: unknown): unknown => withValue('evictions.0.outcome', outcome);

describe('parseSnapshot', () => {
  it('gives back what was written, through JSON', () => {
    expect(parseSnapshot(JSON.parse(JSON.stringify(SNAPSHOT)))).toStrictEqual({
      snapshot: SNAPSHOT,
    });
  });

  it('leaves unknown fields out', () => {
    const value = withValue('evictions.0.colour', 'red');
    expect(parseSnapshot({ ...(value as object), more: 1 })).toStrictEqual({ snapshot: SNAPSHOT });
  });

  it.each<KeptOutcome>([
    { kind: 'evicted', timing: { endedMs: 0 }, processes: 0 },
    { kind: 'refused', timing: TIMING, processes: 1, reason: 'interrupted' },
    { kind: 'refused', timing: TIMING, processes: 1, reason: 'protected', detail: 'why' },
    { kind: 'timedOut', timing: TIMING, processes: 1, reason: 'deadline', remaining: 2 },
    {
      kind: 'timedOut',
      timing: TIMING,
      processes: 1,
      reason: 'stillDying',
      remaining: 2,
      detail: 'frozen',
    },
    { kind: 'failed', timing: TIMING, processes: 1, error: 'EPERM' },
  ])('takes the outcome %j', (outcome) => {
    expect(parseSnapshot(evictionOf(outcome))).toMatchObject({
      snapshot: { evictions: [{ outcome }] },
    });
  });

  it.each([
    'inFlight',
    'inFlight.signal',
    'evictions.0.outcome',
    // What was written before images were looked at.
    'images',
    'images.seen.0.lastUsedAtMs',
  ])('does without %s', (place) => {
    expect(parseSnapshot(withValue(place, undefined))).toHaveProperty('snapshot');
  });

  it.each<[string, unknown, string]>([
    ['bootId', 1, 'bootId is no text'],
    ['bootId', undefined, 'bootId is no text'],
    ['savedAtMs', '1', 'savedAtMs is no number'],
    ['savedAtMs', null, 'savedAtMs is no number'],
    ['unsavedMs', -1, 'unsavedMs is negative'],
    ['thresholds', {}, 'thresholds is no list'],
    ['thresholds.0', [], 'thresholds[0] is no object'],
    ['thresholds.0.id', 'soft:memory', 'thresholds[0].id names no threshold'],
    ['thresholds.0.id', 'firm:memory.available', 'thresholds[0].id names no threshold'],
    ['thresholds.0.id', ['soft:memory.available'], 'thresholds[0].id is no text'],
    ['thresholds.0.id', 'soft:constructor', 'thresholds[0].id names no threshold'],
    [
      'thresholds.0.firstObservedAtMs',
      1001,
      'thresholds[0].firstObservedAtMs is later than the state',
    ],
    ['thresholds.0.due', 0, 'thresholds[0].due is neither true nor false'],
    ['conditions.0.type', 'Ready', 'conditions[0].type is none of MemoryPressure'],
    ['conditions.0.lastObservedAtMs', 1000.5, 'conditions[0].lastObservedAtMs is later'],
    ['inFlight', 'leak', 'inFlight is no object'],
    ['inFlight', null, 'inFlight is no object'],
    ['inFlight.signal', 'memory', 'inFlight.signal is no signal'],
    ['inFlight.signal', 1, 'inFlight.signal is no signal'],
    ['evictions.0.decidedWallMs', 8.64e15 + 1, 'evictions[0].decidedWallMs is no time'],
    ['evictions.0.outcome.kind', 'gone', 'evictions[0].outcome.kind is none of evicted'],
    [
      'evictions.0.outcome.timing.endedMs',
      undefined,
      'evictions[0].outcome.timing.endedMs is no number',
    ],
    [
      'evictions.0.outcome.timing.killedMs',
      'x',
      'evictions[0].outcome.timing.killedMs is no number',
    ],
    [
      'evictions.0.message',
      'x'.repeat(KEPT_TEXT + 1),
      'evictions[0].message is no text of at most',
    ],
    ['images', [], 'images is no object'],
    ['images.savedWallMs', undefined, 'images.savedWallMs is no number'],
    ['images.seen', undefined, 'images.seen is no list'],
    ['images.seen.0.id', 7, 'images.seen[0].id is no text'],
    ['images.seen.0.firstSeenAtMs', 1001, 'images.seen[0].firstSeenAtMs is later than the state'],
    ['images.seen.0.lastUsedAtMs', 1001, 'images.seen[0].lastUsedAtMs is later than the state'],
    ['images.seen.1.wasThere', undefined, 'images.seen[1].wasThere is neither true nor false'],
    [
      'images.seen',
      Array(KEPT_IMAGES + 1).fill(0),
      `images.seen has more than ${KEPT_IMAGES} entries`,
    ],
    ['conditions', Array(KEPT_LIMIT + 1).fill(0), `conditions has more than ${KEPT_LIMIT} entries`],
    ['evictions', Array(KEPT_EVICTIONS + 1).fill(EVICTION), 'evictions has more than 100 entries'],
  ])('refuses %s of %j', (place, value, fault) => {
    expect(parseSnapshot(withValue(place, value))).toEqual({
      fault: expect.stringContaining(fault),
    });
  });

  it.each([
    ['refused', { reason: 'whim' }, 'reason is none of pressureGone'],
    ['timedOut', { reason: 'whim' }, 'reason is none of stillDying'],
    ['timedOut', { reason: 'deadline' }, 'remaining is no number'],
    ['failed', {}, 'error is no text'],
  ])('refuses an outcome %s with %j', (kind, more, fault) => {
    expect(parseSnapshot(evictionOf({ kind, timing: TIMING, processes: 0, ...more }))).toEqual({
      fault: expect.stringContaining(fault),
    });
  });

  it('takes what is right at the limits', () => {
    const full = withValue('evictions', Array(KEPT_EVICTIONS).fill(EVICTION));
    expect(parseSnapshot(full)).toHaveProperty('snapshot');
    expect(parseSnapshot(withValue('bootId', 'x'.repeat(KEPT_TEXT)))).toHaveProperty('snapshot');
    expect(parseSnapshot(withValue('evictions.0.decidedWallMs', 8.64e15))).toHaveProperty(
      'snapshot',
    );
  });

  it.each([undefined, null, 1, 'x', [], [SNAPSHOT]])('refuses %j', (value) => {
    expect(parseSnapshot(value)).toEqual({ fault: 'state is no object' });
  });

  it('gives a snapshot or says where the fault is, whatever it is given', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.nat(40), (value, at) => {
        const places = placesOf(SNAPSHOT);
        const place = places[at % places.length] as string;
        const parsed = parseSnapshot(withValue(place, value));
        expect('snapshot' in parsed || parsed.fault.length > 0).toBe(true);
      }),
    );
  });

  it('does not hide a fault of its own', () => {
    expect(() => parseSnapshot(Object.defineProperty({}, 'savedAtMs', { get: fail }))).toThrow(
      'planted',
    );
  });
});

function fail(): never {
  throw new RangeError('planted');
}

/** Every place in a value, as `withValue` names it. */
function placesOf(value: unknown, at: readonly string[] = []): readonly string[] {
  if (typeof value !== 'object' || value === null) return [at.join('.')];
  const inner = Object.entries(value).flatMap(([key, one]) => placesOf(one, [...at, key]));
  return at.length === 0 ? inner : [at.join('.'), ...inner];
}
