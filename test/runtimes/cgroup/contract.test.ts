import path from 'node:path';
import { podOf } from '../../kernel/support/node.ts';
import { MEMORY_HIERARCHY } from '../../support/cgroup.ts';
import { requireAddon } from '../../support/native.ts';
import { describeWith } from '../../support/skip.ts';
import { type ContractHost, runtimeContract } from '../contract.ts';
import { openRuntime } from './support.ts';

const HOST: ContractHost = {
  open: async (node) => openRuntime(node.path, { native: requireAddon() }),
  run: async (node, name, script) => {
    const cgroup = node.cgroup.child(name);
    await podOf(cgroup).shell(`echo runs; ${script}`).said;
    return { name, cgroup: path.relative(MEMORY_HIERARCHY, cgroup.path) };
  },
  clear: async () => undefined,
  daemon: undefined,
  openReclaimer: async () => undefined,
};

describeWith({ root: true, cgroupV1: true }, 'pods as plain cgroups', () => {
  runtimeContract(() => HOST);
});
