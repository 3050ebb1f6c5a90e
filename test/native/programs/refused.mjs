// Registers what the kernel refuses, deals with it as the argument says, and prints what becomes of
// the rejection.
import { rmdirSync, rmSync } from 'node:fs';
import { addon, createMemoryCgroup, createRefusingDirectory } from './common.mjs';

const cgroup = createMemoryCgroup('refused');
const directory = createRefusingDirectory(cgroup);
process.on('unhandledRejection', (error) => console.log(`unhandled ${error.code}`));
process.on('exit', () => {
  rmSync(directory, { recursive: true });
  rmdirSync(cgroup);
  console.log('exit');
});

const behaviours = {
  ignore: () => undefined,
  close: (watch) => watch.close(),
  'close-later': (watch) => process.nextTick(() => watch.close()),
  handle: (watch) => watch.armed.catch(() => undefined),
};
const watch = addon.watchMemcg(directory, { kind: 'oom' }, () => undefined, { persistent: false });
behaviours[process.argv[2]](watch);
