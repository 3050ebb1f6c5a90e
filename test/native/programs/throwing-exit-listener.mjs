// An exit listener that throws while nothing listens for uncaughtException: the process must end.
import { spawn } from 'node:child_process';
import { addon } from './common.mjs';

const child = spawn('true');
addon.openPidfd(child.pid).onExit(() => {
  throw new Error('from an exit listener');
});
