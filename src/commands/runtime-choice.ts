/** Which runtime says what pods there are. */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { totalmem } from 'node:os';
import type { RuntimeChoice, Settings } from '../config/settings.ts';
import { EvictdError } from '../core/errors.ts';
import { cgroupOf, directoryOf, type Hierarchy, pathIn } from '../kernel/hierarchy.ts';
import { watchGroups } from '../kernel/new-groups.ts';
import type { NodeCgroup } from '../kernel/node-cgroup.ts';
import type { RuntimeFilesystems } from '../ports/disk-usage.ts';
import type { PodDirectory, RuntimePlace } from '../ports/pod-directory.ts';
import type { Reclaimer } from '../ports/reclaimer.ts';
import { foundDirectory } from '../runtimes/shared/found.ts';
import { liveScheduler } from '../sources/live-scheduler.ts';
import type { Logger } from '../surfaces/log.ts';

type Protocol = Exclude<RuntimeChoice, 'cgroup' | 'auto'>;

export interface KnownSocket {
  readonly name: string;
  readonly protocol: Protocol;
  readonly path: string;
}

/** Where runtimes listen by default, the one to be preferred first. */
export const KNOWN_SOCKETS: readonly KnownSocket[] = [
  { name: 'containerd', protocol: 'cri', path: '/run/containerd/containerd.sock' },
  { name: 'containerd of k3s', protocol: 'cri', path: '/run/k3s/containerd/containerd.sock' },
  { name: 'CRI-O', protocol: 'cri', path: '/run/crio/crio.sock' },
  { name: 'Docker', protocol: 'docker', path: '/var/run/docker.sock' },
  { name: 'Podman', protocol: 'docker', path: '/run/podman/podman.sock' },
];

/**
 * What runs the pods; undefined where nobody is asked. No answer is waited for: a runtime that is not there is
 * looked for again. A client is loaded for what was named, or is there, alone.
 */
export async function openDirectory(
  settings: Settings,
  { hierarchy }: NodeCgroup,
  logger: Logger,
): Promise<PodDirectory | undefined> {
  const { kind, endpoint } = settings.runtime;
  if (kind === 'cgroup') return undefined;
  const open = (protocol: Protocol, socketPath: string) =>
    protocol === 'cri'
      ? openCri(socketPath, settings, hierarchy)
      : openDocker(socketPath, settings, hierarchy);
  const candidates = socketsFor(kind, endpoint).map(({ name, protocol, path }) => ({
    name,
    socketPath: path,
    isThere: () => existsSync(path),
    open: () => open(protocol, path),
  }));
  const [first, ...others] = candidates;
  if (first !== undefined && others.length === 0) {
    const place = { name: first.name, socket: first.socketPath };
    return { ...(await first.open()), place: () => place };
  }
  let chosen: RuntimePlace | undefined;
  const directory = foundDirectory({
    candidates,
    scheduler: liveScheduler,
    onChoice: ({ name, socketPath, reason }) => {
      chosen = { name, socket: socketPath };
      logger.info({ runtime: name, socket: socketPath, reason }, 'runtime chosen');
    },
  });
  return { ...directory, place: () => chosen };
}

/** The sockets at which to look: the known ones of a protocol or of both, or the one given. */
export function socketsFor(
  kind: Exclude<RuntimeChoice, 'cgroup'>,
  endpoint: string | undefined,
): readonly KnownSocket[] {
  const isMeant = (protocol: Protocol): boolean => kind === 'auto' || kind === protocol;
  if (endpoint === undefined) return KNOWN_SOCKETS.filter(({ protocol }) => isMeant(protocol));
  const protocols = ['cri', 'docker'] as const satisfies readonly Protocol[];
  return protocols
    .filter(isMeant)
    .map((protocol) => ({ name: NAMES[protocol], protocol, path: endpoint }));
}

const NAMES: Readonly<Record<Protocol, string>> = {
  cri: 'a runtime that speaks CRI',
  docker: 'an engine that speaks Docker’s API',
};

async function openCri(
  socketPath: string,
  { kubeletRootDir, podLogsDir }: Settings,
  hierarchy: Hierarchy,
): Promise<PodDirectory> {
  const [
    { criClient },
    { criDirectory },
    { criDisks },
    { logsBelow },
    { criReclaimer },
    { criRemains },
  ] = await Promise.all([
    import('../runtimes/cri/client.ts'),
    import('../runtimes/cri/directory.ts'),
    import('../runtimes/cri/disks.ts'),
    import('../runtimes/cri/logs.ts'),
    import('../runtimes/cri/reclaimer.ts'),
    import('../runtimes/cri/remains.ts'),
  ]);
  const wallClock = (): number => Date.now();
  const client = criClient(`unix://${socketPath}`, wallClock);
  const mountinfo = (): Promise<string> => readFile('/proc/self/mountinfo', 'utf8');
  const { follow, ...groups } = watchGroups();
  return {
    ...criDirectory({
      client,
      scheduler: liveScheduler,
      machineMemoryBytes: totalmem,
      groups: {
        ...groups,
        follow: (cgroups) => follow(cgroups.flatMap((one) => directoryOf(hierarchy, one) ?? [])),
      },
    }),
    disks: criDisks({ client, kubeletRootDir, podLogsDir, wallClock, mountinfo }),
    reclaimer: criReclaimer(client, logsBelow(podLogsDir)),
    remains: criRemains(client),
  };
}

async function openDocker(
  socketPath: string,
  { dockerPods: grouping }: Settings,
  hierarchy: Hierarchy,
): Promise<PodDirectory> {
  const [{ dockerDirectory }, { dockerDisks }, { dockerReclaimer }, { dockerRemains }] =
    await Promise.all([
      import('../runtimes/docker/directory.ts'),
      import('../runtimes/docker/disks.ts'),
      import('../runtimes/docker/reclaimer.ts'),
      import('../runtimes/docker/remains.ts'),
    ]);
  const directory = dockerDirectory({
    socketPath,
    scheduler: liveScheduler,
    wallClock: () => Date.now(),
    grouping,
    cgroupOf: (pid) => {
      const found = cgroupOf(pid, 'memory', hierarchy);
      return found === undefined ? undefined : pathIn(hierarchy, found).slice(1);
    },
  });
  return {
    ...directory,
    disks: dockerDisks({ socketPath, scheduler: liveScheduler }),
    reclaimer: dockerReclaimer(socketPath),
    remains: dockerRemains(socketPath),
  };
}

/** A runtime that has answered. */
export interface OpenedReclaimer {
  /** For a person: `containerd at /run/…`. */
  readonly name: string;
  readonly reclaimer: Reclaimer;
  /** Where it keeps things; rejects where it does not say. */
  filesystems(): Promise<RuntimeFilesystems>;
  close(): void;
}

/** Those that answer, and of each other whose socket is there why it does not. */
export interface OpenedReclaimers {
  readonly opened: readonly OpenedReclaimer[];
  readonly silent: readonly string[];
}

/**
 * All that answer at the usual sockets, or the one at the socket that was given.
 *
 * @param sockets those at which to look
 * @throws EvictdError EVICTD_RUNTIME where none does
 */
export async function openReclaimers(
  settings: Settings,
  sockets: readonly KnownSocket[] = socketsOf(settings),
): Promise<OpenedReclaimers> {
  const opened: OpenedReclaimer[] = [];
  const answering = new Set<string>();
  const silent: { readonly path: string; readonly isThere: boolean; readonly text: string }[] = [];
  for (const { name, protocol, path } of sockets) {
    const title = `${name} at ${path}`;
    if (!existsSync(path)) {
      silent.push({ path, isThere: false, text: `${title} is not there` });
      continue;
    }
    const one = await openReclaimer(protocol, path, settings);
    try {
      await one.reclaimer.listDead();
      opened.push({ ...one, name: title });
      answering.add(path);
    } catch (error) {
      one.close();
      const reason = error instanceof Error ? error.message : error;
      silent.push({ path, isThere: true, text: `${title}: ${reason}` });
    }
  }
  if (opened.length === 0) {
    const reasons = silent.map(({ text }) => text).join('; ');
    throw new EvictdError('EVICTD_RUNTIME', `no runtime answers: ${reasons}`);
  }
  // Who answers in one language is not asked for another.
  const others = silent.filter(({ path, isThere }) => isThere && !answering.has(path));
  return { opened, silent: others.map(({ text }) => text) };
}

function socketsOf({ runtime: { kind, endpoint } }: Settings): readonly KnownSocket[] {
  return kind === 'cgroup' ? [] : socketsFor(kind, endpoint);
}

async function openReclaimer(
  protocol: Protocol,
  socketPath: string,
  { podLogsDir, kubeletRootDir }: Settings,
): Promise<Omit<OpenedReclaimer, 'name'>> {
  if (protocol === 'docker') {
    const [{ dockerDisks }, { dockerReclaimer }] = await Promise.all([
      import('../runtimes/docker/disks.ts'),
      import('../runtimes/docker/reclaimer.ts'),
    ]);
    return {
      reclaimer: dockerReclaimer(socketPath),
      filesystems: dockerDisks({ socketPath, scheduler: liveScheduler }).filesystems,
      close: () => undefined,
    };
  }
  const [{ criClient }, { criDisks }, { logsBelow }, { criReclaimer }] = await Promise.all([
    import('../runtimes/cri/client.ts'),
    import('../runtimes/cri/disks.ts'),
    import('../runtimes/cri/logs.ts'),
    import('../runtimes/cri/reclaimer.ts'),
  ]);
  const wallClock = (): number => Date.now();
  const client = criClient(`unix://${socketPath}`, wallClock);
  const mountinfo = (): Promise<string> => readFile('/proc/self/mountinfo', 'utf8');
  return {
    reclaimer: criReclaimer(client, logsBelow(podLogsDir)),
    filesystems: criDisks({ client, kubeletRootDir, podLogsDir, wallClock, mountinfo }).filesystems,
    close: () => client.close(),
  };
}
