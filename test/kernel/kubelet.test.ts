/** evictd beside a kubelet: what it reads of one, and that it refuses. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { describeWith } from '../support/skip.ts';
import { MAIN, privateDirectory } from './support/daemon.ts';
import { MI, makeNode } from './support/node.ts';

const OFF = 'evictionHard: {memory.available: 0%}\n';

/** Until evictd is ready or has ended; then it is stopped. */
const SCRIPT = `
"$1" --config="$2" &
until grep -qx kubelet /proc/[0-9]*/comm; do :; done
log=$3
shift 3
"$@" >"$log" &
until grep -q '"ready"' "$log" || ! kill -0 $! 2>/dev/null; do sleep 0.02; done
kill $! 2>/dev/null
wait $!
`;

/**
 * Runs evictd on a node beside a process that is called `kubelet`, both in a PID namespace of their own, so that
 * nobody else meets that; until it is ready.
 *
 * @param config what the kubelet's file says
 */
function beside(config: string, args: readonly string[] = []) {
  const node = makeNode(256 * MI);
  mkdirSync(path.join(node.path, 'kubepods'));
  const directory = privateDirectory();
  const file = path.join(directory, 'k.yaml');
  writeFileSync(
    file,
    `apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n${config}`,
  );
  const kubelet = path.join(directory, 'kubelet');
  writeFileSync(kubelet, '#!/bin/sh\nwhile :; do sleep 1; done\n', { mode: 0o755 });
  const log = path.join(directory, 'log');
  const daemon = [process.execPath, MAIN, 'run', '--socket=none', '--state-dir=none'];
  const { status, stderr } = spawnSync(
    'unshare',
    [
      ...['--pid', '--fork', '--mount-proc', '--kill-child', 'sh', '-c', SCRIPT, 'sh', kubelet],
      ...[file, log, ...daemon, `--node-cgroup=${node.path}`, '--pod-parent=kubepods', ...args],
    ],
    { encoding: 'utf8', timeout: 30_000 },
  );
  const lines = readFileSync(log, 'utf8').split('\n').filter(Boolean);
  return { status, stderr, messages: lines.map((line) => JSON.parse(line).msg as string) };
}

describeWith(
  { root: true, cgroupV1: true, programs: ['unshare'] },
  'beside a kubelet that evicts the same pods',
  () => {
    it('evictd refuses, and says why', () => {
      const { status, stderr } = beside('evictionHard: {memory.available: 200Mi}\n');
      const [said, what] = stderr.split('; ');
      expect(said).toMatch(/^evictd: kubelet \(pid \d+\) evicts by hard: memory.available<200Mi$/);
      expect(what).toMatch(
        /^turn its eviction off .* with --beside-kubelet \[EVICTD_KUBELET_EVICTS\]\n$/,
      );
      expect(status).toBe(11);
    });

    it('evictd refuses where it cannot tell', () => {
      const { status, stderr } = beside('evictonHard: {}\n');
      expect(stderr).toContain('it cannot be told by what kubelet');
      expect(status).toBe(11);
    });

    describe('evictd runs', () => {
      it.each<[string, string, readonly string[], number]>([
        ['where that is wanted', '', ['--beside-kubelet'], 0],
        ['in a dry run, and says so', '', ['--dry-run'], 1],
        ['where it has its eviction off', OFF, [], 0],
      ])('%s', (_, config, args, warnings) => {
        const { status, messages } = beside(config, args);
        expect(messages).toContain('ready');
        expect(messages.filter((msg) => msg === 'a kubelet evicts too')).toHaveLength(warnings);
        expect(status).toBe(0);
      });
    });
  },
);
