// @ts-check
// Child processes: started without a shell, ended by pid only.
import { spawn } from 'node:child_process';
import { StringDecoder } from 'node:string_decoder';
import { settlesWithin } from './waiting.mjs';

/** A Node.js agent ends in some 10 ms; five seconds mean that it is stuck. */
const STOP_LIMIT_MS = 5000;

/**
 * @typedef {object} Ending
 * @property {number | null} code
 * @property {NodeJS.Signals | null} signal
 * @property {Error} [error] why it could not be started
 */

/**
 * @typedef {object} Running
 * @property {import('node:child_process').ChildProcess} child
 * @property {() => Ending | undefined} ending how it ended; undefined while it runs
 * @property {Promise<Ending>} ended
 */

/**
 * @param {readonly string[]} argv
 * @param {import('node:child_process').StdioOptions} stdio
 * @returns {Running}
 */
export function start(argv, stdio) {
  const [command = '', ...args] = argv;
  const child = spawn(command, args, { stdio });
  /** @type {Ending | undefined} */
  let ending;
  /** @type {Promise<Ending>} */
  const ended = new Promise((resolve) => {
    /** @param {Ending} how */
    const end = (how) => {
      ending = how;
      resolve(how);
    };
    child.once('exit', (code, signal) => end({ code, signal }));
    // Only when it cannot be started: nothing is sent to it over a channel, and a signal that
    // cannot be delivered is seen by whoever waits for the exit.
    child.once('error', (error) => end({ code: null, signal: null, error }));
  });
  return { child, ending: () => ending, ended };
}

/**
 * Ends a process: SIGTERM, then SIGKILL. Rejects if it outlives both.
 * @param {Running} running
 * @returns {Promise<void>}
 */
export async function stop(running) {
  for (const signal of /** @type {const} */ (['SIGTERM', 'SIGKILL'])) {
    if (running.ending()) return;
    running.child.kill(signal);
    if (await settlesWithin(running.ended, STOP_LIMIT_MS)) return;
  }
  throw new Error(`race: process ${running.child.pid} outlived SIGKILL`);
}

/**
 * @param {Ending} ending
 * @returns {string}
 */
export function describeEnding({ code, signal, error }) {
  if (error) return error.message;
  return signal ? `killed by ${signal}` : `exit status ${code}`;
}

/**
 * Cuts chunks of a stream into lines, wherever the chunks begin and end.
 * @param {(line: string) => void} onLine
 * @returns {(chunk: Buffer) => void}
 */
export function lineSplitter(onLine) {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  return (chunk) => {
    const lines = (rest + decoder.write(chunk)).split('\n');
    rest = lines.pop() ?? '';
    lines.forEach(onLine);
  };
}
