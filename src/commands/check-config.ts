import { existsSync } from 'node:fs';
import { totalmem } from 'node:os';
import type { SchedulerLike } from 'rxjs';
import { type FlagValues, settingsFromFlags } from '../config/flags.ts';
import type { CheckedSettings, Settings } from '../config/settings.ts';
import { formatDuration } from '../core/duration.ts';
import { describeAt, describeError, EvictdError } from '../core/errors.ts';
import { formatBytes, formatPercentage, formatQuantity } from '../core/quantity.ts';
import { type Threshold, type ThresholdValue, thresholdLevel } from '../core/threshold.ts';
import { findUnified } from '../kernel/hierarchy.ts';
import { type NodeCgroup, podParentDirectory, resolveNodeCgroup } from '../kernel/node-cgroup.ts';
import { loadNative } from '../native/index.ts';
import type { MemoryReading } from '../ports/readings.ts';
import type { Killing } from '../ports/runtime.ts';
import { killingOf } from '../runtimes/cgroup/killing.ts';
import { liveScheduler } from '../sources/live-scheduler.ts';
import { isFailure, memoryReader } from '../sources/memory.ts';

const HEADER = ['SIGNAL', 'KIND', 'THRESHOLD', 'GRACE PERIOD', 'MINIMUM RECLAIM'] as const;

/**
 * `evictd check-config`: prints the effective thresholds, each warning, and how pods would be ended on
 * this machine; 0.
 *
 * @throws EvictdError as `settingsFromFlags` does
 */
export async function checkConfigCommand(values: FlagValues): Promise<number> {
  const checked = settingsFromFlags(values);
  const warnings = [...checked.warnings, ...hostWarnings(checked.settings, liveScheduler)];
  const { allowPidKill } = checked.settings;
  const killing = killingOf({
    native: loadNative().addon,
    allowPidKill,
    unified: findUnified(),
  });
  process.stdout.write(`${renderCheck({ ...checked, warnings })}${renderKilling(killing)}`);
  return 0;
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
  let node: NodeCgroup;
  try {
    node = resolve(settings.nodeCgroup);
  } catch (error) {
    return error instanceof EvictdError ? [`run would refuse here: ${describeError(error)}`] : [];
  }
  for (const parent of settings.podParents) podParentDirectory(node, parent);
  return [
    ...placeWarnings(settings, node),
    ...figureWarnings(settings, node, scheduler),
    ...(process.getuid?.() === 0 ? [] : [NOT_ROOT]),
  ];
}

const NOT_ROOT =
  'not root: run as this user would hear no kernel events and could end no other user’s processes';

/** Where pods would be. */
function placeWarnings({ podParents, pods }: Settings, node: NodeCgroup): readonly string[] {
  if (node.isRoot && podParents.length === 0 && pods.size === 0) {
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

/** The report: a table with one row for each threshold, then one line for each note and warning. */
export function renderCheck({ settings, warnings, notes }: CheckedSettings): string {
  const rows = settings.policy.thresholds.map(thresholdRow);
  const lines = [
    ...(rows.length === 0 ? [] : table([HEADER, ...rows])),
    ...notes.map((note) => `note: ${note}`),
    ...warnings.map((warning) => `warning: ${warning}`),
  ];
  return lines.map((line) => `${line}\n`).join('');
}

function thresholdRow(threshold: Threshold): readonly string[] {
  const { signal, kind, value, gracePeriodMs, minimumReclaim } = threshold;
  return [
    signal,
    kind,
    formatValue(value),
    kind === 'hard' ? '-' : formatDuration(gracePeriodMs),
    minimumReclaim === undefined ? '-' : formatValue(minimumReclaim),
  ];
}

function formatValue(value: ThresholdValue): string {
  return value.kind === 'quantity'
    ? formatQuantity(value.nano, 'binary')
    : formatPercentage(value.nanoPercent);
}

/** Columns two spaces apart, without spaces at the ends of lines. */
function table(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = HEADER.map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? '').length)),
  );
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}
