import { describe, expect, it } from 'vitest';
import { bearsUid, saidIn } from '../../../src/runtimes/cri/pod-cgroup.ts';

const UID = '1f4e-0a';

const containerd = (parent: unknown) => ({ config: { linux: { cgroup_parent: parent } } });
const crio = (path: unknown) => ({ runtimeSpec: { linux: { cgroupsPath: path } } });

const ID = '12ab';
const status = (said: unknown) => ({ info: { info: JSON.stringify(said) } });

describe('the parent that saidIn reads', () => {
  it.each<[unknown, string | undefined]>([
    [containerd('/kubepods/burstable/pod1'), 'kubepods/burstable/pod1'],
    [
      containerd('kubepods-burstable-pod1.slice'),
      'kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice',
    ],
    [{ ...containerd(''), ...crio('/k8s.io/1234') }, 'k8s.io'],
    [crio('/kubepods/besteffort/pod1/crio-1234'), 'kubepods/besteffort/pod1'],
    [crio('kubepods-pod1.slice:crio:1234'), 'kubepods.slice/kubepods-pod1.slice'],
    [crio('/1234'), undefined],
    [containerd('/../x'), undefined],
    [containerd('/a\0b'), undefined],
    [containerd('/'), undefined],
    [containerd({}), undefined],
    [{ config: null }, undefined],
    [null, undefined],
    ['text', undefined],
  ])('of %j is %j', (said, expected) => {
    expect(saidIn(status(said), ID).parent).toBe(expected);
  });
});

describe('the own cgroup that saidIn reads', () => {
  it.each<[unknown, string | undefined]>([
    [crio(`/shared/${ID}`), `shared/${ID}`],
    [crio(`/shared/crio-${ID}`), `shared/crio-${ID}`],
    [
      crio(`kubepods-pod1.slice:cri-containerd:${ID}`),
      `kubepods.slice/kubepods-pod1.slice/cri-containerd-${ID}.scope`,
    ],
    // What bears another name may be anybody's.
    [crio('/shared/other'), undefined],
    [crio(`/shared/${ID}/below`), undefined],
    [crio(`/../${ID}`), undefined],
    [crio(`a.slice:x/../:${ID}`), undefined],
    [crio(`/${ID}`), undefined],
    [crio(7), undefined],
  ])('of %j is %j', (said, expected) => {
    expect(saidIn(status(said), ID).own).toBe(expected);
  });

  it('is none without an id', () => {
    expect(saidIn(status(crio('/shared/1')), '').own).toBeUndefined();
  });
});

describe('the resources that saidIn reads', () => {
  const asked = (resources: object) => ({ config: { linux: { resources } } });
  const spec = {
    runtimeSpec: { process: { oomScoreAdj: 500 }, linux: { resources: { memory: { limit: 9 } } } },
  };

  it.each<[unknown, object | undefined]>([
    [
      asked({ oom_score_adj: 750, memory_limit_in_bytes: 4096 }),
      { oomScoreAdj: 750, limitBytes: 4096 },
    ],
    [asked({ oom_score_adj: -997 }), { oomScoreAdj: -997, limitBytes: 0 }],
    [spec, { oomScoreAdj: 500, limitBytes: 9 }],
    // What was asked for counts, not what the runtime made of it.
    [
      { ...spec, ...asked({ oom_score_adj: 2 }) },
      { oomScoreAdj: 2, limitBytes: 9 },
    ],
    [asked({ oom_score_adj: 1.5 }), undefined],
    [asked({ oom_score_adj: '750' }), undefined],
    [asked({ oom_score_adj: 750, memory_limit_in_bytes: -1 }), { oomScoreAdj: 750, limitBytes: 0 }],
    [asked({ memory_limit_in_bytes: 4096 }), undefined],
    [{}, undefined],
  ])('of %j are %j', (said, expected) => {
    expect(saidIn(status(said), ID).resources).toEqual(expected);
  });
});

describe('saidIn', () => {
  it('reads nothing where nothing, or no JSON, is said', () => {
    const nothing = { parent: undefined, own: undefined, resources: undefined };
    expect(saidIn({ info: {} }, ID)).toEqual(nothing);
    expect(saidIn({ info: { info: '{' } }, ID)).toEqual(nothing);
  });
});

describe('bearsUid', () => {
  it.each([
    [`kubepods/burstable/pod${UID}`, true],
    [`pod${UID}`, true],
    ['kubepods.slice/kubepods-pod1f4e_0a.slice', true],
    ['pod1f4e_0a.slice', true],
    ['kubepods/burstable', false],
    [`kubepods/pod${UID}/x`, false],
    [`kubepods/xpod${UID}`, false],
    ['mypods', false],
  ])('%s: %j', (cgroup, expected) => {
    expect(bearsUid(cgroup, UID)).toBe(expected);
  });

  it('is said of nothing without a uid', () => {
    expect(bearsUid('kubepods/pod', '')).toBe(false);
  });
});
