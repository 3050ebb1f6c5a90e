import { existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { compilePodRules, holdsHost, podPlacesOf } from '../../../src/config/pod-globs.ts';
import { asPath, type BytePath, fromText } from '../../../src/kernel/byte-path.ts';
import {
  listPods,
  POD_LIMIT,
  type PodList,
  type PodPlaces,
} from '../../../src/runtimes/cgroup/discovery.ts';
import { temporaryDirectory } from '../support.ts';

/** A tree of directories: their paths, of which each stands for those above it, too. */
function treeOf(paths: readonly BytePath[]): string {
  const top = temporaryDirectory();
  for (const below of paths) mkdirSync(asPath(`${top}/${below}`), { recursive: true });
  return top;
}

function listIn(
  directory: string,
  { parents = [], named = [], ...rest }: Partial<PodPlaces> = {},
): PodList {
  return listPods({ directory, isRoot: false, parents, named, ...rest });
}

/** `name` or `name: class`, sorted. */
const shown = ({ pods }: PodList): readonly string[] =>
  pods.map(({ name, qosClass }) => (qosClass === undefined ? name : `${name}: ${qosClass}`)).sort();

/** A host with the kubelet's cgroupfs driver, and containers in its pods. */
const CGROUPFS = [
  'kubepods/podaaaa-1/ctr1',
  'kubepods/burstable/podbbbb-2/ctr2/inner',
  'kubepods/besteffort/podcccc-3/ctr3',
  'system.slice/kubelet.service',
  'system.slice/sshd.service',
  'user.slice/user-0.slice',
  'docker/0123',
];
const CGROUPFS_PODS = [
  'kubepods/besteffort/podcccc-3: BestEffort',
  'kubepods/burstable/podbbbb-2: Burstable',
  'kubepods/podaaaa-1: Guaranteed',
];

/** The same with its systemd driver. */
const SYSTEMD = [
  'kubepods.slice/kubepods-podaaaa_1.slice/cri-containerd-1.scope',
  'kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podbbbb_2.slice/crio-2.scope',
  'kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podcccc_3.slice/crio-3.scope',
  'system.slice/kubelet.service',
  'system.slice/crio.service',
  'user.slice/user-0.slice',
  'init.scope',
];
const SYSTEMD_PODS = [
  'kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podcccc_3.slice: BestEffort',
  'kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podbbbb_2.slice: Burstable',
  'kubepods.slice/kubepods-podaaaa_1.slice: Guaranteed',
];

/** The same with `--cgroup-root=/kubelet`, as in kind. */
const NESTED = 'kubelet.slice/kubelet-kubepods.slice';
const NESTED_SYSTEMD = [
  `${NESTED}/kubelet-kubepods-podaaaa_1.slice/x.scope`,
  `${NESTED}/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-podUID.slice/y.scope`,
  'kubelet.slice/kubelet.service',
  'system.slice/containerd.service',
];
const NESTED_PODS = [
  `${NESTED}/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-podUID.slice: Burstable`,
  `${NESTED}/kubelet-kubepods-podaaaa_1.slice: Guaranteed`,
];

const ROOT = { isRoot: true };

type Row = readonly [
  what: string,
  tree: readonly string[],
  places: Partial<PodPlaces>,
  pods: readonly string[],
];

const onTheHost: readonly Row[] = [
  ['nothing without a parent or a name', CGROUPFS, ROOT, []],
  ['nothing for the root itself as a parent', CGROUPFS, { ...ROOT, parents: ['.'] }, []],
  ['nothing for a parent that leads out', CGROUPFS, { ...ROOT, parents: ['..', '/', ''] }, []],
  ['cgroupfs driver', CGROUPFS, { ...ROOT, parents: ['kubepods'] }, CGROUPFS_PODS],
  ['systemd driver', SYSTEMD, { ...ROOT, parents: ['kubepods.slice'] }, SYSTEMD_PODS],
  ['systemd driver, nested names', NESTED_SYSTEMD, { ...ROOT, parents: [NESTED] }, NESTED_PODS],
  [
    'the parent of kubepods, whose other children are pods as well',
    NESTED_SYSTEMD,
    { ...ROOT, parents: ['kubelet.slice'] },
    ['kubelet.slice/kubelet.service', ...NESTED_PODS],
  ],
  [
    'a QoS directory (cgroupfs)',
    CGROUPFS,
    { ...ROOT, parents: ['kubepods/burstable'] },
    ['kubepods/burstable/podbbbb-2: Burstable'],
  ],
  [
    'a QoS directory (systemd)',
    SYSTEMD,
    { ...ROOT, parents: ['kubepods.slice/kubepods-besteffort.slice'] },
    ['kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podcccc_3.slice: BestEffort'],
  ],
  [
    'plain parents',
    CGROUPFS,
    { ...ROOT, parents: ['system.slice', 'docker'] },
    ['docker/0123', 'system.slice/kubelet.service', 'system.slice/sshd.service'],
  ],
  [
    'a parent and a QoS directory of it, given twice',
    CGROUPFS,
    { ...ROOT, parents: ['kubepods', 'kubepods/burstable', 'kubepods'] },
    CGROUPFS_PODS,
  ],
  [
    'a parent that is not there yet',
    CGROUPFS,
    { ...ROOT, parents: ['kubepods.slice', 'docker'] },
    ['docker/0123'],
  ],
  [
    'named alone',
    CGROUPFS,
    { ...ROOT, named: ['system.slice/sshd.service', 'docker', 'no-such', 'docker/no/such'] },
    ['system.slice/sshd.service'],
  ],
  [
    'named, and known to the kubelet',
    CGROUPFS,
    { ...ROOT, named: ['kubepods/burstable/podbbbb-2', 'kubepods/podaaaa-1/ctr1'] },
    ['kubepods/burstable/podbbbb-2: Burstable', 'kubepods/podaaaa-1/ctr1'],
  ],
];

const onACgroup: readonly Row[] = [
  ['its children, not theirs', ['a/ctr', 'b/c/d'], {}, ['a', 'b']],
  ['its children, asked for in so many words', ['a/ctr', 'b'], { parents: ['.'] }, ['a', 'b']],
  ['only those of its parents', ['a/x', 'b/y', 'c/z'], { parents: ['b', 'a'] }, ['a/x', 'b/y']],
  ['nothing for parents that all lead out', ['a/x'], { parents: ['..', '../x', 'a/../a'] }, []],
  [
    'the pods of kubepods among its children',
    [...CGROUPFS, 'kubepods/other'],
    {},
    [...['docker', ...CGROUPFS_PODS, 'system.slice', 'user.slice']],
  ],
  [
    'the pods of kubepods.slice among its children',
    SYSTEMD,
    {},
    [...['init.scope', ...SYSTEMD_PODS, 'system.slice', 'user.slice']],
  ],
  ['nested parents', ['a/b/c/d', 'a/e'], { parents: ['a', 'a/b'] }, ['a/b/c', 'a/e']],
  [
    'nested parents with a pod between them',
    ['a/b/c/d', 'a/e'],
    { parents: ['.', 'a/b/c'] },
    ['a/b/c/d'],
  ],
  ['a name beside its children', ['a', 'b/c'], { named: ['a'] }, ['a', 'b']],
  ['a name in what would be a pod', ['a', 'b/c', 'b/d'], { named: ['b/c'] }, ['a', 'b/c']],
  ['a name in a named pod', ['a', 'b/c/d'], { named: ['b/c', 'b/c/d'] }, ['a', 'b/c/d']],
  ['no holder of a name that is not there', ['a', 'b'], { named: ['b/c'] }, ['a']],
  ['no holder of a parent that is not there', ['a', 'b'], { parents: ['.', 'b/c/d'] }, ['a']],
  ['a name twice', ['a'], { named: ['a', 'a'] }, ['a']],
  [
    'no name that leads elsewhere',
    ['a'],
    { parents: ['a'], named: ['', '.', '..', 'a/', '/a', 'a/../a'] },
    [],
  ],
];

const oddNames: readonly Row[] = [
  [
    'kubepods (cgroupfs): nothing that is no pod*',
    [
      ...['kubepods/pod', 'kubepods/Pod1', 'kubepods/xpod1', 'kubepods/crio-pod1.scope'],
      ...['kubepods/x-pod1.slice', 'kubepods/guaranteed/pod1', 'kubepods/burstable.slice/pod2'],
      ...['kubepods/burstable/burstable/pod3', 'kubepods/burstable/besteffort/pod4'],
      ...['kubepods/kubepods/pod5', 'kubepods/burstable/pod', 'kubepods/podman'],
    ],
    { parents: ['kubepods'] },
    ['kubepods/podman: Guaranteed'],
  ],
  [
    'kubepods.slice (systemd): nothing without the name of its parent',
    [
      ...['pod1', 'pod1.slice', 'kubepods-pod.slice', 'kubepods-pod2', 'kubepods-pod3.scope'],
      ...[
        'kubepods-x-pod4.slice',
        'x-pod5.slice',
        'kubepods-burstable-pod6.slice',
        'burstable/pod7',
      ],
      ...['kubepods-xpod8.slice', 'kubepods-burstable', '-pod9.slice', 'kubepods-podA.slice.d'],
      ...['kubepods-guaranteed.slice/kubepods-guaranteed-podB.slice', 'kubepods-podC-podD.slice'],
      'kubepods-burstable.slice/kubepods-podE.slice',
    ].map((name) => `kubepods.slice/${name}`),
    { parents: ['kubepods.slice'] },
    ['kubepods.slice/kubepods-podC-podD.slice: Guaranteed'],
  ],
  [
    'plain: what has names of the kubelet outside of kubepods',
    ['pod', 'podman', 'burstable/pod1', 'besteffort', 'a-pod1.slice', 'my-kubepods/x', 'kubepods2'],
    {},
    ['a-pod1.slice', 'besteffort', 'burstable', 'kubepods2', 'my-kubepods', 'pod', 'podman'],
  ],
  [
    'kubepods and QoS directories are no pods, even if they are named',
    [...CGROUPFS, ...SYSTEMD],
    {
      ...ROOT,
      named: [
        ...['kubepods', 'kubepods/burstable', 'kubepods.slice'],
        'kubepods.slice/kubepods-besteffort.slice',
      ],
    },
    [],
  ],
  [
    'spaces, =, a newline',
    ['a b', ' ', 'a=b,c', '..a', 'a\nb', '-x', '%s', '*'],
    {},
    [...[' ', '%s', '*', '-x', '..a', 'a\nb', 'a b', 'a=b,c']],
  ],
  [
    'no UTF-8, and what looks like it',
    ['a\xff', 'a\xfe', fromText('a\ufffd')],
    {},
    [...[fromText('a\ufffd'), 'a\xfe', 'a\xff']],
  ],
  ['a parent that is no UTF-8', ['p\xff/a b'], { parents: ['p\xff'] }, ['p\xff/a b']],
  [
    'names of JavaScript',
    ['__proto__', 'constructor', 'kubepods/toString/pod1'],
    {},
    ['__proto__', 'constructor'],
  ],
];

describe('listPods, of a host, finds', () => {
  it.each(onTheHost)('%s', (_, tree, places, pods) => {
    expect(shown(listIn(treeOf(tree), places))).toEqual([...pods].sort());
  });
});

describe('listPods, of a cgroup as the node, finds', () => {
  it.each(onACgroup)('%s', (_, tree, places, pods) => {
    expect(shown(listIn(treeOf(tree), places))).toEqual([...pods].sort());
  });
});

describe('listPods takes names as the kubelet means them:', () => {
  it.each(oddNames)('%s', (_, tree, places, pods) => {
    expect(shown(listIn(treeOf(tree), places))).toEqual([...pods].sort());
  });
});

describe('listPods', () => {
  it.each([...onTheHost, ...onACgroup, ...oddNames])(
    'lists no pod within a pod, nor what the kubelet keeps pods in: %s',
    (_, tree, places) => {
      const names = listIn(treeOf(tree), places).pods.map(({ name }) => name);
      for (const name of names) {
        expect(names.filter((other) => other.startsWith(`${name}/`))).toEqual([]);
        expect(name).not.toMatch(/(^|\/)(kubepods|kubepods\.slice|kubelet-kubepods\.slice)$/);
      }
    },
  );

  it.each([
    [
      'kubepods',
      CGROUPFS,
      [
        'besteffort/podcccc-3: BestEffort',
        'burstable/podbbbb-2: Burstable',
        'podaaaa-1: Guaranteed',
      ],
    ],
    ['kubepods/burstable', CGROUPFS, ['podbbbb-2: Burstable']],
    ['kubepods/burstable/podbbbb-2', CGROUPFS, ['ctr2']],
    [
      'kubepods.slice/kubepods-besteffort.slice',
      SYSTEMD,
      ['kubepods-besteffort-podcccc_3.slice: BestEffort'],
    ],
    [NESTED, NESTED_SYSTEMD, NESTED_PODS.map((name) => name.slice(NESTED.length + 1))],
  ])('knows that the node is %s', (node, tree, pods) => {
    expect(shown(listIn(path.join(treeOf(tree), node)))).toEqual([...pods].sort());
  });

  it('takes neither files nor links', () => {
    const top = treeOf(['a', 'elsewhere/x']);
    writeFileSync(path.join(top, 'cgroup.procs'), '');
    symlinkSync(path.join(top, 'elsewhere'), path.join(top, 'link'));
    expect(shown(listIn(top, { named: ['link', 'cgroup.procs', 'elsewhere/x'] }))).toEqual([
      'a',
      'elsewhere/x',
    ]);
  });

  it('lists a thousand pods of each kind, each once, without their containers', () => {
    const ids = Array.from({ length: 1000 }, (_, id) => id);
    const top = treeOf([
      ...ids.map((id) => `kubepods/burstable/pod${id}/ctr`),
      ...ids.map((id) => `plain/${id}/ctr`),
    ]);
    const { pods, trouble } = listIn(top, {
      isRoot: true,
      parents: ['kubepods', 'plain', 'kubepods/burstable'],
      named: ['plain/7'],
    });
    expect(pods).toHaveLength(2000);
    expect(new Set(pods.map(({ name }) => name)).size).toBe(2000);
    expect(pods.filter(({ qosClass }) => qosClass === 'Burstable')).toHaveLength(1000);
    expect(trouble).toBeUndefined();
  });

  it('says that there are more pods than it lists, and keeps those that are named', () => {
    const top = temporaryDirectory(existsSync('/dev/shm') ? '/dev/shm' : undefined);
    for (let id = 0; id < POD_LIMIT; id += 1) mkdirSync(`${top}/${id}`);
    expect(listIn(top)).toMatchObject({ pods: { length: POD_LIMIT }, trouble: undefined });
    mkdirSync(`${top}/one-more`);
    const { pods, trouble } = listIn(top, { named: ['one-more'] });
    expect(pods).toHaveLength(POD_LIMIT);
    expect(pods.map(({ name }) => name)).toContain('one-more');
    expect(trouble).toBe('there are more than 20000 pods: the others are not seen');
  });

  it('says what it could not list, but not what is gone', () => {
    const top = treeOf(['a']);
    writeFileSync(path.join(top, 'file'), '');
    const { pods, trouble } = listIn(top, { parents: ['file', '.'] });
    expect(pods).toEqual([{ name: 'a', qosClass: undefined }]);
    expect(trouble).toBe(`${top}/file cannot be listed: ENOTDIR`);
    rmSync(top, { recursive: true });
    expect(listIn(top)).toEqual({ pods: [], trouble: undefined });
  });
});

describe('by rules', () => {
  /** Places that a rule may name, with what is in them. */
  const HOST = [
    ...CGROUPFS,
    'docker/4567/inner',
    'machine.slice/vm.scope',
    'system.slice/web.service/worker',
    'system.slice/docker.service',
    'kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-poddddd_4.slice/x',
  ];

  /** As the daemon has it of a configuration. */
  function listByRules(...cgroups: readonly string[]): readonly string[] {
    const rules = cgroups.map((cgroup) => ({
      cgroup,
      name: undefined,
      priority: undefined,
      memoryRequestNano: undefined,
      gracePeriodSeconds: undefined,
      protected: false,
    }));
    const { named, parents, kubepods, globs } = podPlacesOf(rules);
    const match = compilePodRules(rules);
    return shown(
      listIn(treeOf(HOST), {
        isRoot: true,
        parents,
        named,
        rules: {
          kubepods,
          globs,
          isPod: (name) => match(name) !== undefined,
          isSpared: (name) => holdsHost(name) || match(name)?.protected === true,
          nowMs: () => 0,
        },
      }),
    );
  }

  it.each<[string, readonly string[], readonly string[]]>([
    ['none: nothing', [], []],
    [
      'kubepods: the pods of all QoS classes, of either driver, one level below too',
      ['kubepods'],
      [
        ...CGROUPFS_PODS,
        'kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-poddddd_4.slice: Guaranteed',
      ],
    ],
    ['docker: its children', ['docker'], ['docker/0123', 'docker/4567']],
    ['machine.slice: its children', ['machine.slice'], ['machine.slice/vm.scope']],
    [
      'a glob: what it matches, without what keeps the host going',
      ['system.slice/*.service'],
      ['system.slice/web.service'],
    ],
    [
      'a literal name: that, whatever it is',
      ['system.slice/docker.service'],
      ['system.slice/docker.service'],
    ],
    [
      '** at the end: what lies in it; of a pod nothing below',
      ['docker/**'],
      ['docker/0123', 'docker/4567'],
    ],
    [
      'several: each once',
      ['docker', 'docker/*', 'machine.slice'],
      ['docker/0123', 'docker/4567', 'machine.slice/vm.scope'],
    ],
    [
      'what holds a named pod is none',
      ['docker/*', 'docker/4567/inner'],
      ['docker/0123', 'docker/4567/inner'],
    ],
    ['nowhere', ['no-such/*', 'neither'], []],
  ])('%s', (_, rules, expected) => {
    expect(listByRules(...rules)).toStrictEqual([...expected].sort());
  });

  it('a wildcard takes nothing along that must be spared: a protected cgroup, a unit of the host', () => {
    const rules = (...given: readonly (readonly [string, boolean?])[]) =>
      given.map(([cgroup, isProtected = false]) => ({
        cgroup,
        name: undefined,
        priority: undefined,
        memoryRequestNano: undefined,
        gracePeriodSeconds: undefined,
        protected: isProtected,
      }));
    const tree = treeOf([
      'x/critical-db',
      'x/batch',
      'az.slice/containerd.service',
      'az.slice/app.scope',
      'system.slice/system-ssh.slice/ssh@0-1.service',
      'y/inner',
    ]);
    const list = (...given: readonly (readonly [string, boolean?])[]) => {
      const all = rules(...given);
      const { named, parents, kubepods, globs } = podPlacesOf(all);
      const match = compilePodRules(all);
      const isPod = (name: string) => match(name) !== undefined;
      const isSpared = (name: string) => holdsHost(name) || match(name)?.protected === true;
      const places = { kubepods, globs, isPod, isSpared, nowMs: () => 0 };
      return shown(listIn(tree, { isRoot: true, parents, named, rules: places }));
    };
    expect(list(['*/critical-*', true], ['*'])).toStrictEqual(['x/critical-db', 'y']);
    expect(list(['*'])).toStrictEqual(['x', 'y']);
    expect(list(['*/*'])).toStrictEqual([
      'az.slice/app.scope',
      'x/batch',
      'x/critical-db',
      'y/inner',
    ]);
    expect(list(['system.slice/*'])).toStrictEqual([]);
  });

  it('what a wildcard names and holds too much to be looked at is none, and that is said', () => {
    const tree = treeOf([...Array(300).keys()].map((index) => `big/${index}`));
    const places = { kubepods: false, globs: [{ below: '.', levels: 1 }], nowMs: () => 0 };
    const rules = { ...places, isPod: () => true, isSpared: () => false };
    const { pods, trouble } = listIn(tree, { isRoot: true, rules });
    expect(pods).toStrictEqual([]);
    expect(trouble).toBe('big holds more than 256 cgroups: it is no pod');
  });

  it('everything, by one glob: no unit of the host, no holder of pods', () => {
    const found = listByRules('**');
    expect(found).toContain('system.slice/web.service');
    expect(found.join('\n')).not.toMatch(
      /sshd|kubelet\.service|docker\.service|^docker$|^kubepods$|^user\.slice$/m,
    );
  });
});
