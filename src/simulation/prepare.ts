/** A scenario checked and compiled: what does not change from round to round. */
import type { Checked } from '../config/check.ts';
import type { FlagValues } from '../config/flags.ts';
import { type ScenarioConfig, scenarioSettings } from '../config/scenario-config.ts';
import { withContainerfs } from '../core/containerfs.ts';
import { describeError, EvictdError, escapeControl } from '../core/errors.ts';
import type { KubernetesPod } from '../core/kubernetes.ts';
import type { FilesystemLayout } from '../core/layout.ts';
import { type PodSpec, podSpec } from '../core/pod-spec.ts';
import type { MemorySource, Policy } from '../core/policy.ts';
import { RECLAIM_FUNCTIONS } from '../core/reclaim.ts';
import { RULE_SETS, type Rules } from '../core/rules.ts';
import type { Scenario, ScenarioExtension } from './scenario.ts';

export interface Prepared {
  readonly scenario: Scenario;
  /** In the first round, and after it. */
  readonly first: Policy;
  readonly later: Policy;
  readonly rules: Rules;
  /** Whether evictd's own rules hold; the kubelet's take no notice of what only evictd has. */
  readonly isOwn: boolean;
  readonly memorySource: MemorySource;
  readonly checksLimits: boolean;
  readonly pods: readonly PodSpec[];
  readonly warnings: readonly string[];
}

/** Checks a configuration; what it gives is not changed. */
export type SettingsReader = (config: ScenarioConfig) => Checked;

/** How many configurations are remembered, and how long one may be, as JSON. */
const MOST_REMEMBERED = 100;
const LONGEST_REMEMBERED = 10_000;

/**
 * A reader that remembers: many scenarios are of one node, or of a few, and a configuration takes as
 * long to check as some rounds to run.
 *
 * @throws EvictdError (the reader) what {@link scenarioSettings} throws
 */
export function rememberingReader(flags: FlagValues): SettingsReader {
  const known = new Map<string, Checked>();
  return (config) => {
    const text = JSON.stringify(config);
    const before = known.get(text);
    if (before !== undefined) return before;
    const checked = scenarioSettings(config, flags);
    if (known.size >= MOST_REMEMBERED) known.clear();
    if (text.length <= LONGEST_REMEMBERED) known.set(text, checked);
    return checked;
  };
}

/**
 * Checks a configuration and compiles the pods by its rules.
 *
 * @param config the scenario's, or what holds in its place
 * @param read how the configuration is checked
 * @throws EvictdError what {@link scenarioSettings} throws; EVICTD_SCENARIO for a pod that cannot be read
 */
export function prepare(
  scenario: Scenario,
  config: ScenarioConfig,
  read: SettingsReader,
): Prepared {
  const { settings, warnings } = read(config);
  const rules = RULE_SETS[settings.compatibility];
  const isOwn = settings.compatibility === 'evictd';
  const { first, later, overridden } = withContainerfs(
    settings.policy.thresholds,
    scenario.node,
    rules,
  );
  const policy: Policy = {
    ...settings.policy,
    layout: layoutOf(scenario.node),
    ranksDisk: (isOwn ? scenario.evictd?.ranksDisk : undefined) ?? true,
    reclaims: isOwn && scenario.evictd?.reclaims === false ? [] : RECLAIM_FUNCTIONS,
  };
  return {
    scenario,
    first: { ...policy, thresholds: first },
    later: { ...policy, thresholds: later },
    rules,
    isOwn,
    memorySource: settings.memorySource,
    checksLimits: config.localStorageCapacityIsolation ?? true,
    pods: scenario.pods.map((pod, index) =>
      specOf(pod, () => `pods[${index}]`, rules, isOwn, scenario.evictd?.protected),
    ),
    warnings: [
      ...warnings,
      ...overridden.map(
        ({ kind, signal }) => `${kind} ${signal}: replaced, containerfs follows nodefs or imagefs`,
      ),
    ],
  };
}

function specOf(
  pod: KubernetesPod,
  path: PathText,
  rules: Rules,
  isOwn: boolean,
  guarded: ScenarioExtension['protected'],
): PodSpec {
  const spec = readablePod(path, pod, () => podSpec(pod, rules));
  // A recording has a reason beside the annotation that protects the pod by any rules: it says more.
  const reason = guarded?.[spec.name];
  const isProtected = isOwn || spec.protectedBecause !== undefined;
  return reason === undefined || !isProtected ? spec : { ...spec, protectedBecause: reason };
}

function layoutOf({ dedicatedImageFs, splitImageFs }: Scenario['node']): FilesystemLayout {
  if (!dedicatedImageFs) return 'single';
  return splitImageFs ? 'splitImagefs' : 'dedicatedImagefs';
}

/** Where a part of a scenario is; made into a text only for an error. */
export type PathText = () => string;

/** Reads a part of the scenario; what it cannot be read for is said with the path of the part. */
export function readable<T>(path: PathText, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof EvictdError)) throw error;
    throw new EvictdError('EVICTD_SCENARIO', `${path()}: ${describeError(error)}`);
  }
}

/** The same for a pod, of which only a quantity can be one that is none. */
export function readablePod<T>(path: PathText, pod: KubernetesPod, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof EvictdError)) throw error;
    const { containers, initContainers, overhead, volumes } = pod.spec;
    const quantities = {
      containers: (containers ?? []).map(({ resources }) => ({ resources })),
      initContainers: (initContainers ?? []).map(({ resources }) => ({ resources })),
      overhead,
      volumes: (volumes ?? []).map(({ emptyDir }) => ({
        emptyDir: { sizeLimit: emptyDir?.sizeLimit },
      })),
    };
    const where = pathOf(error.place.value, quantities) ?? '';
    const key = where === '' ? path() : `${path()}.spec${where}`;
    throw new EvictdError('EVICTD_SCENARIO', `${key}: ${describeError(error)}`);
  }
}

/** Where a text stands first, as `.name[0]…`; undefined where it does not. */
function pathOf(text: string | undefined, value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return String(value) === text ? '' : undefined;
  for (const [name, inner] of Object.entries(value)) {
    const rest = pathOf(text, inner);
    if (rest === undefined) continue;
    return (Array.isArray(value) ? `[${name}]` : `.${escapeControl(name)}`) + rest;
  }
  return undefined;
}
