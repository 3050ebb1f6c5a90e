import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { admissionLine, askConditions, conditionsIn } from '../../src/commands/admit.ts';
import { execute, parseCommandLine } from '../../src/commands/command-line.ts';
import { NODE_CONDITIONS } from '../../src/core/signal.ts';
import { serveStatus } from '../../src/surfaces/socket.ts';
import { STATUS_VERSION } from '../../src/surfaces/status.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

function directory(): string {
  const made = mkdtempSync(path.join(tmpdir(), 'evictd-'));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

const PODS = `
kind: List
items:
- {kind: Pod, metadata: {name: web}, spec: {}}
- {kind: Pod, metadata: {name: dns, namespace: kube-system}, spec: {priority: 2000000000}}
- kind: Pod
  metadata: {name: db}
  spec: {containers: [{name: db, resources: {requests: {memory: 1Gi}}}]}
`;

/** What the command line prints, and its exit status. */
async function answer(text: string, ...flags: readonly string[]) {
  const file = path.join(directory(), 'pods.yaml');
  writeFileSync(file, text);
  let printed = '';
  vi.spyOn(process.stdout, 'write').mockImplementation((chunk) => {
    printed += String(chunk);
    return true;
  });
  const exitStatus = await execute(parseCommandLine(['admit', file, ...flags]));
  return { exitStatus, printed };
}

const REFUSED = (conditions: string) =>
  `refused: Evicted: The node had condition: [${conditions}]. \n`;

describe('evictd admit', () => {
  it.each<[string, number, string]>([
    ['', 0, 'default/web: admitted\nkube-system/dns: admitted\ndefault/db: admitted\n'],
    [
      'MemoryPressure',
      3,
      `default/web: ${REFUSED('MemoryPressure')}kube-system/dns: admitted\ndefault/db: admitted\n`,
    ],
    [
      'PIDPressure, MemoryPressure,,MemoryPressure',
      3,
      `default/web: ${REFUSED('MemoryPressure PIDPressure')}kube-system/dns: admitted\n` +
        `default/db: ${REFUSED('MemoryPressure PIDPressure')}`,
    ],
  ])('answers for each pod under --conditions %j', async (conditions, exitStatus, printed) => {
    expect(await answer(PODS, '--conditions', conditions)).toEqual({ exitStatus, printed });
  });

  it('answers in JSON', async () => {
    const { exitStatus, printed } = await answer(PODS, '--json', '--conditions=DiskPressure');
    expect(exitStatus).toBe(3);
    expect(JSON.parse(printed)).toEqual({
      apiVersion: 'evictd.dev/v1alpha1',
      kind: 'Admission',
      conditions: ['DiskPressure'],
      pods: [
        {
          pod: 'default/web',
          admit: false,
          reason: 'Evicted',
          message: 'The node had condition: [DiskPressure]. ',
        },
        { pod: 'kube-system/dns', admit: true, reason: '', message: '' },
        expect.objectContaining({ pod: 'default/db', admit: false }),
      ],
    });
  });

  it('asks the daemon for its conditions', async () => {
    const socketPath = path.join(directory(), 'evictd.sock');
    const conditions = NODE_CONDITIONS.map((type) => ({ type, status: type !== 'DiskPressure' }));
    const document = { apiVersion: STATUS_VERSION, kind: 'Status', conditions };
    const socket = await serveStatus(socketPath, async () => document);
    onTestFinished(() => socket.close());
    expect(await askConditions(socketPath)).toEqual(['MemoryPressure', 'PIDPressure']);
    const { exitStatus, printed } = await answer(PODS, '--socket', socketPath);
    expect(exitStatus).toBe(3);
    expect(printed).toContain(`default/db: ${REFUSED('MemoryPressure PIDPressure')}`);
  });

  it.each<[readonly string[], string, number]>([
    [['--socket', '/no/such.sock'], 'EVICTD_NOT_RUNNING', 6],
    [['--socket', 'none'], 'EVICTD_SOCKET_PATH', 2],
    [['--conditions', 'OutOfDisk'], 'EVICTD_CHOICE', 2],
    [['--conditions', '', '--socket', '/s'], 'EVICTD_USAGE', 2],
    [['--json=1', '--conditions', ''], 'EVICTD_CHOICE', 2],
  ])('refuses %j', async (flags, code, exitStatus) => {
    await expect(answer(PODS, ...flags)).rejects.toMatchObject({ code, exitStatus });
  });

  it('prints nothing where one pod cannot be read', async () => {
    const write = vi.spyOn(process.stdout, 'write');
    await expect(answer(`${PODS}- {}`, '--conditions', '')).rejects.toMatchObject({
      code: 'EVICTD_MANIFEST',
      exitStatus: 2,
    });
    expect(write).not.toHaveBeenCalled();
  });
});

describe('conditionsIn', () => {
  it('takes those that hold and are known, sorted', () => {
    const row = { lastObservedAgeMs: null, flapping: null };
    const conditions = [
      { ...row, type: 'MemoryPressure' as const, status: true },
      { ...row, type: 'Another' as 'PIDPressure', status: true },
      { ...row, type: 'PIDPressure' as const, status: false },
      { ...row, type: 'DiskPressure' as const, status: true },
    ];
    expect(conditionsIn({ conditions })).toEqual(['DiskPressure', 'MemoryPressure']);
  });
});

describe('admissionLine', () => {
  it('is one line that drives no terminal', () => {
    const line = admissionLine({
      pod: 'n/a\n\u001b[2J',
      admit: true,
      reason: '',
      message: '',
    });
    expect(line).toBe('n/a\\u000a\\u001b[2J: admitted\n');
  });
});
