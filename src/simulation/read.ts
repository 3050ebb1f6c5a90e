import { Ajv, type ErrorObject } from 'ajv';
import { suggestion } from '../config/nearest.ts';
import { type ErrorPlace, EvictdError, escapeControl } from '../core/errors.ts';
import { checkConsistent, refused } from './consistent.ts';
import type { Scenario } from './scenario.ts';
import { SCENARIO_FORMATS, SCENARIO_SCHEMA } from './schema.ts';

/**
 * The longest YAML text, in UTF-16 units: of the worst text its parser takes seconds for 256 KiB, and
 * JSON is there for what is larger.
 */
export const MAX_YAML_LENGTH = 4 * 2 ** 20;

/** Its first fault is enough; `verbose` names it with the value that was found. */
const ajv = new Ajv({
  verbose: true,
  allowUnionTypes: true,
  strictTypes: false,
  formats: SCENARIO_FORMATS,
});

let compiled: ReturnType<typeof compile> | undefined;

function compile() {
  return ajv.compile<Scenario>(SCENARIO_SCHEMA);
}

/**
 * A scenario from JSON.
 *
 * @throws EvictdError EVICTD_SCENARIO, with the path of what is wrong as its place's key
 */
export function readJson(text: string): Scenario {
  return checkScenario(parseJson(text));
}

/**
 * A scenario from a file's text: JSON, or else YAML.
 *
 * @param file its name, for the place of an error; one that ends in `.yaml` or `.yml` is YAML, in `.json` JSON
 * @throws EvictdError EVICTD_SCENARIO, with the file as its place's source
 */
export async function readScenario(text: string, file: string): Promise<Scenario> {
  try {
    const isYaml = /\.ya?ml$/i.test(file);
    const data = isYaml ? await parseYaml(text, file) : await parseEither(text, file);
    return checkScenario(data);
  } catch (error) {
    if (!(error instanceof EvictdError)) throw error;
    const place = { source: file, ...error.place };
    throw new EvictdError('EVICTD_SCENARIO', error.message, place, error.cause);
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw refused({}, `no JSON: ${escapeControl(why)}`);
  }
}

async function parseEither(text: string, file: string): Promise<unknown> {
  try {
    return parseJson(text);
  } catch (error) {
    if (/\.json$/i.test(file)) throw error;
    // Of what begins like JSON a parser of YAML says nothing that is better.
    const isLikeJson = /^\s*[{[]/.test(text);
    return parseYaml(text, file).catch((other: unknown) => {
      throw isLikeJson ? error : other;
    });
  }
}

/** Its parser takes 40 ms to load: it is imported for those who need it. */
async function parseYaml(text: string, file: string): Promise<unknown> {
  if (text.length > MAX_YAML_LENGTH) {
    throw refused({}, `longer than the ${MAX_YAML_LENGTH} characters that YAML may have: use JSON`);
  }
  const { parsePlain } = await import('../config/document.ts');
  return parsePlain(text, file);
}

/**
 * Checks the shape of a scenario, and what a schema cannot say.
 *
 * @throws EvictdError EVICTD_SCENARIO, with the path of what is wrong as its place's key
 */
export function checkScenario(data: unknown): Scenario {
  compiled ??= compile();
  const isScenario = compiled;
  if (!isScenario(data)) {
    const [error] = isScenario.errors ?? [];
    throw error === undefined ? refused({}, 'no scenario') : faultOf(error, data);
  }
  checkConsistent(data);
  return data;
}

/** What people call the types of JSON. */
const TYPE_WORDS: Readonly<Record<string, string>> = {
  object: 'a map',
  array: 'a list',
  string: 'a text',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
};

function faultOf(error: ErrorObject, root: unknown): EvictdError {
  const path = pathOf(error.instancePath, root);
  switch (error.keyword) {
    case 'required':
      return refused({ key: joined(path, String(error.params['missingProperty'])) }, 'is missing');
    case 'additionalProperties': {
      const name = String(error.params['additionalProperty']);
      const known = Object.keys(propertiesOf(error));
      return refused({ key: joined(path, name) }, `no field${suggestion(name, known)}`);
    }
    case 'type': {
      const types: readonly string[] = [error.params['type'] ?? []].flat();
      const words = types.filter((type) => type !== 'null').map((type) => TYPE_WORDS[type] ?? type);
      return refused(keyed(path), `must be ${words.join(' or ')}, not ${shown(error.data)}`);
    }
    case 'minimum':
    case 'maximum':
      return refused(keyed(path), `must lie within ±2^53, not ${shown(error.data)}`);
    case 'format':
      return refused(keyed(path), `must be a time as RFC 3339 has it, not ${shown(error.data)}`);
    case 'enum': {
      const choices = (error.params['allowedValues'] as readonly unknown[]).filter(
        (choice) => choice !== null,
      );
      return refused(keyed(path), `none of ${choices.join(', ')}: ${shown(error.data)}`);
    }
    default:
      return refused(keyed(path), error.message ?? error.keyword);
  }
}

function propertiesOf({ parentSchema }: ErrorObject): object {
  const properties: unknown = parentSchema?.['properties'];
  return typeof properties === 'object' && properties !== null ? properties : {};
}

function keyed(path: string): ErrorPlace {
  return path === '' ? {} : { key: path };
}

/** `ticks[3].summary` for the JSON pointer `/ticks/3/summary`. */
function pathOf(pointer: string, root: unknown): string {
  let path = '';
  let value = root;
  for (const part of pointer.split('/').slice(1)) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
    path = Array.isArray(value) ? `${path}[${name}]` : joined(path, name);
    value = (value as Readonly<Record<string, unknown>> | null)?.[name];
  }
  return path;
}

/** A name that has a point or a space in it stands in quotes. */
function joined(path: string, name: string): string {
  if (!/^[\w-]{1,100}$/.test(name)) return `${path}[${JSON.stringify(name.slice(0, 100))}]`;
  return path === '' ? name : `${path}.${name}`;
}

const MOST_SHOWN = 60;

function shown(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object' && value !== null) return 'a map';
  if (typeof value !== 'string') return String(value);
  const cut = value.length > MOST_SHOWN ? `${value.slice(0, MOST_SHOWN)}…` : value;
  return escapeControl(JSON.stringify(cut));
}
