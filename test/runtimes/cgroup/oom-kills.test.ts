import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { fromText } from '../../../src/kernel/byte-path.ts';
import { oomKillsOf } from '../../../src/runtimes/cgroup/oom-kills.ts';

let node: string;

beforeEach(() => {
  node = mkdtempSync(path.join(tmpdir(), 'evictd-oom-'));
});
afterEach(() => rmSync(node, { recursive: true, force: true }));

/** A cgroup in which so many were killed. */
function make(name: string, kills: number | undefined): void {
  mkdirSync(path.join(node, name), { recursive: true });
  const line = kills === undefined ? '' : `oom_kill ${kills}\n`;
  const text = `oom_kill_disable 0\nunder_oom 0\n${line}`;
  writeFileSync(path.join(node, name, 'memory.oom_control'), text);
}

const read = (named: readonly string[] = []) => {
  const directory = fromText(node);
  const places = { directory, isRoot: false, parents: [], named: named.map(fromText) };
  return [...oomKillsOf(places)];
};

it('tells the cgroups of each pod in which somebody was killed, a pod for each step', () => {
  make('web', 0);
  make('db', 1);
  make('db/idle', 0);
  make('db/ä/deep', 2);
  make('old', undefined);
  mkdirSync(path.join(node, 'bare'));
  const steps = read();
  expect(steps).toHaveLength(4);
  const told = steps.flat().map(({ podName, cgroup, kills }) => [podName, cgroup, kills]);
  expect(told).toStrictEqual([
    ['db', `${node}/db`, 1],
    ['db', `${node}/db/ä/deep`, 2],
  ]);
});

it('knows a cgroup that is made again from the one before', () => {
  make('db', 1);
  const [before] = read().flat();
  rmSync(path.join(node, 'db'), { recursive: true });
  // Whatever else is made meanwhile: a number that is free may be given again, but not by cgroupfs.
  make('other', 0);
  make('db', 1);
  const [after] = read().flat();
  expect(after?.cgroupId).not.toBe(before?.cgroupId);
});

it('reads a pod when its step comes, and leaves out what is gone by then', () => {
  make('a', 1);
  make('b', 1);
  const places = { directory: fromText(node), isRoot: false, parents: [], named: [] };
  const steps = oomKillsOf(places);
  const { value = [] } = steps.next();
  rmSync(path.join(node, value[0]?.podName === 'a' ? 'b' : 'a'), { recursive: true });
  expect([...steps]).toStrictEqual([[]]);
});
