/**
 * What a runtime says of a sandbox or a container beyond the protocol: its cgroups, and what a kubelet asked for.
 * All of it is text from outside, and may be anything. Pure.
 */
import { cgroupPathOf } from '../shared/slice.ts';
import type { ContainerResources } from './requests.ts';

/** An answer to a question that asked for all there is. */
export interface VerboseStatus {
  readonly info: Readonly<Record<string, string>>;
}

/** What is said of a sandbox's or a container's place and resources; undefined for what is not. */
export interface Said {
  /** The cgroup below which a pod's containers are. */
  readonly parent: string | undefined;
  /** Its own, which bears its id. */
  readonly own: string | undefined;
  readonly resources: ContainerResources | undefined;
}

/**
 * Reads an answer. The parent is what containerd was told, or what lies above the cgroup that CRI-O, which does not
 * say that, gave to what it runs.
 *
 * @param id of the sandbox or the container
 */
export function saidIn({ info }: VerboseStatus, id: string): Said {
  let said: unknown;
  try {
    said = JSON.parse(info['info'] ?? '');
  } catch {
    return { parent: undefined, own: undefined, resources: undefined };
  }
  const given = textAt(said, ['config', 'linux', 'cgroup_parent']) ?? '';
  const path = textAt(said, ['runtimeSpec', 'linux', 'cgroupsPath']) ?? '';
  return {
    parent: cgroupPathOf(given === '' ? above(path) : given),
    own: ownIn(path, id),
    resources: resourcesIn(said),
  };
}

/** With the systemd driver a path is `SLICE:PREFIX:ID`. */
function above(path: string): string {
  return path.includes(':') ? path.slice(0, path.indexOf(':')) : path.replace(/\/[^/]*$/, '');
}

function ownIn(path: string, id: string): string | undefined {
  if (id === '') return undefined;
  const parent = cgroupPathOf(above(path));
  if (parent === undefined) return undefined;
  const [, prefix = '', unit = ''] = path.split(':');
  const name = path.includes(':')
    ? `${prefix}-${unit}.scope`
    : path.slice(path.lastIndexOf('/') + 1);
  return name.includes(id) && !name.includes('/') ? `${parent}/${name}` : undefined;
}

/** What the kubelet asked for; a runtime that may not do that gives a container less. */
function resourcesIn(said: unknown): ContainerResources | undefined {
  const asked = ['config', 'linux', 'resources'];
  const oomScoreAdj =
    integerAt(said, [...asked, 'oom_score_adj']) ??
    integerAt(said, ['runtimeSpec', 'process', 'oomScoreAdj']);
  if (oomScoreAdj === undefined) return undefined;
  const limitBytes =
    integerAt(said, [...asked, 'memory_limit_in_bytes']) ??
    integerAt(said, ['runtimeSpec', 'linux', 'resources', 'memory', 'limit']);
  return { oomScoreAdj, limitBytes: Math.max(0, limitBytes ?? 0) };
}

function textAt(value: unknown, names: readonly string[]): string | undefined {
  const at = valueAt(value, names);
  return typeof at === 'string' && !at.includes('\0') ? at : undefined;
}

function integerAt(value: unknown, names: readonly string[]): number | undefined {
  const at = valueAt(value, names);
  return Number.isSafeInteger(at) ? (at as number) : undefined;
}

function valueAt(value: unknown, names: readonly string[]): unknown {
  let at = value;
  for (const name of names) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return undefined;
    at = (at as Readonly<Record<string, unknown>>)[name];
  }
  return at;
}

/** Whether a cgroup is a pod's own, as kubelets call it with either cgroup driver. */
export function bearsUid(cgroup: string, uid: string): boolean {
  if (uid === '') return false;
  const name = cgroup.slice(cgroup.lastIndexOf('/') + 1);
  if (name === `pod${uid}`) return true;
  const slice = `pod${uid.replaceAll('-', '_')}.slice`;
  return name === slice || name.endsWith(`-${slice}`);
}
