/** From texts to settings: every check that needs nothing of the host. */
import { formatDuration } from '../core/duration.ts';
import { describeAt, EvictdError, quote } from '../core/errors.ts';
import type { Compatibility, Policy } from '../core/policy.ts';
import { RULE_SETS } from '../core/rules.ts';
import { FILESYSTEMS, type FilesystemName } from '../core/signal.ts';
import { parseChoice } from './choice.ts';
import { defaultHard, type FlagValues, givenFromFlags } from './flags.ts';
import { garbageOf, reclaimsBy, refused } from './garbage.ts';
import type { Given, GivenPods, GivenSignals } from './given.ts';
import type { FileConfiguration } from './kinds.ts';
import { OPTIONS, type SignalOption } from './options.ts';
import { compilePodRules, isGlob, isParent } from './pod-globs.ts';
import { pollingOf } from './polling-flag.ts';
import { durationWithin, INT32, integerWithin, SECONDS } from './ranges.ts';
import {
  type CgroupRule,
  type CheckedSettings,
  COMPATIBILITIES,
  HARD_GRACE_SECONDS,
  isCgroupRule,
  LOG_LEVELS,
  MEMORY_SOURCES,
  type PodSettings,
  RUNTIMES,
  type RuntimeChoice,
  SCHEDULINGS,
  type Settings,
  sharedParent,
} from './settings.ts';
import type { SignalTexts } from './signal-texts.ts';
import { textReader } from './text-reader.ts';
import { checkThresholds } from './thresholds.ts';
import {
  type Enforcement,
  NO_SOCKET,
  NO_STATE,
  parseDockerPods,
  parseEndpoint,
  parseEnforcement,
  parseFilesystemPath,
  parseNodeCgroup,
  parseNodeName,
  parsePodParent,
  parseSocketPath,
  parseStateDir,
  parseSwitch,
} from './values.ts';

const NOT_NEGATIVE = { min: 0, max: Number.POSITIVE_INFINITY } as const;

const POLL_INTERVAL_MS = { min: 50, max: 3_600_000 } as const;

/** What zero means to the kubelet. Source: kubelet `apis/config/v1beta1/defaults.go`. */
const KUBELET_TRANSITION_MS = 300_000;

/** A file, and what flags and file say together. */
export interface Origin {
  readonly given: Given;
  readonly file: { readonly path: string; readonly configuration: FileConfiguration } | undefined;
}

/** Settings, and the lists of signals that they were made of, with the defaults. */
export interface Checked extends CheckedSettings {
  readonly signals: Readonly<Record<SignalOption, SignalTexts>>;
  readonly enforcements: readonly Enforcement[];
}

/**
 * Checks what was given; pure.
 *
 * @throws EvictdError where the value stood: EVICTD_THRESHOLD, EVICTD_QUANTITY, EVICTD_PERCENTAGE,
 * EVICTD_DURATION, EVICTD_INTEGER, EVICTD_CHOICE, EVICTD_NODE_CGROUP, EVICTD_NODE_NAME, EVICTD_POD_PARENT,
 * EVICTD_PATH, EVICTD_SOCKET_PATH, EVICTD_STATE_DIR
 */
export function checkGiven({ given, file }: Origin): Checked {
  const texts = textReader(given);
  const { compatibility, because } = compatibilityOf(given, file);
  const podParents = [...new Set(texts.all('--pod-parent', parsePodParent))];
  const enforcements = enforcementsOf(given);
  const isMerged = texts.last('--merge-default-eviction-settings', parseSwitch);
  const signals: Checked['signals'] = {
    '--eviction-hard': hardTexts(given.signals['--eviction-hard'], isMerged),
    '--eviction-soft': given.signals['--eviction-soft']?.texts ?? new Map(),
    '--eviction-soft-grace-period':
      given.signals['--eviction-soft-grace-period']?.texts ?? new Map(),
    '--eviction-minimum-reclaim': given.signals['--eviction-minimum-reclaim']?.texts ?? new Map(),
  };
  const filesystems: Settings['filesystems'] = {
    nodefs: texts.last('--nodefs-path', parseFilesystemPath),
    imagefs: texts.all('--imagefs-path', parseFilesystemPath).at(-1),
    containerfs: texts.all('--containerfs-path', parseFilesystemPath).at(-1),
  };
  const runtime: Settings['runtime'] = {
    kind: texts.last('--runtime', (text) => parseChoice(text, RUNTIMES)),
    endpoint: texts.all('--runtime-endpoint', parseEndpoint).at(-1),
  };
  refuseWithout(given, '--runtime-endpoint', runtime.kind !== 'cgroup', 'cri, docker or auto');
  const asksDocker = runtime.kind === 'docker' || runtime.kind === 'auto';
  refuseWithout(given, '--docker-pods', asksDocker, 'docker or auto');
  // What runs pods in images tells where those are.
  const isTold = runtime.kind !== 'cgroup';
  const { thresholds, warnings, notes } = checkThresholds({
    hard: signals['--eviction-hard'],
    soft: signals['--eviction-soft'],
    softGracePeriod: signals['--eviction-soft-grace-period'],
    minimumReclaim: signals['--eviction-minimum-reclaim'],
    compatibility,
    podsHaveParent: sharedParent(podParents) !== undefined,
    enforcesPods: enforcements.includes('pods'),
    hasFilesystem: Object.fromEntries(
      FILESYSTEMS.map((name) => [name, isTold || filesystems[name] !== undefined]),
    ) as Record<FilesystemName, boolean>,
  });
  const transition = transitionOf(given, compatibility);
  const { garbage, warnings: ofGarbage } = garbageOf(texts, given, runtime.kind, compatibility);
  const policy: Policy = {
    thresholds,
    pressureTransitionPeriodMs: transition.ms,
    maxPodGracePeriodSeconds: texts.last('--eviction-max-pod-grace-period', integerWithin(INT32)),
    hardEvictionGracePeriodSeconds:
      texts.all('--hard-eviction-grace-period-seconds', integerWithin(SECONDS)).at(-1) ??
      HARD_GRACE_SECONDS[compatibility],
    rules: RULE_SETS[compatibility],
    layout: 'single',
    // What runs the pods tells it, once it was asked.
    ranksDisk: false,
    reclaims: reclaimsBy(garbage),
  };
  const socket = texts.last('--socket', parseSocketPath);
  const stateDir = texts.last('--state-dir', parseStateDir);
  const settings: Settings = {
    policy,
    kernelMemcgNotification: texts.last('--kernel-memcg-notification', parseSwitch),
    nodeCgroup: texts.all('--node-cgroup', parseNodeCgroup).at(-1),
    nodeName: texts.all('--node-name', parseNodeName).at(-1),
    podParents,
    compatibility,
    compatibilityBecause: because,
    memorySource: texts.last('--memory-source', (text) => parseChoice(text, MEMORY_SOURCES)),
    ...podsOf(given.pods),
    runtime,
    garbage,
    besideKubelet: texts.last('--beside-kubelet', parseSwitch),
    dockerPods: texts.last('--docker-pods', parseDockerPods),
    kubeletRootDir: texts.last('--kubelet-root-dir', parseFilesystemPath),
    podLogsDir: texts.last('--pod-logs-dir', parseFilesystemPath),
    filesystems,
    polling: pollingOf(given.polling),
    configFile: file?.path,
    allowPidKill: texts.last('--allow-pid-kill', parseSwitch),
    pollIntervalMs: texts.last('--poll-interval', durationWithin(POLL_INTERVAL_MS)),
    socket:
      socket === NO_SOCKET
        ? undefined
        : { path: socket, explicit: given.texts['--socket'] !== undefined },
    stateDir:
      stateDir === NO_STATE
        ? undefined
        : { path: stateDir, explicit: given.texts['--state-dir'] !== undefined },
    dryRun: texts.last('--dry-run', parseSwitch),
    logLevel: texts.last('--log-level', (text) => parseChoice(text, LOG_LEVELS)),
    scheduling: texts.last('--scheduling', (text) => parseChoice(text, SCHEDULINGS)),
  };
  return {
    settings,
    warnings: [
      ...lostDefaults(given.signals['--eviction-hard'], isMerged),
      ...shadowedRules(given.pods),
      ...unmatchedRules(given.pods, settings.runtime.kind),
      ...transition.warnings,
      ...ofGarbage,
      ...warnings,
    ],
    notes: [...(file?.configuration.notes ?? []), ...notes, ...graceNotes(policy)],
    signals,
    enforcements,
  };
}

/** {@link checkGiven} for flags without `--config`. */
export function settingsFromFlags(values: FlagValues): Checked {
  return checkGiven({ given: givenFromFlags(values), file: undefined });
}

/** The flag, then the file's key, then the file's kind. */
function compatibilityOf(
  given: Given,
  file: Origin['file'],
): { readonly compatibility: Compatibility; readonly because: string } {
  const name = '--compatibility';
  const parse = (text: string): Compatibility => parseChoice(text, COMPATIBILITIES);
  const [compatibility] = textReader(given).all(name, parse).slice(-1);
  const place = given.texts[name]?.at(-1)?.place;
  if (compatibility !== undefined && place !== undefined) {
    const { source = name, key } = place;
    return { compatibility, because: key === undefined ? source : `${key} in ${source}` };
  }
  if (file?.configuration.kind === 'KubeletConfiguration') {
    return { compatibility: 'kubelet', because: `${file.path} is a KubeletConfiguration` };
  }
  return { compatibility: parse(OPTIONS[name].default), because: 'the default' };
}

function enforcementsOf(given: Given): readonly Enforcement[] {
  const name = '--enforce-node-allocatable';
  const words = textReader(given).all(name, parseEnforcement);
  if (words.length > 1 && words.includes('none')) {
    throw new EvictdError('EVICTD_CHOICE', 'none stands alone', {
      ...given.texts[name]?.at(words.indexOf('none'))?.place,
      value: 'none',
    });
  }
  return given.texts[name] === undefined ? [parseEnforcement(OPTIONS[name].default)] : words;
}

/** As in the kubelet, naming one signal drops the defaults, unless they are to be merged. */
function hardTexts(given: GivenSignals | undefined, isMerged: boolean): SignalTexts {
  if (given === undefined) return defaultHard().texts;
  return isMerged ? new Map([...defaultHard().texts, ...given.texts]) : given.texts;
}

/** C10: protection that is silently gone. Whoever names no signal at all wants none. */
function lostDefaults(given: GivenSignals | undefined, isMerged: boolean): readonly string[] {
  if (given === undefined || given.texts.size === 0 || isMerged) return [];
  const lost = [...defaultHard().texts].filter(([signal]) => !given.texts.has(signal));
  if (lost.length === 0) return [];
  const names = lost.map(([signal, { text }]) => `${signal}<${text}`).join(', ');
  const message =
    `naming some signals drops the default thresholds of the others: ${names}; ` +
    'mergeDefaultEvictionSettings (--merge-default-eviction-settings) keeps them';
  return [describeAt(given.place, message)];
}

/** C06: to the kubelet a transition period of 0 is one that was not given. */
function transitionOf(
  given: Given,
  compatibility: Compatibility,
): { readonly ms: number; readonly warnings: readonly string[] } {
  const name = '--eviction-pressure-transition-period';
  const ms = textReader(given).last(name, durationWithin(NOT_NEGATIVE));
  if (compatibility === 'evictd' || ms > 0) return { ms, warnings: [] };
  const { text, place } = given.texts[name]?.at(-1) ?? { text: '', place: {} };
  const message = `means ${formatDuration(KUBELET_TRANSITION_MS)} to the kubelet`;
  return {
    ms: KUBELET_TRANSITION_MS,
    warnings: [describeAt({ value: text, ...place }, message)],
  };
}

/** The kubelet's default leaves the victim of a soft threshold no time. */
function graceNotes({ thresholds, maxPodGracePeriodSeconds }: Policy): readonly string[] {
  const isSoft = thresholds.some(({ gracePeriodMs }) => gracePeriodMs > 0);
  return isSoft && maxPodGracePeriodSeconds === 0
    ? ['--eviction-max-pod-grace-period is 0: victims of soft thresholds get KILL at once, no TERM']
    : [];
}

/** Rules for one cgroup that an earlier one names already; of one that protects that matters most. */
function shadowedRules(given: GivenPods | undefined): readonly string[] {
  if (given?.by !== 'rule') return [];
  const match = compilePodRules(given.rules.filter(isCgroupRule));
  return given.rules.flatMap((rule, index) => {
    if (!isCgroupRule(rule)) return [];
    const first = isOne(rule.cgroup) ? match(rule.cgroup) : rule;
    if (first === rule || first === undefined) return [];
    const lost = rule.protected && !first.protected ? ': it is not protected' : '';
    return [
      describeAt(
        { source: `pods[${index}]`, value: rule.cgroup },
        `never counts, since the rule for ${quote(first.cgroup)} comes before${lost}`,
      ),
    ];
  });
}

/** Rules that the chosen runtime has no pods for. */
function unmatchedRules(given: GivenPods | undefined, runtime: RuntimeChoice): readonly string[] {
  if (given?.by !== 'rule') return [];
  return given.rules.flatMap((rule, index) => {
    if (isCgroupRule(rule)) return [];
    const why =
      runtime === 'cgroup'
        ? 'it is about what a runtime names, and runtime is cgroup'
        : runtime === 'docker' && rule.namespace !== undefined
          ? 'namespaces are those of Kubernetes, and runtime is docker'
          : undefined;
    if (why === undefined) return [];
    const lost = rule.protected ? ': it protects nothing' : '';
    return [describeAt({ source: `pods[${index}]` }, `never counts: ${why}${lost}`)];
  });
}

/**
 * Both ways of saying which cgroups are pods, each made of the other: rules for all that a rule can say,
 * and by path the settings of what is named literally and is not another rule's.
 */
function podsOf(given: GivenPods | undefined): Pick<Settings, 'pods' | 'podRules' | 'podsBy'> {
  if (given === undefined) return { podsBy: 'path', pods: new Map(), podRules: [] };
  if (given.by === 'path') {
    const rules = [...given.pods.values()].filter(({ name }) => isOne(name)).map(ruleOf);
    return { podsBy: 'path', pods: given.pods, podRules: rules };
  }
  const rules = given.rules.filter(isCgroupRule);
  const match = compilePodRules(rules);
  const named = rules.filter((rule) => isOne(rule.cgroup) && match(rule.cgroup) === rule);
  const pods = new Map(named.map((rule) => [rule.cgroup, podOf(rule)]));
  return { podsBy: 'rules', pods, podRules: given.rules };
}

/** Whether a rule for this path would name it and nothing else. */
function isOne(path: string): boolean {
  return !isGlob(path) && !isParent(path);
}

function ruleOf({ name: cgroup, ...settings }: PodSettings): CgroupRule {
  return { ...settings, cgroup, name: undefined };
}

function podOf({ cgroup, ...settings }: CgroupRule): PodSettings {
  return { ...settings, name: cgroup };
}

/** What would be without effect, and the pods others than those that were meant. */
function refuseWithout(
  given: Given,
  option: '--runtime-endpoint' | '--docker-pods',
  isFit: boolean,
  kinds: string,
): void {
  const text = given.texts[option]?.at(-1)?.text;
  // A configuration that was printed says the default too.
  if (text !== undefined && !isFit && text !== OPTIONS[option].default) {
    throw refused(given, option, text, 'EVICTD_CHOICE', `takes --runtime ${kinds}`);
  }
}
