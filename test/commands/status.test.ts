import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { askStatus, formatStatus, statusCommand } from '../../src/commands/status.ts';
import type { EvictdError } from '../../src/core/errors.ts';
import { flapping, NOT_FLAPPING } from '../../src/core/flapping.ts';
import { INITIAL_STATE } from '../../src/core/state.ts';
import {
  EMPTY_MODEL,
  type Model,
  STATUS_VERSION,
  type StatusDocument,
  statusDocument,
} from '../../src/surfaces/status.ts';
import { GI, MI, policy, reading } from '../support/builders.ts';
import { decisionTurn } from '../surfaces/turns.ts';

function documentOf(
  model: Partial<Model>,
  memorySource: 'workingset' | 'memavailable',
  stateFile?: string,
): StatusDocument {
  return statusDocument(
    { ...EMPTY_MODEL, ...model },
    {
      version: '0.1.0',
      pid: 4711,
      policy: policy({}),
      nodeName: 'node-1',
      nodeCgroup: '/sys/fs/cgroup/memory',
      podParents: ['kubepods'],
      memorySource,
      dryRun: false,
      kernelMemcgNotification: true,
      killing: { by: 'pidfd', detail: 'by pidfd' },
      garbage: { containers: 'off', images: 'off' },
      stateFile,
      startedAtMs: 0,
      nowMs: 1000,
      wallMs: 0,
      runtime: 'cgroup',
      runtimePlace: undefined,
      droppedLogLines: 0,
    },
  );
}

const textOf = (...of: Parameters<typeof documentOf>): string => formatStatus(documentOf(...of));

describe('formatStatus', () => {
  const readings = [
    reading({ figures: 'meminfo', availableBytes: { workingset: GI, memavailable: 1536 * MI } }),
  ];

  it.each([
    ['workingset', 'memory available 1Gi by workingset (1.5Gi by memavailable), from meminfo'],
    ['memavailable', 'memory available 1.5Gi by memavailable (1Gi by workingset), from meminfo'],
  ] as const)('shows both memory sources, the one that counts first: %s', (source, line) => {
    expect(textOf({ readings }, source).split('\n').slice(1, 3)).toEqual([
      'node node-1, /sys/fs/cgroup/memory',
      line,
    ]);
  });

  it('says which runtime is asked, where one is', () => {
    expect(formatStatus(documentOf({}, 'workingset'))).not.toMatch(/^runtime/m);
    const status = documentOf({}, 'workingset');
    const of = (runtime: StatusDocument['runtime']) => formatStatus({ ...status, runtime });
    expect(of({ kind: 'auto', name: 'containerd', socket: '/run/c\n.sock' })).toContain(
      '\nruntime auto: containerd at /run/c\\u000a.sock\n',
    );
    expect(of({ kind: 'auto', name: null, socket: null })).toContain(
      '\nruntime auto: none was found yet\n',
    );
  });

  it('calls nothing calm that was not read', () => {
    const status = documentOf({}, 'workingset');
    const [threshold] = status.thresholds;
    expect(threshold?.signal).toBe('memory.available');
    expect(formatStatus(status)).toMatch(/hard {2}memory\.available<\S+ {2}not read/);
    const signals: StatusDocument['signals'] = [
      {
        signal: 'memory.available',
        unit: 'bytes',
        capacity: GI,
        available: GI,
        readAt: '',
        ageMs: 0,
      },
    ];
    expect(formatStatus({ ...status, signals })).toMatch(/hard {2}memory\.available<\S+ {2}calm/);
  });

  it('says what the last collection came to', () => {
    const status = documentOf({}, 'workingset');
    expect(formatStatus(status)).not.toContain('LAST COLLECTION');
    const last = {
      purpose: 'pressure',
      because: 'regained',
      endedAt: '2026-11-30T10:00:00.000Z',
      tookMs: 1,
      containers: 2,
      sandboxes: 1,
      images: 3,
      inUse: 0,
      failed: 0,
      wouldRemove: 0,
      freedBytes: 5 * MI,
      freedInodes: null,
    } as const;
    const garbage = { ...status.garbage, last };
    expect(formatStatus({ ...status, garbage })).toMatch(
      /LAST COLLECTION\n.*\n2026-11-30T10:00:00\.000Z {2}pressure {2}regained {2}2 +1 +3 +0 +5Mi\n/,
    );
  });

  it('lists events and what flaps, names as data', () => {
    const text = textOf(
      {
        events: [
          {
            type: 'Warning',
            reason: 'Evicted',
            pod: 'a\n\u001b[2J',
            message: 'low',
            annotations: {},
            sinceMs: 0,
            atMs: 0,
            count: 2,
          },
        ],
        flapping: [1, 2, 3, 4, 5].reduce(
          (before, atMs) => flapping(before, atMs % 2 === 1 ? ['PIDPressure'] : [], atMs, 0),
          NOT_FLAPPING,
        ),
      },
      'workingset',
    );
    expect(text).toContain('\nEVENTS\nat ');
    expect(text).toMatch(/Warning {2}Evicted {2}a\\u000a\\u001b\[2J {2}2 {6}low\n/);
    expect(text).toMatch(/PIDPressure {5}False {3}set 3 times since 1969-12-31T23:59:59\.\d+Z\n/);
  });

  it('says who came straight back', () => {
    const comeback = {
      podId: 'x',
      podName: 'leak',
      siblings: new Set<string>(),
      signal: 'memory.available',
      evictedAtMs: 0,
      returns: 3,
      backAtMs: undefined,
      heldUntilMs: 1e9,
    } as const;
    const comebacks = new Map([['a\nb', comeback]]);
    const state = { ...INITIAL_STATE, comebacks };
    const text = textOf({ turn: { ...decisionTurn('calm'), state } }, 'workingset');
    expect(text).toContain('\nCAME STRAIGHT BACK\nevicted at ');
    expect(text).toMatch(/ {2}a\\u000ab {2}leak {2}3 {6}\d+s\n/);
  });

  it.each([
    [undefined, undefined, []],
    ['/s', undefined, ['state /s, not written yet']],
    ['/s', 400, ['state /s, written 0.6s ago']],
  ])('says where the state is kept: %s, written at %s', (file, keptAtMs, lines) => {
    const text = textOf({ keptAtMs }, 'workingset', file);
    expect(text.split('\n').filter((line) => line.startsWith('state '))).toEqual(lines);
  });

  it('has no figures before the first reading', () => {
    expect(textOf({}, 'workingset')).not.toContain('memory available');
  });
});

async function serving(answer: (response: ServerResponse) => void): Promise<string> {
  const made = mkdtempSync(path.join(tmpdir(), 'evictd-status-test-'));
  const socket = path.join(made, 'evictd.sock');
  const server = createServer((_, response) => answer(response));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
    rmSync(made, { recursive: true, force: true });
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  return socket;
}

/** What is said of an error, or that there is none. */
const outcomeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'nothing is wrong',
    (error: EvictdError) => `${error.message}, ${error.exitStatus}`,
  );

describe('askStatus', () => {
  const asking = async (answer: (response: ServerResponse) => void): Promise<string> =>
    outcomeOf(askStatus(await serving(answer)));
  const refusal = (body: string) => (response: ServerResponse) =>
    void response.writeHead(500).end(body);

  it.each([
    ['no status (HTTP status 500)', refusal('{"error":"no status"}')],
    ['a\\u000a\\u001b (HTTP status 500)', refusal('{"error":"a\\n\\u001b"}')],
    ['HTTP status 500', refusal('{"error":3}')],
    ['HTTP status 500', refusal('null')],
    ['HTTP status 500', refusal('<html>')],
  ])('says that a daemon answers which refuses: %s', async (why, answer) => {
    expect(await asking(answer)).toBe(`the daemon answers, but refuses: ${why}, 9`);
  });

  it('tells who is no daemon, and an answer without end, from one who does not answer', async () => {
    expect(await asking((response) => void response.end('{}'))).toBe(
      'what answers is no evictd of this version, 9',
    );
    expect(await asking((response) => void response.end(Buffer.alloc(33 * 2 ** 20, ' ')))).toBe(
      'the daemon answers, but its answer is too long, 9',
    );
    expect(await asking((response) => void response.destroy())).toBe(
      'no daemon answers: socket hang up, 9',
    );
  });
});

describe('a document that is none of evictd', () => {
  const HEAD = { apiVersion: STATUS_VERSION, kind: 'Status' };
  const FOREIGN = 'what answers is no evictd of this version, 9';
  const serve = (document: unknown) =>
    serving((response) => void response.end(JSON.stringify(document)));

  it.each([
    ['null', null],
    ['a list', []],
    ['no conditions', HEAD],
    ['a number', { ...HEAD, conditions: 5 }],
    ['a condition that is none', { ...HEAD, conditions: [null] }],
    ['a status that is none', { ...HEAD, conditions: [{ type: 'DiskPressure', status: 'True' }] }],
  ])('is refused where its conditions are asked for: %s', async (_, document) => {
    expect(await outcomeOf(askStatus(await serve(document)))).toBe(FOREIGN);
  });

  it.each(['<html>', '5', '{"kind":"Status"}'])('is refused as JSON too: %s', async (text) => {
    const socketPath = await serving((response) => void response.end(text));
    expect(await outcomeOf(statusCommand({ socketPath, json: true }))).toBe(FOREIGN);
  });

  const readings = [reading({ availableBytes: { workingset: GI, memavailable: GI } })];
  const shown = () => ({
    ...documentOf({ readings, lostRaces: [RACE] }, 'workingset', '/var/lib/evictd/state'),
    signals: [{ signal: 'memory.available', unit: 'bytes', capacity: 2, available: 1, ageMs: 0 }],
  });
  const RACE = { podName: 'a', cgroup: '/a', kills: 1, atMs: 0 } as const;

  it('is refused where it is shown, whichever part is missing or another thing', async () => {
    const print = vi.spyOn(process.stdout, 'write').mockImplementation(() => true);
    onTestFinished(() => print.mockRestore());
    const showing = async (document: unknown) =>
      outcomeOf(statusCommand({ socketPath: await serve(document), json: false }));
    expect(await showing(shown())).toBe('nothing is wrong');
    expect(print).toHaveBeenCalledOnce();
    const parts = ['evictd', 'state', 'node', 'signals', 'filesystems', 'thresholds', 'conditions'];
    const others = [
      'pods',
      'evictions',
      'comebacks',
      'impossible',
      'events',
      'lostRaces',
      'degraded',
    ];
    for (const part of [...parts, ...others]) {
      for (const wrong of [undefined, 5, [5], {}]) {
        expect(await showing({ ...shown(), [part]: wrong }), part).toBe(FOREIGN);
      }
    }
    const [signal] = shown().signals;
    const signals = [{ ...signal, available: '1' }];
    expect(await showing({ ...shown(), signals })).toBe(FOREIGN);
    expect(print).toHaveBeenCalledOnce();
  });
});
