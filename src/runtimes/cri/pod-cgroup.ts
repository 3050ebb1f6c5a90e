/** Which cgroup a sandbox's pod has. Pure. */
import { cgroupPathOf } from '../shared/slice.ts';

/** What a runtime says of a sandbox beyond the protocol. */
export interface SandboxStatus {
  readonly info: Readonly<Record<string, string>>;
}

/**
 * The cgroup below which a pod's containers are: what containerd was told, or what CRI-O, which does not say that,
 * gave to what it runs. What they say beyond the protocol is text from outside, and may be anything.
 */
export function cgroupIn({ info }: SandboxStatus): string | undefined {
  let said: unknown;
  try {
    said = JSON.parse(info['info'] ?? '');
  } catch {
    return undefined;
  }
  const parent = textAt(said, ['config', 'linux', 'cgroup_parent']);
  if (parent !== undefined && parent !== '') return cgroupPathOf(parent);
  const own = textAt(said, ['runtimeSpec', 'linux', 'cgroupsPath']) ?? '';
  // With the systemd driver it is `SLICE:PREFIX:ID`.
  const above = own.includes(':') ? own.slice(0, own.indexOf(':')) : own.replace(/\/[^/]*$/, '');
  return cgroupPathOf(above);
}

function textAt(value: unknown, names: readonly string[]): string | undefined {
  let at = value;
  for (const name of names) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return undefined;
    at = (at as Readonly<Record<string, unknown>>)[name];
  }
  return typeof at === 'string' && !at.includes('\0') ? at : undefined;
}

/** What is wrong with a cgroup that {@link bearsUid} says no of. */
export const NOT_ITS_OWN = 'its cgroup is not called after its uid: it may be shared';

/** Whether a cgroup is a pod's own, as kubelets call it with either cgroup driver. */
export function bearsUid(cgroup: string, uid: string): boolean {
  if (uid === '') return false;
  const name = cgroup.slice(cgroup.lastIndexOf('/') + 1);
  if (name === `pod${uid}`) return true;
  const slice = `pod${uid.replaceAll('-', '_')}.slice`;
  return name === slice || name.endsWith(`-${slice}`);
}
