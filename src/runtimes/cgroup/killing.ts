import type { Hierarchy } from '../../kernel/hierarchy.ts';
import type { NativeAddon } from '../../native/types.ts';
import type { Killing } from '../../ports/runtime.ts';

export interface KillingInputs {
  readonly native: NativeAddon | undefined;
  readonly allowPidKill: boolean;
  /** The cgroup2 mount, if there is one. */
  readonly unified: Hierarchy | undefined;
}

/** How pods are ended on this machine; which pods `cgroup.kill` can reach is seen at each kill. */
export function killingOf({ native, allowPidKill, unified }: KillingInputs): Killing {
  const missing = whyNoPidfd(native);
  if (missing === undefined)
    return { by: 'pidfd', detail: 'every process is held by a pidfd while it is signalled' };
  const twin =
    unified === undefined
      ? undefined
      : `cgroup.kill where the group of the same path below ${unified.mountPoint} holds exactly the pod's processes`;
  if (allowPidKill) {
    const first = twin === undefined ? '' : `${twin}, else `;
    return {
      by: 'pid',
      detail: `${missing}: ${first}by number, start time and cgroup checked (--allow-pid-kill)`,
    };
  }
  if (twin !== undefined)
    return { by: 'cgroup.kill', detail: `${missing}: only ${twin}, at once and without TERM` };
  return {
    by: 'nothing',
    detail: `${missing}, and there is no cgroup2 mount for cgroup.kill: nothing is evicted without --allow-pid-kill`,
  };
}

function whyNoPidfd(native: NativeAddon | undefined): string | undefined {
  if (native === undefined) return 'the native addon is missing';
  const refused = native.capabilities().pidfd;
  return refused === null ? undefined : `the kernel refuses a pidfd (${refused})`;
}
