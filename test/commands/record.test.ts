import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { concat, from, interval, map, type Observable, of } from 'rxjs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { formatScenario } from '../../src/commands/record/format.ts';
import { fileOutput } from '../../src/commands/record/output.ts';
import { recordCommand } from '../../src/commands/record.ts';
import type { FlagValues } from '../../src/config/flags.ts';
import { recordSettings } from '../../src/config/record-flags.ts';
import { EvictdError } from '../../src/core/errors.ts';
import { simulate } from '../../src/simulation/engine.ts';
import type { Scenario } from '../../src/simulation/scenario.ts';
import { askKubelet } from '../../src/sources/kubelet.ts';
import type { SampleLine, SamplesHead } from '../../src/surfaces/samples.ts';
import { serveStatus } from '../../src/surfaces/socket.ts';
import { within } from '../support/wait.ts';

const SAMPLES = fileURLToPath(new URL('../fixtures/samples', import.meta.url));

function directory(): string {
  const made = mkdtempSync(path.join(tmpdir(), 'evictd-record-test-'));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

const codeOf = (act: () => unknown): string | undefined => {
  try {
    act();
    return undefined;
  } catch (error) {
    return error instanceof EvictdError ? error.code : String(error);
  }
};

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

async function serve(handler: Handler): Promise<string> {
  const server = createServer(handler);
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A kubelet that says what one said once. */
const kubelet =
  (summary: string, pods: string): Handler =>
  (request, response) => {
    const file = { '/stats/summary': summary, '/pods': pods }[request.url ?? ''];
    response.statusCode = file === undefined ? 404 : 200;
    response.end(file === undefined ? '' : readFileSync(path.join(SAMPLES, file)));
  };

const access = (url: string) => ({
  url: new URL(url),
  tokenFile: undefined,
  caFile: undefined,
  insecure: false,
});

describe('the flags of record', () => {
  it('have defaults', () => {
    expect(recordSettings({})).toEqual({
      source: { kind: 'daemon', socketPath: '/run/evictd/evictd.sock' },
      intervalMs: 1000,
      durationMs: 60_000,
      maxSamples: 10_000,
      file: undefined,
    });
  });

  it.each([
    ['EVICTD_USAGE', { '--token-file': ['x'] }],
    ['EVICTD_USAGE', { '--kubelet': ['https://h:1'], '--socket': ['/s'] }],
    ['EVICTD_USAGE', { '--kubelet': ['file:///etc/passwd'] }],
    ['EVICTD_USAGE', { '--kubelet': ['https://user:secret@h:1'] }],
    ['EVICTD_USAGE', { '--kubelet': ['h:10250'] }],
    ['EVICTD_DURATION', { '--interval': ['10ms'] }],
    ['EVICTD_DURATION', { '--duration': ['-1s'] }],
    ['EVICTD_INTEGER', { '--max-samples': ['1'] }],
    ['EVICTD_SOCKET_PATH', { '--socket': ['none'] }],
  ] as const)('are refused with %s: %o', (code, values) => {
    expect(codeOf(() => recordSettings(values))).toBe(code);
  });
});

describe('the file of a recording', () => {
  it('is replaced as a whole, and nothing else is left', () => {
    const made = directory();
    const file = path.join(made, 'run.json');
    writeFileSync(file, 'before');
    const output = fileOutput(file);
    expect(readFileSync(file, 'utf8')).toBe('before');
    output.write('after\n');
    output.close();
    expect(readFileSync(file, 'utf8')).toBe('after\n');
    expect(readdirSync(made)).toEqual(['run.json']);
  });

  it('stays as it was where nothing is written, and is refused at once where it cannot be', () => {
    const made = directory();
    const file = path.join(made, 'run.json');
    fileOutput(file).close();
    expect(readdirSync(made)).toEqual([]);
    expect(codeOf(() => fileOutput(path.join(made, 'none/run.json')))).toBe('EVICTD_OUTPUT');
  });
});

describe('formatScenario', () => {
  it('gives JSON that means the same, with short lines', () => {
    const scenario: Scenario = {
      name: 'x',
      description: 'y'.repeat(20),
      config: { evictionHard: { 'memory.available': '1' } },
      node: { dedicatedImageFs: false, splitImageFs: false },
      pods: [],
      ticks: Array.from({ length: 5 }, (_, at) => ({
        at: `${at}s`,
        activePods: Array.from({ length: 20 }, (__, pod) => `cgroup/pod-${pod}`),
      })),
    };
    const text = formatScenario(scenario);
    expect(JSON.parse(text)).toEqual(scenario);
    expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(100);
  });
});

describe('askKubelet', () => {
  it('sends the token of the moment', async () => {
    const seen: (string | undefined)[] = [];
    const answer = kubelet('kubelet-v1.32.13-stats-summary.json', 'kubelet-v1.32.13-pods.json');
    const url = await serve((request, response) => {
      seen.push(request.headers.authorization);
      answer(request, response);
    });
    const tokenFile = path.join(directory(), 'token');
    writeFileSync(tokenFile, 'one\n');
    await askKubelet({ ...access(url), tokenFile });
    writeFileSync(tokenFile, 'two\n');
    const { pods, summary } = await askKubelet({ ...access(url), tokenFile });
    expect(seen).toEqual(['Bearer one', 'Bearer one', 'Bearer two', 'Bearer two']);
    expect([pods.length, summary.pods?.length]).toEqual([4, 4]);
  });

  it.each<[string, Handler]>([
    ['HTTP status 401', (_, response) => void response.writeHead(401).end()],
    ['HTTP status 302', (_, response) => void response.writeHead(302, { location: '/' }).end()],
    ['not as a kubelet', (_, response) => void response.end('<html>')],
    ['not as a kubelet', (_, response) => void response.end('{}')],
    ['not as a kubelet', (_, response) => void response.end('{"node":{},"items":3}')],
    ['too long', (_, response) => void response.end(Buffer.alloc(65 * 2 ** 20))],
    ['hang up', (_, response) => void response.destroy()],
  ])('refuses what is no answer of a kubelet: %s', async (why, handler) => {
    const url = await serve(handler);
    await expect(askKubelet(access(url))).rejects.toMatchObject({
      code: 'EVICTD_KUBELET',
      message: expect.stringContaining(why),
    });
  });

  it('refuses a port where nobody listens, and a token that cannot be read', async () => {
    const url = await serve(() => undefined);
    const missing = { ...access(url), tokenFile: path.join(directory(), 'token') };
    await expect(askKubelet(missing)).rejects.toMatchObject({ code: 'EVICTD_KUBELET' });
    const nobody = access('http://127.0.0.1:1');
    await expect(askKubelet(nobody)).rejects.toMatchObject({ code: 'EVICTD_KUBELET' });
  });
});

/** Runs the command for a while; the scenario that it writes. */
async function record(values: FlagValues): Promise<Scenario> {
  const file = path.join(directory(), 'scenario.json');
  const recorded = recordCommand({ ...values, '--duration': ['450ms'], '--output': [file] });
  expect(await within(recorded, 20_000, 'the recorder ends')).toBe(0);
  return JSON.parse(readFileSync(file, 'utf8')) as Scenario;
}

describe('a recorded kubelet', () => {
  it('is a scenario of what it said, without what no policy looks at', async () => {
    const url = await serve(
      kubelet('kubelet-v1.32.13-stats-summary.json', 'kubelet-v1.32.13-pods.json'),
    );
    const scenario = await record({ '--kubelet': [url], '--interval': ['100ms'] });
    expect(scenario.config).toMatchObject({
      compatibility: 'kubelet',
      enforceNodeAllocatable: ['pods'],
      evictionHard: { 'memory.available': '100Mi', 'nodefs.available': '10%' },
      hardEvictionGracePeriodSeconds: 1,
    });
    expect(scenario.node).toEqual({ dedicatedImageFs: false, splitImageFs: false });
    expect(scenario.pods).toHaveLength(4);
    expect(scenario.ticks.length).toBeGreaterThan(1);
    const [tick] = scenario.ticks;
    expect(tick?.at).toBe('0s');
    expect(tick?.activePods).toContain('shop/by-1');
    expect(tick?.summary?.node).toMatchObject({
      memory: { availableBytes: 21_512_192_000, workingSetBytes: 3_763_834_880 },
      rlimit: { maxpid: 32_768, curproc: 321 },
      systemContainers: [{ name: 'pods', memory: { availableBytes: 1_149_743_104 } }],
    });
    const text = JSON.stringify(scenario);
    for (const word of ['rxBytes', 'usageNanoCores', 'swap', 'image:', 'hostIP', 'managedFields']) {
      expect(text).not.toContain(word);
    }
    const { ticks, error } = simulate(scenario);
    expect(error).toBeUndefined();
    expect(ticks.every(({ evicted }) => evicted.length === 0)).toBe(true);
    // And with a threshold that this node does not keep.
    const flags = { '--eviction-hard': ['memory.available<21Gi'] };
    const victims = simulate(scenario, { flags }).ticks.flatMap(({ evicted }) => evicted);
    expect(victims[0]?.pod).toBe('shop/by-2');
  });

  it('has no pods that have come to their end, and takes the thresholds of a file', async () => {
    const url = await serve(
      kubelet('kubelet-1.26-stats-summary.json', 'kubelet-1.26-pods-after-eviction.json'),
    );
    const config = path.join(directory(), 'kubelet.yaml');
    writeFileSync(
      config,
      'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n' +
        'evictionHard:\n  memory.available: 7%\n',
    );
    const scenario = await record({ '--kubelet': [url], '--config': [config] });
    expect(scenario.config.evictionHard).toEqual({ 'memory.available': '7%' });
    expect(scenario.pods.map(({ metadata }) => metadata.name)).toEqual(['guar-node1']);
  });

  it('has a gap where the kubelet did not answer, and refuses one that never does', async () => {
    let asked = 0;
    const answer = kubelet('kubelet-v1.32.13-stats-summary.json', 'kubelet-v1.32.13-pods.json');
    const url = await serve((request, response) => {
      asked += 1;
      if (asked > 2) response.writeHead(503).end();
      else answer(request, response);
    });
    const { ticks } = await record({ '--kubelet': [url], '--interval': ['100ms'] });
    expect(ticks.slice(0, 2).map(({ summary }) => summary === null)).toEqual([false, true]);
    const never = recordCommand({ '--kubelet': [url], '--duration': ['1s'] });
    await expect(never).rejects.toMatchObject({ code: 'EVICTD_KUBELET' });
  });
});

const HEAD: SamplesHead = {
  apiVersion: 'evictd.dev/v1alpha1',
  kind: 'Samples',
  version: '0.1.0',
  nodeCgroup: '/sys/fs/cgroup/memory/node',
  startedAt: '2026-01-01T00:00:00.000Z',
  config: { evictionHard: { 'memory.available': '64Mi' } },
  dedicatedImageFs: false,
  splitImageFs: false,
  pods: [],
  evicting: false,
  pressure: false,
};

const turn = (atMs: number): SampleLine => ({
  kind: 'turn',
  atMs,
  reason: 'due',
  signals: [{ signal: 'memory.available', capacity: 1000, available: 900 }],
  pods: [],
  calm: true,
  decision: { kind: 'none', why: 'calm' },
  outcome: null,
});

/** A daemon's socket that has these samples to give. */
async function daemon(samples: (intervalMs: number) => Observable<SampleLine>): Promise<string> {
  const file = path.join(directory(), 'evictd.sock');
  const socket = await serveStatus(file, async () => ({}), samples);
  onTestFinished(() => socket.close());
  return file;
}

describe('a recorded daemon', () => {
  it('is what its socket said until it ended, under the configuration of each turn', async () => {
    let asked = 0;
    const config = { evictionHard: { 'memory.available': '10Mi' } };
    const socket = await daemon((intervalMs) => {
      asked = intervalMs;
      return from<SampleLine[]>([HEAD, turn(500), { kind: 'config', config }, turn(700)]);
    });
    const scenario = await record({ '--socket': [socket], '--interval': ['250ms'] });
    expect(asked).toBe(250);
    expect(scenario.name).toBe('recording-2026-01-01t00-00-00-000z');
    expect(scenario.config).toEqual(HEAD.config);
    expect(scenario.ticks.map(({ at, evictd }) => [at, evictd?.config])).toEqual([
      ['0s', undefined],
      ['200ms', config],
    ]);
  });

  it('ends with the time where the daemon goes on, and keeps so many samples', async () => {
    const socket = await daemon(() =>
      concat(of(HEAD), interval(20).pipe(map((count) => turn(count)))),
    );
    const scenario = await record({ '--socket': [socket], '--max-samples': ['3'] });
    expect(scenario.ticks).toHaveLength(3);
    expect(scenario.description).toMatch(/\(\d+ were left out beyond --max-samples/);
  });

  it('is refused where nobody listens, or something else answers', async () => {
    const file = path.join(directory(), 'evictd.sock');
    await expect(recordCommand({ '--socket': [file] })).rejects.toMatchObject({
      code: 'EVICTD_NOT_RUNNING',
    });
    const other = await daemon(() => of(turn(1)));
    await expect(recordCommand({ '--socket': [other] })).rejects.toMatchObject({
      code: 'EVICTD_UNREACHABLE',
    });
  });
});
