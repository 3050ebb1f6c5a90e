/** By what a kubelet evicts, as its command line and its configuration file say. */
import { describeError, EvictdError } from '../core/errors.ts';
import type { FlagValues } from './flags.ts';
import { type LoadIo, loadSettings } from './load.ts';
import type { OptionName } from './options.ts';

export type KubeletEviction =
  /** Its thresholds, as `hard: memory.available<100Mi`. */
  | { readonly kind: 'active'; readonly thresholds: readonly string[] }
  | { readonly kind: 'inactive' }
  | { readonly kind: 'unknown'; readonly reason: string };

/** What the kubelet's flags and evictd's have in common, as far as it says whether anybody is evicted. */
const FLAGS = [
  '--config',
  '--eviction-hard',
  '--eviction-soft',
  '--eviction-soft-grace-period',
] as const satisfies readonly OptionName[];

/** Files that are merged into its configuration. */
const DROP_INS = '--config-dir';

/** There is a filesystem for each signal, so that none is left out. */
const FILESYSTEMS = { '--imagefs-path': ['/'], '--containerfs-path': ['/'] } as const;

/**
 * @param args the kubelet's command line
 * @param io reads a file as the kubelet sees it
 */
export function kubeletEviction(args: readonly string[], io: LoadIo): KubeletEviction {
  if (args.some((arg) => arg === DROP_INS || arg.startsWith(`${DROP_INS}=`))) {
    return { kind: 'unknown', reason: `what is in its ${DROP_INS} is not read` };
  }
  const values: FlagValues = {
    ...Object.fromEntries(
      FLAGS.map((flag) => [flag, valuesOf(args, flag)] as const).filter(isGiven),
    ),
    ...FILESYSTEMS,
    '--compatibility': ['kubelet'],
  };
  try {
    const { policy } = loadSettings(values, io).settings;
    const thresholds = policy.thresholds.map(
      ({ kind, signal, value }) => `${kind}: ${signal}<${value.text}`,
    );
    return thresholds.length === 0 ? { kind: 'inactive' } : { kind: 'active', thresholds };
  } catch (error) {
    if (!(error instanceof EvictdError)) throw error;
    return { kind: 'unknown', reason: describeError(error) };
  }
}

/** As Go's flags are given: `--flag=VALUE`, or the value in the next word. */
function valuesOf(args: readonly string[], flag: string): readonly string[] {
  return args.flatMap((arg, index) => {
    if (arg.startsWith(`${flag}=`)) return [arg.slice(flag.length + 1)];
    return arg === flag ? [args[index + 1] ?? ''] : [];
  });
}

function isGiven([, values]: readonly [string, readonly string[]]): boolean {
  return values.length > 0;
}
