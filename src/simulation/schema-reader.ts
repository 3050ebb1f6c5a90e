/**
 * A reader of JSON that is compiled of a schema: it reads and checks in one pass.
 *
 * A parser that does not know what it reads takes most of the time of `simulate --batch`. This one knows
 * which fields may come, makes nothing of what nobody looks at, and gives all maps of a kind one shape, so
 * that what works with them afterwards is faster, too.
 */
import { BYTE, NOT_PLAIN, PlainJson } from './plain-json.ts';

/** A JSON Schema of draft 7, as far as it is understood here. */
type Schema = Readonly<Record<string, unknown>>;

/** Whether a text is of a format, by the format's name. */
export type Formats = Readonly<Record<string, (text: string) => boolean>>;

/**
 * Reads a text that is plain JSON, and as the schema has it; undefined for any other, which may be right all
 * the same. Of a map that may have other fields than the schema names only those of the schema are there,
 * all of them: undefined where they are missing.
 *
 * @param bytes the text in UTF-8
 * @param text the same, a character a byte
 */
export type Reader = (bytes: Uint8Array, text: string) => unknown;

/** What a schema may say, beside what only describes it. */
const UNDERSTOOD = new Set([
  ...['$schema', 'title', 'description', 'definitions', '$ref', 'type', 'enum', 'format', 'items'],
  ...['properties', 'required', 'additionalProperties', 'minimum', 'maximum'],
]);

/**
 * Compiles a schema to a function, as its checker does: the source is made of the schema alone, which is
 * evictd's own.
 *
 * @throws Error for a schema that says what is not understood
 */
export function compileReader(schema: Schema, formats: Formats): Reader {
  const definitions = (schema['definitions'] ?? {}) as Readonly<Record<string, Schema>>;
  const names = new Map<Schema, string>();
  const functions: string[] = [];
  /** The name of the function that reads what a schema says. */
  const readerOf = (given: Schema): string => {
    const ref = given['$ref'] as string | undefined;
    const one = ref === undefined ? given : (definitions[lastPart(ref)] as Schema);
    const known = names.get(one);
    if (known !== undefined) return known;
    const name = `read${names.size}`;
    names.set(one, name);
    functions.push(`function ${name}(json) {\n${valueSource(one, readerOf)}\n}`);
    return name;
  };
  const root = readerOf(schema);
  const source = `'use strict';\n${functions.join('\n')}\nreturn ${root};`;
  const read = new Function('NOT_PLAIN', 'formats', source)(NOT_PLAIN, formats) as Read;
  return (bytes, text) => readAll(read, new PlainJson(bytes, text));
}

type Read = (json: PlainJson) => unknown;

function readAll(read: Read, json: PlainJson): unknown {
  try {
    json.blanks();
    const value = read(json);
    json.end();
    return value;
  } catch (error) {
    // Four bytes at a time were looked for where there are fewer.
    if (error === NOT_PLAIN || error instanceof RangeError) return undefined;
    throw error;
  }
}

type ReaderOf = (schema: Schema) => string;

/** The body of a function that reads one value. */
function valueSource(schema: Schema, readerOf: ReaderOf): string {
  const strange = Object.keys(schema).find((key) => !UNDERSTOOD.has(key));
  if (strange !== undefined) throw notUnderstood(strange);
  const types = [schema['type'] ?? []].flat() as readonly unknown[];
  const choices = schema['enum'];
  if (types.length === 0 && choices === undefined) return 'return json.any();';
  const kinds = choices === undefined ? types : ['string'];
  return [
    'switch (json.bytes[json.at]) {',
    ...kinds.map((type) => caseSource(type, schema, readerOf)),
    'default: throw NOT_PLAIN;',
    '}',
  ].join('\n');
}

function caseSource(type: unknown, schema: Schema, readerOf: ReaderOf): string {
  switch (type) {
    case 'object':
      return `case ${BYTE.openMap}: {\n${mapSource(schema, readerOf)}\n}`;
    case 'array':
      return `case ${BYTE.openList}: {\n${listSource(readerOf(schema['items'] as Schema))}\n}`;
    case 'string':
      return `case ${BYTE.quote}: {\n${textSource(schema)}\n}`;
    case 'boolean':
      return `case ${BYTE.truth}: case ${BYTE.falsehood}: return json.boolean();`;
    case 'null':
      return `case ${BYTE.nothing}: return json.null();`;
    case 'integer':
    case 'number':
      return numberSource(schema);
    default:
      throw notUnderstood(`type ${String(type)}`);
  }
}

/** Numbers of 15 digits are within the only limits that are understood. */
function numberSource({ minimum, maximum }: Schema): string {
  const { MIN_SAFE_INTEGER, MAX_SAFE_INTEGER } = Number;
  const isWide = (minimum ?? MIN_SAFE_INTEGER) === MIN_SAFE_INTEGER;
  if (!isWide || (maximum ?? MAX_SAFE_INTEGER) !== MAX_SAFE_INTEGER) {
    throw notUnderstood('a limit that is not ±2^53');
  }
  const digits = [...'0123456789'].map((digit) => `case ${digit.charCodeAt(0)}:`);
  return `${digits.join(' ')} case ${BYTE.minus}: return json.integer();`;
}

function textSource({ enum: choices, format }: Schema): string {
  const checks = [
    ...(choices === undefined ? [] : [`${JSON.stringify(choices)}.includes(text)`]),
    ...(format === undefined ? [] : [`formats[${JSON.stringify(format)}](text)`]),
  ];
  if (checks.length === 0) return 'return json.string();';
  return [
    'const text = json.string();',
    `if (!(${checks.join(' && ')})) throw NOT_PLAIN;`,
    'return text;',
  ].join('\n');
}

function listSource(item: string): string {
  return [
    'const list = [];',
    `if (json.isEmpty(${BYTE.openList}, ${BYTE.closeList})) return list;`,
    `do list.push(${item}(json)); while (!json.isLast(${BYTE.closeList}));`,
    'return list;',
  ].join('\n');
}

/**
 * An open map has all fields of the schema, as variables until it is made; of another one only those that
 * came, since somebody may go through them.
 */
function mapSource(schema: Schema, readerOf: ReaderOf): string {
  const properties = Object.entries(
    (schema['properties'] ?? {}) as Readonly<Record<string, Schema>>,
  );
  const others = schema['additionalProperties'] as Schema | false | undefined;
  const isOpen = others === undefined;
  const fields = properties.map(([key, value], index) => {
    const target = isOpen ? `field${index}` : `map[${JSON.stringify(key)}]`;
    return { key, take: `${target} = ${readerOf(value)}(json);` };
  });
  const required = new Set((schema['required'] ?? []) as readonly string[]);
  const missing = properties.flatMap(([key], index) => {
    if (!required.has(key)) return [];
    return isOpen ? `field${index} === undefined` : `map[${JSON.stringify(key)}] === undefined`;
  });
  const variables = properties.map((_, index) => `field${index}`);
  const made = properties.map(([key], index) => `${JSON.stringify(key)}: field${index}`);
  return [
    isOpen && variables.length > 0 ? `let ${variables.join(', ')};` : '',
    isOpen ? '' : 'const map = {};',
    `if (!json.isEmpty(${BYTE.openMap}, ${BYTE.closeMap})) {`,
    `do {\n${fieldSource(fields, otherSource(others, readerOf))}\n} while (!json.isLast(${BYTE.closeMap}));`,
    '}',
    missing.length === 0 ? '' : `if (${missing.join(' || ')}) throw NOT_PLAIN;`,
    isOpen ? `return { ${made.join(', ')} };` : 'return map;',
  ].join('\n');
}

/** What is done with a field that the schema does not name. */
function otherSource(others: Schema | false | undefined, readerOf: ReaderOf): string {
  if (others === false) return 'throw NOT_PLAIN;';
  if (others === undefined) {
    return `json.skipString(); json.mark(${BYTE.colon}); json.skip();`;
  }
  return [
    'const key = json.string();',
    "if (key === '__proto__') throw NOT_PLAIN;",
    `json.mark(${BYTE.colon});`,
    `map[key] = ${readerOf(others)}(json);`,
  ].join('\n');
}

interface FieldSource {
  readonly key: string;
  readonly take: string;
}

/**
 * One field of a map. A key is compared with its quotes, four bytes at a time; the first four find those that
 * it may be.
 */
function fieldSource(fields: readonly FieldSource[], other: string): string {
  const quoted = fields.map((field) => ({ words: wordsOf(`"${field.key}"`), ...field }));
  const firsts = new Set(quoted.map(({ words }) => words[0]?.value));
  const cases = [...firsts].map((first) => {
    const same = quoted.filter(({ words }) => words[0]?.value === first);
    const takes = same.map(({ words, key, take }) => {
      const rest = words
        .slice(1)
        .map(({ at, value }) => `json.view.getInt32(json.at + ${at}, true) === ${value}`);
      const condition = rest.length === 0 ? 'true' : rest.join(' && ');
      const passed = `json.at += ${key.length + 2}; json.mark(${BYTE.colon});`;
      return `if (${condition}) { ${passed} ${take} break; }`;
    });
    return `case ${first}:\n${takes.join('\n')}\n{ ${other} }\nbreak;`;
  });
  return `switch (json.view.getInt32(json.at, true)) {\n${cases.join('\n')}\ndefault: { ${other} }\n}`;
}

/** A text of four characters or more, all of them ASCII, as numbers of four bytes; the last may overlap. */
function wordsOf(text: string): readonly { readonly at: number; readonly value: number }[] {
  if (text.length < 4) throw notUnderstood('a name of one character');
  const bytes = Uint8Array.from(text, (char) => char.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  const count = Math.ceil(text.length / 4);
  return Array.from({ length: count }, (_, index) => {
    const at = Math.min(4 * index, text.length - 4);
    return { at, value: view.getInt32(at, true) };
  });
}

function notUnderstood(what: string): Error {
  return new Error(`not understood in a schema: ${what}`);
}

function lastPart(ref: string): string {
  return ref.slice(ref.lastIndexOf('/') + 1);
}
