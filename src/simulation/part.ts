/** Parts of a scenario by themselves: what cannot be read is found before all is put together. */
import { Ajv, type ValidateFunction } from 'ajv';
import { EvictdError } from '../core/errors.ts';
import { checkScenario } from './read.ts';
import type { Scenario } from './scenario.ts';
import { SCENARIO_FORMATS, SCENARIO_SCHEMA } from './schema.ts';

/** Why no scenario can have this configuration, or these pods; undefined where one can. */
export function partFault(
  part: Readonly<Partial<Record<'config' | 'pods', unknown>>>,
): EvictdError | undefined {
  const rest: Scenario = {
    name: '',
    description: '',
    config: {},
    node: { dedicatedImageFs: false, splitImageFs: false },
    pods: [],
    ticks: [],
  };
  try {
    checkScenario({ ...rest, ...part });
    return undefined;
  } catch (error) {
    if (error instanceof EvictdError) return error;
    throw error;
  }
}

/** A part of a summary, and where the schema has it. */
const PARTS = {
  node: '#/definitions/summary/properties/node',
  'pods[]': '#/definitions/podStats',
} as const;
export type SummaryPart = keyof typeof PARTS;

/**
 * How much is left out of one part; what has more faults is left out as a whole. A pod has some fields
 * for each container and volume.
 */
const MOST_FAULTS = 1000;

/** Told what is left out: its kind, such as `node.memory.availableBytes`, and the value. */
export type LeftOut = (kind: string, value: unknown) => void;

/**
 * A part of a summary without what no scenario can hold; undefined where that is all of it. What lacks a
 * name after that is left out too.
 */
export function fitted(part: SummaryPart, value: unknown, leftOut: LeftOut): unknown {
  const isPart = validator(part);
  let rest = value;
  for (let fault = 0; fault < MOST_FAULTS; fault += 1) {
    if (isPart(rest)) return rest;
    const pointer = isPart.errors?.[0]?.instancePath ?? '';
    const path = pointer.split('/').slice(1);
    leftOut([part, ...path].join('.').replace(/\.\d+/g, '[]'), valueAt(rest, path));
    if (path.length === 0) return undefined;
    rest = without(rest, path);
  }
  leftOut(part, value);
  return undefined;
}

const validators = new Map<SummaryPart, ValidateFunction>();

function validator(part: SummaryPart): ValidateFunction {
  const known = validators.get(part);
  if (known !== undefined) return known;
  const ajv = new Ajv({
    allowUnionTypes: true,
    strictTypes: false,
    formats: SCENARIO_FORMATS,
  });
  const made = ajv
    .addSchema(SCENARIO_SCHEMA, 'scenario')
    .compile({ $ref: `scenario${PARTS[part]}` });
  validators.set(part, made);
  return made;
}

/** Names in a summary's schema have no character that a JSON pointer escapes. */
type Path = readonly string[];

function valueAt(value: unknown, path: Path): unknown {
  return path.reduce<unknown>((one, key) => (one as Readonly<Record<string, unknown>>)[key], value);
}

function without(value: unknown, [key = '', ...rest]: Path): unknown {
  if (Array.isArray(value)) {
    const index = Number(key);
    return value.flatMap((item: unknown, at) => {
      if (at !== index) return [item];
      return rest.length === 0 ? [] : [without(item, rest)];
    });
  }
  const fields = Object.entries(value as object);
  return Object.fromEntries(
    fields.flatMap(([name, item]: [string, unknown]) => {
      if (name !== key) return [[name, item]];
      return rest.length === 0 ? [] : [[name, without(item, rest)]];
    }),
  );
}
