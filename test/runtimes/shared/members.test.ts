import { NEVER, Observable, of, throwError } from 'rxjs';
import { beforeEach, describe, expect, it } from 'vitest';
import type { PodObservation } from '../../../src/core/pod.ts';
import type { EvictProgress, EvictRequest, Runtime } from '../../../src/ports/runtime.ts';
import {
  containersOf,
  evictMembers,
  mergedObservation,
} from '../../../src/runtimes/shared/members.ts';
import { marbles } from '../../support/marbles.ts';
import { runtimeContainer, runtimePod } from '../../support/runtime-pods.ts';

const member = (id: string, overrides: Partial<PodObservation> = {}): PodObservation => ({
  id,
  name: 'shop',
  priority: 0,
  qosClass: 'BestEffort',
  memoryRequestNano: 1n,
  workingSetBytes: 10,
  pids: 2,
  gracePeriodSeconds: undefined,
  protectedBecause: undefined,
  atMs: 5,
  ...overrides,
});

describe('mergedObservation', () => {
  it('leaves one member as it is', () => {
    const one = member('a@1');
    expect(mergedObservation([one])).toBe(one);
  });

  it('adds up what they use, ask for and count', () => {
    const merged = mergedObservation([
      member('a@1', { atMs: 7 }),
      member('b@2', { workingSetBytes: 30, memoryRequestNano: 5n, pids: 4, priority: 3 }),
    ]);
    expect(merged).toStrictEqual({
      ...member(merged.id),
      workingSetBytes: 40,
      memoryRequestNano: 6n,
      pids: 6,
      priority: 3,
      atMs: 5,
    });
  });

  it('does not know what it does not know of one', () => {
    const members = [member('a@1', { workingSetBytes: undefined, pids: undefined }), member('b@2')];
    expect(mergedObservation(members)).toMatchObject({
      workingSetBytes: undefined,
      pids: undefined,
    });
  });

  it.each<[string, readonly (string | undefined)[], string | undefined]>([
    ['nothing', [undefined, undefined], undefined],
    ['what protects one', [undefined, 'configured'], 'configured'],
    ['nothing where one is empty', ['holds no process', undefined], undefined],
    ['emptiness of all', ['holds no process', 'holds no process'], 'holds no process'],
    ['what protects one beside an empty one', ['holds no process', 'why'], 'why'],
  ])('is protected by %s', (_, reasons, expected) => {
    const members = reasons.map((protectedBecause, at) => member(`m@${at}`, { protectedBecause }));
    expect(mergedObservation(members).protectedBecause).toBe(expected);
  });

  it.each([
    [['BestEffort', 'BestEffort'], 'BestEffort'],
    [['Guaranteed', 'Guaranteed'], 'Guaranteed'],
    [['Guaranteed', 'BestEffort'], 'Burstable'],
    [['Burstable', 'Guaranteed'], 'Burstable'],
  ] as const)('is of %j: %s', (classes, expected) => {
    const members = classes.map((qosClass, at) => member(`m@${at}`, { qosClass }));
    expect(mergedObservation(members).qosClass).toBe(expected);
  });

  it('has an id that names just these members, in any order, however many', () => {
    const idOf = (...ids: readonly string[]) => mergedObservation(ids.map((id) => member(id))).id;
    expect(idOf('a@1', 'b@2')).toBe(idOf('b@2', 'a@1'));
    expect(idOf('a@1', 'b@2')).not.toBe(idOf('a@1', 'b@3'));
    expect(idOf('a@1', 'b@2')).not.toBe(idOf('a@1', 'b@2', 'c@3'));
    const many = Array.from({ length: 1000 }, (_, at) => `${'x'.repeat(100)}@${at}`);
    expect(idOf(...many).length).toBeLessThan(100);
  });
});

describe('containersOf', () => {
  const read: string[] = [];
  const used: Record<string, number> = { 'kubepods/p/a': 7, 'kubepods/p/b': 8 };
  const MEMORY = {
    pathOf: (cgroup: string) => cgroup,
    pathIn: (id: string) => id.slice(0, id.lastIndexOf('@')),
    memoryBelow: (path: string, how: string) => {
      read.push(how === 'quick' ? path : `${path} ${how}`);
      return used[path];
    },
    nowMs: () => 9,
  };
  beforeEach(() => read.splice(0));

  it('tells what each container uses and asks for', () => {
    const pod = runtimePod('shop', {
      containers: [runtimeContainer('a'), runtimeContainer('b'), runtimeContainer('c')],
    });
    const members = [
      member('docker/a@1', { workingSetBytes: 1, memoryRequestNano: 2n }),
      member('docker/b@2', { workingSetBytes: undefined }),
    ];
    const containers = containersOf(pod, members, MEMORY);
    expect(containers?.('memory')).toStrictEqual([
      { name: 'a', request: { nano: 2n, format: 'binary' }, usedBytes: 1 },
      { name: 'b', request: { nano: 1n, format: 'binary' }, usedBytes: undefined },
    ]);
    expect(containers?.('ephemeral-storage')).toBeUndefined();
  });

  it('is nothing where a container that runs has no cgroup of its own', () => {
    const own = runtimeContainer('a');
    const lost = runtimeContainer('b', { cgroup: undefined });
    const of = (...containers: ReturnType<typeof runtimeContainer>[]) =>
      containersOf(runtimePod('shop', { containers }), [], MEMORY);
    expect(of(own, lost)).toBeUndefined();
    expect(of()).toBeUndefined();
    expect(of(own, { ...lost, isRunning: false })).toBeDefined();
  });

  describe('whose cgroups lie below the pod’s', () => {
    const POD = member('kubepods/p@1', { memoryRequestNano: 5n });
    const below = (name: string, overrides = {}) =>
      runtimeContainer(name, { cgroup: `kubepods/p/${name}`, ...overrides });
    const of = (...containers: ReturnType<typeof runtimeContainer>[]) =>
      containersOf(runtimePod('shop', { containers }), [POD], MEMORY);
    const nano = (bytes: bigint) => ({ nano: bytes, format: 'binary' as const });

    it('are read when somebody asks, each once, with what each asks for', () => {
      const asks = { memoryRequest: nano(3n) };
      const containers = of(below('a', asks), below('b'), below('lost'));
      expect(read).toEqual([]);
      expect(containers?.('memory')).toStrictEqual([
        { name: 'a', request: nano(3n), usedBytes: 7, atMs: 9 },
        { name: 'b', request: nano(0n), usedBytes: 8, atMs: 9 },
        { name: 'lost', request: nano(0n), usedBytes: undefined, atMs: 9 },
      ]);
      expect(read).toEqual(['kubepods/p/a', 'kubepods/p/b', 'kubepods/p/lost']);
      expect(of(below('a'))?.('memory', 'exact')).toMatchObject([{ usedBytes: 7 }]);
      expect(read.at(-1)).toBe('kubepods/p/a exact');
    });

    it('have the pod’s request where there is one', () => {
      const containers = of(
        below('a', { memoryRequest: nano(3n) }),
        below('b', { isRunning: false }),
      );
      expect(containers?.('memory')).toMatchObject([{ name: 'a', request: nano(5n) }]);
    });

    it('are not told where none can be read, or there are too many, or they lie elsewhere', () => {
      expect(of(below('lost'))?.('memory')).toBeUndefined();
      expect(of(below('a', { cgroup: 'kubepods/pa' }))?.('memory')).toBeUndefined();
      expect(read).toEqual(['kubepods/p/lost']);
      const many = (count: number) => Array.from({ length: count }, () => below('a'));
      expect(of(...many(33))?.('memory')).toBeUndefined();
      expect(read).toHaveLength(1);
      expect(of(...many(32))?.('memory')).toHaveLength(32);
    });
  });
});

type Script = (request: EvictRequest) => Observable<EvictProgress>;

/** Ends members as they are scripted, and remembers in order what was asked. */
function scripted(scripts: Readonly<Record<string, Script>>) {
  const asked: string[] = [];
  const runtime: Pick<Runtime, 'evict'> = {
    evict: (request) => {
      const { podId, rehearsal, everyProcess, gracePeriodMs } = request;
      const how = `${everyProcess ? 'all' : 'some'} ${gracePeriodMs}`;
      asked.push(rehearsal ? `check ${podId} ${how}` : `end ${podId} ${gracePeriodMs}`);
      return scripts[podId]?.(request) ?? NEVER;
    },
  };
  return { runtime, asked };
}

const killed = (processes: number): EvictProgress => ({ kind: 'killed', processes });
const empty = (processes: number, chargedBytes?: number): EvictProgress => ({
  kind: 'empty',
  processes,
  chargedBytes,
});
const refused = (reason: Extract<EvictProgress, { kind: 'refused' }>['reason']): EvictProgress => ({
  kind: 'refused',
  reason,
  detail: reason,
});

const request = (overrides: Partial<EvictRequest> = {}): EvictRequest => ({
  podId: 'whole',
  podName: 'shop',
  hard: true,
  gracePeriodMs: 0,
  escalations$: NEVER,
  ...overrides,
});

/** What a member says of itself when it is only looked at, and then. */
const member$ =
  (check: EvictProgress, ...then: readonly EvictProgress[]): Script =>
  ({ rehearsal }) =>
    rehearsal ? of(check) : of(...then);

function play(scripts: Readonly<Record<string, Script>>, overrides: Partial<EvictRequest> = {}) {
  const { runtime, asked } = scripted(scripts);
  const said: unknown[] = [];
  evictMembers(runtime, Object.keys(scripts), request(overrides)).subscribe({
    next: (progress) => said.push(progress),
    error: (error: Error) => said.push(error.message),
    complete: () => said.push('complete'),
  });
  return { said, asked };
}

describe('evictMembers', () => {
  it('looks at all processes of all before the first signal, and then ends all', () => {
    const { said, asked } = play({
      a: member$(killed(2), killed(2), empty(2, 10)),
      b: member$(killed(3), killed(3), empty(4)),
    });
    expect(asked).toEqual(['check a all 0', 'check b all 0', 'end a 0', 'end b 0']);
    expect(said).toEqual([killed(5), empty(6, 10), 'complete']);
  });

  it.each(['protected', 'podReplaced', 'unsupported'] as const)(
    'signals nobody where one is refused: %s',
    (reason) => {
      const { said, asked } = play({ a: member$(killed(1)), b: member$(refused(reason)) });
      expect(asked).toEqual(['check a all 0', 'check b all 0']);
      expect(said).toEqual([refused(reason), 'complete']);
    },
  );

  it('signals nobody where one cannot be signalled', () => {
    const { said, asked } = play({
      a: member$(killed(1)),
      b: () => throwError(() => new Error('EPERM')),
    });
    expect(asked).toEqual(['check a all 0', 'check b all 0']);
    expect(said).toEqual(['EPERM']);
  });

  it('passes over one that is gone or empty', () => {
    const { said, asked } = play({
      a: member$(refused('podGone')),
      b: member$(killed(1), killed(1), empty(1, 5)),
      c: member$(refused('nothingToKill')),
    });
    expect(asked.slice(3)).toEqual(['end b 0']);
    expect(said).toEqual([killed(1), empty(1, 5), 'complete']);
  });

  it.each<[readonly ('podGone' | 'nothingToKill')[], string]>([
    [['podGone', 'podGone'], 'podGone'],
    [['podGone', 'nothingToKill'], 'nothingToKill'],
  ])('is refused where nothing is left of any: %j', (reasons, expected) => {
    const { said } = play(
      Object.fromEntries(reasons.map((reason, at) => [`m${at}`, member$(refused(reason))])),
    );
    expect(said).toEqual([refused(expected as 'podGone'), 'complete']);
  });

  it('is one rehearsal of all, with the first processes of each', () => {
    const { said, asked } = play(
      { a: member$(killed(2)), b: member$(killed(1)) },
      { rehearsal: true },
    );
    expect(asked).toEqual(['check a some 0', 'check b some 0', 'check a some 0', 'check b some 0']);
    expect(said).toEqual([killed(3), empty(3), 'complete']);
  });

  it('tells each stage once all have come to it', () => {
    marbles(({ cold, expectObservable }) => {
      const values = {
        t: { kind: 'terminating', processes: 2 },
        k: killed(2),
        e: empty(2),
        T: { kind: 'terminating', processes: 4 },
        K: killed(4),
        r: { kind: 'remaining', processes: 1 },
        s: { kind: 'remaining', processes: 2 },
        E: empty(4),
      } as const;
      const ends = (diagram: string): Script => {
        const after$ = cold(diagram, values) as Observable<EvictProgress>;
        return ({ rehearsal }) => (rehearsal ? of(killed(1)) : after$);
      };
      const { runtime } = scripted({
        a: ends('t-k--r-(e|)'),
        b: ends('t--k--r---(e|)'),
      });
      expectObservable(evictMembers(runtime, ['a', 'b'], request({ gracePeriodMs: 1000 }))).toBe(
        'T--K-rsr--(E|)',
        values,
      );
    });
  });

  it('ends with the refusal of one in its grace, and stops what the others would still do', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const values = {
        t: { kind: 'terminating', processes: 1 },
        T: { kind: 'terminating', processes: 2 },
        p: refused('protected'),
      } as const;
      const a$ = cold('t---(p|)', values);
      const b$ = cold('t-------', values);
      const { runtime } = scripted({
        a: ({ rehearsal }) => (rehearsal ? of(killed(1)) : a$),
        b: ({ rehearsal }) => (rehearsal ? of(killed(1)) : b$),
      });
      expectObservable(evictMembers(runtime, ['a', 'b'], request({ gracePeriodMs: 1000 }))).toBe(
        'T---(p|)',
        values,
      );
      expectSubscriptions(b$.subscriptions).toBe('^---!');
    });
  });

  it('fails once all have ended where one has failed', () => {
    marbles(({ cold, expectObservable }) => {
      const values = { k: killed(1), K: killed(2), e: empty(1) };
      const { runtime } = scripted({
        a: ({ rehearsal }) => (rehearsal ? of(killed(1)) : cold('k-#', values)),
        b: ({ rehearsal }) => (rehearsal ? of(killed(1)) : cold('k----(e|)', values)),
      });
      expectObservable(evictMembers(runtime, ['a', 'b'], request())).toBe('K----#', values);
    });
  });

  it('hands the grace and each escalation on to all', () => {
    const graces: string[] = [];
    const { runtime } = scripted(
      Object.fromEntries(
        ['a', 'b'].map((id): [string, Script] => [
          id,
          ({ rehearsal, escalations$, gracePeriodMs }) => {
            if (rehearsal) return of(killed(1));
            return new Observable(() =>
              escalations$.subscribe((ms) => graces.push(`${id} ${gracePeriodMs} ${ms}`)),
            );
          },
        ]),
      ),
    );
    evictMembers(
      runtime,
      ['a', 'b'],
      request({ gracePeriodMs: 9, escalations$: of(3) }),
    ).subscribe();
    expect(graces).toEqual(['a 9 3', 'b 9 3']);
  });

  it('stops all with its subscription', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const b$ = cold<EvictProgress>('------');
      const { runtime } = scripted({
        a: ({ rehearsal }) => (rehearsal ? of(killed(1)) : NEVER),
        b: ({ rehearsal }) => (rehearsal ? of(killed(1)) : b$),
      });
      expectObservable(evictMembers(runtime, ['a', 'b'], request()), '---!').toBe('----');
      expectSubscriptions(b$.subscriptions).toBe('^--!');
    });
  });
});
