/** Parsers of single values, the same for flags and files. */
import { EvictdError } from '../core/errors.ts';
import { relativePathFault } from './cgroup-path.ts';
import { parseChoice } from './choice.ts';
import type { DockerPods } from './settings.ts';

/** What `sun_path` holds, less its ending NUL. Source: unix(7). */
const MAX_SOCKET_PATH_BYTES = 107;

/** Linux' limit for a path, in bytes, less its ending NUL. */
const MAX_PATH_BYTES = 4095;

/** The value of `--socket` that asks for none. */
export const NO_SOCKET = 'none';

/** The value of `--state-dir` that asks for none. */
export const NO_STATE = 'none';

/** @throws EvictdError EVICTD_CHOICE for what is neither `true` nor `false` */
export function parseSwitch(text: string): boolean {
  return parseChoice(text, ['true', 'false']) === 'true';
}

/** @throws EvictdError EVICTD_NODE_CGROUP for an empty path or one with NUL */
export function parseNodeCgroup(text: string): string {
  const fault = pathFault(text);
  if (fault === undefined) return text;
  throw new EvictdError('EVICTD_NODE_CGROUP', fault, { value: text });
}

/** The longest name of a node. Source: RFC 1123, and Kubernetes' `IsDNS1123Subdomain`. */
const MAX_NODE_NAME = 253;

/** As Kubernetes names nodes, but that capitals and underscores, which hosts have, are taken too. */
const NODE_NAME = /^[a-z0-9]([-a-z0-9._]*[a-z0-9])?$/i;

/** @throws EvictdError EVICTD_NODE_NAME */
export function parseNodeName(text: string): string {
  if (text.length <= MAX_NODE_NAME && NODE_NAME.test(text)) return text;
  const message =
    `not 1 to ${MAX_NODE_NAME} letters, digits, ".", "-" and "_", with a letter or digit ` +
    'at both ends';
  throw new EvictdError('EVICTD_NODE_NAME', message, { value: text });
}

/**
 * `.` is the node's own cgroup.
 *
 * @throws EvictdError EVICTD_POD_PARENT
 */
export function parsePodParent(text: string): string {
  const path = text.length > 1 && text.endsWith('/') ? text.slice(0, -1) : text;
  const fault = path === '.' ? undefined : relativePathFault(path);
  if (fault === undefined) return path;
  throw new EvictdError('EVICTD_POD_PARENT', fault, { value: text });
}

/** @throws EvictdError EVICTD_SOCKET_PATH for what is neither `none` nor where a socket can be */
export function parseSocketPath(text: string): string {
  const fault = text === NO_SOCKET ? undefined : (pathFault(text) ?? socketPathFault(text));
  if (fault === undefined) return text;
  throw new EvictdError('EVICTD_SOCKET_PATH', fault, { value: text });
}

const ENDPOINT_SCHEME = 'unix://';

/**
 * A runtime's socket, `unix:///PATH` as runtimes write it, or its path alone.
 *
 * @returns the path
 * @throws EvictdError EVICTD_SOCKET_PATH
 */
export function parseEndpoint(text: string): string {
  const path = text.startsWith(ENDPOINT_SCHEME) ? text.slice(ENDPOINT_SCHEME.length) : text;
  const fault =
    pathFault(path) ??
    (path.startsWith('/') ? socketPathFault(path) : 'no unix:///PATH of a socket');
  if (fault === undefined) return path;
  throw new EvictdError('EVICTD_SOCKET_PATH', fault, { value: text });
}

/** The label of a container's compose project, by which compose itself knows it. */
const COMPOSE_PROJECT = 'com.docker.compose.project';

/** What `--docker-pods` may say of a label in front of its name. */
const LABEL = 'label=';

const MAX_LABEL_LENGTH = 1024;

/** @throws EvictdError EVICTD_CHOICE */
export function parseDockerPods(text: string): DockerPods {
  if (text.startsWith(LABEL)) {
    const key = text.slice(LABEL.length);
    if (key !== '' && key.length <= MAX_LABEL_LENGTH && !key.includes('\0')) {
      return { by: 'label', key };
    }
    const message = `not the name of a label, 1 to ${MAX_LABEL_LENGTH} characters, none of them NUL`;
    throw new EvictdError('EVICTD_CHOICE', message, { value: text });
  }
  switch (parseChoice(text, ['container', 'compose', 'podman', `${LABEL}KEY`])) {
    case 'compose':
      return { by: 'label', key: COMPOSE_PROJECT };
    case 'podman':
      return { by: 'podman' };
    default:
      return { by: 'container' };
  }
}

/** As {@link parseDockerPods} reads it. */
export function formatDockerPods(pods: DockerPods): string {
  if (pods.by !== 'label') return pods.by;
  return pods.key === COMPOSE_PROJECT ? 'compose' : `${LABEL}${pods.key}`;
}

/** @throws EvictdError EVICTD_STATE_DIR for what is neither `none` nor an absolute path */
export function parseStateDir(text: string): string {
  const fault =
    pathFault(text) ??
    (text === NO_STATE || text.startsWith('/')
      ? undefined
      : `neither an absolute path nor ${NO_STATE}`);
  if (fault === undefined) return text;
  throw new EvictdError('EVICTD_STATE_DIR', fault, { value: text });
}

/** @throws EvictdError EVICTD_PATH for what is no absolute path */
export function parseFilesystemPath(text: string): string {
  const fault = pathFault(text) ?? (text.startsWith('/') ? undefined : 'no absolute path');
  if (fault === undefined) return text;
  throw new EvictdError('EVICTD_PATH', fault, { value: text });
}

/** What a kubelet may be told to enforce. Source: kubelet `kubelet/types/constants.go`. */
export const ENFORCEMENTS = [
  'none',
  'pods',
  'system-reserved',
  'system-reserved-compressible',
  'kube-reserved',
  'kube-reserved-compressible',
] as const;
export type Enforcement = (typeof ENFORCEMENTS)[number];

/** @throws EvictdError EVICTD_CHOICE */
export function parseEnforcement(text: string): Enforcement {
  return parseChoice(text, ENFORCEMENTS);
}

function pathFault(path: string): string | undefined {
  if (path === '') return 'an empty path';
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) return `a path has at most ${MAX_PATH_BYTES} bytes`;
  return path.includes('\0') ? 'a path has no NUL' : undefined;
}

function socketPathFault(path: string): string | undefined {
  if (!path.startsWith('/')) return `neither an absolute path nor ${NO_SOCKET}`;
  if (path.endsWith('/')) return 'a directory, not a socket';
  const tooLong = Buffer.byteLength(path) > MAX_SOCKET_PATH_BYTES;
  return tooLong ? `longer than the ${MAX_SOCKET_PATH_BYTES} bytes of a unix socket` : undefined;
}
