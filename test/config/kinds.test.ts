import { describe, expect, it } from 'vitest';
import { describeError, type ErrorCode } from '../../src/core/errors.ts';
import { FILE, KUBELET, load, OWN, refusal } from './support.ts';

/** A text, the code of its refusal, and the line that is printed without the file's name. */
type Refused = readonly [text: string, code: ErrorCode, printed: string];

const CONFIG = 'EVICTD_CONFIG';

const MATCHERS = 'cgroup, or one of namespace, name, labels, image';

describe('a file that is no configuration', () => {
  it.each<Refused>([
    ['', CONFIG, '1: the file is empty'],
    ['# nothing\n', CONFIG, '1: the file is empty'],
    ['---\n---\n', CONFIG, '1: the file is empty'],
    ['~', CONFIG, '1: the file is empty'],
    ['evictionHard', CONFIG, '1: the document must be a map with apiVersion and kind'],
    ['- a', CONFIG, '1: the document must be a map with apiVersion and kind'],
    ['kind: KubeletConfiguration', CONFIG, '1: apiVersion: lacks apiVersion'],
    ['apiVersion: evictd.dev/v1alpha1', CONFIG, '1: kind: lacks kind'],
    ['{}', CONFIG, '1: kind: lacks kind'],
    ['apiVersion: 1\nkind: EvictdConfiguration', CONFIG, '1: apiVersion "1": must be a text'],
    ['apiVersion: a\nkind: [x]', CONFIG, '2: kind "[…]": must be a text'],
    [
      'apiVersion: a\nkind: EvictedConfiguration',
      CONFIG,
      '2: kind "EvictedConfiguration": none of KubeletConfiguration, EvictdConfiguration ' +
        '(did you mean EvictdConfiguration?)',
    ],
    [
      'apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration',
      CONFIG,
      '2: kind "ClusterConfiguration": none of KubeletConfiguration, EvictdConfiguration ' +
        '(did you mean KubeletConfiguration?)',
    ],
    [
      'apiVersion: kubelet.config.k8s.io/v1alpha1\nkind: KubeletConfiguration',
      CONFIG,
      '1: apiVersion "kubelet.config.k8s.io/v1alpha1": the apiVersion of KubeletConfiguration is ' +
        'kubelet.config.k8s.io/v1beta1',
    ],
    [
      'apiVersion: evictd.dev/v1\nkind: EvictdConfiguration',
      CONFIG,
      '1: apiVersion "evictd.dev/v1": the apiVersion of EvictdConfiguration is evictd.dev/v1alpha1',
    ],
    [`${OWN}---\n${OWN}`, CONFIG, '4: a second document: the file must hold one'],
    [
      `${OWN}dryRun: true\ndryRun: true`,
      CONFIG,
      '4: dryRun: the key is given twice, first on line 3',
    ],
    [`kind: x\n${OWN}`, CONFIG, '3: kind: the key is given twice, first on line 1'],
    [`${OWN}1: x`, CONFIG, '3: a key must be a text'],
    [`${OWN}? [a]\n: x`, CONFIG, '3: a key must be a text'],
    [
      `${OWN}<<: {dryRun: true}`,
      CONFIG,
      '3: <<: merge keys are not supported: write the fields out',
    ],
  ])('%j', (text, code, printed) => {
    const error = refusal(text);
    expect(error).toMatchObject({ code, exitStatus: 2 });
    expect(describeError(error)).toBe(`${FILE}:${printed}`);
  });

  it.each([
    ['a: [', 1],
    [`${OWN}a: b: c`, 3],
    [`${OWN}"a`, 3],
    [`${OWN}a: "\\q"`, 3],
    [`${OWN}\tdryRun: true`, 3],
    ['{"a": }}', 1],
  ])('%j is neither YAML nor JSON', (text, line) => {
    const error = refusal(text);
    expect(error).toMatchObject({ code: CONFIG, place: { source: `${FILE}:${line}` } });
    expect(error.message).toMatch(/^(neither YAML nor JSON: .|no field)/);
  });

  it('is nested too deeply', () => {
    for (const text of ['['.repeat(200_000), '{a: '.repeat(50_000), '- '.repeat(100_000)]) {
      const error = refusal(text);
      expect(error).toMatchObject({ code: CONFIG, exitStatus: 2 });
      expect(error.message.length).toBeLessThan(200);
    }
  });
});

describe('a KubeletConfiguration', () => {
  it('leaves out what evictd does not use, with one note, whatever it holds', () => {
    const text = `${KUBELET}maxPods: [no, number]\naddress: 1\nfeatureGates: {a: 1, a: 2, <<: 3}\n`;
    expect(load(text).notes[0]).toBe(
      `${FILE}: what evictd does not use of a KubeletConfiguration: maxPods, address, featureGates`,
    );
    expect(load(KUBELET).notes.join()).not.toContain('does not use');
  });

  it('brings the kubelet’s rules, which the flag may take back', () => {
    expect(load(KUBELET).settings).toMatchObject({
      compatibility: 'kubelet',
      compatibilityBecause: `${FILE} is a KubeletConfiguration`,
      configFile: FILE,
      policy: { hardEvictionGracePeriodSeconds: 1 },
    });
    expect(load(KUBELET, { '--compatibility': ['evictd'] }).settings).toMatchObject({
      compatibility: 'evictd',
      compatibilityBecause: '--compatibility',
      policy: { hardEvictionGracePeriodSeconds: 0 },
    });
  });

  it.each([
    'evictionHard:',
    'evictionHard: null',
    'evictionSoft: ~',
    'evictionMaxPodGracePeriod: null',
    'evictionPressureTransitionPeriod: null',
    'enforceNodeAllocatable: null',
    'kernelMemcgNotification: null',
  ])('takes %j as not given', (line) => {
    expect(load(`${KUBELET}${line}\n`)).toEqual(load(KUBELET));
  });

  it.each([
    ['yes', true],
    ['on', true],
    ['ON', true],
    ['True', true],
    ['no', false],
    ['Off', false],
    ['false', false],
  ])('takes %s for a switch', (word, on) => {
    const { settings } = load(`${KUBELET}kernelMemcgNotification: ${word}\n`);
    expect(settings.kernelMemcgNotification).toBe(on);
  });

  it.each<Refused>([
    [
      'evictonHard: {}',
      CONFIG,
      '3: evictonHard "{…}": no field of KubeletConfiguration (did you mean evictionHard?)',
    ],
    [
      'evictionhard: {}',
      CONFIG,
      '3: evictionhard "{…}": no field of KubeletConfiguration (did you mean evictionHard?)',
    ],
    ['nonsense: 1', CONFIG, '3: nonsense "1": no field of KubeletConfiguration'],
    [
      'evictionHard:\n  memory.available: 1Gi\nnodefs.available: 10%',
      CONFIG,
      '5: nodefs.available "10%": no field of KubeletConfiguration (it is a signal: indent it below its map)',
    ],
    [
      'pollInterval: 1s',
      CONFIG,
      '3: pollInterval "1s": no field of KubeletConfiguration (EvictdConfiguration has it)',
    ],
    [
      'hardEvictionGracePeriodSeconds: 1',
      CONFIG,
      '3: hardEvictionGracePeriodSeconds "1": no field of KubeletConfiguration (EvictdConfiguration has it)',
    ],
    [
      'kernelMemcgNotification: "yes"',
      CONFIG,
      '3: kernelMemcgNotification "yes": must be true or false, without quotes',
    ],
    [
      'evictionHard: {memory.available: 100}',
      CONFIG,
      '3: evictionHard: memory.available "100": must be a text: put it in quotes',
    ],
    [
      'evictionHard:\n  memory.available:',
      'EVICTD_QUANTITY',
      '4: evictionHard: memory.available "": empty, where a quantity such as 100Mi is expected',
    ],
    [
      'evictionHard: {memory.available: 101%}',
      'EVICTD_PERCENTAGE',
      '3: evictionHard: memory.available "101%": above 100%',
    ],
    [
      'evictionHard: {memory.available: -1e-3%}',
      'EVICTD_PERCENTAGE',
      '3: evictionHard: memory.available "-1e-3%": below 0%',
    ],
    [
      'evictionHard: {memory.available: 5%x}',
      'EVICTD_QUANTITY',
      '3: evictionHard: memory.available "5%x": not a quantity such as 100Mi, 1.5Gi, 129e6 or 104857600',
    ],
    [
      'evictionHard: {memory.available: "%"}',
      'EVICTD_PERCENTAGE',
      '3: evictionHard: memory.available "%": not a number that the kubelet reads, followed by %',
    ],
    ...['0%', '-1%', 'NaN%', 'inf%'].map(
      (text): Refused => [
        `evictionMinimumReclaim: {memory.available: ${text}}`,
        'EVICTD_PERCENTAGE',
        `3: evictionMinimumReclaim: memory.available "${text}": a minimum reclaim in percent must be above 0%`,
      ],
    ),
  ])('refuses %j', (line, code, printed) => {
    const error = refusal(`${KUBELET}${line}\n`);
    expect(describeError(error)).toBe(`${FILE}:${printed}`);
    expect(error).toMatchObject({ code, exitStatus: 2 });
  });

  const levelOf = (text: string) => {
    const { settings, warnings } = load(`${KUBELET}evictionHard: {memory.available: "${text}"}\n`);
    const value = settings.policy.thresholds[0]?.value;
    return { value, warnings: warnings.filter((warning) => !warning.includes('drops')) };
  };

  it.each([
    ['10%', Math.fround(Math.fround(10) / 100)],
    ['1e1%', Math.fround(0.1)],
    ['+10.0%%', Math.fround(0.1)],
    ['0x1p3%', Math.fround(0.08)],
    ['99.99999%', Math.fround(Math.fround(99.99999) / 100)],
    // To 32 bits this is 100.
    ['100.000001%', 1],
    ['100.0%', 1],
    ['0.0%', 0],
  ])('reads a percentage of %s as the kubelet does', (text, fraction) => {
    expect(levelOf(text).value).toEqual({ kind: 'fraction', fraction, text });
  });

  it.each([
    ['0%', undefined],
    ['100%', '"100%": 100% means off, as 0% does'],
    ['100.0%', '"100.0%": always met: to the kubelet only 100% in this spelling is off'],
    ['0.0%', '"0.0%": never met'],
    ['NaN%', '"NaN%": never met'],
    ['50%', undefined],
  ])('says what %s may not have been meant as', (text, warning) => {
    const place = `${FILE}:3: evictionHard: memory.available `;
    const { value, warnings } = levelOf(text);
    const none =
      value === undefined ? ['no eviction threshold is left: nothing will be evicted'] : [];
    expect(warnings).toEqual([...(warning === undefined ? [] : [`${place}${warning}`]), ...none]);
  });

  it('takes a minimum reclaim above the capacity, as the kubelet does', () => {
    const { settings } = load(`${KUBELET}evictionMinimumReclaim: {memory.available: 150%}\n`);
    expect(settings.policy.thresholds[0]?.minimumReclaim).toMatchObject({ fraction: 1.5 });
  });
});

describe('an EvictdConfiguration', () => {
  it('may be JSON, tabs and all', () => {
    const json = JSON.stringify(
      {
        apiVersion: 'evictd.dev/v1alpha1',
        kind: 'EvictdConfiguration',
        dryRun: true,
        pods: [{ cgroup: 'a' }],
      },
      null,
      '\t',
    );
    const { settings } = load(json);
    expect(settings.dryRun).toBe(true);
    expect([...settings.pods.keys()]).toEqual(['a']);
  });

  it('has evictd’s rules unless it says otherwise, and the flag wins over that', () => {
    expect(load(OWN).settings).toMatchObject({
      compatibility: 'evictd',
      compatibilityBecause: 'the default',
    });
    const kubelet = `${OWN}compatibility: kubelet\n`;
    expect(load(kubelet).settings).toMatchObject({
      compatibility: 'kubelet',
      compatibilityBecause: `compatibility in ${FILE}:3`,
      policy: { hardEvictionGracePeriodSeconds: 1 },
    });
    expect(load(kubelet, { '--compatibility': ['evictd'] }).settings.compatibilityBecause).toBe(
      '--compatibility',
    );
  });

  it('follows aliases', () => {
    const { settings } = load(
      `${OWN}evictionSoft: &levels {memory.available: 1Gi}\n` +
        'evictionSoftGracePeriod: {memory.available: 1m}\nevictionHard: *levels\n',
    );
    expect(settings.policy.thresholds.map(({ kind, value }) => `${kind} ${value.text}`)).toEqual([
      'hard 1Gi',
      'soft 1Gi',
    ]);
  });

  it.each<[string, object]>([
    ['nodeCgroup: pods/node', { nodeCgroup: 'pods/node' }],
    ['podParents: []', { podParents: [] }],
    ['podParents: [kubepods, a/b/]', { podParents: ['kubepods', 'a/b'] }],
    ['evictionHard: {}', { policy: { thresholds: [] } }],
    ['evictionMaxPodGracePeriod: -1', { policy: { maxPodGracePeriodSeconds: -1 } }],
    ['evictionMaxPodGracePeriod: 0x10', { policy: { maxPodGracePeriodSeconds: 16 } }],
    ['evictionMaxPodGracePeriod: 60.0', { policy: { maxPodGracePeriodSeconds: 60 } }],
    [
      'evictionMaxPodGracePeriod: 2147483647',
      { policy: { maxPodGracePeriodSeconds: 2 ** 31 - 1 } },
    ],
    ['evictionPressureTransitionPeriod: 0s', { policy: { pressureTransitionPeriodMs: 0 } }],
    ['evictionPressureTransitionPeriod: "0"', { policy: { pressureTransitionPeriodMs: 0 } }],
    ['hardEvictionGracePeriodSeconds: 0', { policy: { hardEvictionGracePeriodSeconds: 0 } }],
    ['compatibility: evictd', { compatibility: 'evictd' }],
    ['memorySource: memavailable', { memorySource: 'memavailable' }],
    ['kernelMemcgNotification: true', { kernelMemcgNotification: true }],
    ['pollInterval: 50ms', { pollIntervalMs: 50 }],
    ['pollInterval: 1h', { pollIntervalMs: 3_600_000 }],
    ['socket: none', { socket: undefined }],
    ['stateDir: none', { stateDir: undefined }],
    ['stateDir: /s', { stateDir: { path: '/s', explicit: true } }],
    ['socket: /s', { socket: { path: '/s', explicit: true } }],
    ['dryRun: true', { dryRun: true }],
    ['allowPidKill: true', { allowPidKill: true }],
    ['logLevel: debug', { logLevel: 'debug' }],
    ['scheduling: nice', { scheduling: 'nice' }],
    ['nodefsPath: /var', { filesystems: { nodefs: '/var' } }],
    ['imagefsPath: /', { filesystems: { imagefs: '/' } }],
    ['containerfsPath: /c', { filesystems: { containerfs: '/c' } }],
    ['polling: {}', { polling: { disk: { floorMs: 1000, assumedFallPerSecond: 1e9 } } }],
    ['polling: {disk: {floor: 10ms}}', { polling: { disk: { floorMs: 10 } } }],
    ['polling: {pids: {floor: 1h}}', { polling: { pids: { floorMs: 3_600_000 } } }],
    [
      'polling: {inodes: {assumedFallPerSecond: 5}}',
      { polling: { inodes: { assumedFallPerSecond: 5, floorMs: 1000 } } },
    ],
    [
      'polling: {memory: {assumedFallPerSecond: 1500m}}',
      { polling: { memory: { assumedFallPerSecond: 1.5 } } },
    ],
  ])('takes %j', (line, expected) => {
    expect(load(`${OWN}${line}\n`).settings).toMatchObject(expected);
  });

  it.each<Refused>([
    [
      'maxPods: 1',
      CONFIG,
      '3: maxPods "1": no field of EvictdConfiguration (KubeletConfiguration has it)',
    ],
    [
      'polInterval: 1s',
      CONFIG,
      '3: polInterval "1s": no field of EvictdConfiguration (did you mean pollInterval?)',
    ],
    ['dryRun:', CONFIG, '3: dryRun "null": has no value: leave the key out for its default'],
    [
      'evictionHard: ~',
      CONFIG,
      '3: evictionHard "null": has no value: leave the key out for its default',
    ],
    ['dryRun: yes', CONFIG, '3: dryRun "yes": must be true or false, without quotes'],
    ['dryRun: "true"', CONFIG, '3: dryRun "true": must be true or false, without quotes'],
    ['dryRun: 1', CONFIG, '3: dryRun "1": must be true or false, without quotes'],
    ['pollInterval: 10', CONFIG, '3: pollInterval "10": must be a text: put it in quotes'],
    ['pollInterval: {}', CONFIG, '3: pollInterval "{…}": must be a text: put it in quotes'],
    ['pollInterval: 49ms', 'EVICTD_DURATION', '3: pollInterval "49ms": shorter than 50ms'],
    ['pollInterval: 61m', 'EVICTD_DURATION', '3: pollInterval "61m": longer than 1h0m0s'],
    [
      'pollInterval: ""',
      'EVICTD_DURATION',
      '3: pollInterval "": not a duration such as 30s, 1m30s or 500ms',
    ],
    [
      'evictionMaxPodGracePeriod: "60"',
      CONFIG,
      '3: evictionMaxPodGracePeriod "60": must be a whole number, without quotes',
    ],
    [
      'evictionMaxPodGracePeriod: 60s',
      CONFIG,
      '3: evictionMaxPodGracePeriod "60s": must be a whole number, without quotes',
    ],
    [
      'evictionMaxPodGracePeriod: 1.5',
      'EVICTD_INTEGER',
      '3: evictionMaxPodGracePeriod "1.5": not a whole number from -2147483648 to 2147483647',
    ],
    [
      'evictionMaxPodGracePeriod: 2147483648',
      'EVICTD_INTEGER',
      '3: evictionMaxPodGracePeriod "2147483648": not a whole number from -2147483648 to 2147483647',
    ],
    [
      'evictionMaxPodGracePeriod: 99999999999999999999',
      'EVICTD_INTEGER',
      '3: evictionMaxPodGracePeriod "99999999999999999999": not a whole number from -2147483648 to 2147483647',
    ],
    [
      'evictionMaxPodGracePeriod: .nan',
      'EVICTD_INTEGER',
      '3: evictionMaxPodGracePeriod ".nan": not a whole number from -2147483648 to 2147483647',
    ],
    [
      'hardEvictionGracePeriodSeconds: -1',
      'EVICTD_INTEGER',
      '3: hardEvictionGracePeriodSeconds "-1": not a whole number from 0 to 2147483647',
    ],
    [
      'evictionPressureTransitionPeriod: -1s',
      'EVICTD_DURATION',
      '3: evictionPressureTransitionPeriod "-1s": shorter than 0s',
    ],
    ['evictionHard: []', CONFIG, '3: evictionHard "[…]": must be a map from signals to texts'],
    ['evictionHard: none', CONFIG, '3: evictionHard "none": must be a map from signals to texts'],
    [
      'evictionHard:\n  memory.avail: 1Gi',
      'EVICTD_SIGNAL',
      '4: evictionHard: memory.avail "1Gi": unknown signal (did you mean memory.available?); known signals: ' +
        'memory.available, allocatableMemory.available, nodefs.available, nodefs.inodesFree, ' +
        'imagefs.available, imagefs.inodesFree, containerfs.available, containerfs.inodesFree, pid.available',
    ],
    [
      'evictionHard:\n  memory.available: 1Gi\n  memory.available: 2Gi',
      CONFIG,
      '5: evictionHard: memory.available: the key is given twice, first on line 4',
    ],
    [
      'evictionHard:\n  memory.available: ""',
      'EVICTD_QUANTITY',
      '4: evictionHard: memory.available "": empty, where a quantity such as 100Mi is expected',
    ],
    [
      'evictionHard:\n  memory.available: ~',
      'EVICTD_QUANTITY',
      '4: evictionHard: memory.available "": empty, where a quantity such as 100Mi is expected',
    ],
    [
      'evictionHard:\n  memory.available: 0',
      CONFIG,
      '4: evictionHard: memory.available "0": must be a text: put it in quotes',
    ],
    [
      'evictionHard:\n  memory.available: "0"',
      'EVICTD_THRESHOLD',
      '4: evictionHard: memory.available "0": a threshold must be above zero',
    ],
    [
      'evictionHard:\n  memory.available: 1e1%',
      'EVICTD_PERCENTAGE',
      '4: evictionHard: memory.available "1e1%": not a decimal number from 0 to 100 followed by one %',
    ],
    [
      'evictionHard:\n  memory.available: 100.000000001%',
      'EVICTD_PERCENTAGE',
      '4: evictionHard: memory.available "100.000000001%": above 100%',
    ],
    [
      'evictionHard:\n  memory.available: 1%%',
      'EVICTD_PERCENTAGE',
      '4: evictionHard: memory.available "1%%": not a decimal number from 0 to 100 followed by one %',
    ],
    [
      'evictionHard:\n  <<: {memory.available: 1Gi}',
      CONFIG,
      '4: evictionHard: <<: merge keys are not supported: write the fields out',
    ],
    [
      'evictionSoft:\n  memory.available: 1Gi',
      'EVICTD_THRESHOLD',
      '4: evictionSoft: memory.available "1Gi": a soft threshold needs its grace period in ' +
        'evictionSoftGracePeriod (--eviction-soft-grace-period)',
    ],
    [
      'evictionSoftGracePeriod:\n  memory.available: 1',
      CONFIG,
      '4: evictionSoftGracePeriod: memory.available "1": must be a text: put it in quotes',
    ],
    [
      'evictionSoftGracePeriod:\n  memory.available: -1s',
      'EVICTD_DURATION',
      '4: evictionSoftGracePeriod: memory.available "-1s": shorter than 0s',
    ],
    [
      'evictionMinimumReclaim:\n  memory.available: "-1"',
      'EVICTD_THRESHOLD',
      '4: evictionMinimumReclaim: memory.available "-1": a minimum reclaim cannot be negative',
    ],
    ['compatibility: k8s', 'EVICTD_CHOICE', '3: compatibility "k8s": none of kubelet, evictd'],
    [
      'memorySource: free',
      'EVICTD_CHOICE',
      '3: memorySource "free": none of workingset, memavailable',
    ],
    ['scheduling: fifo', 'EVICTD_CHOICE', '3: scheduling "fifo": none of rr, nice, normal'],
    [
      'logLevel: loud',
      'EVICTD_CHOICE',
      '3: logLevel "loud": none of trace, debug, info, warn, error, fatal, silent',
    ],
    ['socket: s', 'EVICTD_SOCKET_PATH', '3: socket "s": neither an absolute path nor none'],
    ['stateDir: s', 'EVICTD_STATE_DIR', '3: stateDir "s": neither an absolute path nor none'],
    ['nodeCgroup: ""', 'EVICTD_NODE_CGROUP', '3: nodeCgroup "": an empty path'],
    ['podParents: kubepods', CONFIG, '3: podParents "kubepods": must be a list of texts'],
    ['podParents:\n  - a\n  - 1', CONFIG, '5: podParents[1] "1": must be a text: put it in quotes'],
    [
      'podParents:\n  - ..',
      'EVICTD_POD_PARENT',
      '4: podParents[0] "..": no cgroup can be named ".."',
    ],
    ['nodefsPath: var', 'EVICTD_PATH', '3: nodefsPath "var": no absolute path'],
    ['imagefsPath: ""', 'EVICTD_PATH', '3: imagefsPath "": an empty path'],
    [
      'containerfsPath: "/a\\0b"',
      'EVICTD_PATH',
      '3: containerfsPath "/a\\u0000b": a path has no NUL',
    ],
    [
      'enforceNodeAllocatable: [pod]',
      'EVICTD_CHOICE',
      '3: enforceNodeAllocatable[0] "pod": none of none, pods, system-reserved, ' +
        'system-reserved-compressible, kube-reserved, kube-reserved-compressible',
    ],
    [
      'enforceNodeAllocatable: [pods, none]',
      'EVICTD_CHOICE',
      '3: enforceNodeAllocatable[1] "none": none stands alone',
    ],
    ['polling: 1s', CONFIG, '3: polling "1s": must be a map from kinds to maps'],
    [
      'polling:\n  disks: {}',
      CONFIG,
      '4: polling: disks "{…}": unknown kind (did you mean disk?); known: memory, disk, inodes, pids',
    ],
    [
      'polling:\n  disk: 1s',
      CONFIG,
      '4: polling: disk "1s": must be a map with assumedFallPerSecond, floor',
    ],
    [
      'polling:\n  disk:\n    flor: 1s',
      CONFIG,
      '5: polling: disk: flor "1s": unknown field (did you mean floor?); known: assumedFallPerSecond, floor',
    ],
    [
      'polling:\n  disk: {floor: 9ms}',
      'EVICTD_DURATION',
      '4: polling: disk: floor "9ms": shorter than 10ms',
    ],
    [
      'polling:\n  disk: {floor: 2h}',
      'EVICTD_DURATION',
      '4: polling: disk: floor "2h": longer than 1h0m0s',
    ],
    [
      'polling:\n  disk: {floor: true}',
      CONFIG,
      '4: polling: disk: floor "true": must be a text: put it in quotes',
    ],
    [
      'polling:\n  disk: {assumedFallPerSecond: 0}',
      'EVICTD_QUANTITY',
      '4: polling: disk: assumedFallPerSecond "0": a fall must be above zero',
    ],
    ['pods: {}', CONFIG, '3: pods "{…}": must be a list of rules'],
    ['pods: [a]', CONFIG, `3: pods[0] "a": must be a map with ${MATCHERS}`],
    ['pods: [{}]', CONFIG, `3: pods[0]: lacks ${MATCHERS}`],
    ['pods:\n  - priority: 1', CONFIG, `4: pods[0]: lacks ${MATCHERS}`],
    [
      'pods:\n  - cgroup: a\n    namespace: b',
      CONFIG,
      '5: pods[0]: namespace "b": a rule is about a cgroup, or about what a runtime names, not about both',
    ],
    [
      'pods:\n  - labels: {a: b}\n    cgroup: a',
      CONFIG,
      '4: pods[0]: labels "{…}": a rule is about a cgroup, or about what a runtime names, not about both',
    ],
    [
      'pods: [{image: a, cgroup: b}]',
      CONFIG,
      '3: pods[0]: image "a": a rule is about a cgroup, or about what a runtime names, not about both',
    ],
    ['pods: [{name: 1}]', CONFIG, '3: pods[0]: name "1": must be a text: put it in quotes'],
    [
      'pods: [{name: a/b}]',
      'EVICTD_POD',
      '3: pods[0]: name "a/b": a name has no slash: a namespace has a key of its own',
    ],
    [
      'pods: [{namespace: "a/*"}]',
      'EVICTD_POD',
      '3: pods[0]: namespace "a/*": a name has no slash: a namespace has a key of its own',
    ],
    [
      'pods: [{name: "web-[01]"}]',
      'EVICTD_POD',
      '3: pods[0]: name "web-[01]": a glob has * and ? alone, neither braces nor brackets',
    ],
    [
      'pods: [{image: "a:{1,2}"}]',
      'EVICTD_POD',
      '3: pods[0]: image "a:{1,2}": a glob has * and ? alone, neither braces nor brackets',
    ],
    [
      'pods: [{namespace: ""}]',
      'EVICTD_POD',
      '3: pods[0]: namespace "": not 1 to 253 characters, none of them NUL',
    ],
    [
      'pods: [{image: "a\\0"}]',
      'EVICTD_POD',
      '3: pods[0]: image "a\\u0000": not 1 to 512 characters, none of them NUL',
    ],
    ['pods: [{labels: a}]', CONFIG, '3: pods[0]: labels "a": must be a map from labels to texts'],
    ['pods: [{labels: {}}]', CONFIG, '3: pods[0]: labels "{…}": names no label'],
    [
      'pods:\n  - labels:\n      app: 1',
      CONFIG,
      '5: pods[0]: labels: app "1": must be a text: put it in quotes',
    ],
    [
      'pods: [{labels: {"": a}}]',
      'EVICTD_POD',
      '3: pods[0]: labels:  "a": not 1 to 1024 characters, none of them NUL',
    ],
    [
      'pods:\n  - cgroup: a\n    prio: 1',
      CONFIG,
      '5: pods[0]: prio "1": unknown field; known: cgroup, namespace, name, labels, image, priority, ' +
        'memoryRequest, gracePeriod, protected',
    ],
    [
      'pods:\n  - cgroup: a\n    cgroup: b',
      CONFIG,
      '5: pods[0]: cgroup: the key is given twice, first on line 4',
    ],
    [
      'pods: [{cgroup: 1}]',
      CONFIG,
      '3: pods[0]: cgroup "1": must be a text: a path or glob relative to the node’s cgroup',
    ],
    ['pods: [{cgroup: ""}]', 'EVICTD_POD', '3: pods[0]: cgroup "": no cgroup can be named ""'],
    [
      'pods: [{cgroup: /a}]',
      'EVICTD_POD',
      '3: pods[0]: cgroup "/a": a path relative to the node\'s cgroup starts without "/"',
    ],
    [
      'pods: [{cgroup: a/../b}]',
      'EVICTD_POD',
      '3: pods[0]: cgroup "a/../b": no cgroup can be named ".."',
    ],
    ['pods: [{cgroup: "a\\0"}]', 'EVICTD_POD', '3: pods[0]: cgroup "a\\u0000": a name has no NUL'],
    [
      'pods: [{cgroup: .}]',
      'EVICTD_POD',
      '3: pods[0]: cgroup ".": the host itself runs in ".": name what is evictable in it',
    ],
    [
      'pods: [{cgroup: system.slice/}]',
      'EVICTD_POD',
      '3: pods[0]: cgroup "system.slice/": the host itself runs in "system.slice": name what is evictable in it',
    ],
    [
      'pods: [{cgroup: "a/*.{b,c}"}]',
      'EVICTD_POD',
      '3: pods[0]: cgroup "a/*.{b,c}": a glob has *, ? and ** alone, neither braces nor brackets',
    ],
    [
      'pods: [{cgroup: "a/b**"}]',
      'EVICTD_POD',
      '3: pods[0]: cgroup "a/b**": ** stands for whole components, between slashes',
    ],
    [
      'pods: [{cgroup: "a/*", name: b}]',
      'EVICTD_POD',
      '3: pods[0]: name "b": a name is for one pod: this cgroup stands for several',
    ],
    [
      'pods: [{cgroup: docker, name: b}]',
      'EVICTD_POD',
      '3: pods[0]: name "b": a name is for one pod: this cgroup stands for several',
    ],
    [
      'pods: [{cgroup: a, name: ""}]',
      'EVICTD_POD',
      '3: pods[0]: name "": a name has 1 to 253 characters, none of them NUL',
    ],
    [
      'pods: [{cgroup: a, priority: "1"}]',
      CONFIG,
      '3: pods[0]: priority "1": must be a whole number, without quotes',
    ],
    [
      'pods: [{cgroup: a, priority: 2147483648}]',
      'EVICTD_INTEGER',
      '3: pods[0]: priority "2147483648": not a whole number from -2147483648 to 2147483647',
    ],
    [
      'pods: [{cgroup: a, memoryRequest: -1}]',
      'EVICTD_QUANTITY',
      '3: pods[0]: memoryRequest "-1": a request cannot be negative',
    ],
    [
      'pods: [{cgroup: a, memoryRequest: []}]',
      CONFIG,
      '3: pods[0]: memoryRequest "[…]": must be a quantity such as 512Mi',
    ],
    [
      'pods: [{cgroup: a, gracePeriod: 1.5s}]',
      'EVICTD_DURATION',
      '3: pods[0]: gracePeriod "1.5s": not a whole number of seconds from 0 to 2147483647',
    ],
    [
      'pods: [{cgroup: a, gracePeriod: -1}]',
      'EVICTD_INTEGER',
      '3: pods[0]: gracePeriod "-1": not a whole number from 0 to 2147483647',
    ],
    [
      'pods: [{cgroup: a, protected: yes}]',
      CONFIG,
      '3: pods[0]: protected "yes": must be true or false, without quotes',
    ],
  ])('refuses %j', (lines, code, printed) => {
    const error = refusal(`${OWN}${lines}\n`);
    expect(describeError(error)).toBe(`${FILE}:${printed}`);
    expect(error).toMatchObject({ code, exitStatus: 2 });
  });

  it('refuses an alias of an anchor that is defined twice', () => {
    const text = `${OWN}podParents: [&a x, &a y]\nnodeCgroup: *a\n`;
    expect(describeError(refusal(text))).toBe(
      `${FILE}:4 "*a": an alias of an anchor that is defined twice: write the value out`,
    );
  });

  it('refuses an alias without its anchor', () => {
    expect(describeError(refusal(`${OWN}nodeCgroup: *a\n`))).toBe(
      `${FILE}:3 "*a": an alias without its anchor`,
    );
  });

  it('never expands aliases', () => {
    const levels = Array.from({ length: 30 }, (_, at) => `  - &l${at} [*l${at - 1}, *l${at - 1}]`);
    const text = `${KUBELET}featureGates:\n  - &l-1 x\n${levels.join('\n')}\n`;
    expect(load(text).notes[0]).toContain('featureGates');
    const cyclic = `${OWN}pods: &a [*a]\n`;
    expect(describeError(refusal(cyclic))).toBe(
      `${FILE}:3: pods[0] "[…]": must be a map with ${MATCHERS}`,
    );
  });

  it('has rules about what a runtime names', () => {
    const { settings, warnings } = load(
      `${OWN}runtime: cri\npods:\n` +
        '- {namespace: kube-system, protected: true}\n' +
        '- {name: web-*, labels: {app: "*", tier: ""}, image: "*/nginx:*", priority: 7, gracePeriod: 1m}\n' +
        '- {cgroup: a, name: b}\n',
    );
    const nothing = {
      priority: undefined,
      memoryRequestNano: undefined,
      gracePeriodSeconds: undefined,
      protected: false,
    };
    expect(settings.podRules).toStrictEqual([
      {
        ...nothing,
        namespace: 'kube-system',
        name: undefined,
        labels: {},
        image: undefined,
        protected: true,
      },
      {
        ...nothing,
        namespace: undefined,
        name: 'web-*',
        labels: { app: '*', tier: '' },
        image: '*/nginx:*',
        priority: 7,
        gracePeriodSeconds: 60,
      },
      { ...nothing, cgroup: 'a', name: 'b' },
    ]);
    expect([...settings.pods.keys()]).toEqual(['a']);
    expect(warnings).toEqual([]);
  });

  it('says which rules the runtime has no pods for', () => {
    const pods = 'pods:\n- {cgroup: a}\n- {name: b}\n- {namespace: c, protected: true}\n';
    const why = 'it is about what a runtime names, and runtime is cgroup';
    expect(load(`${OWN}${pods}`).warnings).toEqual([
      `pods[1]: never counts: ${why}`,
      `pods[2]: never counts: ${why}: it protects nothing`,
    ]);
    expect(load(`${OWN}runtime: docker\n${pods}`).warnings).toEqual([
      'pods[2]: never counts: namespaces are those of Kubernetes, and runtime is docker: it protects nothing',
    ]);
    expect(load(`${OWN}runtime: auto\n${pods}`).warnings).toEqual([]);
  });

  it('has at most fifty labels in a rule', () => {
    const labels = (count: number) =>
      `${OWN}pods:\n- labels:\n${Array.from({ length: count }, (_, at) => `    l${at}: x\n`).join('')}`;
    expect(load(labels(50)).settings.podRules).toHaveLength(1);
    expect(describeError(refusal(labels(51)))).toBe(
      `${FILE}:5: pods[0]: labels "51": more than 50 labels`,
    );
  });

  it('has at most a thousand rules', () => {
    const rules = (count: number) => `${OWN}pods:\n${'- cgroup: a\n'.repeat(count)}`;
    expect(load(rules(1000)).settings.podRules).toHaveLength(1000);
    expect(describeError(refusal(rules(1001)))).toBe(
      `${FILE}:3: pods "1001": more than 1000 rules`,
    );
  });

  it('has paths of at most 4095 bytes, and names of 255', () => {
    const rule = (cgroup: string) => `${OWN}pods: [{cgroup: "${cgroup}"}]\n`;
    const longest = `${'x'.repeat(255)}/`.repeat(15) + 'x'.repeat(255);
    expect(load(rule(longest)).settings.pods.size).toBe(1);
    expect(refusal(rule(`${longest}/x`)).message).toBe('a path has at most 4095 bytes');
    expect(refusal(rule('x'.repeat(256))).message).toBe('a name has at most 255 bytes');
  });
});

describe('flags over a file', () => {
  const file =
    `${OWN}evictionHard: {memory.available: 1Gi, nodefs.available: 20%}\npollInterval: 5s\n` +
    'polling: {disk: {floor: 2s, assumedFallPerSecond: 2G}}\npods: [{cgroup: a}, {cgroup: b}]\n' +
    'podParents: [x, y]\ndryRun: true\n';

  it('win key by key, a map as a whole', () => {
    const { settings } = load(file, {
      '--eviction-hard': ['memory.available<2Gi'],
      '--pod': ['c=priority:1'],
      '--pod-parent': ['z'],
      '--dry-run': ['false'],
      '--polling': ['disk=floor:3s'],
      '--enforce-node-allocatable': [''],
    });
    expect(
      settings.policy.thresholds.map(({ signal, value }) => `${signal}<${value.text}`),
    ).toEqual(['memory.available<2Gi']);
    expect(settings).toMatchObject({ pollIntervalMs: 5000, podParents: ['z'], dryRun: false });
    expect(settings.polling.disk).toEqual({ floorMs: 3000, assumedFallPerSecond: 2e9 });
    expect(settings.podRules.map(({ cgroup, priority }) => [cgroup, priority])).toEqual([['c', 1]]);
    expect([...settings.pods.keys()]).toEqual(['c']);
  });

  it('are refused at the flag, what the file says at the file', () => {
    expect(refusal(file, { '--poll-interval': ['1'] }).place).toEqual({
      source: '--poll-interval',
      value: '1',
    });
    expect(refusal(`${file}logLevel: x\n`, { '--dry-run': ['true'] }).place).toEqual({
      source: `${FILE}:9`,
      key: 'logLevel',
      value: 'x',
    });
  });
});
