import type { RuntimeContainer, RuntimePod } from '../../src/ports/pod-directory.ts';

/** A container that runs in `docker/ID`. */
export function runtimeContainer(
  id: string,
  overrides: Partial<RuntimeContainer> = {},
): RuntimeContainer {
  return {
    id,
    name: id,
    images: ['localhost/image:1'],
    isRunning: true,
    cgroup: `docker/${id}`,
    labels: {},
    memoryRequest: undefined,
    ...overrides,
  };
}

/** A pod of one container, as Docker's are. */
export function runtimePod(id: string, overrides: Partial<RuntimePod> = {}): RuntimePod {
  return {
    id,
    namespace: undefined,
    name: id,
    uid: id,
    owner: `container ${id}`,
    cgroups: [`docker/${id}`],
    doubt: undefined,
    isCritical: false,
    labels: {},
    annotations: {},
    containers: [runtimeContainer(id)],
    ...overrides,
  };
}
