import { stringify } from 'yaml';
import { formatDuration } from '../core/duration.ts';
import { POLL_PACES } from '../core/polling.ts';
import { formatQuantity } from '../core/quantity.ts';
import type { PollKind } from '../core/signal.ts';
import type { Checked } from './check.ts';
import { KINDS } from './kinds.ts';
import { type GarbageSettings, isCgroupRule, type PodRule, type Settings } from './settings.ts';
import type { SignalTexts } from './signal-texts.ts';
import { formatDockerPods, NO_SOCKET, NO_STATE } from './values.ts';

/** Where an editor finds what keys there are, relative to a file beside the package's `docs/`. */
const SCHEMA = 'docs/schema/evictd.dev_v1alpha1.json';

const NANO = 1_000_000_000n;

/**
 * What was loaded, as an EvictdConfiguration in YAML, the defaults written out. Read again, it gives the
 * same settings, but for `compatibilityBecause` and `configFile`.
 */
export function printConfiguration({ settings, signals, enforcements }: Checked): string {
  const { policy, filesystems, socket, stateDir } = settings;
  const configuration = {
    apiVersion: KINDS.EvictdConfiguration,
    kind: 'EvictdConfiguration',
    compatibility: settings.compatibility,
    nodeCgroup: settings.nodeCgroup,
    nodeName: settings.nodeName,
    podParents: parentsOf(settings),
    runtime: settings.runtime.kind,
    runtimeEndpoint: settings.runtime.endpoint,
    dockerPods: formatDockerPods(settings.dockerPods),
    besideKubelet: settings.besideKubelet,
    // Rules, even none, say that nothing else is a pod.
    pods:
      settings.podsBy === 'path' && settings.podRules.length === 0
        ? undefined
        : settings.podRules.map(printRule),
    evictionHard: printTexts(signals['--eviction-hard']),
    mergeDefaultEvictionSettings: false,
    evictionSoft: printTexts(signals['--eviction-soft']),
    evictionSoftGracePeriod: printTexts(signals['--eviction-soft-grace-period']),
    evictionMinimumReclaim: printTexts(signals['--eviction-minimum-reclaim']),
    evictionMaxPodGracePeriod: policy.maxPodGracePeriodSeconds,
    evictionPressureTransitionPeriod: formatDuration(policy.pressureTransitionPeriodMs),
    hardEvictionGracePeriodSeconds: policy.hardEvictionGracePeriodSeconds,
    enforceNodeAllocatable: enforcements,
    memorySource: settings.memorySource,
    kernelMemcgNotification: settings.kernelMemcgNotification,
    pollInterval: formatDuration(settings.pollIntervalMs),
    polling: printPolling(settings.polling),
    kubeletRootDir: settings.kubeletRootDir,
    podLogsDir: settings.podLogsDir,
    nodefsPath: filesystems.nodefs,
    imagefsPath: filesystems.imagefs,
    containerfsPath: filesystems.containerfs,
    ...printGarbage(settings.garbage),
    // The default one may be left out where it cannot be made, one that is written may not.
    socket: socket === undefined ? NO_SOCKET : socket.explicit ? socket.path : undefined,
    stateDir: stateDir === undefined ? NO_STATE : stateDir.explicit ? stateDir.path : undefined,
    dryRun: settings.dryRun,
    allowPidKill: settings.allowPidKill,
    logLevel: settings.logLevel,
    scheduling: settings.scheduling,
  };
  return `# yaml-language-server: $schema=${SCHEMA}\n${stringify(configuration, { lineWidth: 0 })}`;
}

function printGarbage(garbage: GarbageSettings): Readonly<Record<string, string | number>> {
  const { containers, containerPolicy, images, marks } = garbage;
  return {
    containerGC: containers,
    containerGCMinimumAge: formatDuration(containerPolicy.minimumAgeMs),
    containerGCMaxPerPod: containerPolicy.mostPerOwner,
    imageGC: images,
    imageGCHighThresholdPercent: marks.highPercent,
    imageGCLowThresholdPercent: marks.lowPercent,
    imageMinimumGCAge: formatDuration(garbage.imageMinimumAgeMs),
    imageMaximumGCAge: formatDuration(garbage.imageMaximumAgeMs),
  };
}

/** With `--pod` the children of the node's own cgroup are pods too, which rules have to say. */
function parentsOf({ podsBy, podParents, podRules, nodeCgroup }: Settings): readonly string[] {
  const isImplied = podsBy === 'path' && podRules.length > 0 && podParents.length === 0;
  return isImplied && nodeCgroup !== undefined ? ['.'] : podParents;
}

function printTexts(texts: SignalTexts): Record<string, string> {
  return Object.fromEntries([...texts].map(([signal, { text }]) => [signal, text]));
}

function printRule(rule: PodRule): Record<string, unknown> {
  const { priority, memoryRequestNano, gracePeriodSeconds } = rule;
  return {
    ...matchersOf(rule),
    priority,
    memoryRequest:
      memoryRequestNano === undefined ? undefined : formatQuantity(memoryRequestNano, 'binary'),
    gracePeriod: gracePeriodSeconds,
    protected: rule.protected ? true : undefined,
  };
}

/** What a rule of `pods` is about, as it is written. */
export function matchersOf(rule: PodRule): Record<string, unknown> {
  if (isCgroupRule(rule)) return { cgroup: rule.cgroup, name: rule.name };
  const { namespace, name, labels, image } = rule;
  return {
    namespace,
    name,
    labels: Object.keys(labels).length === 0 ? undefined : labels,
    image,
  };
}

function printPolling(polling: Checked['settings']['polling']): Record<string, unknown> {
  const kinds = Object.keys(POLL_PACES) as PollKind[];
  return Object.fromEntries(
    kinds.map((kind) => {
      const { assumedFallPerSecond, floorMs } = polling[kind];
      return [
        kind,
        {
          assumedFallPerSecond: formatQuantity(nanoOf(assumedFallPerSecond), 'decimal'),
          floor: formatDuration(floorMs),
        },
      ];
    }),
  );
}

function nanoOf(number: number): bigint {
  const whole = Math.trunc(number);
  return BigInt(whole) * NANO + BigInt(Math.round((number - whole) * Number(NANO)));
}
