import { execFileSync } from 'node:child_process';
import {
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createSecureServer, type Server as SecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  concat,
  firstValueFrom,
  from,
  interval,
  map,
  type Observable,
  of,
  share,
  skip,
} from 'rxjs';
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { daemonSamples } from '../../src/commands/record/daemon.ts';
import { formatScenario } from '../../src/commands/record/format.ts';
import { fileOutput } from '../../src/commands/record/output.ts';
import { recordCommand } from '../../src/commands/record.ts';
import type { FlagValues } from '../../src/config/flags.ts';
import { recordSettings } from '../../src/config/record-flags.ts';
import { describeError, EvictdError, quote } from '../../src/core/errors.ts';
import { simulate } from '../../src/simulation/engine.ts';
import { checkScenario } from '../../src/simulation/read.ts';
import type { Scenario } from '../../src/simulation/scenario.ts';
import { askKubelet } from '../../src/sources/kubelet.ts';
import type { SampleLine, SamplesHead } from '../../src/surfaces/samples.ts';
import { serveStatus } from '../../src/surfaces/socket.ts';
import { within } from '../support/wait.ts';

const TLS = fileURLToPath(new URL('../fixtures/tls', import.meta.url));
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

/** What it says that it throws. */
const sayingOf = (act: () => unknown): string => {
  try {
    act();
  } catch (error) {
    if (error instanceof EvictdError) return said(error);
    throw error;
  }
  throw new Error('nothing is wrong');
};

const said = (error: EvictdError): string =>
  `${describeError(error)} [${error.code}], ${error.exitStatus}`;

/** What the promise is rejected with. */
const faultOf = async (promise: Promise<unknown>): Promise<string> => {
  try {
    await promise;
  } catch (error) {
    if (error instanceof EvictdError) return said(error);
    throw error;
  }
  throw new Error('nothing is wrong');
};

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

async function serve(handler: Handler): Promise<string> {
  return `http://127.0.0.1:${await portOf(createServer(handler))}`;
}

async function portOf(server: Server | SecureServer): Promise<number> {
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
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

  it('stays as it was where nothing is written, and nothing is beside it meanwhile', () => {
    const made = directory();
    const output = fileOutput(path.join(made, 'run.json'));
    expect(readdirSync(made)).toEqual([]);
    output.close();
    expect(readdirSync(made)).toEqual([]);
  });

  it.each<[string, string, (made: string) => void]>([
    ['none/run.json', 'ENOENT: no such file or directory', () => undefined],
    ['file/run.json', 'ENOTDIR: not a directory', (made) => writeFileSync(`${made}/file`, '')],
    ['file/', 'a directory', (made) => writeFileSync(`${made}/file`, '')],
    ['new/', 'a directory', () => undefined],
    ['.', 'a directory', () => undefined],
    ['sub', 'a directory', (made) => mkdirSync(`${made}/sub`)],
    [
      'link',
      'a link to other: name the file itself',
      (made) => symlinkSync('other', `${made}/link`),
    ],
    [
      'link',
      'a link to other: name the file itself',
      (made) => {
        writeFileSync(`${made}/other`, 'before');
        symlinkSync('other', `${made}/link`);
      },
    ],
    ['x'.repeat(256), 'ENAMETOOLONG: name too long', () => undefined],
  ])('is refused at once where it cannot be: %s, %s', (name, why, prepare) => {
    const made = directory();
    prepare(made);
    const before = readdirSync(made);
    const file = `${made}/${name}`;
    expect(sayingOf(() => fileOutput(file))).toBe(
      `--output ${quote(file)}: ${why} [EVICTD_OUTPUT], 1`,
    );
    expect(readdirSync(made)).toEqual(before);
    if (before.includes('other')) expect(readFileSync(`${made}/other`, 'utf8')).toBe('before');
  });

  it('is refused without a path, and where a socket is', async () => {
    expect(sayingOf(() => fileOutput(''))).toBe('--output "": no path [EVICTD_OUTPUT], 1');
    const file = path.join(directory(), 'socket');
    const server = createServer(() => undefined);
    onTestFinished(() => void server.close());
    await new Promise<void>((resolve) => server.listen(file, resolve));
    expect(sayingOf(() => fileOutput(file))).toMatch(/: neither a file .*\[EVICTD_OUTPUT\], 1$/);
    expect(lstatSync(file).isSocket()).toBe(true);
  });

  it('may have the longest name that there is', () => {
    const file = path.join(directory(), 'x'.repeat(255));
    fileOutput(file).write('all');
    expect(readFileSync(file, 'utf8')).toBe('all');
  });

  it('is left as it was where a directory has come meanwhile, and nothing is beside it', () => {
    const made = directory();
    const file = path.join(made, 'run.json');
    const output = fileOutput(file);
    mkdirSync(file);
    expect(sayingOf(() => output.write('all'))).toBe(
      `--output ${quote(file)}: a directory [EVICTD_OUTPUT], 1`,
    );
    expect(readdirSync(made)).toEqual(['run.json']);
  });

  it('is a FIFO that is written to, and stays one', () => {
    const made = directory();
    const file = path.join(made, 'fifo');
    execFileSync('mkfifo', [file]);
    const reader = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
    onTestFinished(() => closeSync(reader));
    const output = fileOutput(file);
    output.write('all\n');
    output.close();
    expect(readFileSync(reader, 'utf8')).toBe('all\n');
    expect(lstatSync(file).isFIFO()).toBe(true);
    expect(readdirSync(made)).toEqual(['fifo']);
  });

  it('is a device that is written to, also by a link, and stays one', () => {
    const link = path.join(directory(), 'link');
    symlinkSync('/dev/null', link);
    const output = fileOutput(link);
    output.write('all\n');
    output.close();
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    expect(lstatSync('/dev/null').isCharacterDevice()).toBe(true);
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
    expect(pods).toHaveLength(4);
    expect(summary.pods).toHaveLength(4);
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

  it('refuses a port where nobody listens', async () => {
    const nobody = access('http://127.0.0.1:1');
    await expect(askKubelet(nobody)).rejects.toMatchObject({ code: 'EVICTD_KUBELET' });
  });
});

describe('a file of a flag', () => {
  const made = mkdtempSync(path.join(tmpdir(), 'evictd-record-test-'));
  afterAll(() => rmSync(made, { recursive: true, force: true }));
  const written = (name: string, text: string): string => {
    const file = path.join(made, name);
    writeFileSync(file, text);
    return file;
  };
  const nothing = path.join(made, 'nothing');
  const CERTIFICATE = '-----BEGIN CERTIFICATE-----';

  it.each([
    ['--token-file', nothing, 'no such file'],
    ['--token-file', made, 'cannot be read: EISDIR'],
    ['--token-file', written('empty', '\n'), 'holds no token'],
    ['--token-file', written('two', 'one\ntwo\n'), 'holds no token'],
    ['--ca-file', nothing, 'no such file'],
    ['--ca-file', made, 'cannot be read: EISDIR'],
    ['--ca-file', written('text', 'a certificate\n'), 'holds no certificate in PEM'],
    ['--ca-file', written('cut', `${CERTIFICATE}\nAAAA\n`), 'holds no certificate in PEM'],
  ] as const)('%s %s is refused before anything is asked: %s', async (flag, file, why) => {
    let asked = 0;
    const url = await serve((_, response) => {
      asked += 1;
      response.end('{}');
    });
    const output = path.join(directory(), 'scenario.json');
    const values = { '--kubelet': [url], [flag]: [file], '--output': [output] };
    expect(await faultOf(recordCommand(values))).toBe(
      `${flag} ${JSON.stringify(file)}: ${why} [EVICTD_USAGE], 2`,
    );
    expect(asked).toBe(0);
    expect(readdirSync(path.dirname(output))).toEqual([]);
  });

  it('--config is refused as `evictd run` refuses it', async () => {
    const values = { '--kubelet': ['http://127.0.0.1:1'], '--config': [nothing] };
    expect(await faultOf(recordCommand(values))).toBe(
      `${nothing}: no such file [EVICTD_CONFIG_FILE], 2`,
    );
  });
});

describe('a kubelet with a certificate of its own', () => {
  const certificate = path.join(TLS, 'certificate.pem');
  const secure = async (): Promise<string> => {
    const answer = kubelet('kubelet-v1.32.13-stats-summary.json', 'kubelet-v1.32.13-pods.json');
    const keys = {
      key: readFileSync(path.join(TLS, 'key.pem')),
      cert: readFileSync(certificate),
    };
    return `https://127.0.0.1:${await portOf(createSecureServer(keys, answer))}`;
  };

  it.each([
    ['--ca-file', certificate],
    ['--insecure-skip-tls-verify', 'true'],
  ] as const)('is recorded with %s', async (flag, value) => {
    const { pods } = await record({ '--kubelet': [await secure()], [flag]: [value] });
    expect(pods).toHaveLength(4);
  });

  it('is refused without, and nothing is written', async () => {
    const url = await secure();
    const output = path.join(directory(), 'scenario.json');
    expect(await faultOf(recordCommand({ '--kubelet': [url], '--output': [output] }))).toBe(
      `--kubelet "${url}/stats/summary": self-signed certificate [EVICTD_KUBELET], 9`,
    );
    expect(readdirSync(path.dirname(output))).toEqual([]);
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
    });
    // It is left to the rule set.
    expect(scenario.config).not.toHaveProperty('hardEvictionGracePeriodSeconds');
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
    for (const { at } of ticks) expect(at).toMatch(/^\d+(\.\d{1,3})?(ms|s)$/);
    const never = recordCommand({ '--kubelet': [url], '--duration': ['1s'] });
    await expect(never).rejects.toMatchObject({ code: 'EVICTD_KUBELET' });
  });

  it.each([
    ['leaves a file as it was', 'before'],
    ['makes none', undefined],
  ])('where no answer comes before the end of the recording %s', async (_, before) => {
    const url = await serve(() => undefined);
    const file = path.join(directory(), 'scenario.json');
    if (before !== undefined) writeFileSync(file, before);
    const values = { '--kubelet': [url], '--duration': ['200ms'], '--output': [file] };
    expect(await faultOf(recordCommand(values))).toMatch(
      /^--kubelet "http:.*": no answer within \d+ms \[EVICTD_KUBELET\], 9$/,
    );
    expect(readdirSync(path.dirname(file))).toEqual(before === undefined ? [] : ['scenario.json']);
    if (before !== undefined) expect(readFileSync(file, 'utf8')).toBe(before);
  });
});

/** What is said on stderr meanwhile. */
function hearing(): () => string {
  let heard = '';
  const write = vi.spyOn(process.stderr, 'write').mockImplementation((chunk) => {
    heard += String(chunk);
    return true;
  });
  onTestFinished(() => write.mockRestore());
  return () => heard;
}

/** A kubelet of one pod, `shop/web`, and what is put beside or in place of it. */
const oddKubelet =
  (node: object, stats: object, ...others: readonly unknown[]): Handler =>
  ({ url }, response) => {
    const ref = { podRef: { name: 'web', namespace: 'shop', uid: 'u1' } };
    const metadata = { name: 'web', namespace: 'shop', uid: 'u1' };
    const answer =
      url === '/pods'
        ? { items: [{ metadata, spec: {} }, ...others] }
        : { node, pods: [{ ...ref, ...stats }, null, 5, { podRef: 'web' }] };
    // The largest number of 64 bits is one that JSON has and a double has not.
    response.end(JSON.stringify(answer).replaceAll('"2^64-1"', '18446744073709551615'));
  };

describe('what no scenario can hold', () => {
  const LEFT_OUT = 'left out each time that it is so: no scenario can hold it';

  it('is left out of a recording figure by figure, and said once for each kind', async () => {
    const heard = hearing();
    const memory = { availableBytes: '2^64-1', workingSetBytes: 5 };
    const handler = oddKubelet(
      { memory, fs: { availableBytes: 1.5, capacityBytes: 9 }, systemContainers: [null] },
      {
        memory: { workingSetBytes: 7, availableBytes: '2^64-1' },
        containers: [
          { name: 'a', rootfs: { usedBytes: '2^64-1', inodesUsed: 3 } },
          { name: 'b', rootfs: { usedBytes: '2^64-1' }, logs: { usedBytes: 2 } },
          { name: 3, logs: { usedBytes: 1 } },
        ],
      },
    );
    const url = await serve(handler);
    const scenario = await record({ '--kubelet': [url], '--interval': ['100ms'] });
    expect(scenario.ticks.length).toBeGreaterThan(1);
    expect(checkScenario(scenario)).toBe(scenario);
    expect(simulate(scenario).error).toBeUndefined();
    for (const { summary } of scenario.ticks) {
      expect(summary).toEqual({
        node: { memory: { workingSetBytes: 5 }, fs: { capacityBytes: 9 }, systemContainers: [] },
        pods: [
          {
            podRef: { name: 'web', namespace: 'shop', uid: 'u1' },
            memory: { workingSetBytes: 7 },
            containers: [
              { name: 'a', rootfs: { inodesUsed: 3 } },
              { name: 'b', rootfs: {}, logs: { usedBytes: 2 } },
            ],
            volume: [],
          },
        ],
      });
    }
    const lines = heard()
      .split('\n')
      .filter((line) => line.includes('left out'));
    const said = (kind: string, value: string) =>
      `evictd: --kubelet: ${kind} ${quote(value)}: ${LEFT_OUT}`;
    expect(lines.sort()).toEqual(
      [
        said('node.memory.availableBytes', '18446744073709552000'),
        said('node.fs.availableBytes', '1.5'),
        said('node.systemContainers[]', 'null'),
        said('pods[].memory.availableBytes', '18446744073709552000'),
        said('pods[].containers[].rootfs.usedBytes', '18446744073709552000'),
        said('pods[].containers[].name', '3'),
        said('pods[].containers[]', '{"logs":{"usedBytes":1}}'),
      ].sort(),
    );
  });

  it.each<[unknown, string]>([
    [null, 'pod items[1]: left out: must be a map, not null'],
    [[], 'pod items[1]: left out: must be a map, not a list'],
    [{ metadata: { name: 'x' } }, 'pod items[1]: left out: spec: is missing'],
    [
      { metadata: { name: 'x', namespace: 'n', uid: 'u2' }, spec: null },
      'pod n/x: left out: spec: must be a map, not null',
    ],
    [
      {
        metadata: { name: 'x', namespace: 'n', uid: 'u2' },
        spec: { terminationGracePeriodSeconds: 'x' },
      },
      'pod n/x: left out: spec.terminationGracePeriodSeconds: must be a whole number, not "x"',
    ],
    [
      {
        metadata: { name: 'x', namespace: 'n', uid: 'u2' },
        spec: { containers: [{ name: 'c', resources: { requests: { memory: 'much' } } }] },
      },
      'pod n/x: left out: "much": not a quantity such as 100Mi, 1.5Gi, 129e6 or 104857600',
    ],
  ])('is no pod of a recording: %j', async (pod, why) => {
    const heard = hearing();
    const url = await serve(oddKubelet({}, {}, pod));
    const scenario = await record({ '--kubelet': [url], '--interval': ['100ms'] });
    expect(scenario.pods.map(({ metadata }) => metadata.name)).toEqual(['web']);
    expect(simulate(scenario).error).toBeUndefined();
    const lines = heard()
      .split('\n')
      .filter((line) => line.includes('left out'));
    expect(lines).toEqual([`evictd: --kubelet: ${why}`]);
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

/** Goes on for as long as somebody listens. */
const forever = (): Observable<SampleLine> =>
  concat(of(HEAD), interval(20).pipe(map((count) => turn(count))));

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
    const file = path.join(directory(), 'scenario.json');
    const values = { '--socket': [socket], '--interval': ['250ms'], '--output': [file] };
    expect(await faultOf(recordCommand(values))).toMatch(
      /^--socket ".*": the daemon ended: \d+ms of 1m0s were recorded \[EVICTD_NOT_RUNNING\], 6$/,
    );
    const scenario = JSON.parse(readFileSync(file, 'utf8')) as Scenario;
    expect(asked).toBe(250);
    expect(scenario.name).toBe('recording-2026-01-01t00-00-00-000z');
    expect(scenario.config).toEqual(HEAD.config);
    expect(scenario.ticks.map(({ at, evictd }) => [at, evictd?.config])).toEqual([
      ['0s', undefined],
      ['200ms', config],
    ]);
  });

  it('ends with the time where the daemon goes on, and keeps so many samples', async () => {
    const socket = await daemon(forever);
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

  it.each([
    ['is closed', '', (response: ServerResponse) => void response.end()],
    ['is torn down', '{"kind":"tu', (response: ServerResponse) => void response.destroy()],
  ])('is what was said before the connection %s', async (_, rest, end) => {
    const file = path.join(directory(), 'evictd.sock');
    const lines = [HEAD, turn(0), turn(5)].map((line) => `${JSON.stringify(line)}\n`).join('');
    const server = createServer((__, response) => {
      response.write(`${lines}${rest}`, () => end(response));
    });
    onTestFinished(() => void server.close());
    await new Promise<void>((resolve) => server.listen(file, resolve));
    const output = path.join(directory(), 'scenario.json');
    const values = { '--socket': [file], '--duration': ['0'], '--output': [output] };
    expect(await faultOf(recordCommand(values))).toMatch(
      /: the daemon ended: \d+ms were recorded \[EVICTD_NOT_RUNNING\], 6$/,
    );
    expect((JSON.parse(readFileSync(output, 'utf8')) as Scenario).ticks).toHaveLength(2);
  });

  it.each<[string, readonly unknown[]]>([
    ['a head without anything', [{ apiVersion: HEAD.apiVersion, kind: 'Samples' }, turn(0)]],
    ['a head of another shape', [{ ...HEAD, pods: [null] }, turn(0)]],
    ['a configuration that is none', [{ ...HEAD, config: { evictionHard: 5 } }, turn(0)]],
    ['another configuration that is none', [HEAD, turn(0), { kind: 'config', config: null }]],
    ['a turn without anything', [HEAD, { kind: 'turn' }]],
    ['a turn at no time', [HEAD, { ...turn(0), atMs: 1e308 }]],
    ['a figure that is none', [HEAD, { ...turn(0), signals: [{ signal: 'memory.available' }] }]],
    ['a pod that is none', [HEAD, { ...turn(0), pods: [{ id: 'a', name: 'a' }] }]],
    ['an eviction of nobody', [HEAD, { ...turn(0), decision: { kind: 'evict' } }]],
    ['an outcome that is none', [HEAD, { ...turn(0), outcome: { podId: 'a', kind: 'x' } }]],
    ['a line without a kind', [HEAD, {}]],
    ['a line that is no object', [HEAD, 5]],
    ['a number of lines that is none', [HEAD, { kind: 'dropped', count: 'x' }]],
  ])('is refused where what is said is not what a daemon says: %s', async (_, lines) => {
    const socket = await daemon(() => from(lines as readonly SampleLine[]));
    const output = path.join(directory(), 'scenario.json');
    expect(await faultOf(recordCommand({ '--socket': [socket], '--output': [output] }))).toBe(
      `--socket ${quote(socket)}: what answers is no evictd of this version [EVICTD_UNREACHABLE], 9`,
    );
    expect(readdirSync(path.dirname(output))).toEqual([]);
  });

  it('is refused where its turns make no scenario, and nothing is written', async () => {
    const socket = await daemon(() => from([HEAD, turn(700), turn(500)]));
    const output = path.join(directory(), 'scenario.json');
    expect(await faultOf(recordCommand({ '--socket': [socket], '--output': [output] }))).toBe(
      `--socket ${quote(socket)}: what was recorded is no scenario: ticks[1].at "-200ms": ` +
        'before what precedes it [EVICTD_UNREACHABLE], 9',
    );
    expect(readdirSync(path.dirname(output))).toEqual([]);
  });

  it('may say what this version does not know', async () => {
    const lines = [HEAD, { kind: 'constructor' }, { ...turn(0), more: 1 }, { kind: 'later' }];
    const socket = await daemon(() => from(lines as readonly SampleLine[]));
    const file = path.join(directory(), 'scenario.json');
    expect(await faultOf(recordCommand({ '--socket': [socket], '--output': [file] }))).toMatch(
      / were recorded \[EVICTD_NOT_RUNNING\], 6$/,
    );
    expect((JSON.parse(readFileSync(file, 'utf8')) as Scenario).ticks).toHaveLength(1);
  });

  it('is written, with 0, where the user ends it', async () => {
    const socket = await daemon(forever);
    const file = path.join(directory(), 'scenario.json');
    const recorded = recordCommand({ '--socket': [socket], '--output': [file] });
    await firstValueFrom(daemonSamples(socket, 100).pipe(skip(2)));
    process.emit('SIGINT', 'SIGINT');
    expect(await within(recorded, 5000, 'the recorder ends')).toBe(0);
    const { ticks } = JSON.parse(readFileSync(file, 'utf8')) as Scenario;
    expect(ticks.length).toBeGreaterThan(0);
  });

  it('is refused where it does not answer in time, and no file is left', async () => {
    const file = path.join(directory(), 'evictd.sock');
    const server = createServer(() => undefined);
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    await new Promise<void>((resolve) => server.listen(file, resolve));
    const output = path.join(directory(), 'scenario.json');
    const values = { '--socket': [file], '--duration': ['200ms'], '--output': [output] };
    expect(await faultOf(recordCommand(values))).toMatch(
      /^--socket ".*": no daemon answers: no answer within \d+ms \[EVICTD_UNREACHABLE\], 9$/,
    );
    expect(readdirSync(path.dirname(output))).toEqual([]);
  });

  it('is refused by a daemon that serves enough, in its words', async () => {
    const socket = await daemon(forever);
    const others = Array.from({ length: 4 }, () => daemonSamples(socket, 100).pipe(share()));
    const kept = others.map((other) => other.subscribe());
    onTestFinished(() => {
      for (const one of kept) one.unsubscribe();
    });
    await Promise.all(others.map((other) => firstValueFrom(other)));
    expect(await faultOf(recordCommand({ '--socket': [socket] }))).toBe(
      `--socket ${JSON.stringify(socket)}: the daemon answers, but refuses: ` +
        '4 streams of samples are served already (HTTP status 503) [EVICTD_UNREACHABLE], 9',
    );
  });
});
