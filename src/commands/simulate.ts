import { parseChoice } from '../config/choice.ts';
import { type FlagValues, isSwitchedOn } from '../config/flags.ts';
import { OPTIONS, type OptionName } from '../config/options.ts';
import { placed } from '../config/place.ts';
import { scenarioSettings } from '../config/scenario-config.ts';
import { describeError, EvictdError, withPlace } from '../core/errors.ts';
import { SIGNAL_NAMES } from '../core/signal.ts';
import { simulate } from '../simulation/engine.ts';
import { readPlain } from '../simulation/plain-scenario.ts';
import { rememberingReader, type SettingsReader } from '../simulation/prepare.ts';
import type { Scenario } from '../simulation/scenario.ts';
import { tuneForBatch } from './engine.ts';
import { errorLine, writeOut } from './output.ts';
import {
  chunksOf,
  decode,
  type Line,
  linesOf,
  MAX_SCENARIO_BYTES,
  STDIN,
  sourceOf,
  textOf,
} from './simulate/input.ts';

/** What is printed of a scenario. */
export const FORMATS = ['json', 'text'] as const;
type Format = (typeof FORMATS)[number];

/** Text of results that is gathered before it is written, in UTF-16 units. */
const WRITTEN_AT_ONCE = 64 * 1024;

/** What the exit status says of a scenario that could not be read. */
const UNREADABLE = new EvictdError('EVICTD_SCENARIO', '').exitStatus;

/**
 * `evictd simulate`: runs scenarios and prints what the policy makes of them.
 *
 * @returns the exit status: 0, or that of EVICTD_SCENARIO when one could not be read; for lines of
 * `--batch` that is a result
 * @throws EvictdError EVICTD_USAGE, what the flags' checks throw, EVICTD_SCENARIO for a batch that cannot
 * be read, EVICTD_OUTPUT
 */
export async function simulateCommand(
  values: FlagValues,
  files: readonly string[],
): Promise<number> {
  const batch = values['--batch']?.at(-1);
  const flags = policyFlags(values);
  checkFlags(flags);
  const print = printerOf(values, flags, files);
  if (batch === undefined) return simulateFiles(files, print);
  return simulateBatch(batch, flags);
}

type Printer = (scenario: Scenario) => string | Promise<string>;

/** How a scenario is printed; refuses what does not go together. What only some print is loaded for those. */
function printerOf(values: FlagValues, flags: FlagValues, files: readonly string[]): Printer {
  const format = formatOf(values);
  const explain = isSwitchedOn(values, '--explain');
  const isDiff = isSwitchedOn(values, '--diff');
  const isBatch = values['--batch'] !== undefined;
  const faults: readonly (readonly [boolean, string])[] = [
    [isBatch && files.length > 0, 'either FILE or --batch FILE, not both'],
    [!isBatch && files.length === 0, 'expected a FILE, - for standard input, or --batch FILE'],
    [files.filter((file) => file === STDIN).length > 1, 'standard input can be read only once'],
    [explain && isDiff, 'either --explain or --diff, not both'],
    [isBatch && (explain || isDiff || format === 'text'), '--batch prints JSON, a result a line'],
    [(explain || isDiff) && format === 'json', '--explain and --diff print text'],
    [isDiff && Object.keys(flags).length === 0, '--diff needs a flag that changes the policy'],
  ];
  const fault = faults.find(([isFault]) => isFault);
  if (fault !== undefined) throw new EvictdError('EVICTD_USAGE', fault[1]);
  if (isDiff) {
    return async (scenario) => {
      const { tellDifference } = await import('../simulation/difference.ts');
      return tellDifference(scenario, flags);
    };
  }
  if (explain || format === 'text') {
    return async (scenario) => {
      const { tellStory } = await import('../simulation/story.ts');
      return tellStory(scenario, { flags, explain });
    };
  }
  const indent = files.length === 1 && process.stdout.isTTY ? 2 : undefined;
  return (scenario) => `${JSON.stringify(simulate(scenario, { flags }), null, indent)}\n`;
}

function formatOf(values: FlagValues): Format | undefined {
  const source = '--format';
  const given = (values[source] ?? []).map((text) =>
    placed({ source, value: text }, () => parseChoice(text, FORMATS)),
  );
  return given.at(-1);
}

/** The flags that take the place of a scenario's configuration. */
function policyFlags(values: FlagValues): FlagValues {
  const names = Object.keys(values) as readonly OptionName[];
  const policy = names.filter((name) => OPTIONS[name].key !== undefined);
  return Object.fromEntries(policy.map((name) => [name, values[name]]));
}

/**
 * Refuses flags that are wrong whatever the scenario says: it may have the other half of a soft
 * threshold, and the kubelet's rules, which read more percentages.
 */
function checkFlags(flags: FlagValues): void {
  const graces = Object.fromEntries(SIGNAL_NAMES.map((signal) => [signal, '1m']));
  scenarioSettings({ evictionSoftGracePeriod: graces, compatibility: 'kubelet' }, flags);
}

/** One scenario after the other; one that cannot be read is said, and the others are run. */
async function simulateFiles(files: readonly string[], print: Printer): Promise<number> {
  const { readScenario } = await import('../simulation/read.ts');
  let status = 0;
  for (const file of files) {
    const source = sourceOf(file);
    let text: string;
    try {
      text = await print(await readScenario(await textOf(file), source));
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      process.stderr.write(errorLine(withPlace(error, { source })));
      status = UNREADABLE;
      continue;
    }
    if (!(await writeOut(text))) return status;
  }
  return status;
}

function isUnreadable(error: unknown): error is EvictdError {
  return error instanceof EvictdError && error.code === 'EVICTD_SCENARIO';
}

/** A result for each line that is not blank, written as soon as the lines that have come are done. */
async function simulateBatch(file: string, flags: FlagValues): Promise<number> {
  tuneForBatch();
  const settings = rememberingReader(flags);
  for await (const lines of linesOf(chunksOf(file))) {
    let text = '';
    for (const line of lines) {
      try {
        text += plainResult(line, settings) ?? (await anyResult(line, settings));
      } catch (error) {
        // What should not have happened costs no result that was there before.
        await writeOut(text);
        throw error;
      }
      if (text.length < WRITTEN_AT_ONCE) continue;
      if (!(await writeOut(text))) return 0;
      text = '';
    }
    if (text !== '' && !(await writeOut(text))) return 0;
  }
  return 0;
}

/** The result of a line as text; undefined for one that is not plain, or cannot be read. */
function plainResult(line: Line, settings: SettingsReader): string | undefined {
  const scenario = line === 'tooLong' ? undefined : readPlain(line);
  if (scenario === undefined) return undefined;
  try {
    return resultText(scenario, settings);
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    return undefined;
  }
}

/** The same of any line. */
async function anyResult(line: Line, settings: SettingsReader): Promise<string> {
  try {
    if (line === 'tooLong') {
      const message = `longer than ${MAX_SCENARIO_BYTES} bytes`;
      throw new EvictdError('EVICTD_SCENARIO', message);
    }
    const text = decode(line);
    if (text === undefined) throw new EvictdError('EVICTD_SCENARIO', 'no UTF-8 text');
    if (text.trim() === '') return '';
    const { readJson } = await import('../simulation/read.ts');
    return resultText(readJson(text), settings);
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    return `${JSON.stringify({ error: describeError(error), ticks: [] })}\n`;
  }
}

function resultText(scenario: Scenario, settings: SettingsReader): string {
  return `${JSON.stringify(simulate(scenario, { settings }))}\n`;
}
