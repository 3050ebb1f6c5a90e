import { merge, NEVER, type Observable, of, tap, throwError, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { PodObservation } from '../../../src/core/pod.ts';
import type { PodListing, RuntimePod } from '../../../src/ports/pod-directory.ts';
import type { EvictProgress, EvictRequest, Runtime } from '../../../src/ports/runtime.ts';
import { type DirectoryNotice, directedRuntime } from '../../../src/runtimes/shared/directed.ts';
import { pod } from '../../support/builders.ts';
import { type Marbles, marbles } from '../../support/marbles.ts';
import { runtimeContainer, runtimePod } from '../../support/runtime-pods.ts';

const listed = (...pods: readonly RuntimePod[]): PodListing => ({ kind: 'listed', pods, atMs: 0 });
const away = (reason: string): PodListing => ({ kind: 'away', reason, atMs: 0 });

interface Scene {
  readonly listings$: Observable<PodListing>;
  /** What the cgroup runtime sees. */
  readonly observed?: () => readonly PodObservation[];
  readonly ends?: (request: EvictRequest) => Observable<EvictProgress>;
  readonly settle?: () => Observable<never>;
}

/** A directed runtime on scripted parts, and what was said and asked, in order. */
function play(
  { scheduler }: Pick<Marbles, 'scheduler'>,
  { listings$, observed = () => [], ends = () => NEVER, settle = () => NEVER }: Scene,
) {
  const said: string[] = [];
  const notices: DirectoryNotice[] = [];
  const cgroups: Runtime = {
    capabilities: { evict: null, killing: { by: 'pidfd', detail: '' }, reap: null },
    observePods: observed,
    podsTrouble: () => undefined,
    oomKills: () => [],
    evict: (request) => {
      if (request.rehearsal !== true) said.push(`end ${request.podId} ${request.gracePeriodMs}`);
      return ends(request);
    },
    close: () => undefined,
  };
  const runtime = directedRuntime({
    cgroups,
    directory: {
      listings$,
      settle: ({ id, containers }) => {
        said.push(`settle ${id} ${containers.map((one) => one.id).join()}`);
        return settle();
      },
      stop: ({ id }, graceMs) => {
        said.push(`stop ${id} ${graceMs}`);
        return NEVER;
      },
      answers: () => NEVER,
      close: () => undefined,
    },
    select: (pods, doubts) =>
      said.push(
        `select ${pods.map(({ paths }) => paths.join('+')).join()} not ${doubts.flatMap(({ paths }) => paths).join()}`,
      ),
    pathOf: (cgroup) => cgroup,
    isHosts: () => false,
    memoryBelow: (path) => (path === 'kubepods/p/app' ? 6 : undefined),
    scheduler,
    note: (notice) => notices.push(notice),
  });
  return { runtime, said, notices };
}

const REQUEST: EvictRequest = {
  podId: '',
  podName: '',
  hard: true,
  gracePeriodMs: 0,
  escalations$: NEVER,
};

const KILLED: EvictProgress = { kind: 'killed', processes: 1 };
const EMPTY: EvictProgress = { kind: 'empty', processes: 1, chargedBytes: undefined };

/** Two containers that are one pod. */
const SHOP = runtimePod('shop', {
  cgroups: ['docker/a', 'docker/b'],
  containers: [runtimeContainer('a'), runtimeContainer('b')],
});

const at = (id: string, overrides: Partial<PodObservation> = {}): PodObservation =>
  pod('shop', { id, workingSetBytes: 10, ...overrides });

describe('what a directory lists', () => {
  it('is selected when it changes, and what is in doubt is said once', () => {
    marbles((helpers) => {
      const a = runtimePod('a');
      const [b, c] = ['b', 'c'].map((id) => runtimePod(id, { cgroups: ['docker/x'] }));
      const listings$ = helpers.cold('a-a-b-b', {
        a: listed(a),
        b: listed(a, b as RuntimePod, c as RuntimePod),
      });
      const { said, notices } = play(helpers, { listings$ });
      helpers.flush();
      expect(said).toEqual(['select docker/a not ', 'select docker/a not docker/x,docker/x']);
      expect(
        notices.map((notice) => (notice.kind === 'doubt' ? notice.doubt.podId : notice.kind)),
      ).toEqual(['back', 'b', 'c']);
    });
  });

  it('stays what it was while the runtime is away, which is said once for each reason', () => {
    marbles((helpers) => {
      const listings$ = helpers.cold('a-x-x-y-a', {
        a: listed(runtimePod('a')),
        x: away('one'),
        y: away('two'),
      });
      const { said, notices, runtime } = play(helpers, { listings$ });
      expect(runtime.podsTrouble()).toBe('the runtime has not answered yet');
      helpers.flush();
      expect(said).toEqual(['select docker/a not ']);
      expect(notices).toEqual([
        { kind: 'back', pods: 1 },
        { kind: 'away', reason: 'one' },
        { kind: 'away', reason: 'two' },
        { kind: 'back', pods: 1 },
      ]);
      expect(runtime.podsTrouble()).toBeUndefined();
    });
  });
});

describe('a pod of several cgroups', () => {
  const joined = (observed: () => readonly PodObservation[], rest: Partial<Scene> = {}) => {
    let all: ReturnType<typeof play> | undefined;
    marbles((helpers) => {
      all = play(helpers, { listings$: of(listed(SHOP)), observed, ...rest });
    });
    return all as ReturnType<typeof play>;
  };

  it('is one observation, beside what the runtime does not name', () => {
    const other = pod('other', { id: 'x/y@9' });
    const { runtime } = joined(() => [other, at('docker/a@1'), at('docker/b@2')]);
    const pods = runtime.observePods();
    expect(pods).toHaveLength(2);
    expect(pods[0]).toMatchObject({ name: 'shop', workingSetBytes: 20 });
    expect(
      pods[0]?.containers?.('memory')?.map(({ name, usedBytes }) => [name, usedBytes]),
    ).toEqual([
      ['a', 10],
      ['b', 10],
    ]);
    expect(pods[1]).toBe(other);
  });

  it('is ended as a whole, then the runtime is told of its containers', () => {
    const { runtime, said } = joined(() => [at('docker/a@1'), at('docker/b@2')], {
      ends: () => of(KILLED, EMPTY),
    });
    const [whole] = runtime.observePods();
    const progress: string[] = [];
    runtime
      .evict({ ...REQUEST, podId: whole?.id ?? '' })
      .subscribe(({ kind }) => progress.push(kind));
    expect(progress).toEqual(['killed', 'empty']);
    expect(said.slice(1)).toEqual(['end docker/a@1 0', 'end docker/b@2 0', 'settle shop a,b']);
  });

  it('stays the same pod while it is ended, whoever of it has ended already', () => {
    let observed = [at('docker/a@1'), at('docker/b@2')];
    const { runtime } = joined(() => observed, {
      ends: ({ rehearsal }) => (rehearsal ? of(KILLED) : NEVER),
    });
    const before = runtime.observePods()[0]?.id as string;
    const ending = runtime.evict({ ...REQUEST, podId: before, gracePeriodMs: 1000 }).subscribe();
    observed = [at('docker/b@2')];
    expect(runtime.observePods()[0]?.id).toBe(before);
    observed = [at('docker/a@7'), at('docker/b@2')];
    expect(runtime.observePods()[0]?.id).not.toBe(before);
    ending.unsubscribe();
    observed = [at('docker/b@2')];
    expect(runtime.observePods()[0]?.id).toBe('docker/b@2');
  });

  it('is another pod when a container of it has been made again', () => {
    let observed = [at('docker/a@1'), at('docker/b@2')];
    const { runtime, said } = joined(() => observed);
    const before = runtime.observePods()[0]?.id as string;
    observed = [at('docker/a@7'), at('docker/b@2')];
    expect(runtime.observePods()[0]?.id).not.toBe(before);
    const request = { ...REQUEST, podId: before };
    runtime.evict(request).subscribe();
    expect(said.slice(1)).toEqual([`end ${before} 0`]);
  });
});

describe('a pod whose containers have cgroups below its own', () => {
  const WEB = runtimePod('web', {
    cgroups: ['kubepods/p'],
    containers: [runtimeContainer('app', { cgroup: 'kubepods/p/app' })],
  });

  it('is one cgroup that may be evicted, and each container has its memory', () => {
    marbles((testing) => {
      const { runtime, said } = play(testing, {
        listings$: of(listed(WEB)),
        observed: () => [at('kubepods/p@1', { memoryRequestNano: 4n })],
      });
      const [seen, ...others] = runtime.observePods();
      expect(others).toEqual([]);
      const request = { nano: 4n, format: 'binary' };
      expect(seen?.containers?.('memory')).toStrictEqual([
        { name: 'app', request, usedBytes: 6, atMs: 0 },
      ]);
      expect(said).toEqual(['select kubepods/p not ']);
      runtime.close();
    });
  });
});

describe('a pod that is ended', () => {
  const ended = (helpers: Pick<Marbles, 'scheduler'>, scene: Partial<Scene> = {}) => {
    const all = play(helpers, {
      listings$: of(listed(runtimePod('a'))),
      ends: () => of(KILLED, EMPTY),
      ...scene,
    });
    all.runtime.evict({ ...REQUEST, podId: 'docker/a@1' }).subscribe();
    return all;
  };

  it('is told of to the runtime again when it lists its pods, as long as evictd runs', () => {
    marbles((helpers) => {
      const settled: number[] = [];
      const { runtime, notices } = ended(helpers, {
        listings$: merge(
          of(listed(runtimePod('a'))),
          helpers.cold('1s a 1s a 5s a', { a: listed(runtimePod('a')) }),
        ),
        settle: () =>
          throwError(() => {
            settled.push(helpers.scheduler.now());
            return new Error('no answer');
          }),
      });
      helpers
        .expectObservable(timer(6000).pipe(tap(() => runtime.close())))
        .toBe('6s (x|)', { x: 0 });
      helpers.flush();
      expect(settled).toEqual([0, 2001]);
      expect(notices).toEqual([{ kind: 'back', pods: 1 }]);
    });
  });

  it('is not told of where nobody was signalled', () => {
    marbles((helpers) => {
      const { said } = ended(helpers, {
        ends: () => of({ kind: 'refused', reason: 'podReplaced' }),
      });
      expect(said.slice(1)).toEqual(['end docker/a@1 0']);
    });
  });
});
