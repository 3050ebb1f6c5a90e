// @ts-check
// What the caller asks for → plain, checked settings.

const UNITS = { '': 1, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30 };

/** What an agent's command may say in braces. */
const PLACEHOLDERS = /** @type {const} */ (['node', 'nodeRelative', 'headroom', 'limit', 'leak']);

/** @typedef {Record<typeof PLACEHOLDERS[number], string>} Places */

/**
 * What `isReady` may look at.
 * @typedef {Places & { pid: number | undefined }} ReadyContext
 */

/**
 * @typedef {object} RaceOptions
 * @property {string | readonly string[]} agent 'floor', or a command: an argv array, or a string
 *   that is split at spaces outside quotes (no shell). Placeholders: {node} the node's cgroup
 *   directory, {nodeRelative} the same below the memory hierarchy's mount, {leak} the (first)
 *   leaking pod's, {headroom} and {limit} in bytes
 * @property {number} [runs] 10
 * @property {number | string} [limit] the node's memory limit, bytes or '512Mi' (512Mi)
 * @property {number | string} [headroom] memory.available at which to evict (64Mi)
 * @property {number} [rate] MB/s of each leak; 0, the default, is full speed
 * @property {boolean} [huge] leak 2 MiB pages
 * @property {boolean} [late] make the leaking pods' cgroups only after the agent is ready
 * @property {boolean} [twin] put each pod's process into the cgroup2 group of the same path too
 * @property {number} [bystanders] pods of 4 MiB that must survive (5)
 * @property {number | string} [pagecache] bytes of inactive page cache in a pod of its own (0)
 * @property {number} [busy] processes that only burn CPU (0)
 * @property {number} [leakers] leaking pods, all of which must be evicted (1)
 * @property {string | RegExp} [readyPattern] a line of the agent that means ready
 * @property {(context: ReadyContext) => boolean | Promise<boolean>} [isReady] instead of the
 *   pattern, polled: for an agent whose output cannot be read back
 * @property {number} [timeoutSeconds] how long the leaks may run (60)
 * @property {string} [stdout] the agent's standard output: 'read' (default); 'unread': a pipe that
 *   nobody reads once the agent is ready; 'file:PATH': appended to a file, of which /dev/full is
 *   one (then give isReady)
 * @property {(line: string) => void} [onLine] sees each line of the agent that is read
 */

/** @typedef {{ kind: 'read' } | { kind: 'unread' } | { kind: 'file', path: string }} StdoutMode */

/**
 * @typedef {object} Settings
 * @property {'floor' | readonly string[]} agent
 * @property {number} runs
 * @property {number} limitBytes
 * @property {number} headroomBytes
 * @property {number} rateMBs
 * @property {boolean} huge
 * @property {boolean} late
 * @property {boolean} twin
 * @property {number} bystanders
 * @property {number} pagecacheBytes
 * @property {number} busy
 * @property {number} leakers
 * @property {RegExp} readyPattern
 * @property {RaceOptions['isReady']} isReady
 * @property {number} timeoutMs
 * @property {StdoutMode} stdout
 * @property {(line: string) => void} onLine
 */

/**
 * @param {RaceOptions} options
 * @returns {Settings}
 */
export function checkOptions(options) {
  const settings = {
    agent: commandOf(options.agent),
    runs: wholeNumber('runs', options.runs ?? 10, 1),
    limitBytes: parseSize(options.limit ?? '512Mi'),
    headroomBytes: parseSize(options.headroom ?? '64Mi'),
    rateMBs: atLeastZero('rate', options.rate ?? 0),
    huge: options.huge ?? false,
    late: options.late ?? false,
    twin: options.twin ?? false,
    bystanders: wholeNumber('bystanders', options.bystanders ?? 5, 0),
    pagecacheBytes: parseSize(options.pagecache ?? 0),
    busy: wholeNumber('busy', options.busy ?? 0, 0),
    leakers: wholeNumber('leakers', options.leakers ?? 1, 1),
    readyPattern: new RegExp(options.readyPattern ?? '"msg":"ready"'),
    isReady: options.isReady,
    timeoutMs: atLeastZero('timeoutSeconds', options.timeoutSeconds ?? 60) * 1000,
    stdout: parseStdout(options.stdout ?? 'read'),
    onLine: options.onLine ?? (() => {}),
  };
  if (settings.headroomBytes >= settings.limitBytes) {
    throw new RangeError('race: the headroom must be smaller than the limit');
  }
  return settings;
}

/**
 * Bytes from a number or from '1024', '64Ki', '512Mi', '1.5Gi'.
 * @param {number | string} size
 * @returns {number}
 */
export function parseSize(size) {
  const match = /^(\d+(?:\.\d+)?)(Ki|Mi|Gi|)$/.exec(String(size));
  if (!match) throw new RangeError(`race: not a size: ${size}`);
  return Math.round(Number(match[1]) * UNITS[/** @type {keyof typeof UNITS} */ (match[2])]);
}

/**
 * Splits a command at spaces outside quotes. There is no other syntax and no shell.
 * @param {string} command
 * @returns {string[]}
 */
export function splitCommand(command) {
  const words = command.match(/(?:[^\s'"]|'[^']*'|"[^"]*")+/g) ?? [];
  return words.map((word) => word.replace(/'([^']*)'|"([^"]*)"/g, '$1$2'));
}

/**
 * Fills in the placeholders of a command.
 * @param {readonly string[]} argv
 * @param {Places} places
 * @returns {string[]}
 */
export function fillPlaces(argv, places) {
  return argv.map((word) => word.replace(/\{(\w+)\}/g, (_, name) => places[placeholder(name)]));
}

/**
 * @param {string} name
 * @returns {keyof Places}
 */
function placeholder(name) {
  const known = PLACEHOLDERS.find((each) => each === name);
  if (known === undefined) throw new RangeError(`race: unknown placeholder {${name}}`);
  return known;
}

/**
 * @param {string | readonly string[]} agent
 * @returns {'floor' | readonly string[]}
 */
function commandOf(agent) {
  if (agent === 'floor') return agent;
  const argv = typeof agent === 'string' ? splitCommand(agent) : agent;
  if (argv.length === 0) throw new RangeError('race: the agent has no command');
  return argv;
}

/**
 * @param {string} stdout
 * @returns {StdoutMode}
 */
function parseStdout(stdout) {
  if (stdout === 'read' || stdout === 'unread') return { kind: stdout };
  if (/^file:./.test(stdout)) return { kind: 'file', path: stdout.slice('file:'.length) };
  throw new RangeError(`race: stdout is read, unread or file:PATH, not ${stdout}`);
}

/**
 * @param {string} name
 * @param {number} value
 * @param {number} least
 * @returns {number}
 */
function wholeNumber(name, value, least) {
  if (Number.isInteger(value) && value >= least) return value;
  throw new RangeError(`race: ${name} must be a whole number of at least ${least}`);
}

/**
 * @param {string} name
 * @param {number} value
 * @returns {number}
 */
function atLeastZero(name, value) {
  if (Number.isFinite(value) && value >= 0) return value;
  throw new RangeError(`race: ${name} must be a number of at least 0`);
}
