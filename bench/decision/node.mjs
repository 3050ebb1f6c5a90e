// @ts-check
// A node of many pods as Kubernetes describes it: pod objects, and summaries of what they use. The same
// seed makes the same node.

/** @typedef {import('../../dist/core/kubernetes.js').KubernetesPod} KubernetesPod */
/** @typedef {import('../../dist/core/kubernetes.js').Summary} Summary */
/** @typedef {import('../../dist/config/scenario-config.js').ScenarioConfig} ScenarioConfig */

/**
 * What is the matter with the node: nothing, or memory or the disk below their hard thresholds.
 * @typedef {'calm' | 'memory' | 'disk'} Situation
 */

const MI = 2 ** 20;
const GI = 2 ** 30;
const SEED = 20_260_130;
const NAMES = ['api', 'web', 'worker', 'cache', 'db', 'ingest', 'cron', 'proxy'];
const NAMESPACES = ['default', 'payments', 'search', 'monitoring'];
const CONTAINERS = ['main', 'sidecar', 'log-shipper'];
const MEMORY_MI = [64, 128, 192, 256, 384, 512, 768, 1024];
const DISK_BYTES = 500 * GI;
const DISK_INODES = 32_000_000;

/** @type {ScenarioConfig} */
export const CONFIG = {
  evictionHard: {
    'memory.available': '1Gi',
    'nodefs.available': '10%',
    'nodefs.inodesFree': '5%',
    'imagefs.available': '15%',
    'pid.available': '10%',
  },
  evictionSoft: { 'memory.available': '2Gi' },
  evictionSoftGracePeriod: { 'memory.available': '1m30s' },
  evictionMinimumReclaim: { 'memory.available': '512Mi', 'nodefs.available': '5Gi' },
  evictionMaxPodGracePeriod: 60,
};

/**
 * Numbers from 0 to 1 that look random, mulberry32.
 * @param {number} seed
 * @returns {() => number}
 */
function generator(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * @template T
 * @param {() => number} random
 * @param {readonly T[]} values
 * @returns {T}
 */
function oneOf(random, values) {
  return /** @type {T} */ (values[Math.floor(random() * values.length)]);
}

/**
 * @param {() => number} random
 * @returns {string}
 */
function uid(random) {
  const hex = Array.from({ length: 32 }, () => Math.floor(random() * 16).toString(16)).join('');
  return [8, 12, 16, 20, 32]
    .map((end, index, ends) => hex.slice(ends[index - 1] ?? 0, end))
    .join('-');
}

/**
 * Pods of two or three containers with requests and limits, some with limits of ephemeral storage,
 * each with a few volumes.
 * @param {number} count
 * @returns {readonly KubernetesPod[]}
 */
export function podsOf(count) {
  const random = generator(SEED + count);
  return Array.from({ length: count }, (_, index) => podOf(random, index));
}

/**
 * @param {() => number} random
 * @param {number} index
 */
function podOf(random, index) {
  const isLimited = random() < 0.4;
  const containers = CONTAINERS.slice(0, 2 + Math.floor(random() * 2)).map((name) => {
    const memoryMi = oneOf(random, MEMORY_MI);
    const isSparse = random() < 0.1;
    return {
      name,
      image: `registry.example.com/${name}:1.${index % 7}.0`,
      resources: isSparse
        ? {}
        : {
            requests: {
              cpu: `${50 * (1 + Math.floor(random() * 10))}m`,
              memory: `${memoryMi}Mi`,
              ...(isLimited ? { 'ephemeral-storage': `${512 + 256 * (index % 3)}Mi` } : {}),
            },
            limits: {
              cpu: '1',
              memory: `${2 * memoryMi}Mi`,
              ...(isLimited ? { 'ephemeral-storage': `${4 + (index % 3)}Gi` } : {}),
            },
          },
    };
  });
  const volumes = [
    { name: 'tmp', emptyDir: random() < 0.5 ? { sizeLimit: `${2 + (index % 4)}Gi` } : {} },
    ...(random() < 0.5 ? [{ name: 'cache', emptyDir: { sizeLimit: '8Gi' } }] : []),
    ...(random() < 0.2 ? [{ name: 'shm', emptyDir: { medium: 'Memory', sizeLimit: '64Mi' } }] : []),
    { name: 'settings', configMap: { name: `settings-${index % 9}` } },
    { name: `kube-api-access-${index.toString(36).padStart(5, '0')}`, projected: { sources: [] } },
    ...(random() < 0.2 ? [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }] : []),
  ];
  return {
    metadata: {
      name: `${oneOf(random, NAMES)}-${index}`,
      namespace: oneOf(random, NAMESPACES),
      uid: uid(random),
      labels: { app: 'bench' },
      annotations: { 'kubernetes.io/config.source': 'api' },
    },
    spec: {
      containers,
      volumes,
      priority: random() < 0.03 ? 2_000_000_000 : oneOf(random, [0, 0, 0, 100, 1000]),
      terminationGracePeriodSeconds: 30,
      tolerations: [
        { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute' },
      ],
    },
    status: { phase: 'Running', qosClass: 'Burstable' },
  };
}

/**
 * What a summary of the node says, as text, since each decision is made on one that was parsed for it.
 * No pod exceeds a limit of its own storage, so that the situation alone decides.
 * @param {readonly KubernetesPod[]} pods
 * @param {Situation} situation
 * @param {number} atMs since 1970
 * @returns {string}
 */
export function summaryText(pods, situation, atMs) {
  const random = generator(SEED + pods.length + 1);
  const time = new Date(atMs).toISOString();
  const capacity = pods.length * 1.5 * GI;
  const available = situation === 'memory' ? 700 * MI : 0.2 * capacity;
  const disk = {
    time,
    availableBytes: Math.round((situation === 'disk' ? 0.04 : 0.5) * DISK_BYTES),
    capacityBytes: DISK_BYTES,
    usedBytes: Math.round((situation === 'disk' ? 0.96 : 0.5) * DISK_BYTES),
    inodesFree: Math.round(0.8 * DISK_INODES),
    inodes: DISK_INODES,
    inodesUsed: Math.round(0.2 * DISK_INODES),
  };
  const images = { ...disk, availableBytes: 0.5 * DISK_BYTES, usedBytes: 0.5 * DISK_BYTES };
  const summary = {
    node: {
      nodeName: 'bench',
      startTime: time,
      cpu: { time, usageNanoCores: 3_141_592_653, usageCoreNanoSeconds: 271_828_182_845_904 },
      memory: memoryOf(time, available, capacity - available),
      fs: disk,
      runtime: { imageFs: images, containerFs: images },
      rlimit: { time, maxpid: 4_194_304, curproc: 20 * pods.length },
      systemContainers: [
        { name: 'pods', memory: memoryOf(time, 0.25 * capacity, 0.75 * capacity) },
        { name: 'kubelet', memory: memoryOf(time, 0, 100 * MI) },
      ],
    },
    // The kubelet lists its pods in no order.
    pods: pods.map((pod) => statsOf(random, pod, time)).sort(byUid),
  };
  return JSON.stringify(summary);
}

/**
 * @param {{ podRef: { uid: string } }} left
 * @param {{ podRef: { uid: string } }} right
 */
function byUid(left, right) {
  return left.podRef.uid < right.podRef.uid ? -1 : 1;
}

/**
 * @param {string} time
 * @param {number} availableBytes
 * @param {number} workingSetBytes
 */
function memoryOf(time, availableBytes, workingSetBytes) {
  return {
    time,
    availableBytes: Math.round(availableBytes),
    usageBytes: Math.round(1.2 * workingSetBytes),
    workingSetBytes: Math.round(workingSetBytes),
    rssBytes: Math.round(0.7 * workingSetBytes),
    pageFaults: 123_456,
    majorPageFaults: 12,
  };
}

/**
 * @param {string} time
 * @param {number} usedBytes
 * @param {number} inodesUsed
 */
function filesOf(time, usedBytes, inodesUsed) {
  return {
    time,
    availableBytes: 0.5 * DISK_BYTES,
    capacityBytes: DISK_BYTES,
    usedBytes: Math.round(usedBytes),
    inodesFree: Math.round(0.8 * DISK_INODES),
    inodes: DISK_INODES,
    inodesUsed: Math.round(inodesUsed),
  };
}

/**
 * @param {() => number} random
 * @param {KubernetesPod} pod
 * @param {string} time
 */
function statsOf(random, { metadata, spec }, time) {
  const containers = (spec.containers ?? []).map(({ name }) => ({
    name,
    startTime: time,
    cpu: { time, usageNanoCores: Math.floor(random() * 1e9), usageCoreNanoSeconds: 1e12 },
    memory: memoryOf(time, 64 * MI, (16 + random() * 700) * MI),
    rootfs: filesOf(time, random() * GI, random() * 2000),
    logs: filesOf(time, random() * 200 * MI, 1 + random() * 10),
    swap: { time, swapUsageBytes: 0 },
  }));
  const sumOf = (/** @type {(each: typeof containers[number]) => number} */ of) =>
    containers.reduce((sum, each) => sum + of(each), 0);
  const workingSetBytes = sumOf(({ memory }) => memory.workingSetBytes);
  const volume = (spec.volumes ?? []).map(({ name }) => ({
    ...filesOf(time, random() * (name === 'shm' ? 60 : 300) * MI, random() * 500),
    name,
  }));
  return {
    podRef: { name: metadata.name, namespace: metadata.namespace, uid: metadata.uid },
    startTime: time,
    containers,
    cpu: { time, usageNanoCores: Math.floor(random() * 1e9), usageCoreNanoSeconds: 1e12 },
    memory: memoryOf(time, 64 * MI, workingSetBytes),
    network: { time, name: 'eth0', rxBytes: 1e9, rxErrors: 0, txBytes: 1e9, txErrors: 0 },
    volume,
    'ephemeral-storage': filesOf(
      time,
      sumOf(({ rootfs, logs }) => rootfs.usedBytes + logs.usedBytes),
      sumOf(({ rootfs, logs }) => rootfs.inodesUsed + logs.inodesUsed),
    ),
    process_stats: { process_count: 1 + Math.floor(random() * 60) },
    swap: { time, swapUsageBytes: 0 },
  };
}
