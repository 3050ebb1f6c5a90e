// One race in a process of its own: it cleans up after itself when it exits, which a worker of the
// test runner does not get to do. Prints what bench/race gives, as JSON.
//   node race-runner.mjs OPTIONS_AS_JSON
import { request } from 'node:http';
import { race, raceWithFloor } from '../../../bench/race/race.mjs';

const { block, askOn, ...options } = JSON.parse(process.argv[2]);

/** The status of the daemon with this pid; undefined when another answers, or nobody. */
const statusOf = (pid) =>
  new Promise((resolve) => {
    const asked = request({ socketPath: askOn, path: '/v1/status', agent: false }, (response) => {
      let text = '';
      response.on('data', (chunk) => {
        text += chunk;
      });
      response.on('end', () => {
        const status = JSON.parse(text);
        resolve(status.evictd.pid === pid ? status : undefined);
      });
    });
    asked.on('error', () => resolve(undefined));
    asked.end();
  });

const isReady = async ({ pid }) => {
  const status = await statusOf(pid);
  return status?.thresholds.every(({ notification }) => notification.levels.length > 0);
};

const all = askOn === undefined ? options : { ...options, isReady };
const result = block === undefined ? await race(all) : await raceWithFloor(all, block);
console.log(JSON.stringify(result));
