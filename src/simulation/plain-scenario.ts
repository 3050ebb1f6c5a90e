/** Scenarios that are plain JSON and have no fault, as most of a batch are, read in a fraction of the time. */
import { EvictdError } from '../core/errors.ts';
import { checkConsistent } from './consistent.ts';
import type { Scenario } from './scenario.ts';
import { SCENARIO_FORMATS, SCENARIO_SCHEMA } from './schema.ts';
import { compileReader, type Reader } from './schema-reader.ts';

let compiled: Reader | undefined;

/**
 * A scenario from JSON; undefined for one that `readJson` must look at, which takes more and says what is
 * wrong.
 *
 * @param bytes the text in UTF-8
 */
export function readPlain(bytes: Buffer): Scenario | undefined {
  compiled ??= compileReader(SCENARIO_SCHEMA, SCENARIO_FORMATS);
  const scenario = compiled(bytes, bytes.toString('latin1')) as Scenario | undefined;
  return scenario !== undefined && isConsistent(scenario) ? scenario : undefined;
}

function isConsistent(scenario: Scenario): boolean {
  try {
    checkConsistent(scenario);
    return true;
  } catch (error) {
    if (!(error instanceof EvictdError)) throw error;
    return false;
  }
}
