import { type FlagValues, settingsFromFlags } from '../config/flags.ts';
import type { CheckedSettings } from '../config/settings.ts';
import { formatDuration } from '../core/duration.ts';
import { formatPercentage, formatQuantity } from '../core/quantity.ts';
import type { Threshold, ThresholdValue } from '../core/threshold.ts';

const HEADER = ['SIGNAL', 'KIND', 'THRESHOLD', 'GRACE PERIOD', 'MINIMUM RECLAIM'] as const;

/**
 * `evictd check-config`: prints the effective thresholds and each warning; 0.
 *
 * @throws EvictdError as `settingsFromFlags` does
 */
export async function checkConfigCommand(values: FlagValues): Promise<number> {
  process.stdout.write(renderCheck(settingsFromFlags(values)));
  return 0;
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
