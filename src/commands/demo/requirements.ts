import { EvictdError } from '../../core/errors.ts';
import { readControlFile } from '../../kernel/control-file.ts';
import { numberField } from '../../kernel/fields.ts';
import { findHierarchy, type Hierarchy } from '../../kernel/hierarchy.ts';
import { type LoadedNative, loadNative } from '../../native/index.ts';
import type { NativeAddon } from '../../native/types.ts';
import { mebibytes } from './format.ts';
import { MEBI, NODE_BYTES } from './plan.ts';

/** What the processes outside of the node need beside it, bytes. */
const SPARE_BYTES = 256 * MEBI;

/** What the demo needs of the machine. */
export interface Machine {
  readonly hierarchy: Hierarchy;
  readonly addon: NativeAddon;
}

/** What the machine has; undefined and errno codes for what it has not. */
export interface Offer {
  readonly uid: number | undefined;
  readonly hierarchy: Hierarchy | undefined;
  readonly native: LoadedNative;
  readonly availableBytes: number | undefined;
}

/**
 * What the demo needs, or all that is missing.
 *
 * @throws EvictdError EVICTD_UNSUPPORTED
 */
export function requireMachine(offer: Offer = offerOfThisMachine()): Machine {
  const { hierarchy, native } = offer;
  const lacks = lacking(offer);
  if (lacks.length > 0 || hierarchy === undefined || native.addon === undefined) {
    throw new EvictdError('EVICTD_UNSUPPORTED', `the demo cannot run here: ${lacks.join('; ')}`);
  }
  return { hierarchy, addon: native.addon };
}

function offerOfThisMachine(): Offer {
  const availableKibibytes = numberField(readControlFile('/proc/meminfo'), 'MemAvailable:');
  return {
    uid: process.getuid?.(),
    hierarchy: findHierarchy('memory'),
    native: loadNative(),
    availableBytes: availableKibibytes === undefined ? undefined : availableKibibytes * 1024,
  };
}

function lacking({ uid, hierarchy, native, availableBytes }: Offer): readonly string[] {
  const lacks: string[] = [];
  if (uid !== 0) lacks.push('it needs root, to make cgroups');
  if (hierarchy === undefined) lacks.push('no cgroup v1 memory hierarchy is mounted');
  if (native.addon === undefined) {
    lacks.push(`the native addon is missing: ${native.reason}`);
  } else {
    const { pidfd, eventfd } = native.addon.capabilities();
    if (pidfd !== null) lacks.push(`the kernel has no pidfd (${pidfd})`);
    if (eventfd !== null) lacks.push(`the kernel has no eventfd (${eventfd})`);
  }
  const neededBytes = NODE_BYTES + SPARE_BYTES;
  if (availableBytes !== undefined && availableBytes < neededBytes) {
    const [needed, available] = [mebibytes(neededBytes), mebibytes(availableBytes)];
    lacks.push(`it needs ${needed} of free memory, and ${available} are available`);
  }
  return lacks;
}
