import { describe, expect, it } from 'vitest';
import { flapping, NOT_FLAPPING } from '../../src/core/flapping.ts';
import type { ReadSample, Turn } from '../../src/core/pipeline.ts';
import { INITIAL_STATE } from '../../src/core/state.ts';
import { step } from '../../src/core/step.ts';
import type { Collected } from '../../src/ports/collection.ts';
import type { FilesystemReading, FilesystemState } from '../../src/ports/filesystem.ts';
import {
  EMPTY_MODEL,
  type Model,
  type ModelEvent,
  outcomeReason,
  REMEMBERED_EVENTS,
  REMEMBERED_EVICTIONS,
  STATE,
  STATUS_VERSION,
  type StatusContext,
  statusDocument,
  updateModel,
} from '../../src/surfaces/status.ts';
import {
  GI,
  MI,
  outcome,
  pod,
  policy,
  reading,
  sample,
  softThreshold,
  threshold,
  value,
} from '../support/builders.ts';

const BY = policy({
  thresholds: [threshold({ minimumReclaim: value('50Mi') }), softThreshold()],
});

/** The same with a threshold of a filesystem. */
const BY_DISK = policy({
  thresholds: [...BY.thresholds, threshold({ signal: 'nodefs.available', value: value('1Gi') })],
});

const context = (overrides: Partial<StatusContext> = {}): StatusContext => ({
  version: '0.1.0',
  pid: 4711,
  policy: BY,
  nodeName: 'node-1',
  nodeCgroup: '/sys/fs/cgroup/memory/node',
  podParents: [],
  memorySource: 'workingset',
  dryRun: false,
  kernelMemcgNotification: true,
  killing: { by: 'pidfd', detail: 'by pidfd' },
  runtime: 'cri',
  runtimePlace: { name: 'containerd', socket: '/run/c.sock' },
  garbage: { containers: 'off', images: 'off' },
  stateFile: '/var/lib/evictd/state-1',
  startedAtMs: 1000,
  nowMs: 11_000,
  wallMs: Date.UTC(2026, 0, 1, 12, 0, 11),
  droppedLogLines: 0,
  ...overrides,
});

const READING = reading({
  atMs: 10_000,
  usageBytes: 900 * MI,
  inactiveFileBytes: 100 * MI,
  workingSetBytes: 800 * MI,
  capacityBytes: GI,
});

function turnOf(one: ReadSample, before?: Turn): Turn {
  return {
    ...step(BY, before?.state ?? INITIAL_STATE, one),
    policy: BY,
    reason: 'wakeup',
    sample: one,
    podsDueAtMs: one.nowMs + 10_000,
    podsRead: { atMs: 0, tookMs: 0 },
    lookAgainAtMs: one.nowMs + 50,
  };
}

const FILESYSTEM: FilesystemState = {
  name: 'nodefs',
  path: '/var/lib',
  reading: {
    path: '/var/lib',
    atMs: 9000,
    capacityBytes: 100 * GI,
    availableBytes: 40 * GI,
    usedBytes: 60 * GI,
    inodes: 1000,
    inodesFree: 500,
    device: '8:1',
    mountDevice: '8:1',
    source: '/dev/sda1',
    type: 'ext4',
    mountPoint: '/',
  },
  error: undefined,
  stale: false,
};

const modelOf = (...events: readonly ModelEvent[]): Model =>
  events.reduce(updateModel, EMPTY_MODEL);
const seen = (
  turn: Turn,
  troubles = new Map<string, string | undefined>(),
  dryRun = false,
): ModelEvent => ({
  kind: 'turn',
  turn,
  readings: [READING],
  filesystems: [FILESYSTEM],
  unaccounted: new Map([['nodefs', 20 * MI]]),
  troubles,
  dryRun,
});

/** Keys and the types of their values, at every depth. */
function shapeOf(one: unknown): unknown {
  if (Array.isArray(one)) return one.slice(0, 1).map(shapeOf);
  if (one === null || typeof one !== 'object') return one === null ? 'null' : typeof one;
  return Object.fromEntries(Object.entries(one).map(([key, inner]) => [key, shapeOf(inner)]));
}

const LEAK = pod('leak', { workingSetBytes: 700 * MI, atMs: 10_500 });
const WEB = pod('web', {
  priority: 9,
  workingSetBytes: undefined,
  gracePeriodSeconds: 5,
  disk: {
    root: { bytes: 30 * MI, inodes: 3 },
    logs: { bytes: 2 * MI, inodes: 1 },
    localVolumes: { bytes: MI, inodes: 10 },
  },
  diskSeen: { atMs: 8000, isCut: false, deletedBytes: 20 * MI },
});
const EVICTING = turnOf(sample(10_000, 50 * MI, { pods: [WEB, LEAK] }));
const EVICTED = outcome(
  'leak',
  { kind: 'evicted', chargedBytes: 4096 },
  {
    processes: 3,
    timing: {
      decidedAtMs: 10_000,
      firstSignalAtMs: 10_000.1234,
      killedAtMs: 10_000.5,
      emptyAtMs: 10_020,
      endedAtMs: 10_040.75,
    },
  },
);
const IMPOSSIBLE = turnOf(sample(9000, 50 * MI, { pods: [{ ...WEB, protectedBecause: 'x' }] }));
/** A collection while which so many bytes came back. */
function collected(bytes: number, images: number): Collected {
  const first: FilesystemReading = {
    path: '/images',
    atMs: 0,
    capacityBytes: 100 * GI,
    availableBytes: 5 * GI,
    usedBytes: 95 * GI,
    inodes: 1000,
    inodesFree: 100,
    device: '8:1',
    mountDevice: '8:1',
    source: '/dev/sda1',
    type: 'ext4',
    mountPoint: '/',
  };
  return {
    because: 'regained',
    removed: { container: 1, sandbox: images > 0 ? 1 : 0, image: images },
    inUse: 5,
    failed: 0,
    wouldRemove: 0,
    first,
    last: { ...first, availableBytes: 5 * GI + bytes, inodesFree: 130 },
    tookMs: 1234.5,
  };
}

const FULL = modelOf(
  seen(IMPOSSIBLE),
  seen(EVICTING),
  { kind: 'wakeup', events: 1 },
  // What an evicted pod left.
  { kind: 'removed', what: 'container' },
  { kind: 'kept', atMs: 10_500 },
  { kind: 'outcome', outcome: EVICTED },
  {
    kind: 'path',
    path: {
      threshold: 'hard:memory.available',
      arming: { kind: 'armed', levels: [924 * MI, 925 * MI], late: false },
      degraded: undefined,
    },
  },
  { kind: 'degraded', part: 'reap', reason: 'ENOSYS' },
  { kind: 'lostRace', race: { podName: 'db', cgroup: '/node/db/main', kills: 2, atMs: 10_900 } },
  { kind: 'collected', purpose: 'periodic', collected: collected(10 * MI, 3), endedAtMs: 10_950 },
  // Others have written meanwhile.
  { kind: 'collected', purpose: 'pressure', collected: collected(-MI, 0), endedAtMs: 11_000 },
);

/** MemoryPressure, set at 1, 3 and 5 s. */
const FLAPPING = [1000, 2000, 3000, 4000, 5000].reduce(
  (before, atMs, turn) => flapping(before, turn % 2 === 0 ? ['MemoryPressure'] : [], atMs, 0),
  NOT_FLAPPING,
);

describe('statusDocument', () => {
  it('has the shape that its version stands for', () => {
    const document = statusDocument({ ...FULL, flapping: FLAPPING }, context({ policy: BY_DISK }));
    expect(document.filesystems.map(({ name }) => name)).toStrictEqual(['nodefs']);
    expect(statusDocument(FULL, context()).filesystems).toStrictEqual([]);
    expect(shapeOf(document)).toStrictEqual({
      apiVersion: 'string',
      kind: 'string',
      evictd: {
        version: 'string',
        pid: 'number',
        startedAt: 'string',
        uptimeMs: 'number',
        dryRun: 'boolean',
        kernelMemcgNotification: 'boolean',
      },
      killing: { by: 'string', detail: 'string' },
      runtime: { kind: 'string', name: 'string', socket: 'string' },
      state: { file: 'string', writtenAt: 'string', ageMs: 'number', error: 'null' },
      node: {
        name: 'string',
        cgroup: 'string',
        podParents: [],
        memorySource: 'string',
        figures: 'string',
        usageBytes: 'number',
        uncountedBytes: 'number',
        inactiveFileBytes: 'number',
        workingSetBytes: 'number',
        availableBytes: { workingset: 'number', memavailable: 'number' },
      },
      signals: [
        {
          signal: 'string',
          unit: 'string',
          capacity: 'number',
          available: 'number',
          readAt: 'string',
          ageMs: 'number',
        },
      ],
      filesystems: [
        {
          name: 'string',
          path: 'string',
          mountPoint: 'string',
          type: 'string',
          source: 'string',
          device: 'string',
          capacityBytes: 'number',
          availableBytes: 'number',
          inodes: 'number',
          inodesFree: 'number',
          unaccountedBytes: 'number',
          readAt: 'string',
          ageMs: 'number',
          stale: 'boolean',
          error: 'null',
        },
      ],
      layout: { kind: 'string', groups: [['string']] },
      thresholds: [
        {
          signal: 'string',
          kind: 'string',
          value: 'string',
          level: 'number',
          minimumReclaim: 'string',
          minimumReclaimLevel: 'number',
          gracePeriodMs: 'number',
          met: 'boolean',
          due: 'boolean',
          graceRemainingMs: 'number',
          notification: { path: 'string', levels: ['number'], detail: 'string' },
        },
      ],
      conditions: [
        {
          type: 'string',
          status: 'boolean',
          lastObservedAgeMs: 'number',
          flapping: { count: 'number', since: 'string' },
        },
      ],
      pods: [
        {
          rank: 'number',
          name: 'string',
          priority: 'number',
          qosClass: 'string',
          workingSetBytes: 'null',
          pids: 'null',
          disk: {
            bytes: 'number',
            inodes: 'number',
            rootBytes: 'number',
            logsBytes: 'number',
            localVolumesBytes: 'number',
            unaccountedBytes: 'number',
            isCut: 'boolean',
            ageMs: 'number',
          },
          requestBytes: 'number',
          gracePeriodSeconds: 'number',
          protected: 'null',
          passedOver: 'boolean',
          ageMs: 'number',
        },
      ],
      evicting: { pod: 'string', hard: 'boolean' },
      evictions: [
        {
          pod: 'string',
          decidedAt: 'string',
          hard: 'boolean',
          gracePeriodMs: 'number',
          message: 'string',
          annotations: {},
          outcome: 'string',
          reason: 'null',
          processes: 'number',
          chargedBytes: 'number',
          timing: {
            firstSignalMs: 'number',
            killedMs: 'number',
            emptyMs: 'number',
            endedMs: 'number',
          },
        },
      ],
      garbage: {
        containers: 'string',
        images: 'string',
        collectingFor: 'null',
        last: {
          purpose: 'string',
          because: 'string',
          endedAt: 'string',
          tookMs: 'number',
          containers: 'number',
          sandboxes: 'number',
          images: 'number',
          inUse: 'number',
          failed: 'number',
          wouldRemove: 'number',
          freedBytes: 'number',
          freedInodes: 'number',
        },
      },
      comebacks: [],
      impossible: [
        {
          reason: 'string',
          decidedAt: 'string',
          signal: 'string',
          unit: 'string',
          kind: 'string',
          level: 'number',
          available: 'number',
          pods: 'number',
          protectedPods: 'number',
          passedOverPods: 'number',
          helplessPods: 'number',
        },
      ],
      events: [
        {
          type: 'string',
          reason: 'string',
          object: 'string',
          message: 'string',
          annotations: {},
          time: 'string',
          since: 'string',
          count: 'number',
        },
      ],
      lostRaces: [{ pod: 'string', cgroup: 'string', kills: 'number', noticedAt: 'string' }],
      degraded: [{ part: 'string', reason: 'string' }],
      counters: {
        samples: 'number',
        kernelWakeups: 'number',
        lostRaces: 'number',
        droppedLogLines: 'number',
        refusedSamples: 'number',
        collections: 'number',
        removedContainers: 'number',
        removedSandboxes: 'number',
        removedImages: 'number',
        freedBytes: 'number',
      },
    });
    expect(STATUS_VERSION).toBe('evictd.dev/v1alpha1');
  });

  it('tells numbers, ages and times', () => {
    const document = statusDocument(FULL, context());
    expect(document.garbage).toStrictEqual({
      containers: 'off',
      images: 'off',
      collectingFor: null,
      last: {
        purpose: 'pressure',
        because: 'regained',
        endedAt: '2026-01-01T12:00:11.000Z',
        tookMs: 1235,
        containers: 1,
        sandboxes: 0,
        images: 0,
        inUse: 5,
        failed: 0,
        wouldRemove: 0,
        freedBytes: 0,
        freedInodes: 30,
      },
    });
    expect(document.evictd).toMatchObject({
      startedAt: '2026-01-01T12:00:01.000Z',
      uptimeMs: 10_000,
    });
    expect(document.signals).toStrictEqual([
      {
        signal: 'memory.available',
        unit: 'bytes',
        capacity: GI,
        available: 50 * MI,
        readAt: '2026-01-01T12:00:10.000Z',
        ageMs: 1000,
      },
    ]);
    expect(document.conditions).toStrictEqual([
      { type: 'MemoryPressure', status: true, lastObservedAgeMs: 1000, flapping: null },
      { type: 'DiskPressure', status: false, lastObservedAgeMs: null, flapping: null },
      { type: 'PIDPressure', status: false, lastObservedAgeMs: null, flapping: null },
    ]);
    expect(document.evicting).toStrictEqual({ pod: 'leak', hard: true });
    expect(document.evictions[0]).toMatchObject({
      outcome: 'evicted',
      chargedBytes: 4096,
      timing: { firstSignalMs: 0.123, killedMs: 0.5, emptyMs: 20, endedMs: 40.75 },
    });
    expect(document.counters).toStrictEqual({
      samples: 2,
      kernelWakeups: 1,
      lostRaces: 2,
      droppedLogLines: 0,
      refusedSamples: 0,
      collections: 2,
      removedContainers: 3,
      removedSandboxes: 1,
      removedImages: 3,
      freedBytes: 10 * MI,
    });
  });

  it('lists thresholds with their level, grace and minimum reclaim', () => {
    const [hard, soft] = statusDocument(FULL, context()).thresholds;
    expect(hard).toMatchObject({
      kind: 'hard',
      level: 100 * MI,
      minimumReclaim: '50Mi',
      minimumReclaimLevel: 50 * MI,
      met: true,
      due: true,
      graceRemainingMs: 0,
    });
    expect(soft).toMatchObject({ met: true, due: false, graceRemainingMs: 29_000 });
  });

  it('lists all pods in rank order, unknown usage as null', () => {
    expect(statusDocument(modelOf(seen(EVICTING)), context()).pods).toMatchObject([
      { rank: 1, name: 'leak', workingSetBytes: 700 * MI, requestBytes: 0, ageMs: 500 },
      { rank: 2, name: 'web', workingSetBytes: null, gracePeriodSeconds: 5, ageMs: 11_000 },
    ]);
  });

  it('leaves out a pod that has been evicted until it is listed again', () => {
    const names = (model: Model) => statusDocument(model, context()).pods.map(({ name }) => name);
    expect(names(FULL)).toStrictEqual(['web']);
    const refused = outcome('leak', { kind: 'refused', reason: 'pressureGone' });
    expect(names(modelOf(seen(EVICTING), { kind: 'outcome', outcome: refused }))).toContain('leak');
    expect(
      names(modelOf(seen(EVICTING), { kind: 'outcome', outcome: EVICTED }, seen(EVICTING))),
    ).toContain('leak');
  });

  it('lists who came straight back', () => {
    const leak = (generation: number) => pod('leak', { id: `l${generation}`, owner: 'shop/leak' });
    const gone = (generation: number) => ({ ...outcome('leak'), podId: `l${generation}` });
    const first = turnOf(sample(0, 50 * MI, { pods: [leak(1)] }));
    const again = turnOf(sample(1000, 50 * MI, { pods: [leak(2)], outcome: gone(1) }), first);
    const held = turnOf(sample(2000, 500 * MI, { pods: [], outcome: gone(2) }), again);
    const comebacks = (turn: Turn) => statusDocument(modelOf(seen(turn)), context()).comebacks;
    expect(
      comebacks(turnOf(sample(1000, 500 * MI, { pods: [], outcome: gone(1) }), first)),
    ).toEqual([]);
    expect(comebacks(held)).toStrictEqual([
      {
        owner: 'shop/leak',
        pod: 'leak',
        returns: 1,
        evictedAt: '2026-01-01T12:00:02.000Z',
        heldForMs: 1000,
      },
    ]);
  });

  it('has one entry for each burst in which nobody could be evicted', () => {
    const guarded = [{ ...WEB, protectedBecause: 'configured' }];
    const first = turnOf(sample(0, 50 * MI, { pods: [...guarded, LEAK] }));
    const failed = { ...outcome('leak', { kind: 'failed', error: 'EPERM' }) };
    const second = turnOf(sample(5, 40 * MI, { pods: [...guarded, LEAK], outcome: failed }), first);
    const third = turnOf(sample(1005, 30 * MI, { pods: guarded }), second);
    const calm = turnOf(sample(1100, 500 * MI), third);
    const again = turnOf(sample(9000, 50 * MI, { pods: [] }), calm);
    const turns = [first, second, third, calm, again];
    const { impossible } = statusDocument(modelOf(...turns.map((turn) => seen(turn))), context());
    expect(impossible).toStrictEqual([
      {
        reason: 'EvictionImpossible',
        decidedAt: '2026-01-01T12:00:00.005Z',
        signal: 'memory.available',
        unit: 'bytes',
        kind: 'hard',
        level: 100 * MI,
        available: 40 * MI,
        pods: 2,
        protectedPods: 1,
        passedOverPods: 1,
        helplessPods: 0,
      },
      expect.objectContaining({ decidedAt: '2026-01-01T12:00:09.000Z', pods: 0, protectedPods: 0 }),
    ]);
  });

  it('lists events of node and pods, the newest last, the same one once with its count', () => {
    const guarded = [{ ...WEB, protectedBecause: 'configured' }];
    const first = turnOf(sample(0, 50 * MI, { pods: guarded }));
    const calm = turnOf(sample(2000, 500 * MI), first);
    const again = turnOf(sample(4000, 50 * MI, { pods: [...guarded, LEAK] }), calm);
    const model = modelOf(...[first, calm, again].map((turn) => seen(turn)));
    const { message = '' } = again.decision.kind === 'evict' ? again.decision : {};
    expect(message).toContain('The node was low on resource: memory.');
    expect(statusDocument(model, context()).events).toStrictEqual([
      {
        type: 'Warning',
        reason: 'EvictionImpossible',
        object: 'node-1',
        message:
          'The node was low on resource: memory, and no pod may be evicted: 1 pods, 1 protected, 0 passed over',
        annotations: {},
        time: '2026-01-01T12:00:00.000Z',
        since: '2026-01-01T12:00:00.000Z',
        count: 1,
      },
      {
        type: 'Warning',
        reason: 'EvictionThresholdMet',
        object: 'node-1',
        message: 'Attempting to reclaim memory',
        annotations: {},
        time: '2026-01-01T12:00:04.000Z',
        since: '2026-01-01T12:00:00.000Z',
        count: 2,
      },
      {
        type: 'Warning',
        reason: 'Evicted',
        object: 'leak',
        message,
        annotations: {},
        time: '2026-01-01T12:00:04.000Z',
        since: '2026-01-01T12:00:04.000Z',
        count: 1,
      },
    ]);
  });

  it('has the annotations of an eviction in its record and its event', () => {
    const annotations = { starved_resource: 'memory' };
    const { decision } = EVICTING;
    if (decision.kind !== 'evict') throw new Error('no eviction');
    const turn: Turn = { ...EVICTING, decision: { ...decision, annotations } };
    const { events, evictions } = statusDocument(modelOf(seen(turn)), context());
    expect(evictions).toMatchObject([{ pod: 'leak', annotations }]);
    expect(events.at(-1)).toMatchObject({ reason: 'Evicted', object: 'leak', annotations });
  });

  it('says of a dry run what is short, but that nobody is evicted', () => {
    const { events } = statusDocument(modelOf(seen(EVICTING, new Map(), true)), context());
    expect(events.map(({ reason }) => reason)).toStrictEqual(['EvictionThresholdMet']);
  });

  it('remembers a limited number of events', () => {
    const { decision } = EVICTING;
    if (decision.kind !== 'evict') throw new Error('no eviction');
    const turns = Array.from({ length: REMEMBERED_EVENTS + 1 }, (_, n): Turn => {
      return { ...EVICTING, events: [], decision: { ...decision, message: `${n}` } };
    });
    const { events } = statusDocument(modelOf(...turns.map((turn) => seen(turn))), context());
    expect(events).toHaveLength(REMEMBERED_EVENTS);
    expect(events.map(({ message }) => message).slice(0, 1)).toStrictEqual(['1']);
    expect(events.at(-1)?.message).toBe(`${REMEMBERED_EVENTS}`);
  });

  it('tells of a condition that comes and goes how often it was set, and since when', () => {
    const rows = statusDocument({ ...FULL, flapping: FLAPPING }, context()).conditions;
    expect(rows.map(({ flapping: flap }) => flap)).toStrictEqual([
      { count: 3, since: '2026-01-01T12:00:01.000Z' },
      null,
      null,
    ]);
  });

  it('finds that in the turns', () => {
    const turns: Turn[] = [];
    for (const [atMs, available] of [
      [0, 50],
      [310_000, 500],
      [320_000, 50],
      [630_000, 500],
      [640_000, 50],
    ] as const) {
      turns.push(turnOf(sample(atMs, available * MI, { pods: [] }), turns.at(-1)));
    }
    const { conditions } = statusDocument(modelOf(...turns.map((turn) => seen(turn))), context());
    expect(conditions[0]).toMatchObject({ type: 'MemoryPressure', flapping: { count: 3 } });
  });

  it('remembers a limited number of lost races, and counts all', () => {
    const races = Array.from({ length: REMEMBERED_EVENTS + 1 }, (_, n): ModelEvent => {
      return { kind: 'lostRace', race: { podName: `pod-${n}`, cgroup: '/', kills: 2, atMs: n } };
    });
    const { lostRaces, counters } = statusDocument(modelOf(...races), context());
    expect(lostRaces).toHaveLength(REMEMBERED_EVENTS);
    expect(lostRaces[0]).toMatchObject({ pod: 'pod-1' });
    expect(counters.lostRaces).toBe(2 * races.length);
  });

  it('marks a pod that is passed over', () => {
    const failed = outcome('leak', { kind: 'failed', error: 'EPERM' });
    const after = turnOf(sample(10_100, 500 * MI, { outcome: failed }), EVICTING);
    const { pods, evictions } = statusDocument(
      modelOf(seen(EVICTING), { kind: 'outcome', outcome: failed }, seen(after)),
      context(),
    );
    expect(pods.map(({ name, passedOver }) => [name, passedOver])).toStrictEqual([
      ['leak', true],
      ['web', false],
    ]);
    expect(evictions).toMatchObject([{ outcome: 'failed', reason: 'EPERM', chargedBytes: null }]);
  });

  it('shows what a former run left, at the times of its wall clock', () => {
    const former = {
      podId: 'id-of-old',
      podName: 'old',
      hard: true,
      gracePeriodMs: 0,
      message: 'The node was low on resource: memory.',
      decidedAtMs: -5000,
      decidedWallMs: Date.UTC(2025, 0, 1),
      outcome: outcome(
        'old',
        { kind: 'evicted' },
        { timing: { killedAtMs: -4999, endedAtMs: -4900 } },
      ),
    };
    const model = modelOf({ kind: 'restored', evictions: [former] }, seen(EVICTING));
    expect(statusDocument(model, context()).evictions).toMatchObject([
      {
        pod: 'old',
        decidedAt: '2025-01-01T00:00:00.000Z',
        timing: { killedMs: 1, endedMs: 100 },
      },
      { pod: 'leak', decidedAt: '2026-01-01T12:00:10.000Z' },
    ]);
  });

  it('says where the state is kept, and what is wrong with that', () => {
    const kept = (model: Model) => statusDocument(model, context()).state;
    const file = '/var/lib/evictd/state-1';
    expect(kept(EMPTY_MODEL)).toStrictEqual({ file, writtenAt: null, ageMs: null, error: null });
    const written = modelOf({ kind: 'kept', atMs: 10_000 });
    expect(kept(written)).toMatchObject({ writtenAt: '2026-01-01T12:00:10.000Z', ageMs: 1000 });
    const failed = updateModel(written, { kind: 'degraded', part: STATE, reason: 'ENOSPC' });
    expect(kept(failed)).toMatchObject({ ageMs: 1000, error: 'ENOSPC' });
    expect(statusDocument(written, context({ stateFile: undefined })).state).toBeNull();
  });

  it('before anything was read has nulls, no numbers', () => {
    const document = statusDocument(EMPTY_MODEL, context());
    expect(document.node).toMatchObject({ usageBytes: null, workingSetBytes: null });
    expect(document).toMatchObject({ signals: [], pods: [], evictions: [], evicting: null });
    expect(document.thresholds[0]).toMatchObject({
      level: null,
      minimumReclaimLevel: null,
      met: false,
      due: false,
      graceRemainingMs: null,
    });
    expect(document.conditions).toStrictEqual([
      { type: 'MemoryPressure', status: false, lastObservedAgeMs: null, flapping: null },
      { type: 'DiskPressure', status: false, lastObservedAgeMs: null, flapping: null },
      { type: 'PIDPressure', status: false, lastObservedAgeMs: null, flapping: null },
    ]);
  });

  it('survives JSON as it is: whole bytes are numbers', () => {
    const document = statusDocument(FULL, context());
    expect(JSON.parse(JSON.stringify(document))).toStrictEqual(document);
    expect(Number.isSafeInteger(document.pods[0]?.requestBytes)).toBe(true);
  });

  it.each([
    ['off', undefined, 'polling', 'kernel notification is off (--kernel-memcg-notification)'],
    ['not armed yet', undefined, 'polling', 'nothing is armed yet'],
    ['refused', { arming: undefined, degraded: 'ENOSPC' }, 'polling', 'ENOSPC'],
    ['always met', { arming: { kind: 'alwaysMet' as const } }, 'polling', 'met, decided'],
    [
      'armed',
      { arming: { kind: 'armed' as const, levels: [1] as const, late: false } },
      'memcg-threshold',
      '',
    ],
    [
      'late',
      { arming: { kind: 'armed' as const, levels: [1] as const, late: true } },
      'memcg-threshold',
      'no event',
    ],
    [
      'followed',
      { arming: { kind: 'followed' as const, levels: [1] as const, closeAboveBytes: 7 } },
      'memcg-pressure',
      'above 7 bytes',
    ],
    [
      'armed in part',
      { arming: { kind: 'armed' as const, levels: [1] as const, late: false }, degraded: 'EINVAL' },
      'memcg-threshold',
      'EINVAL',
    ],
  ])('names the live path of a threshold: %s', (name, path, expected, detail) => {
    const model =
      path === undefined
        ? EMPTY_MODEL
        : modelOf({
            kind: 'path',
            path: { threshold: 'hard:memory.available', degraded: undefined, ...path },
          });
    const { thresholds } = statusDocument(
      model,
      context({ kernelMemcgNotification: name !== 'off' }),
    );
    expect(thresholds[0]?.notification.path).toBe(expected);
    expect(thresholds[0]?.notification.detail).toContain(detail);
  });
});

describe('updateModel', () => {
  it('keeps the last pods where a turn read none', () => {
    const model = modelOf(seen(EVICTING), seen(turnOf(sample(10_001, 50 * MI), EVICTING)));
    expect(model.pods).toStrictEqual([WEB, LEAK]);
    expect(model.turns).toBe(2);
  });

  it('gives an outcome to the last open record of its pod, and ignores a stray one', () => {
    const stray = modelOf({ kind: 'outcome', outcome: EVICTED });
    expect(stray.evictions).toStrictEqual([]);
    const twice = modelOf(seen(EVICTING), { kind: 'outcome', outcome: EVICTED }, seen(EVICTING), {
      kind: 'outcome',
      outcome: outcome('web'),
    });
    expect(twice.evictions.map((record) => record.outcome)).toStrictEqual([EVICTED, undefined]);
  });

  it('remembers a limited number of evictions, the latest', () => {
    const events = Array.from({ length: REMEMBERED_EVICTIONS + 1 }, (_, at) =>
      seen(turnOf(sample(at, 50 * MI, { pods: [LEAK] }))),
    );
    const { evictions } = modelOf(...events);
    expect(evictions).toHaveLength(REMEMBERED_EVICTIONS);
    expect(evictions[0]?.decidedAtMs).toBe(1);
  });

  it('knows what is degraded, until it is not', () => {
    const degrade = (reason: string | undefined): ModelEvent => ({
      kind: 'degraded',
      part: 'memory',
      reason,
    });
    expect([...modelOf(degrade('ENODEV')).degraded]).toStrictEqual([['memory', 'ENODEV']]);
    expect(modelOf(degrade('ENODEV'), degrade(undefined)).degraded.size).toBe(0);
    const path = { threshold: 'hard:memory.available', arming: undefined } as const;
    const turn = turnOf(sample(1, 500 * MI));
    const unread = seen(turn, new Map([['nodefs', '/var: EIO']]));
    expect([...modelOf(unread).degraded]).toStrictEqual([['nodefs', '/var: EIO']]);
    const mended = seen(turn, new Map([['nodefs', undefined]]));
    expect([...modelOf(degrade('ENODEV'), unread, mended).degraded.keys()]).toStrictEqual([
      'memory',
    ]);
    const refused = modelOf({ kind: 'path', path: { ...path, degraded: 'ENOSPC' } });
    expect([...refused.degraded.keys()]).toStrictEqual(['notification hard:memory.available']);
  });
});

describe('outcomeReason', () => {
  it.each([
    [undefined, null],
    [outcome('leak'), null],
    [outcome('leak', { kind: 'refused', reason: 'podGone' }), 'podGone'],
    [
      outcome('leak', { kind: 'refused', reason: 'protected', detail: 'pid 1' }),
      'protected: pid 1',
    ],
    [
      outcome('leak', { kind: 'timedOut', reason: 'deadline', detail: 'pid 7: D' }),
      'deadline: pid 7: D',
    ],
    [outcome('leak', { kind: 'failed', error: 'EPERM' }), 'EPERM'],
  ])('of an outcome', (ended, expected) => {
    expect(outcomeReason(ended)).toBe(expected);
  });
});
