// @ts-check
// The agent under test: started, waited for until it is ready, its output read or left alone.
import { execFileSync } from 'node:child_process';
import { closeSync, constants, fstatSync, openSync, readSync, rmSync } from 'node:fs';
import path from 'node:path';
import { fillPlaces } from './options.mjs';
import { describeEnding, lineSplitter, start, stop } from './processes.mjs';
import { scratchDirectory } from './tools.mjs';
import { waitUntil } from './waiting.mjs';

const READY_LIMIT_MS = 30_000;
const MKFIFO_LIMIT_MS = 5000;
const CHUNK_BYTES = 2 ** 16;
/** How much of what the agent said is told when it does not become ready. */
const TOLD_LINES = 10;

/** @typedef {import('./options.mjs').Settings} Settings */
/** @typedef {import('./options.mjs').Places} Places */
/** @typedef {import('./waiting.mjs').Undo} Undo */

/**
 * The agent's standard output.
 * @typedef {object} Output
 * @property {'pipe' | number} stdio what the agent is started with
 * @property {(onChunk: (chunk: Buffer) => void) => void} poll hands on what has come since
 * @property {() => void} started closes what only the agent is to hold
 * @property {() => void} close
 */

/**
 * Starts the agent and waits until it is ready. Rejects if it ends before, or takes too long.
 * @param {readonly string[]} command
 * @param {Settings} settings
 * @param {Places} places
 * @param {(undo: Undo) => void} defer
 * @param {AbortSignal} signal
 * @returns {Promise<import('./processes.mjs').Running>}
 */
export async function startAgent(command, settings, places, defer, signal) {
  const argv = fillPlaces(command, places);
  const output = openOutput(settings.stdout);
  defer(output.close);
  const agent = start(argv, ['ignore', output.stdio, 'pipe']);
  defer(() => stop(agent));
  output.started();

  /** @type {string[]} */
  const said = [];
  let readyLineSeen = false;
  /** @param {string} line */
  const onLine = (line) => {
    settings.onLine(line);
    said.push(line);
    if (said.length > TOLD_LINES) said.shift();
    readyLineSeen ||= settings.readyPattern.test(line);
  };
  agent.child.stderr?.on('data', lineSplitter(onLine));
  const onChunk = lineSplitter(onLine);
  agent.child.stdout?.on('data', onChunk);

  const { isReady } = settings;
  const ready = async () => {
    const ending = agent.ending();
    if (ending) throw new Error(`race: the agent ended early: ${describeEnding(ending)}`);
    if (isReady) return isReady({ ...places, pid: agent.child.pid });
    output.poll(onChunk);
    return readyLineSeen;
  };
  try {
    await waitUntil(ready, 'the agent is ready', READY_LIMIT_MS, signal);
  } catch (error) {
    signal.throwIfAborted();
    const reason = error instanceof Error ? error.message : String(error);
    const message = [`${reason} (${argv.join(' ')})`, ...said].join('\n  | ');
    throw new Error(message, { cause: error });
  }
  return agent;
}

/**
 * @param {import('./options.mjs').StdoutMode} mode
 * @returns {Output}
 */
function openOutput(mode) {
  if (mode.kind === 'file') return openFile(mode.path);
  if (mode.kind === 'unread') return openPipe();
  return { stdio: 'pipe', poll: () => {}, started: () => {}, close: () => {} };
}

/**
 * A pipe that is read only when polled, and so not at all once the agent is ready. Made as a FIFO:
 * a 'pipe' of Node.js is a socket, which holds more, and its stream reads ahead when paused.
 * @returns {Output}
 */
function openPipe() {
  const fifo = path.join(scratchDirectory(), 'stdout');
  execFileSync('mkfifo', [fifo], { timeout: MKFIFO_LIMIT_MS });
  const reader = openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK);
  const writer = openSync(fifo, constants.O_WRONLY);
  rmSync(fifo); // nobody else is to open it, and the next run makes its own
  return {
    stdio: writer,
    poll: (onChunk) => readAvailable(reader, null, onChunk),
    // The agent's copy blocks when the pipe is full, as a service manager's pipe does.
    started: () => closeSync(writer),
    close: () => closeSync(reader),
  };
}

/**
 * @param {string} file
 * @returns {Output}
 */
function openFile(file) {
  const writer = openSync(file, 'a');
  const reader = openSync(file, 'r');
  let position = fstatSync(reader).size; // what an earlier run wrote says nothing about this one
  return {
    stdio: writer,
    poll: (onChunk) => {
      position += readAvailable(reader, position, onChunk);
    },
    started: () => closeSync(writer),
    close: () => closeSync(reader),
  };
}

/**
 * Reads what is there, at most one chunk a poll: an agent that writes without end does not hold
 * up the race.
 * @param {number} fd
 * @param {number | null} position
 * @param {(chunk: Buffer) => void} onChunk
 * @returns {number} bytes read
 */
function readAvailable(fd, position, onChunk) {
  const chunk = Buffer.alloc(CHUNK_BYTES);
  try {
    const length = readSync(fd, chunk, 0, chunk.length, position);
    if (length > 0) onChunk(chunk.subarray(0, length));
    return length;
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'EAGAIN') return 0;
    throw error;
  }
}
