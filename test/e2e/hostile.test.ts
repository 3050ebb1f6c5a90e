/** Pods that claim anything: nobody goes who should not, and no line is forged. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { criClient } from '../../src/runtimes/cri/client.ts';
import { type Daemon, MAIN, privateDirectory, startDaemon } from '../kernel/support/daemon.ts';
import { MI } from '../kernel/support/node.ts';
import { MEMORY_HIERARCHY } from '../support/cgroup.ts';
import { describeWith } from '../support/skip.ts';
import { isAlive, isGone, stage } from './leak-stories.ts';
import { startContainerd } from './support/containerd.ts';
import { criHost } from './support/cri-host.ts';
import { BUSYBOX_IMAGE } from './support/image.ts';
import type { RuntimeHost } from './support/runtime-host.ts';

const LIMIT_MS = 30_000;
const NEEDS = {
  root: true,
  cgroupV1: true,
  programs: ['containerd', 'runc', 'ctr', 'busybox', 'tar'],
} as const;

/** A line as evictd would write one, behind a line that ends; what drives a terminal; a path upwards. */
const FORGED =
  '{"level":"warn","time":"2026-01-01T00:00:00.000Z","msg":"evicted","pod":"default/db"}';
const NAMES = [
  `leak\n${FORGED}`,
  'a\r\n\u001b[2J\u001b]0;x\u0007',
  '../../../../etc/passwd',
  '\u202egnp.exe\u2028',
  'x'.repeat(20_000),
] as const;

/** All that no line of text may hold but its end. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const CONTROL = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/;

describeWith(NEEDS, 'pods of containerd that claim anything', () => {
  let host: RuntimeHost;

  beforeAll(async () => {
    host = criHost(await startContainerd(mkdtempSync('/tmp/eh-')));
  });
  afterAll(() => host.remove());

  it('are called anything, and forge no line', async () => {
    const { holds, leaks, watch } = stage(host);
    const [leakName, ...otherNames] = NAMES;
    const labels = {
      'evictd.priority': `high\n${FORGED}`,
      'evictd.memory-request': '9'.repeat(3000),
    };
    // containerd has a limit for labels, and none for these.
    const annotations = { big: 'x'.repeat(MI) };
    const others = [];
    for (const name of otherNames) others.push(await holds(name, 5, { labels, annotations }));
    const db = await holds('db', 40, { labels: { 'evictd.priority': '1000' } });
    const leak = await leaks(leakName, { mib: 600, pauseSeconds: 0.05 });
    const daemon = await watch(['--eviction-hard=memory.available<100Mi', '--log-level=debug']);
    await daemon.statusWhen('all are known', ({ pods }) => pods.length === NAMES.length + 1);
    leak.begin();
    const evictions = await daemon.ended(1, LIMIT_MS);
    expect(evictions.map(({ pod }) => pod)).toEqual([leak.name]);
    await isGone(host, leak);
    for (const pod of [...others, db]) await isAlive(host, pod);

    // Each line is one that evictd wrote: what was forged would be one of its own.
    expect(daemon.lines.filter(({ pod }) => pod === 'default/db')).toEqual([]);
    expect(daemon.lines.filter(({ msg }) => msg === 'evicted')).toMatchObject([{ pod: leak.name }]);
    for (const { name } of daemon.lines) expect(name).toBe('evictd');
    const faults = daemon.lines.filter(({ msg }) => msg.startsWith('a label cannot be read'));
    expect(new Set(faults.map(({ reason }) => String(reason).split(': ')[0]))).toEqual(
      new Set(['label evictd.priority', 'label evictd.memory-request']),
    );
    expect(faults).toHaveLength(2 * others.length);
    for (const text of [...daemon.lines.map((line) => JSON.stringify(line)), statusText(daemon)]) {
      expect(text.length).toBeLessThan(100_000);
    }
    for (const line of statusText(daemon).split('\n')) expect(line).not.toMatch(CONTROL);
  });

  it('have the name of another, or its cgroup, or lie in one another', async () => {
    const { holds, leaks, watch, knows } = stage(host);
    const low = { labels: { 'evictd.priority': '-100' } };
    const twin = await holds('twin', 20, { uid: 'one' });
    const leak = await leaks('twin', { mib: 600, pauseSeconds: 0.05, uid: 'two' });
    const same = { ...low, podCgroup: 'kubepods/podsame', uid: 'same' };
    const shared = [await holds('shared-a', 10, same), await holds('shared-b', 10, same)];
    const outer = await holds('outer', 10, {
      ...low,
      uid: 'outer',
      podCgroup: 'kubepods/podouter',
    });
    const inner = await holds('inner', 10, {
      uid: 'inner',
      podCgroup: 'kubepods/podouter/podinner',
    });
    const daemon = await watch();
    await knows(daemon, [twin, leak, inner]);
    const doubts = ['shared-a', 'shared-b', 'outer'].map((name) =>
      daemon.line('no pod: it is never evicted', ({ pod }) => pod === `default/${name}`),
    );
    expect((await Promise.all(doubts)).map(({ reason }) => reason)).toEqual([
      'its cgroup is another pod’s too',
      'its cgroup is another pod’s too',
      'its cgroup holds other pods',
    ]);
    leak.begin();
    await daemon.ended(1, LIMIT_MS);
    await isGone(host, leak);
    for (const pod of [twin, ...shared, outer, inner]) await isAlive(host, pod);
    const said = daemon.lines.filter(({ msg }) => msg === 'no pod: it is never evicted');
    expect(said).toHaveLength(3);
  });

  it('lie outside of the node, or where evictd itself is', async () => {
    const { holds, leaks, knows, node } = stage(host);
    const elsewhere = stage(host);
    const low = { labels: { 'evictd.priority': '-100' } };
    const other = await elsewhere.holds('other', 150, low);
    const home = await holds('home', 10, low);
    const leak = await leaks('leak', { mib: 600, pauseSeconds: 0.05 });
    const procs = path.join(MEMORY_HIERARCHY, home.cgroup, 'cgroup.procs');
    const daemon = await startDaemon({
      node: node.path,
      args: [
        '--runtime=cri',
        `--runtime-endpoint=unix://${host.socketPath}`,
        '--eviction-hard=memory.available<100Mi',
        '--poll-interval=1s',
      ],
      wrapper: ['sh', '-c', `echo $$ >${procs}; exec "$@"`, 'sh'],
    });
    await knows(daemon, [home, leak]);
    const { pods } = await daemon.status();
    expect(pods.find(({ name }) => name === home.name)?.protected).toMatch(/^holds evictd/);
    leak.begin();
    const evictions = await daemon.ended(1, LIMIT_MS);
    expect(evictions.map(({ pod }) => pod)).toEqual([leak.name]);
    await isGone(host, leak);
    for (const pod of [home, other]) await isAlive(host, pod);
    // It must not be there when what it is in is removed.
    await daemon.stop();
  });

  it('go by the rules of a file, and by others once that is read again', async () => {
    const { holds, leaks, watch, knows, node } = stage(host);
    const file = path.join(privateDirectory(), 'evictd.yaml');
    const write = (pods: readonly object[]) =>
      writeFileSync(
        file,
        JSON.stringify({ apiVersion: 'evictd.dev/v1alpha1', kind: 'EvictdConfiguration', pods }),
      );
    const kept = { namespace: 'kube-*', protected: true };
    write([kept, { name: 'batch-*', labels: { tier: '*' }, priority: -10 }]);
    const labels = { tier: 'x', 'evictd.priority': '500' };
    const dns = await holds('dns', 150, { namespace: 'kube-system' });
    const batch = await holds('batch-1', 30, { labels });
    // As a kubelet has it made: by the id of its image.
    const plain = await holds('batch-2', 40, { image: await idOf(host, BUSYBOX_IMAGE) });
    const mib = Math.ceil((440 * MI - node.cgroup.usageBytes()) / MI);
    const high = await leaks('high', { mib, labels: { 'evictd.priority': '1000' } });
    const daemon = await watch(['--eviction-hard=memory.available<100Mi', `--config=${file}`]);
    await knows(daemon, [dns, batch, plain, high]);
    const prioritiesOf = (known: Awaited<ReturnType<Daemon['status']>>['pods']) =>
      Object.fromEntries(known.map(({ name, priority }) => [name, priority]));
    expect(prioritiesOf((await daemon.status()).pods)).toEqual({
      'kube-system/dns': 0,
      'default/batch-1': -10,
      'default/batch-2': 0,
      'default/high': 1000,
    });
    write([kept, { image: '*busybox:*', name: 'batch-2', priority: -20 }]);
    process.kill(daemon.pid, 'SIGHUP');
    await daemon.line('configuration reloaded');
    await daemon.statusWhen('the new rules hold', ({ pods }) => {
      const { 'default/batch-1': one, 'default/batch-2': two } = prioritiesOf(pods);
      return one === 500 && two === -20;
    });
    high.begin();
    const evictions = await daemon.ended(1, LIMIT_MS);
    expect(evictions.map(({ pod }) => pod)).toEqual([plain.name]);
    await isGone(host, plain);
    for (const pod of [dns, batch, high]) await isAlive(host, pod);
  });
});

async function idOf({ socketPath }: RuntimeHost, name: string): Promise<string> {
  const client = criClient(`unix://${socketPath}`, () => Date.now());
  type Images = readonly { readonly id: string; readonly repoTags: readonly string[] }[];
  const { images } = await client.call<{ readonly images: Images }>('ListImages');
  client.close();
  return images.find(({ repoTags }) => repoTags.includes(name))?.id ?? '';
}

/** What `evictd status` prints. */
function statusText({ socketPath }: Daemon): string {
  const { stdout } = spawnSync(process.execPath, [MAIN, 'status', '--socket', socketPath], {
    encoding: 'utf8',
  });
  return stdout;
}
