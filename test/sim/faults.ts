/** A fault that is planted on purpose, to see that the suite of generated nodes finds it. */
export interface Fault {
  /** In which file, from the root of the checkout. */
  readonly file: string;
  /** What is to be there, exactly once. */
  readonly text: string;
  /** What is put in its place. */
  readonly replacement: string;
  /** What it breaks. */
  readonly breaks: string;
}

const ENGINE = 'src/simulation/engine.ts';

/** One-line changes, each of which `nodes.test.ts` must fail on: `scripts/faults.mjs` plants them. */
export const FAULTS: readonly Fault[] = [
  {
    file: 'src/core/threshold.ts',
    text: 'return thresholdLevel(threshold, observation.capacity, withReclaim) > observation.available;',
    replacement:
      'return thresholdLevel(threshold, observation.capacity, withReclaim) >= observation.available;',
    breaks: 'a threshold is met at its level',
  },
  {
    file: 'src/core/threshold.ts',
    text: 'if (!withReclaim || reclaim === undefined) return resolveValue(value, capacity);',
    replacement: 'if (!withReclaim || true) return resolveValue(value, capacity);',
    breaks: 'minimum reclaim is not awaited',
  },
  {
    file: 'src/core/threshold.ts',
    text: 'const sum = resolveValue(value, capacity) + resolveValue(reclaim, capacity);',
    replacement: 'const sum = resolveValue(value, capacity);',
    breaks: 'minimum reclaim in percent is nothing',
  },
  {
    file: 'src/core/threshold.ts',
    text: 'return wholeUnits(value.nano + reclaim.nano);',
    replacement: 'return wholeUnits(value.nano) + wholeUnits(reclaim.nano);',
    breaks: 'two halves are two',
  },
  {
    file: 'src/core/threshold.ts',
    text: 'Number((nano + NANO - 1n) / NANO)',
    replacement: 'Number(nano / NANO)',
    breaks: 'a quantity is rounded down',
  },
  {
    file: 'src/core/threshold.ts',
    text: 'Math.min(Math.trunc(capacity * value.fraction), Number.MAX_SAFE_INTEGER)',
    replacement: 'Math.min(Math.ceil(capacity * value.fraction), Number.MAX_SAFE_INTEGER)',
    breaks: 'a percentage is rounded up',
  },
  {
    file: 'src/core/threshold.ts',
    text: 'memoryFirst(a) - memoryFirst(b) ||',
    replacement: '',
    breaks: 'memory is not acted on before all else',
  },
  {
    file: 'src/core/threshold.ts',
    text: 'KIND_ORDER[a.kind] - KIND_ORDER[b.kind] ||',
    replacement: '',
    breaks: 'a soft threshold acts before a hard one',
  },
  {
    file: 'src/core/threshold.ts',
    text: 'starvation(left) - starvation(right) ||',
    replacement: 'starvation(right) - starvation(left) ||',
    breaks: 'the least starved is acted on',
  },
  {
    file: 'src/core/grace.ts',
    text: 'isReached(graceEndsAtMs(threshold, observed), nowMs)',
    replacement: 'isReached(graceEndsAtMs(threshold, observed) - 1000, nowMs)',
    breaks: 'a grace ends a second too soon',
  },
  {
    file: 'src/core/grace.ts',
    text: 'isReached(graceEndsAtMs(threshold, observed), nowMs)',
    replacement: 'isReached(graceEndsAtMs(threshold, observed) + 1, nowMs)',
    breaks: 'a grace lasts longer than it should',
  },
  {
    file: 'src/core/grace.ts',
    text: '!isReached(end, nowMs)',
    replacement: '!isReached(end, nowMs + 10_000)',
    breaks: 'the end of a grace is looked at too late',
  },
  {
    file: 'src/core/grace.ts',
    text: 'const after = new Map<ThresholdId, number>();',
    replacement: 'const after = new Map(before);',
    breaks: 'a grace that was broken off goes on',
  },
  {
    file: 'src/core/conditions.ts',
    text: '!isReached(atMs + transitionPeriodMs, nowMs)',
    replacement: '!isReached(atMs + transitionPeriodMs / 2, nowMs)',
    breaks: 'a condition ends before its transition period is over',
  },
  {
    file: 'src/core/conditions.ts',
    text: '!isReached(atMs + transitionPeriodMs, nowMs)',
    replacement: '!isReached(atMs + transitionPeriodMs + 1, nowMs)',
    breaks: 'a condition is held a moment too long',
  },
  {
    file: 'src/core/conditions.ts',
    text: 'const end = atMs + transitionPeriodMs;',
    replacement: 'const end = atMs + 2 * transitionPeriodMs;',
    breaks: 'the end of a condition is looked at too late',
  },
  {
    file: 'src/core/conditions.ts',
    text: 'after.set(SIGNALS[signal].condition, nowMs);',
    replacement:
      'after.set(SIGNALS[signal].condition, after.get(SIGNALS[signal].condition) ?? nowMs);',
    breaks: 'a transition period runs from when the condition was first seen',
  },
  {
    file: 'src/core/rank.ts',
    text: 'kubelet: { unknown: 0, exceeds: 1, within: 2 },',
    replacement: 'kubelet: { unknown: 2, exceeds: 1, within: 2 },',
    breaks: 'by the kubelet’s rules a pod without stats does not go first',
  },
  {
    file: 'src/core/rank.ts',
    text: 'evictd: { exceeds: 0, unknown: 1, within: 2 },',
    replacement: 'evictd: { exceeds: 1, unknown: 0, within: 2 },',
    breaks: 'by evictd’s rules a pod of unknown usage goes before the offender',
  },
  {
    file: 'src/core/rank.ts',
    text: 'if (left.priority !== right.priority) return left.priority - right.priority;',
    replacement: 'if (left.priority !== right.priority) return right.priority - left.priority;',
    breaks: 'the highest priority goes first',
  },
  {
    file: 'src/core/rank.ts',
    text: 'const more = right.nearly - left.nearly;',
    replacement: 'const more = left.nearly - right.nearly;',
    breaks: 'the least use goes first',
  },
  {
    file: 'src/core/rank.ts',
    text: 'return left > right ? -1 : 1;',
    replacement: 'return left < right ? -1 : 1;',
    breaks: 'of two that use nearly the same the lesser goes first',
  },
  {
    file: 'src/core/rank.ts',
    text: 'if (left.order !== right.order) return left.order - right.order;',
    replacement: '',
    breaks: 'priority counts before what exceeds a request',
  },
  {
    file: 'src/core/rank.ts',
    text: 'orderedBy(byStanding(rules), byPriority, byCut, byUsage(rules), byName)',
    replacement: 'orderedBy(byStanding(rules), byPriority, byCut, byUsage(rules))',
    breaks: 'equal pods go in the order they come in',
  },
  {
    file: 'src/core/rank.ts',
    text: '? used - request\n',
    replacement: '? used\n',
    breaks: 'requests do not count',
  },
  {
    file: 'src/core/rank.ts',
    text: 'BigInt(used) * NANO > requestNano ?',
    replacement: 'BigInt(used) * NANO >= requestNano ?',
    breaks: 'who uses just what it requests is an offender',
  },
  {
    file: 'src/core/rank.ts',
    text: "nodefs: ['root', 'logs', 'localVolumes'],\n    imagefs: [],",
    replacement: "nodefs: ['logs', 'localVolumes'],\n    imagefs: [],",
    breaks: 'with split images writable layers do not count for nodefs',
  },
  {
    file: 'src/core/rank.ts',
    text: 'const requestNano = subtractsBytes ? (pod.ephemeralStorageRequestNano ?? 0n) : 0n;',
    replacement: 'const requestNano = 0n;',
    breaks: 'by the kubelet’s rules inodes are not ranked less the bytes requested',
  },
  {
    file: 'src/core/rank.ts',
    text: 'return pod.exclusiveImageBytes !== 0;',
    replacement: 'return true;',
    breaks: 'a pod without an image of its own is evicted for images',
  },
  {
    file: 'src/core/rank.ts',
    text: 'return used?.amount !== 0 || used.isLeast;',
    replacement: 'return true;',
    breaks: 'a pod that has nothing on the disk that is short is evicted for it',
  },
  {
    file: 'src/core/image-gc.ts',
    text: 'const isExclusive = users.size === 1 && !isKept;',
    replacement: 'const isExclusive = !isKept;',
    breaks: 'images that others use too count as a pod’s own',
  },
  {
    file: 'src/core/image-gc.ts',
    text: 'const isExclusive = users.size === 1 && !isKept;',
    replacement: 'const isExclusive = users.size === 1;',
    breaks: 'images that would stay though nobody used them count as a pod’s own',
  },
  {
    file: 'src/core/observe.ts',
    text: '(isForImages || state.spaceAwaited !== undefined)',
    replacement: 'state.spaceAwaited !== undefined',
    breaks: 'the images of an evicted pod are not collected before the next one goes',
  },
  {
    file: 'src/core/observe.ts',
    text: '.filter(([signal]) => dueSignal({ due }, signal) !== undefined)',
    replacement: '',
    breaks: 'after a collection that was enough none comes before the next pod goes',
  },
  {
    file: 'src/core/pod-spec.ts',
    text: "if (source !== undefined && source !== 'api') return 'static pod';",
    replacement: '',
    breaks: 'a static pod is evicted',
  },
  {
    file: 'src/core/pod-spec.ts',
    text: "if (annotations[MIRROR_ANNOTATION] !== undefined) return 'mirror pod';",
    replacement: "if (annotations[MIRROR_ANNOTATION]) return 'mirror pod';",
    breaks: 'a mirror pod whose annotation is empty is evicted',
  },
  {
    file: 'src/core/pod-spec.ts',
    text: "(spec.priority ?? 0) >= CRITICAL_PRIORITY ? 'critical priority' : undefined",
    replacement: "(spec.priority ?? 0) > CRITICAL_PRIORITY ? 'critical priority' : undefined",
    breaks: 'a pod of just the critical priority is evicted',
  },
  {
    file: 'src/core/pod-spec.ts',
    text: 'return most === 0n ? 0n : most + overheadNano;',
    replacement: 'return most + overheadNano;',
    breaks: 'by the kubelet’s rules overhead counts without a request',
  },
  {
    file: 'src/core/pod-spec.ts',
    text: 'together = sumOf(together, own);',
    replacement: '',
    breaks: 'an init container that goes on is not added to the sum',
  },
  {
    file: 'src/core/pod-spec.ts',
    text: 'most = larger(most, sumOf(own, goingOn));',
    replacement: 'most = larger(most, own);',
    breaks: 'an init container runs without those that go on beside it',
  },
  {
    file: 'src/core/pod-spec.ts',
    text: "(isGiven(emptyDir) && (emptyDir?.medium ?? '') === '') ||",
    replacement: 'isGiven(emptyDir) ||',
    breaks: 'memory-backed volumes are disk use',
  },
  {
    file: 'src/core/storage-limits.ts',
    text: "usedBytes(stats['ephemeral-storage']) <= limit.mostBytes",
    replacement: "usedBytes(stats['ephemeral-storage']) < limit.mostBytes",
    breaks: 'a pod at the storage limit of all its containers is evicted',
  },
  {
    file: 'src/core/pod-spec.ts',
    text: 'mostBytes: Number(isRoundedUp ? whole - 1n : whole)',
    replacement: 'mostBytes: Number(isRoundedUp ? whole : whole - 1n)',
    breaks: 'storage limits are a byte off',
  },
  {
    file: 'src/core/storage-limits.ts',
    text: 'if (used > limit.mostBytes) {',
    replacement: 'if (used >= limit.mostBytes) {',
    breaks: 'a pod with a container at its storage limit is evicted',
  },
  {
    file: 'src/core/storage-limits.ts',
    text: "rules.rootfsLimit === 'evictd' || layout === 'single'",
    replacement: "layout === 'single'",
    breaks: 'by evictd’s rules writable layers do not count towards a limit',
  },
  {
    file: 'src/core/reclaim.ts',
    text: "splitImagefs: { nodefs: ['containers'], imagefs: ['images'], containerfs: ['containers'] },",
    replacement:
      "splitImagefs: { nodefs: BOTH, imagefs: ['images'], containerfs: ['containers'] },",
    breaks: 'with split images, images are collected for nodefs',
  },
  {
    file: 'src/core/reclaim.ts',
    text: "return isLogs && rules.nodefsReclaim === 'evictd' ? ['containers'] : functions;",
    replacement: 'return functions;',
    breaks: 'by evictd’s rules nothing is collected for a nodefs with a dedicated imagefs',
  },
  {
    file: 'src/core/containerfs.ts',
    text: 'const followsImages = dedicatedImageFs && !splitImageFs;',
    replacement: 'const followsImages = dedicatedImageFs;',
    breaks: 'with split images containerfs follows the imagefs',
  },
  {
    file: 'src/core/containerfs.ts',
    text: "const isLate = rules.containerfsLate === 'kubelet';",
    replacement: 'const isLate = false;',
    breaks: 'by the kubelet’s rules derived thresholds take part in the first round',
  },
  {
    file: 'src/core/summary.ts',
    text: 'available >= 0 && available <= capacity;',
    replacement: 'available <= capacity;',
    breaks: 'a negative figure is acted on',
  },
  {
    file: 'src/core/summary.ts',
    text: "rules.unknownUsage === 'kubelet' ? 0 : undefined",
    replacement: '0',
    breaks: 'by evictd’s rules a missing usage is none',
  },
  {
    file: 'src/core/timestamp.ts',
    text: 'BigInt(local - zone)',
    replacement: 'BigInt(local)',
    breaks: 'offsets of times are left out',
  },
  {
    file: 'src/core/admission.ts',
    text: "conditions.length === 1 && conditions[0] === 'MemoryPressure'",
    replacement: "conditions.includes('MemoryPressure')",
    breaks: 'memory pressure lets pods in whatever else is short',
  },
  {
    file: 'src/core/decide.ts',
    text: '? statsTimeNs > before : statsTimeNs !== before',
    replacement: '? statsTimeNs >= before : true',
    breaks: 'old figures decide again',
  },
  {
    file: 'src/core/decide.ts',
    text: 'candidate.protectedBecause === undefined &&',
    replacement: '',
    breaks: 'protected pods are evicted',
  },
  {
    file: 'src/core/observe.ts',
    text: 'pod.protectedBecause === undefined && !before.passedOver.has(pod.id)',
    replacement: '!before.passedOver.has(pod.id)',
    breaks: 'protected pods are evicted for their own limits',
  },
  {
    file: 'src/core/decide.ts',
    text: '!state.passedOver.has(candidate.id) &&',
    replacement: '',
    breaks: 'a pod that could not be evicted is taken again at once',
  },
  {
    file: 'src/core/decide.ts',
    text: 'if (inFlight.hard || urgent === undefined)',
    replacement: 'if (inFlight.hard || true)',
    breaks: 'a hard threshold cuts no grace',
  },
  {
    file: 'src/core/decide.ts',
    text: 'return Math.min(longest, pod.gracePeriodSeconds ?? longest);',
    replacement: 'return pod.gracePeriodSeconds ?? longest;',
    breaks: 'a victim has a longer grace than the longest',
  },
  {
    file: 'src/core/observe.ts',
    text: '(threshold) => isRead(threshold.signal) || isAmong(threshold, before.due),',
    replacement: '() => true,',
    breaks: 'something becomes due unseen',
  },
  {
    file: 'src/core/observe.ts',
    text: 'return isMet(threshold, observation, isAmong(threshold, before.due));',
    replacement: 'return isMet(threshold, observation, isAmong(threshold, before.met));',
    breaks: 'minimum reclaim counts for a threshold that has not acted',
  },
  {
    file: 'src/core/decide.ts',
    text: 'return isMet(threshold, observation, true) ? causeOf(threshold, observation) : undefined;',
    replacement:
      'return isMet(threshold, observation, false) ? causeOf(threshold, observation) : undefined;',
    breaks: 'a collection is enough below the minimum reclaim',
  },
  {
    file: 'src/core/decide.ts',
    text: "policy.rules.reclaimedWhen === 'kubelet'",
    replacement: "policy.rules.reclaimedWhen !== 'kubelet'",
    breaks: 'what a collection must regain is what the other rules say',
  },
  {
    file: 'src/core/decide.ts',
    text: 'if (overLimit !== undefined) return unranked(evictOverLimit(policy, overLimit));',
    replacement: '',
    breaks: 'limits of local storage are not enforced',
  },
  {
    file: ENGINE,
    text: "if (kind === 'evicted') this.#gone.add(decision.pod.name);",
    replacement: '',
    breaks: 'a pod whose kill took time is still there after it',
  },
  {
    file: ENGINE,
    text: "tick.killFails?.includes(pod.name) ? 'failed' : (kill?.outcome ?? 'evicted')",
    replacement: "kill?.outcome ?? 'evicted'",
    breaks: 'a kill that fails is taken for one that does not',
  },
  {
    file: ENGINE,
    text: 'const endsAtMs = nowMs + decision.gracePeriodMs + takesMs;',
    replacement: 'const endsAtMs = nowMs + takesMs;',
    breaks: 'a kill ends before the grace of its pod is over',
  },
  {
    file: ENGINE,
    text: 'this.#view(after === undefined ? summary : after, seen)',
    replacement: 'this.#view(summary, seen)',
    breaks: 'what is read after a collection is left out',
  },
];
