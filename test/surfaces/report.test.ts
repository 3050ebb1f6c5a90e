import type { Logger } from 'pino';
import { describe, expect, it } from 'vitest';
import type { ReadSample, Turn } from '../../src/core/pipeline.ts';
import type { Policy } from '../../src/core/policy.ts';
import { RECLAIM_FUNCTIONS } from '../../src/core/reclaim.ts';
import { RULE_SETS } from '../../src/core/rules.ts';
import type { Snapshot } from '../../src/core/snapshot.ts';
import { INITIAL_STATE } from '../../src/core/state.ts';
import { step } from '../../src/core/step.ts';
import type { NotificationPath } from '../../src/ports/notification.ts';
import {
  limitedLogger,
  reportFlapping,
  reportOomKill,
  reportOutcome,
  reportPath,
  reportRestored,
  reportTurn,
} from '../../src/surfaces/report.ts';
import {
  MI,
  observation,
  outcome,
  pod,
  policy,
  sample,
  softThreshold,
  threshold,
  value,
} from '../support/builders.ts';

type Line = readonly [level: string, text: string, fields: Record<string, unknown>];

/** A logger that keeps its lines. */
function fakeLogger(isDebug = false) {
  const lines: Line[] = [];
  const at = (level: string) => (fields: Record<string, unknown>, text: string) => {
    if (level !== 'debug' || isDebug) lines.push([level, text, fields]);
  };
  const logger = {
    isLevelEnabled: (level: string) => isDebug || level !== 'debug',
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
  } as unknown as Logger;
  return { logger, lines, texts: () => lines.map(([level, text]) => `${level}: ${text}`) };
}

const BY = policy({ pressureTransitionPeriodMs: 1000 });
const PODS = { pods: [pod('web', { priority: 9 }), pod('leak')] };

/** The lines of each of the samples, reported one after the other. */
function linesOf(by: Policy, ...samples: readonly ReadSample[]): readonly (readonly Line[])[] {
  let before: Turn | undefined;
  return samples.map((one) => {
    const { logger, lines } = fakeLogger();
    const turn: Turn = {
      ...step(by, before?.state ?? INITIAL_STATE, one),
      policy: by,
      reason: 'wakeup',
      sample: one,
      podsDueAtMs: 0,
      podsRead: { atMs: 0, tookMs: 0 },
      lookAgainAtMs: 0,
    };
    reportTurn(logger, before, turn, { nodeName: 'node-1' });
    before = turn;
    return lines;
  });
}

const texts = (lines: readonly (readonly Line[])[]) =>
  lines.map((some) => some.map(([level, text]) => `${level}: ${text}`));

describe('reportRestored', () => {
  const found: Snapshot = {
    bootId: 'this',
    savedAtMs: 1000,
    unsavedMs: 0,
    thresholds: [],
    conditions: [],
    evictions: [],
  };
  const state = { ...INITIAL_STATE, met: [threshold()], conditions: ['MemoryPressure'] as const };

  it.each([
    ['this', { agoMs: 4000 }],
    ['another', { anotherBoot: true }],
  ])('says what is taken over, of the boot %s', (bootId, more) => {
    const { logger, lines } = fakeLogger();
    const moment = { nowMs: 0, bootMs: 5000, wallMs: 0, bootId };
    reportRestored(logger, { file: '/s', found, state, moment });
    const fields = {
      file: '/s',
      thresholds: ['hard:memory.available'],
      conditions: ['MemoryPressure'],
      evictions: 0,
      ...more,
    };
    expect(lines).toStrictEqual([['info', 'state restored', fields]]);
  });
});

describe('reportTurn', () => {
  it('says once that a threshold is not below the capacity', () => {
    const by = policy({ thresholds: [threshold({ value: value('2Gi') })] });
    const line = 'warn: the threshold is not below the capacity: it is always met';
    const said = texts(linesOf(by, sample(0, 500 * MI), sample(1, 400 * MI)));
    expect(said.map((some) => some.filter((text) => text === line).length)).toStrictEqual([1, 0]);
  });

  it('calls the eviction of a dry run by its name', () => {
    const { logger, texts: said, lines } = fakeLogger();
    const one = sample(0, 50 * MI, PODS);
    const turn: Turn = {
      ...step(BY, INITIAL_STATE, one),
      policy: BY,
      reason: 'wakeup',
      sample: one,
      podsDueAtMs: 0,
      podsRead: { atMs: 0, tookMs: 0 },
      lookAgainAtMs: 0,
    };
    reportTurn(logger, undefined, turn, { dryRun: true });
    expect(said().slice(-2)).toStrictEqual(['info: dry run: would have evicted', 'warn: event']);
    expect(lines.at(-2)?.[2]).toMatchObject({ pod: 'leak' });
    expect(lines.at(-1)?.[2]).toMatchObject({ reason: 'EvictionThresholdMet' });
  });

  it('has one line for each change, and none for nothing', () => {
    const lines = linesOf(
      BY,
      sample(0, 500 * MI, PODS),
      sample(1, 400 * MI, PODS),
      sample(2, 50 * MI, PODS),
      sample(3, 40 * MI, PODS),
      sample(4, 500 * MI, { outcome: outcome('leak') }),
      sample(5, 500 * MI),
      sample(1003, 500 * MI),
      sample(1004, 500 * MI),
    );
    expect(texts(lines)).toStrictEqual([
      [],
      [],
      [
        'warn: threshold met',
        'warn: node condition set',
        'warn: evicting',
        'warn: event',
        'warn: event',
      ],
      [],
      ['info: threshold no longer met'],
      [],
      ['info: node condition cleared'],
      [],
    ]);
  });

  it('gives numbers and the reason', () => {
    const [[met, , evicting] = []] = linesOf(BY, sample(2, 50 * MI, PODS));
    expect(met?.[2]).toStrictEqual({
      signal: 'memory.available',
      kind: 'hard',
      thresholdLevel: 100 * MI,
      available: 50 * MI,
      capacity: 1024 * MI,
      gracePeriodMs: 0,
    });
    expect(evicting?.[2]).toMatchObject({
      pod: 'leak',
      signal: 'memory.available',
      kind: 'hard',
      thresholdLevel: 100 * MI,
      available: 50 * MI,
      reclaiming: false,
      gracePeriodMs: 0,
      priority: 0,
      qosClass: 'BestEffort',
      workingSetBytes: 100 * MI,
      wakeup: 'wakeup',
      reason: expect.stringContaining('The node was low on resource: memory.'),
    });
  });

  it('has a line for each event, of the node or the pod', () => {
    const [lines = []] = linesOf(BY, sample(2, 50 * MI, PODS));
    const events = lines.filter(([, text]) => text === 'event').map(([, , fields]) => fields);
    expect(events).toStrictEqual([
      {
        type: 'Warning',
        reason: 'EvictionThresholdMet',
        object: 'node-1',
        message: 'Attempting to reclaim memory',
      },
      {
        type: 'Warning',
        reason: 'Evicted',
        object: 'leak',
        message: expect.stringContaining('The node was low on resource: memory.'),
      },
    ]);
  });

  it('has the annotations on the line of the event', () => {
    const one = sample(0, 50 * MI, PODS);
    const result = step(BY, INITIAL_STATE, one);
    const { decision } = result;
    if (decision.kind !== 'evict') throw new Error('no eviction');
    const { logger, lines } = fakeLogger();
    const annotations = { starved_resource: 'memory' };
    reportTurn(logger, undefined, {
      ...result,
      decision: { ...decision, annotations },
      policy: BY,
      reason: 'wakeup',
      sample: one,
      podsDueAtMs: 0,
      podsRead: { atMs: 0, tookMs: 0 },
      lookAgainAtMs: 0,
    });
    expect(lines.at(-1)?.[2]).toMatchObject({ reason: 'Evicted', annotations });
  });

  it('limits the lines that come with each round', () => {
    const by = policy({ rules: RULE_SETS.kubelet });
    const { logger, lines } = fakeLogger();
    const wavering = limitedLogger(logger, () => 0);
    let before: Turn | undefined;
    for (let round = 0; round < 20; round += 1) {
      const one = sample(2000 * round, 50 * MI, { pods: [] });
      const turn: Turn = {
        ...step(by, before?.state ?? INITIAL_STATE, one),
        policy: by,
        reason: 'due',
        sample: one,
        podsDueAtMs: 0,
        podsRead: { atMs: 0, tookMs: 0 },
        lookAgainAtMs: 0,
      };
      expect(turn.events).toHaveLength(1);
      reportTurn(logger, before, turn, { wavering });
      before = turn;
    }
    const rounds = lines.filter(([, , { reason }]) => reason === 'EvictionThresholdMet');
    // That the threshold is met has taken one of ten.
    expect(rounds).toHaveLength(9);
  });

  it('says that a grace is cut', () => {
    const by = policy({ thresholds: [threshold(), softThreshold({ gracePeriodMs: 10 })] });
    const lines = linesOf(
      by,
      sample(0, 150 * MI, PODS),
      sample(10, 150 * MI, PODS),
      sample(11, 50 * MI),
      sample(12, 50 * MI),
    );
    expect(texts(lines).slice(2)).toStrictEqual([
      [
        'warn: threshold met',
        'warn: hard threshold crossed: the grace of the running eviction is cut',
      ],
      [],
    ]);
  });

  it('has observations and passes over the pods at debug', () => {
    const { logger, texts: said, lines } = fakeLogger(true);
    const one = sample(0, 500 * MI, PODS);
    const turn: Turn = {
      ...step(BY, INITIAL_STATE, one),
      policy: BY,
      reason: 'due',
      sample: one,
      podsDueAtMs: 0,
      podsRead: { atMs: 0, tookMs: 0 },
      lookAgainAtMs: 0,
    };
    reportTurn(logger, undefined, turn);
    expect(said()).toStrictEqual(['debug: sample', 'debug: pods read']);
    expect(lines[1]?.[2]).toMatchObject({ pods: 2, reason: 'due' });
  });
});

describe('limitedLogger', () => {
  it('lets ten lines through in each second, and counts the rest', () => {
    const { logger, texts: said, lines } = fakeLogger();
    let nowMs = 0;
    const limited = limitedLogger(logger, () => nowMs);
    for (let line = 0; line < 25; line += 1) limited.warn({}, 'met');
    expect(said()).toHaveLength(10);
    nowMs = 999;
    limited.info({}, 'no longer met');
    expect(said()).toHaveLength(10);
    nowMs = 1000;
    limited.info({}, 'no longer met');
    expect(said().slice(10)).toStrictEqual([
      'warn: lines about a wavering threshold left out',
      'info: no longer met',
    ]);
    expect(lines[10]?.[2]).toStrictEqual({ lines: 16 });
    nowMs = 2000;
    limited.info({}, 'met');
    expect(said()).toHaveLength(13);
  });
});

describe('reportFlapping', () => {
  it('says that a condition flaps, with its count and since when, and how often in the end', () => {
    const { logger, lines } = fakeLogger();
    const wallMs = Date.UTC(2026, 0, 1, 12);
    const flap = { condition: 'DiskPressure', sinceMs: 1000 } as const;
    reportFlapping(logger, [{ kind: 'began', ...flap, count: 3 }], 61_000, wallMs);
    reportFlapping(logger, [{ kind: 'ended', ...flap, count: 7 }], 61_000, wallMs);
    reportFlapping(logger, [], 61_000, wallMs);
    const since = '2026-01-01T11:59:00.000Z';
    expect(lines).toStrictEqual([
      ['warn', 'node condition flaps', { condition: 'DiskPressure', count: 3, since }],
      ['info', 'node condition flaps no more', { condition: 'DiskPressure', count: 7, since }],
    ]);
  });
});

describe('reportOutcome', () => {
  it.each([
    ['warn: evicted', outcome('leak', { kind: 'evicted', chargedBytes: 4096 })],
    ['info: eviction not carried out', outcome('leak', { kind: 'refused', reason: 'podGone' })],
    ['error: eviction timed out', outcome('leak', { kind: 'timedOut', reason: 'stillDying' })],
    ['error: eviction failed', outcome('leak', { kind: 'failed', error: 'EPERM' })],
  ])('%s', (expected, ended) => {
    const { logger, texts: said } = fakeLogger();
    reportOutcome(logger, ended);
    expect(said()).toStrictEqual([expected]);
  });

  it('a dry run has said all with its decision', () => {
    const { logger, texts: said } = fakeLogger();
    reportOutcome(logger, outcome('leak', { kind: 'refused', reason: 'dryRun' }));
    expect(said()).toStrictEqual([]);
  });

  it('gives what stays charged, and the time of each stage after the decision', () => {
    const { logger, lines } = fakeLogger();
    reportOutcome(
      logger,
      outcome(
        'leak',
        { kind: 'evicted', chargedBytes: 4096 },
        {
          processes: 2,
          timing: {
            decidedAtMs: 1000,
            firstSignalAtMs: 1000.1239,
            emptyAtMs: 1002,
            endedAtMs: 1022,
          },
        },
      ),
    );
    expect(lines[0]?.[2]).toStrictEqual({
      pod: 'leak',
      processes: 2,
      chargedBytes: 4096,
      firstSignalMs: 0.124,
      killedMs: null,
      emptyMs: 2,
      endedMs: 22,
    });
  });
});

describe('reportPath', () => {
  const path = (fields: Partial<NotificationPath>): NotificationPath => ({
    threshold: 'hard:memory.available',
    arming: { kind: 'armed', levels: [1], late: false },
    degraded: undefined,
    ...fields,
  });
  const refused = path({ arming: undefined, degraded: 'ENOSPC' });
  const always = path({ arming: { kind: 'alwaysMet' } });

  it.each([
    ['armed at first', undefined, path({}), []],
    ['armed anew', path({}), path({}), []],
    ['refused', undefined, refused, ['warn: kernel notification failed: polling takes over']],
    ['refused again for the same reason', refused, refused, []],
    ['always met, which the turn that finds it so says', undefined, always, []],
    ['still always met', always, always, []],
  ])('%s', (_, before, now, expected) => {
    const { logger, texts: said } = fakeLogger();
    reportPath(logger, before, now);
    expect(said()).toStrictEqual(expected);
  });
});

describe('reportTurn, of who comes straight back', () => {
  it('says it each time, with how often and for how long he is held off', () => {
    const leak = (generation: number) => pod('leak', { id: `l${generation}`, owner: 'o\n' });
    const gone = (generation: number) => ({ ...outcome('leak'), podId: `l${generation}` });
    const said = linesOf(
      BY,
      sample(0, 50 * MI, { pods: [leak(1)] }),
      sample(1000, 50 * MI, { pods: [], outcome: gone(1) }),
      sample(3000, 50 * MI, { pods: [leak(2)] }),
      sample(3100, 50 * MI, { pods: [], outcome: gone(2) }),
      sample(5600, 50 * MI, { pods: [leak(3)] }),
      sample(5700, 50 * MI, { pods: [leak(3)] }),
    ).map((lines) => lines.filter(([, text]) => text === 'an evicted pod came straight back'));
    const line = (fields: object): Line => [
      'warn',
      'an evicted pod came straight back',
      { owner: 'o\n', pod: 'leak', ...fields },
    ];
    expect(said).toStrictEqual([
      [],
      [],
      [line({ returns: 1, afterMs: 2000, heldForMs: 0 })],
      [],
      [line({ returns: 2, afterMs: 2500, heldForMs: 7500 })],
      [],
    ]);
  });
});

describe('reportTurn, where no pod may be evicted', () => {
  const guarded = { pods: [pod('web', { protectedBecause: 'configured' }), pod('leak')] };
  const failed = outcome('leak', { kind: 'failed', error: 'EPERM' });
  const impossible = (lines: readonly (readonly Line[])[]) =>
    lines.map((some) => some.filter(([, , { reason }]) => reason === 'EvictionImpossible'));

  it('says it once in each burst, with numbers', () => {
    const said = impossible(
      linesOf(
        BY,
        sample(0, 50 * MI, guarded),
        sample(5, 50 * MI, { ...guarded, outcome: failed }),
        sample(1005, 50 * MI, guarded),
        sample(1100, 500 * MI),
        sample(1200, 50 * MI, guarded),
        sample(1300, 500 * MI),
        sample(2200, 50 * MI, guarded),
      ),
    );
    expect(said.map((some) => some.length)).toStrictEqual([0, 1, 0, 0, 0, 0, 1]);
    expect(said[1]?.[0]).toStrictEqual([
      'warn',
      'pressure, but no pod may be evicted',
      {
        type: 'Warning',
        reason: 'EvictionImpossible',
        object: 'node-1',
        message: expect.stringMatching(
          /no pod may be evicted: 2 pods, 1 protected, 1 passed over$/,
        ),
        signal: 'memory.available',
        kind: 'hard',
        thresholdLevel: 100 * MI,
        available: 50 * MI,
        pods: 2,
        protectedPods: 1,
        passedOverPods: 1,
        helplessPods: 0,
      },
    ]);
  });
});

describe('reportTurn, by the kubelet’s rules', () => {
  it('has no event of what is impossible, but the line', () => {
    const by = policy({ rules: RULE_SETS.kubelet });
    const [lines = []] = linesOf(by, sample(0, 50 * MI, { pods: [] }));
    const [impossible] = lines.filter(([, , { reason }]) => reason === 'EvictionImpossible');
    expect(impossible?.[1]).toBe('pressure, but no pod may be evicted');
    expect(impossible?.[2]).not.toHaveProperty('object');
  });
});

describe('reportOomKill', () => {
  it('names the pod and its cgroup where the kernel was first', () => {
    const { logger, lines } = fakeLogger();
    const race = { podName: 'db', cgroup: '/node/db/main', kills: 2, atMs: 0 };
    reportOomKill(logger, { kind: 'lostRace', race });
    reportOomKill(logger, { kind: 'elsewhere', kills: 1 });
    reportOomKill(logger, { kind: 'degraded', reason: 'EACCES' });
    reportOomKill(logger, { kind: 'degraded', reason: undefined });
    expect(lines).toStrictEqual([
      [
        'warn',
        'the kernel’s OOM killer was first',
        { pod: 'db', cgroup: '/node/db/main', kills: 2 },
      ],
      ['info', 'the kernel’s OOM killer struck outside of the pods', { kills: 1 }],
      ['warn', 'degraded', { part: 'OOM kills', reason: 'EACCES' }],
      ['info', 'no longer degraded', { part: 'OOM kills' }],
    ]);
  });
});

describe('C23 (k/k#129616): nodefs is short, images lie elsewhere', () => {
  const low: ReadSample = {
    nowMs: 0,
    observations: [observation(8 * MI, { signal: 'nodefs.available', capacity: 100 * MI })],
    pods: [],
  };
  const by = (overrides: Partial<Policy>): Policy =>
    policy({
      thresholds: [threshold({ signal: 'nodefs.available', value: value('10%') })],
      layout: 'dedicatedImagefs',
      ranksDisk: true,
      reclaims: RECLAIM_FUNCTIONS,
      ...overrides,
    });
  const said = (overrides: Partial<Policy>) =>
    linesOf(by(overrides), low)[0]?.filter(([, text]) => !text.includes('threshold'));

  it('dead containers go first, and it is said that image GC would not help', () => {
    const lines = said({});
    expect(lines?.map(([level, text]) => `${level}: ${text}`)).toStrictEqual([
      'warn: node condition set',
      'info: collecting what nobody uses',
      'info: image GC would not help nodefs',
      'warn: event',
    ]);
    expect(lines?.[1]?.[2]).toMatchObject({
      functions: ['containers'],
      signal: 'nodefs.available',
    });
    expect(lines?.[2]?.[2]).toStrictEqual({
      signal: 'nodefs.available',
      layout: 'dedicatedImagefs',
    });
  });

  it.each<[string, Partial<Policy>]>([
    ['images are collected too', { layout: 'single' }],
    ['no images are collected at all', { reclaims: ['containers'] }],
  ])('is not said where %s', (_, overrides) => {
    expect(said(overrides)?.map(([, text]) => text)).not.toContain(
      'image GC would not help nodefs',
    );
  });
});

describe('C26: reportTurn, where images have a filesystem of their own', () => {
  const low: ReadSample = {
    nowMs: 0,
    observations: [observation(8 * MI, { signal: 'imagefs.available', capacity: 100 * MI })],
    pods: [],
  };
  const warnings = (overrides: Partial<Policy>) => {
    const by = policy({
      thresholds: [threshold({ signal: 'imagefs.available', value: value('10%') })],
      layout: 'splitImagefs',
      ranksDisk: true,
      reclaims: ['containers'],
      ...overrides,
    });
    return linesOf(by, low, { ...low, nowMs: 1 }).map((lines) =>
      lines.map(([, text]) => text).filter((text) => text.startsWith('disk pressure: ')),
    );
  };
  const IMAGES = 'disk pressure: no pod goes, since only images lie there, and none may be removed';

  it.each<[string, Partial<Policy>, readonly string[]]>([
    ['none may be removed', {}, [IMAGES]],
    ['nothing at all may be', { reclaims: [] }, [IMAGES]],
    ['they may be', { reclaims: ['images'] }, []],
    ['the kubelet’s rules hold', { rules: RULE_SETS.kubelet }, []],
    [
      'nothing is known of what pods use',
      { ranksDisk: false, reclaims: [] },
      ['disk pressure: a node condition, no reclaim was done'],
    ],
  ])('says once that no pod goes where %s', (_, overrides, expected) => {
    expect(warnings(overrides)).toStrictEqual([expected, []]);
  });
});
