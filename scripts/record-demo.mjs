// Writes data/demo-recording.json: a run of the demo, as `evictd record` sees it. Needs what the demo
// needs; after `npm run build`.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const ROOT = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const MAIN = path.join(ROOT, 'dist/main.js');
const OUTPUT = path.join(ROOT, 'data/demo-recording.json');
/** The recorder's exit status (EVICTD_NOT_RUNNING): it ends with the daemon. */
const DAEMON_ENDED = 6;
const LOOK_MS = 10;
const LOOKS = 3000;

/** The demo's daemon has its socket in a directory of the demo's own. */
const temporary = mkdtempSync(path.join(tmpdir(), 'evictd-record-'));

const run = (args) =>
  spawn(process.execPath, [MAIN, ...args], {
    stdio: 'inherit',
    env: { ...process.env, TMPDIR: temporary },
  });

const endOf = (child) => new Promise((resolve) => child.once('exit', resolve));

async function socketPath() {
  for (let look = 0; look < LOOKS; look += 1) {
    const [directory] = readdirSync(temporary).filter((name) => name.startsWith('evictd-demo-'));
    const file = path.join(temporary, directory ?? '', 'evictd.sock');
    if (existsSync(file)) return file;
    await wait(LOOK_MS);
  }
  throw new Error('the demo starts no daemon');
}

const demo = run(['demo', '--plain']);
const demoEnd = endOf(demo);
try {
  const socket = await socketPath();
  const recorder = run(['record', '--socket', socket, '--interval', '100ms', '--output', OUTPUT]);
  const statuses = await Promise.all([demoEnd, endOf(recorder)]);
  if (statuses[0] !== 0 || statuses[1] !== DAEMON_ENDED) {
    throw new Error(`exit statuses ${statuses}`);
  }
} finally {
  demo.kill();
  await demoEnd;
  rmSync(temporary, { recursive: true, force: true });
}
