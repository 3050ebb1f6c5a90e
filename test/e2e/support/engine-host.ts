/** The hosts of these suites that speak Docker's API. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type Docker from 'dockerode';
import { MEMORY_HIERARCHY } from '../../support/cgroup.ts';
import { BUSYBOX_IMAGE } from './image.ts';
import { removeGroups } from './left-over.ts';
import type { MadePod, RuntimeHost } from './runtime-host.ts';

/** What all of them have. */
export interface Engine {
  readonly socketPath: string;
  readonly docker: Docker;
  pid(): number;
  start(): Promise<void>;
  remove(): Promise<void>;
}

export function engineHost(engine: Engine): RuntimeHost {
  const { docker, socketPath } = engine;
  const made = new Map<string, string[]>();
  const stateOf = async ({ id }: MadePod) => (await docker.getContainer(id).inspect()).State;
  return {
    kind: 'docker',
    socketPath,
    flags: [],
    pid: () => engine.pid(),
    start: () => engine.start(),
    remove: () => engine.remove(),
    run: async (node, name, command, { labels = {}, image = BUSYBOX_IMAGE, restart } = {}) => {
      const parent = path.relative(MEMORY_HIERARCHY, node.path);
      const container = await docker.createContainer({
        name,
        Image: image,
        Cmd: [...command],
        Labels: { ...labels },
        StopTimeout: 1,
        HostConfig: {
          CgroupParent: `/${parent}`,
          NetworkMode: 'none',
          ...(restart === undefined ? {} : { RestartPolicy: { Name: restart } }),
        },
      });
      made.set(node.path, [...(made.get(node.path) ?? []), container.id]);
      await container.start();
      const { State } = await container.inspect();
      return { name, id: container.id, cgroup: memoryCgroupOf(State.Pid) };
    },
    isUp: async (pod) => {
      const { Running, Restarting } = await stateOf(pod);
      return Running || Restarting;
    },
    exitCode: async (pod) => {
      const { Running, Restarting, ExitCode } = await stateOf(pod);
      return Running || Restarting ? undefined : ExitCode;
    },
    stop: ({ id }) => docker.getContainer(id).stop({ t: 0 }) as Promise<unknown> as Promise<void>,
    clear: async (node) => {
      const listed = await docker.listContainers({ all: true });
      const isThere = (id: string) => listed.some(({ Id }) => Id === id);
      for (const id of (made.get(node.path) ?? []).filter(isThere)) {
        // Podman's removal alone ends nobody in a container whose stop was withdrawn.
        await docker
          .getContainer(id)
          .stop({ t: 0 })
          .catch(() => undefined);
        await docker.getContainer(id).remove({ force: true });
      }
      made.delete(node.path);
      await removeGroups(path.relative(MEMORY_HIERARCHY, node.path));
    },
  };
}

function memoryCgroupOf(pid: number): string {
  const lines = readFileSync(`/proc/${pid}/cgroup`, 'utf8').split('\n');
  const line = lines.find((one) => one.split(':')[1]?.split(',').includes('memory') === true);
  if (line === undefined) throw new Error(`process ${pid} is in no memory cgroup`);
  return line.split(':').slice(2).join(':').slice(1);
}
