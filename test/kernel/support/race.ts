/** The leak race of bench/race against the daemon under test. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { MAIN } from './daemon.ts';

export interface Spread {
  readonly min: number;
  readonly median: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
}

/** A part of what `bench/race/race.mjs` gives. */
export interface Summary {
  readonly runs: number;
  readonly outcomes: Readonly<Record<'evicted' | 'oom' | 'bystander' | 'early' | 'none', number>>;
  readonly atLimit: number;
  readonly withoutEvent: number;
  readonly agentEnded: number;
  readonly latencyMs: Spread | null;
  readonly overshootMiB: Spread | null;
  readonly rateMBs: Spread | null;
}

export interface Comparison {
  readonly agent: Summary;
  readonly floor: Summary;
  readonly difference: { readonly medianMs: number; readonly p90Ms: number } | null;
}

export interface RaceOptions {
  readonly runs: number;
  readonly limit?: string;
  readonly headroom?: string;
  readonly rate?: number;
  readonly huge?: boolean;
  readonly late?: boolean;
  readonly leakers?: number;
  readonly pagecache?: string;
  readonly busy?: number;
  /** Each pod's process is in the cgroup2 group of the same path as well. */
  readonly twin?: boolean;
  readonly stdout?: string;
  /** Further flags of the daemon. */
  readonly flags?: readonly string[];
  readonly notify?: boolean;
  /** As if the addon were missing. */
  readonly withoutAddon?: boolean;
  /** A status socket, which then tells that the daemon is ready, in place of its log. */
  readonly askOn?: string;
}

const RUNNER = fileURLToPath(new URL('race-runner.mjs', import.meta.url));

/** Runs the race; rejects when it cannot be carried out. An agent that loses is no rejection. */
export function race(options: RaceOptions): Promise<Summary> {
  return run<Summary>(options, {});
}

/** The same with the floor in turns, `block` runs of each at a time. */
export function raceWithFloor(options: RaceOptions, block: number): Promise<Comparison> {
  return run<Comparison>(options, { block });
}

function run<T>(options: RaceOptions, more: { readonly block?: number }): Promise<T> {
  const { flags = [], notify = true, withoutAddon = false, ...rest } = options;
  const agent = [
    ...(withoutAddon ? ['env', 'EVICTD_NATIVE_PATH=none'] : []),
    ...[process.execPath, MAIN, 'run', '--node-cgroup', '{node}'],
    ...['--socket', options.askOn ?? 'none'],
    ...['--state-dir', 'none'],
    ...['--eviction-hard', 'memory.available<{headroom}'],
    ...(notify ? ['--kernel-memcg-notification'] : []),
    ...flags,
  ];
  const child = spawn(process.execPath, [RUNNER, JSON.stringify({ ...rest, ...more, agent })], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  // Should the test be over before it: a race that is interrupted still removes its cgroups.
  onTestFinished(() => void child.kill('SIGTERM'));
  let [text, complaint] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    complaint = (complaint + chunk.toString()).slice(-4000);
  });
  return new Promise((resolve, reject) => {
    child.once('close', (code) => {
      if (code === 0) resolve(JSON.parse(text) as T);
      else reject(new Error(`the race ended with ${code}: ${complaint}`));
    });
    child.once('error', reject);
  });
}

/** One line of figures. */
export function describeRace(name: string, summary: Summary): string {
  const { outcomes, runs, atLimit, withoutEvent, latencyMs, overshootMiB, rateMBs } = summary;
  const others = Object.entries(outcomes).filter(([kind, n]) => kind !== 'evicted' && n > 0);
  const spread = (values: Spread | null, unit: string) =>
    values === null
      ? 'none'
      : `median ${values.median.toFixed(2)}, p90 ${values.p90.toFixed(2)}, max ${values.max.toFixed(2)} ${unit}`;
  return [
    `${name}: ${outcomes.evicted} of ${runs} evicted`,
    ...others.map(([kind, n]) => `${n} ${kind}`),
    `${atLimit} at the limit`,
    ...(withoutEvent > 0 ? [`${withoutEvent} without an event`] : []),
    `latency ${spread(latencyMs, 'ms')}`,
    `overshoot ${spread(overshootMiB, 'MiB')}`,
    `rate ${rateMBs?.median.toFixed(0) ?? '?'} MB/s`,
  ].join('; ');
}
