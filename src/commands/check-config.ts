import { existsSync } from 'node:fs';
import { totalmem } from 'node:os';
import type { SchedulerLike } from 'rxjs';
import { type FlagValues, isSwitchedOn } from '../config/flags.ts';
import { loadChecked } from '../config/load.ts';
import { OPTIONS } from '../config/options.ts';
import { printConfiguration } from '../config/print.ts';
import { type CheckedSettings, namesNoPod, type Settings } from '../config/settings.ts';
import { formatDuration } from '../core/duration.ts';
import { describeAt, describeError, EvictdError, escapeControl } from '../core/errors.ts';
import type { Compatibility } from '../core/policy.ts';
import { formatBytes, formatPercentage, formatQuantity } from '../core/quantity.ts';
import { RULES, type RuleName, type Rules } from '../core/rules.ts';
import { SIGNALS, type Signal } from '../core/signal.ts';
import { type Threshold, type ThresholdValue, thresholdLevel } from '../core/threshold.ts';
import { findUnified } from '../kernel/hierarchy.ts';
import { type NodeCgroup, podParentDirectory, resolveNodeCgroup } from '../kernel/node-cgroup.ts';
import { loadNative } from '../native/index.ts';
import type { MemoryReading } from '../ports/readings.ts';
import type { Killing } from '../ports/runtime.ts';
import { killingOf } from '../runtimes/cgroup/killing.ts';
import { liveScheduler } from '../sources/live-scheduler.ts';
import { isFailure, memoryReader } from '../sources/memory.ts';
import {
  armedHere,
  availableHere,
  type HostFigures,
  hostFigures,
  levelHere,
} from './host-figures.ts';
import { kubeletConflict, ON_KUBELETS } from './kubelet-guard.ts';
import { socketsFor } from './runtime-choice.ts';

/**
 * `evictd check-config`: prints the effective thresholds, each note and warning, how pods would be ended
 * on this machine, and whose rules hold, with `--explain` point by point; with `--print-config` the merged
 * configuration as YAML instead; 0.
 *
 * @throws EvictdError as `loadSettings` does
 */
export async function checkConfigCommand(values: FlagValues): Promise<number> {
  const checked = loadChecked(values);
  const isExplained = isSwitchedOn(values, '--explain');
  if (isSwitchedOn(values, '--print-config')) {
    process.stdout.write(printConfiguration(checked));
    return 0;
  }
  const { settings } = checked;
  const { addon } = loadNative();
  const here = hostOf(settings.nodeCgroup, resolveNodeCgroup);
  const figures =
    'node' in here ? await hostFigures(settings, here.node, liveScheduler) : undefined;
  const warnings = [
    ...checked.warnings,
    ...hostWarnings(settings, liveScheduler),
    ...('node' in here ? await kubeletWarnings(settings, here.node) : []),
    ...troubleWarnings(figures),
  ];
  const killing = killingOf({
    native: addon,
    allowPidKill: settings.allowPidKill,
    unified: findUnified(),
  });
  const report = [
    renderCheck({ ...checked, warnings }, figures, addon !== undefined),
    renderKilling(killing),
    renderCompatibility(checked.settings),
    ...(isExplained ? ['\n', renderRules(checked.settings.policy.rules)] : []),
  ];
  process.stdout.write(report.join(''));
  return 0;
}

/** Whose rules hold, and why. */
export function renderCompatibility({ compatibility, compatibilityBecause }: Settings): string {
  return `compatibility: ${compatibility} (${compatibilityBecause})\n`;
}

/**
 * Each point on which the two rule sets differ, with a mark at the side that holds. The rows are those
 * of docs/reference/rules.md.
 */
export function renderRules(rules: Rules): string {
  return Object.entries(RULES)
    .map(([name, { kubelet, evictd, why, since }]) => {
      const mark = (side: Compatibility): string => (rules[name as RuleName] === side ? '*' : ' ');
      return [
        `${name} (since ${since})`,
        `  ${mark('kubelet')} kubelet: ${kubelet}`,
        `  ${mark('evictd')} evictd:  ${evictd}`,
        `    why:     ${why}`,
      ]
        .map((line) => `${line}\n`)
        .join('');
    })
    .join('');
}

/** How pods would be ended on this machine. */
export function renderKilling({ by, detail }: Killing): string {
  return `killing: ${WORDS[by]} (${detail})\n`;
}

const WORDS: Readonly<Record<Killing['by'], string>> = {
  pidfd: 'by pidfd',
  'cgroup.kill': 'by cgroup.kill only',
  pid: 'by pid',
  nothing: 'not at all',
};

/**
 * What this host makes of the settings: what `run` would refuse or could not see here, which need not
 * be so where the settings are meant for.
 *
 * @throws EvictdError EVICTD_POD_PARENT for what is no place of pods on any host
 */
export function hostWarnings(
  settings: Settings,
  scheduler: SchedulerLike,
  resolve: typeof resolveNodeCgroup = resolveNodeCgroup,
): readonly string[] {
  const here = hostOf(settings.nodeCgroup, resolve);
  if ('refusal' in here) {
    return here.refusal === undefined ? [] : [`run would refuse here: ${here.refusal}`];
  }
  const { node } = here;
  for (const parent of settings.podParents) podParentDirectory(node, parent);
  return [
    ...placeWarnings(settings, node),
    ...runtimeWarnings(settings),
    ...figureWarnings(settings, node, scheduler),
    ...(process.getuid?.() === 0 ? [] : [NOT_ROOT]),
  ];
}

/** Where the runtime, and what it keeps, would be looked for. */
function runtimeWarnings({
  runtime: { kind, endpoint },
  kubeletRootDir,
  podLogsDir,
}: Settings): readonly string[] {
  if (kind === 'cgroup') return [];
  const paths = [...new Set(socketsFor(kind, endpoint).map(({ path }) => path))];
  const isThere = paths.some((path) => existsSync(path));
  const asksCri = kind !== 'docker' && isThere;
  const directories = [
    ['--kubelet-root-dir', kubeletRootDir, DEFAULT_ROOTS.kubelet],
    ['--pod-logs-dir', podLogsDir, DEFAULT_ROOTS.logs],
  ] as const;
  return [
    ...(isThere
      ? []
      : [`no socket is here yet: ${paths.join(', ')}: until one is, no pod is evictable`]),
    ...directories
      .filter(([, path, usual]) => asksCri && path !== usual && !existsSync(path))
      .map(([source, value]) => describeAt({ source, value }, 'no such directory here yet')),
  ];
}

/** Those that need not be there. */
const DEFAULT_ROOTS = {
  kubelet: OPTIONS['--kubelet-root-dir'].default,
  logs: OPTIONS['--pod-logs-dir'].default,
} as const;

/** The node on this host, or why there is none. */
function hostOf(
  nodeCgroup: string | undefined,
  resolve: typeof resolveNodeCgroup,
): { readonly node: NodeCgroup } | { readonly refusal: string | undefined } {
  try {
    return { node: resolve(nodeCgroup) };
  } catch (error) {
    // What is no refusal of evictd's says nothing of the settings.
    return { refusal: error instanceof EvictdError ? describeError(error) : undefined };
  }
}

/** A kubelet that evicts the same pods. */
async function kubeletWarnings(settings: Settings, node: NodeCgroup): Promise<readonly string[]> {
  const conflict = settings.besideKubelet ? undefined : await kubeletConflict(settings, node);
  if (conflict === undefined) return [];
  return [settings.dryRun ? conflict : `run would refuse here: ${conflict}; ${ON_KUBELETS}`];
}

/** What cannot be read on this host. */
function troubleWarnings(figures: HostFigures | undefined): readonly string[] {
  return [...(figures?.troubles ?? [])].map(
    ([part, trouble]) => `${part} cannot be read here: ${trouble}`,
  );
}

const NOT_ROOT =
  'not root: run as this user would hear no kernel events and could end no other user’s processes';

/** Where pods would be. */
function placeWarnings(settings: Settings, node: NodeCgroup): readonly string[] {
  const { podParents, pods } = settings;
  if (node.isRoot && podParents.length === 0 && namesNoPod(settings)) {
    return [
      'nothing is evictable: on the host a pod is what --pod names or what lies below a --pod-parent',
    ];
  }
  const missing = (path: string): boolean => !existsSync(`${node.directory}/${path}`);
  return [
    ...podParents
      .filter(missing)
      .map((path) => describeAt({ source: '--pod-parent', value: path }, ABSENT)),
    ...[...pods.keys()]
      .filter(missing)
      .map((path) => describeAt({ source: '--pod', value: path }, ABSENT)),
  ];
}

const ABSENT = 'no such cgroup here yet';

/**
 * What the node's figures make of the thresholds. The kubelet's figure leaves out of what is used what
 * the root's counter does: a threshold that is smaller than that is crossed too late to see. Where
 * the node cannot be read nothing is said: `run` would say it.
 */
function figureWarnings(
  { policy, compatibility, memorySource }: Settings,
  { directory, isRoot }: NodeCgroup,
  scheduler: SchedulerLike,
): readonly string[] {
  const reader = memoryReader({
    signal: 'memory.available',
    directory,
    isRoot,
    compatibility: 'evictd',
    memorySource,
    nowMs: () => scheduler.now(),
  });
  const reading = reader.read();
  reader.close();
  if (isFailure(reading)) return [];
  return [
    ...(isRoot ? [] : unlimitedWarnings(reading)),
    ...alwaysMetWarnings(policy.thresholds, reading),
    ...(compatibility === 'kubelet' && isRoot ? remainderWarnings(policy.thresholds, reading) : []),
  ];
}

/** A node without a limit: others use up the memory that it is measured against. */
export function unlimitedWarnings({
  capacityBytes,
}: Pick<MemoryReading, 'capacityBytes'>): readonly string[] {
  return capacityBytes < totalmem()
    ? []
    : [
        "the node's cgroup has no memory limit: its capacity is the host's memory, of which only its " +
          'own use counts',
      ];
}

/** One warning for each threshold that the node could never satisfy. */
function alwaysMetWarnings(
  thresholds: readonly Threshold[],
  { capacityBytes }: MemoryReading,
): readonly string[] {
  return thresholds
    .filter(
      (threshold) =>
        threshold.signal === 'memory.available' &&
        thresholdLevel(threshold, capacityBytes, false) >= capacityBytes,
    )
    .map(
      ({ kind, signal, value }) =>
        `--eviction-${kind}: ${signal}<${value.text} is not below this node's capacity of ` +
        `${formatBytes(capacityBytes)}: always met`,
    );
}

/** One warning for each threshold that is smaller than what the counter leaves out. */
export function remainderWarnings(
  thresholds: readonly Threshold[],
  { capacityBytes, uncountedBytes }: MemoryReading,
): readonly string[] {
  return thresholds
    .filter(
      (threshold) =>
        threshold.signal === 'memory.available' &&
        thresholdLevel(threshold, capacityBytes, false) < uncountedBytes,
    )
    .map(
      ({ kind, signal, value }) =>
        `--eviction-${kind}: ${signal}<${value.text} is less than the ${formatBytes(uncountedBytes)} that the ` +
        "kubelet's figure leaves out on this host: memory runs out before it is met",
    );
}

/**
 * The report: a table with one row for each threshold, then one line for each note and warning.
 *
 * @param figures what this host has of each signal; without, nothing is said of it
 * @param canNotify whether the kernel can be asked to tell of a crossing
 */
export function renderCheck(
  { settings, warnings, notes }: CheckedSettings,
  figures?: HostFigures,
  canNotify = false,
): string {
  const { thresholds } = settings.policy;
  const isNotified = settings.kernelMemcgNotification && canNotify;
  const columns = [...COLUMNS, ...(figures === undefined ? [] : columnsHere(figures, isNotified))];
  const lines = [
    ...(thresholds.length === 0 ? [] : table(columns, thresholds)),
    ...notes.map((note) => `note: ${note}`),
    ...warnings.map((warning) => `warning: ${warning}`),
  ];
  return lines.map((line) => `${escapeControl(line)}\n`).join('');
}

interface Column {
  readonly header: string;
  readonly cell: (threshold: Threshold) => string;
}

const COLUMNS: readonly Column[] = [
  { header: 'SIGNAL', cell: ({ signal }) => signal },
  { header: 'KIND', cell: ({ kind }) => kind },
  { header: 'THRESHOLD', cell: ({ value, signal }) => formatValue(value, signal) },
  {
    header: 'GRACE PERIOD',
    cell: ({ kind, gracePeriodMs }) => (kind === 'hard' ? '-' : formatDuration(gracePeriodMs)),
  },
  {
    header: 'MINIMUM RECLAIM',
    cell: ({ minimumReclaim, signal }) =>
      minimumReclaim === undefined ? '-' : formatValue(minimumReclaim, signal),
  },
];

/** What the thresholds are on this host. */
function columnsHere(figures: HostFigures, isNotified: boolean): readonly Column[] {
  return [
    { header: 'LEVEL HERE', cell: (threshold) => levelHere(threshold, figures) },
    { header: 'AVAILABLE HERE', cell: (threshold) => availableHere(threshold, figures) },
    { header: 'HEARD OF BY', cell: (threshold) => armedHere(threshold, figures, isNotified) },
  ];
}

function formatValue(value: ThresholdValue, signal: Signal): string {
  switch (value.kind) {
    case 'quantity':
      return formatQuantity(value.nano, SIGNALS[signal].unit === 'bytes' ? 'binary' : 'decimal');
    case 'percentage':
      return formatPercentage(value.nanoPercent);
    case 'fraction':
      return value.text;
  }
}

/** Columns two spaces apart, without spaces at the ends of lines. */
function table(columns: readonly Column[], rows: readonly Threshold[]): readonly string[] {
  const cells = columns.map(({ header, cell }) => [header, ...rows.map(cell)]);
  const widths = cells.map((column) => Math.max(...column.map(({ length }) => length)));
  return [undefined, ...rows].map((_, row) =>
    cells
      .map((column, at) => (column[row] ?? '').padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}
