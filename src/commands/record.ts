import {
  concatMap,
  defer,
  EMPTY,
  from,
  fromEvent,
  merge,
  type Observable,
  takeUntil,
  tap,
  timer,
} from 'rxjs';
import type { FlagValues } from '../config/flags.ts';
import { type KubeletSource, type RecordSettings, recordSettings } from '../config/record-flags.ts';
import type { ScenarioConfig } from '../config/scenario-config.ts';
import { formatDuration } from '../core/duration.ts';
import { describeAt, describeError, EvictdError, escapeControl } from '../core/errors.ts';
import {
  type KubeletSample,
  kubeletScenario,
  type Omissions,
  trimmedSample,
} from '../simulation/kubelet-recording.ts';
import { checkScenario } from '../simulation/read.ts';
import { type ScenarioTurn, scenarioOf } from '../simulation/recording.ts';
import type { Scenario } from '../simulation/scenario.ts';
import { askKubelet, kubeletRefused } from '../sources/kubelet.ts';
import { liveScheduler, monotonicMs } from '../sources/live-scheduler.ts';
import type { SamplesHead } from '../surfaces/samples.ts';
import { daemonSamples } from './record/daemon.ts';
import { formatScenario } from './record/format.ts';
import { Kept } from './record/keep.ts';
import { fileOutput } from './record/output.ts';
import { unanswered, unusable } from './unanswered.ts';
import { packageVersion } from './version.ts';

/** How many kinds of figures, and pods, are said to be left out. */
const MOST_SAID = 100;

/**
 * `evictd record`: writes what a running daemon, or a kubelet, saw as a scenario for `simulate`; until
 * its duration is over, SIGINT or SIGTERM. Where nothing was ever answered nothing is written.
 *
 * @returns the exit status
 * @throws EvictdError EVICTD_NOT_RUNNING, also for a daemon that ended meanwhile, once what it said is
 * written; EVICTD_UNREACHABLE, EVICTD_KUBELET, EVICTD_OUTPUT, and what `recordSettings`, `askKubelet` and
 * the loader of a kubelet's configuration throw
 */
export async function recordCommand(values: FlagValues): Promise<number> {
  const settings = recordSettings(values);
  const { source, file } = settings;
  const config = source.kind === 'kubelet' ? await kubeletConfig(values) : undefined;
  const output = file === undefined ? undefined : fileOutput(file);
  try {
    const { scenario, fault } = await (source.kind === 'kubelet'
      ? recordKubelet(settings, source, config ?? {})
      : recordDaemon(settings, source.socketPath));
    checkRecorded(scenario, source);
    const text = formatScenario(scenario);
    if (output === undefined) process.stdout.write(text);
    else output.write(text);
    say(`${scenario.ticks.length} samples of ${scenario.pods.length} pods are written`);
    if (fault !== undefined) throw fault;
    return 0;
  } finally {
    output?.close();
  }
}

/** A recording, and why it is not all that was asked for. */
interface Taken {
  readonly scenario: Scenario;
  readonly fault?: EvictdError;
}

/** What could not be simulated is not written: whoever answered said what nobody foresaw. */
function checkRecorded(scenario: Scenario, source: RecordSettings['source']): void {
  try {
    checkScenario(scenario);
  } catch (error) {
    if (!(error instanceof EvictdError)) throw error;
    const why = `what was recorded is no scenario: ${describeError(error)}`;
    throw source.kind === 'kubelet'
      ? kubeletRefused(source.url, why, error)
      : unusable(source.socketPath, why, error);
  }
}

/** Standard output is for the scenario. */
function say(text: string): void {
  process.stderr.write(`evictd: ${escapeControl(text)}\n`);
}

/** Emits when the recording is to end. */
function ended$({ durationMs }: RecordSettings): Observable<unknown> {
  return merge(
    fromEvent(process, 'SIGINT'),
    fromEvent(process, 'SIGTERM'),
    durationMs === 0 ? EMPTY : timer(durationMs, liveScheduler),
  );
}

/** How a series of samples came to its end. */
interface End {
  /** Whether nobody here asked for it. */
  readonly isEarly: boolean;
  /** How long it went on, for a person. */
  readonly after: string;
}

/** Goes through all that comes until the recording is to end. */
function collect<T>(
  settings: RecordSettings,
  source$: Observable<T>,
  take: (one: T) => void,
): Promise<End> {
  const startMs = monotonicMs();
  return new Promise((resolve, reject) => {
    let isEarly = true;
    const asked$ = ended$(settings).pipe(
      tap(() => {
        isEarly = false;
      }),
    );
    source$.pipe(takeUntil(asked$), tap(take)).subscribe({
      complete: () => {
        resolve({ isEarly, after: formatDuration(Math.round(monotonicMs() - startMs)) });
      },
      error: reject,
    });
  });
}

async function recordDaemon(settings: RecordSettings, socketPath: string): Promise<Taken> {
  const { intervalMs, maxSamples } = settings;
  const turns = new Kept<ScenarioTurn>(maxSamples, isCalmTurn);
  let head: SamplesHead | undefined;
  let lost = 0;
  let config: ScenarioConfig | undefined;
  const end = await collect(settings, daemonSamples(socketPath, intervalMs), (line) => {
    switch (line.kind) {
      case 'Samples':
        head = line;
        if (line.pressure) say('a threshold is met already: its grace counts from here');
        return;
      case 'config':
        config = line.config;
        return;
      case 'dropped':
        lost += line.count;
        return;
      case 'turn':
        turns.add(config === undefined ? line : { ...line, config });
        config = undefined;
    }
  });
  const fault = end.isEarly ? daemonEnded(socketPath, settings, end) : undefined;
  // Assigned where the compiler does not look.
  const known = head as SamplesHead | undefined;
  if (known === undefined) throw fault ?? unanswered(socketPath, `no answer within ${end.after}`);
  if (lost > 0) say(`${lost} samples were lost: this recorder was too slow`);
  const { startedAt, version, nodeCgroup, pods, evicting, dedicatedImageFs, splitImageFs } = known;
  const scenario = scenarioOf({
    name: nameFor(startedAt),
    description: [
      `recorded by evictd ${packageVersion()} from evictd ${version} on`,
      `${nodeCgroup} at ${startedAt}, samples at least each ${formatDuration(intervalMs)}`,
      ...remarks(turns.dropped, lost),
    ].join(' '),
    config: known.config,
    node: { dedicatedImageFs, splitImageFs },
    pods,
    evicting,
    turns: turns.samples,
  });
  return { scenario, ...(fault === undefined ? {} : { fault }) };
}

function daemonEnded(
  socketPath: string,
  { durationMs }: RecordSettings,
  { after }: End,
): EvictdError {
  const whole = durationMs === 0 ? '' : ` of ${formatDuration(durationMs)}`;
  const message = `the daemon ended: ${after}${whole} were recorded`;
  const place = { source: '--socket', value: socketPath };
  return new EvictdError('EVICTD_NOT_RUNNING', message, place);
}

function isCalmTurn({ calm, decision, outcome, config }: ScenarioTurn): boolean {
  return calm && decision.kind === 'none' && outcome === null && config === undefined;
}

async function recordKubelet(
  settings: RecordSettings,
  source: KubeletSource,
  config: ScenarioConfig,
): Promise<Taken> {
  const { intervalMs, maxSamples } = settings;
  const since = new Date().toISOString();
  // What is calm is the kubelet's to know: the oldest go.
  const samples = new Kept<KubeletSample>(maxSamples, () => false);
  const omissions = sayingOnce();
  const sampled$ = timer(0, intervalMs, liveScheduler).pipe(
    // One at a time: a slow kubelet is asked less often.
    concatMap(() =>
      defer(() => from(kubeletSample(source, samples.samples.length > 0, omissions))),
    ),
  );
  const { after } = await collect(settings, sampled$, (sample) => samples.add(sample));
  // The first one has an answer.
  if (samples.samples.length === 0) throw kubeletRefused(source.url, `no answer within ${after}`);
  // Of a socket its path.
  const address = source.url.host || source.url.pathname;
  const scenario = kubeletScenario({
    name: nameFor(since),
    description: [
      `recorded by evictd ${packageVersion()} from the kubelet at ${address} at ${since},`,
      `samples each ${formatDuration(intervalMs)}`,
      ...remarks(samples.dropped, 0),
    ].join(' '),
    config,
    samples: samples.samples,
  });
  return { scenario };
}

/** What the kubelet says now; after the first time a failure is a sample too. */
async function kubeletSample(
  source: KubeletSource,
  mayFail: boolean,
  omissions: Omissions,
): Promise<KubeletSample> {
  const atMs = monotonicMs();
  try {
    const { summary, pods } = await askKubelet(source);
    return trimmedSample({ atMs, summary, pods }, omissions);
  } catch (error) {
    if (!mayFail || !(error instanceof EvictdError)) throw error;
    say(describeError(error));
    return { atMs, summary: undefined, pods: [] };
  }
}

/** What is left out is said once for each kind and each pod, as long as those can be remembered. */
function sayingOnce(): Omissions {
  const said = new Set<string>();
  const sayOnce = (key: string, text: () => string): void => {
    if (said.has(key) || said.size >= MOST_SAID) return;
    said.add(key);
    say(text());
    if (said.size === MOST_SAID) say('what else is left out is not said');
  };
  return {
    figure: (kind, value) =>
      sayOnce(kind, () => {
        const place = { source: '--kubelet', key: kind, value: JSON.stringify(value) };
        return describeAt(place, 'left out each time that it is so: no scenario can hold it');
      }),
    pod: (name, fault) =>
      sayOnce(`pod ${name}`, () => {
        const { key = '', value } = fault.place;
        const place = { key: key.replace(/^pods\[0\]\.?/, ''), ...(value && { value }) };
        const why = describeAt(place, fault.message);
        return describeAt({ source: '--kubelet', key: `pod ${name}` }, `left out: ${why}`);
      }),
  };
}

/** By its file, or else what a kubelet has by default. */
async function kubeletConfig(values: FlagValues): Promise<ScenarioConfig> {
  const [{ loadChecked }, { recordedConfig }] = await Promise.all([
    import('../config/load.ts'),
    import('../config/recorded-config.ts'),
  ]);
  const file = values['--config'];
  const given: FlagValues = {
    ...(file === undefined ? {} : { '--config': file }),
    '--compatibility': ['kubelet'],
    '--pod-parent': ['kubepods'],
  };
  const { settings, warnings } = loadChecked(given);
  for (const warning of warnings) say(warning);
  return recordedConfig(settings);
}

function nameFor(time: string): string {
  return `recording-${time.toLowerCase().replace(/[^a-z0-9]+/g, '-')}`;
}

function remarks(dropped: number, lost: number): readonly string[] {
  return [
    ...(dropped > 0 ? [`(${dropped} were left out beyond --max-samples, calm ones first)`] : []),
    ...(lost > 0 ? [`(${lost} were lost)`] : []),
  ];
}
