/**
 * Preloaded into the demo's daemon with `--import`: stops it when its standard input ends, as it
 * does when the demo is gone, however that ended.
 */
process.stdin.once('end', () => process.kill(process.pid, 'SIGTERM'));
process.stdin.once('error', () => process.kill(process.pid, 'SIGTERM'));
process.stdin.resume();
// Watching alone keeps no process alive.
process.stdin.unref();
