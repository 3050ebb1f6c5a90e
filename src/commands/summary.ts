import { firstValueFrom, map, take } from 'rxjs';
import { describeAt, type EvictdError } from '../core/errors.ts';
import { kubeletScenario, trimmedSample } from '../simulation/kubelet-recording.ts';
import { checkScenario } from '../simulation/read.ts';
import type { Scenario } from '../simulation/scenario.ts';
import type { SampleLine, SamplesHead } from '../surfaces/samples.ts';
import { askDaemon } from './ask.ts';
import { daemonSamples } from './record/daemon.ts';
import { formatScenario, plainJson } from './record/format.ts';
import { foreign } from './unanswered.ts';
import { packageVersion } from './version.ts';

/** As far apart as samples may be: the first line is all that is asked for. */
const HEAD_INTERVAL_MS = 3_600_000;

/**
 * `evictd summary`: the running daemon's view in the shape of the kubelet's Summary API, or as a scenario.
 *
 * @returns the exit status
 * @throws EvictdError EVICTD_NOT_RUNNING when nobody listens, EVICTD_UNREACHABLE when nobody answers
 */
export async function summaryCommand(options: {
  readonly socketPath: string;
  readonly scenario: boolean;
}): Promise<number> {
  const { socketPath } = options;
  const summary = await document(socketPath, '/stats/summary', 'node');
  const text = options.scenario
    ? formatScenario(await scenarioOf(socketPath, summary))
    : `${plainJson(JSON.stringify(summary, null, 2))}\n`;
  process.stdout.write(text);
  return 0;
}

type Json = Readonly<Record<string, unknown>>;

/** @param key what it has to have */
async function document(socketPath: string, path: string, key: string): Promise<Json> {
  const text = await askDaemon(socketPath, path);
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && key in value) return value as Json;
  } catch {
    // Not JSON: the same answer.
  }
  throw foreign(socketPath);
}

async function scenarioOf(socketPath: string, summary: Json): Promise<Scenario> {
  const { items } = await document(socketPath, '/pods', 'items');
  const head = await firstValueFrom(
    daemonSamples(socketPath, HEAD_INTERVAL_MS).pipe(
      take(1),
      map((line: SampleLine) => line as SamplesHead),
    ),
  );
  const sample = trimmedSample(
    {
      atMs: 0,
      summary: { node: summary['node'], pods: summary['pods'] },
      pods: Array.isArray(items) ? items : [],
    },
    {
      figure: (kind, value) =>
        say(describeAt({ key: kind, value: JSON.stringify(value) }, LEFT_OUT)),
      pod: (name, fault: EvictdError) => say(`pod ${name}: ${LEFT_OUT}: ${fault.message}`),
    },
  );
  const { dedicatedImageFs, splitImageFs, config, version, nodeCgroup, startedAt } = head;
  const scenario = {
    ...kubeletScenario({
      name: `summary-${startedAt.toLowerCase().replace(/[^a-z0-9]+/g, '-')}`,
      description: `what evictd ${version} on ${nodeCgroup} saw at ${startedAt}, by evictd ${packageVersion()}`,
      config,
      samples: [sample],
    }),
    // The daemon knows it by the devices.
    node: { dedicatedImageFs, splitImageFs },
    // Nothing tells what would come back: it is the pod that is asked for.
    evictd: { recorded: true, reclaims: false },
  };
  checkScenario(scenario);
  return scenario;
}

const LEFT_OUT = 'left out: no scenario can hold it';

function say(text: string): void {
  process.stderr.write(`evictd: ${text}\n`);
}
