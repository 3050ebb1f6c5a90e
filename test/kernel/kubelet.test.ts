/** evictd beside a kubelet: what it reads of one, and that it refuses. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { describeWith } from '../support/skip.ts';
import { MAIN, privateDirectory } from './support/daemon.ts';
import { MI, makeNode } from './support/node.ts';

const OFF = 'evictionHard: {memory.available: 0%}\n';

/** What timeout(1) ends with where it was needed: evictd was still running. */
const RUNS = 124;

/**
 * Runs evictd on a node beside a process that is called `kubelet`, both in a PID namespace of their own, so that
 * nobody else meets that; for two seconds at most.
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
  const script =
    '"$1" --config="$2" & until grep -qx kubelet /proc/[0-9]*/comm; do :; done; shift 2; timeout 2 "$@"';
  const daemon = [process.execPath, MAIN, 'run', '--socket=none', '--state-dir=none'];
  const { status, stderr, stdout } = spawnSync(
    'unshare',
    [
      ...['--pid', '--fork', '--mount-proc', '--kill-child', 'sh', '-c', script, 'sh', kubelet],
      ...[file, ...daemon, `--node-cgroup=${node.path}`, '--pod-parent=kubepods', ...args],
    ],
    { encoding: 'utf8', timeout: 30_000 },
  );
  return { status, stderr, stdout };
}

describeWith(
  { root: true, cgroupV1: true, programs: ['unshare', 'timeout'] },
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
        const { status, stdout } = beside(config, args);
        const messages = stdout
          .split('\n')
          .flatMap((line) => (line === '' ? [] : JSON.parse(line)));
        expect(messages.some(({ msg }) => msg === 'ready')).toBe(true);
        expect(messages.filter(({ msg }) => msg === 'a kubelet evicts too')).toHaveLength(warnings);
        expect(status).toBe(RUNS);
      });
    });
  },
);
