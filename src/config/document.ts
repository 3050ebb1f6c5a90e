/**
 * A YAML or JSON document as evictd reads one: each value with its line, and nothing of it read before
 * it is asked for. JSON needs no reader of its own, since YAML 1.2 contains it.
 */
import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseAllDocuments,
  visit,
} from 'yaml';
import { EvictdError } from '../core/errors.ts';

/** A value with the line on which it starts, from 1. */
export type Value =
  | { readonly type: 'map'; readonly line: number; readonly node: Node }
  | { readonly type: 'list'; readonly line: number; readonly node: Node }
  | { readonly type: 'text'; readonly line: number; readonly text: string; readonly plain: boolean }
  | {
      readonly type: 'number';
      readonly line: number;
      readonly number: number;
      readonly text: string;
    }
  | { readonly type: 'switch'; readonly line: number; readonly on: boolean; readonly text: string }
  | { readonly type: 'nothing'; readonly line: number };

/** A key of a map. */
export interface Entry {
  readonly key: string;
  readonly line: number;
  readonly value: Value;
}

/** A document and how to look into it. */
export interface ConfigDocument {
  /** The file's name, for places. */
  readonly file: string;
  readonly root: Value;
  /** The map's keys in their order; `path` is how errors name the map. */
  entries(map: Value & { type: 'map' }, path: string): readonly Entry[];
  items(list: Value & { type: 'list' }): readonly Value[];
}

/** A refusal of what stands at a line of the file. */
export function refusedAt(
  file: string,
  line: number,
  message: string,
  key?: string,
  value?: string,
): EvictdError {
  return new EvictdError('EVICTD_CONFIG', message, {
    source: `${file}:${line}`,
    ...(key === undefined ? {} : { key }),
    ...(value === undefined ? {} : { value }),
  });
}

/** A value for an error: a text as it is, of a map or list only that it is one. */
export function shown(value: Value): string {
  switch (value.type) {
    case 'text':
    case 'number':
    case 'switch':
      return value.text;
    case 'map':
      return '{…}';
    case 'list':
      return '[…]';
    case 'nothing':
      return 'null';
  }
}

/**
 * Parses a text that holds one document. Aliases are followed where they are read, never expanded.
 *
 * @throws EvictdError EVICTD_CONFIG with file and line: neither YAML nor JSON, no document or several;
 * `entries` where a key is doubled or no text
 */
export function parseDocument(text: string, file: string): ConfigDocument {
  const [document, another] = parseDocuments(text, file);
  if (document === undefined) throw refusedAt(file, 1, 'the file is empty');
  if (another !== undefined) {
    const { line } = another.root;
    throw refusedAt(file, line, 'a second document: the file must hold one');
  }
  return document;
}

/**
 * {@link parseDocument} for any number of documents; empty ones are left out.
 *
 * @throws EvictdError EVICTD_CONFIG with file and line: neither YAML nor JSON
 */
export function parseDocuments(text: string, file: string): readonly ConfigDocument[] {
  const lines = new LineCounter();
  // Duplicates are looked for where keys are read: the parser's own check is quadratic.
  const options = { uniqueKeys: false, prettyErrors: false, lineCounter: lines } as const;
  const documents = unlessTooDeep(file, () => [
    ...parseAllDocuments(text, { ...options, logLevel: 'silent' }),
  ]);
  const lineOf = (offset: number | undefined): number => lines.linePos(offset ?? 0).line;
  for (const { errors } of documents) {
    const [error] = errors;
    if (error !== undefined) throw refusedAt(file, lineOf(error.pos?.[0]), faultOf(error));
  }
  return documents
    .filter(({ contents }) => !isNothing(contents))
    .map((document) => documentOf(document, file, lineOf));
}

/** What the parser's own recursion runs into, it says of most texts; of some it throws. */
function unlessTooDeep<T>(file: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (error instanceof RangeError) throw refusedAt(file, 1, 'nested too deeply');
    throw error;
  }
}

function documentOf(
  document: Document,
  file: string,
  lineOf: (offset: number | undefined) => number,
): ConfigDocument {
  const anchors = anchorsOf(document, file);
  const read = (node: unknown, line: number): Value =>
    readValue(node, line, lineOf, (name) => {
      const target = anchors().get(name);
      if (target !== undefined) return target;
      const message = anchors().has(name)
        ? 'an alias of an anchor that is defined twice: write the value out'
        : 'an alias without its anchor';
      throw refusedAt(file, line, message, undefined, `*${name}`);
    });
  const root = read(document.contents, 1);
  return {
    file,
    root,
    entries: (map, path) => entriesOf(map, path, file, read, lineOf),
    items: ({ node, line }) => (isSeq(node) ? node.items.map((item) => read(item, line)) : []),
  };
}

/** How many values a document of plain data may have, aliases followed, and how deep it may be. */
const MAX_PLAIN_VALUES = 500_000;
const MAX_PLAIN_DEPTH = 100;

/**
 * Plain data of a text that holds one document, as `JSON.parse` gives it. An alias stands for its value
 * each time; how often that may go on is limited.
 *
 * @throws EvictdError EVICTD_CONFIG with file and line, as {@link parseDocument} does
 */
export function parsePlain(text: string, file: string): unknown {
  const { root, entries, items } = parseDocument(text, file);
  let count = 0;
  const plain = (value: Value, depth: number): unknown => {
    count += 1;
    if (count > MAX_PLAIN_VALUES) {
      throw refusedAt(file, value.line, `more than ${MAX_PLAIN_VALUES} values`);
    }
    if (depth > MAX_PLAIN_DEPTH) throw refusedAt(file, value.line, 'nested too deeply');
    switch (value.type) {
      case 'map':
        return Object.fromEntries(
          entries(value, '').map(({ key, value: entry }) => [key, plain(entry, depth + 1)]),
        );
      case 'list':
        return items(value).map((item) => plain(item, depth + 1));
      case 'text':
        return value.text;
      case 'number':
        return value.number;
      case 'switch':
        return value.on;
      case 'nothing':
        return null;
    }
  };
  return plain(root, 0);
}

function faultOf(error: Error): string {
  // What the parser's own recursion runs into.
  if (/call stack/i.test(error.message)) return 'nested too deeply';
  return `neither YAML nor JSON: ${error.message.split('\n')[0]}`;
}

function isNothing(contents: unknown): boolean {
  return contents === null || (isScalar(contents) && contents.value === null);
}

function entriesOf(
  { node }: Value & { type: 'map' },
  path: string,
  file: string,
  read: (node: unknown, line: number) => Value,
  lineOf: (offset: number | undefined) => number,
): readonly Entry[] {
  if (!isMap(node)) return [];
  const seen = new Map<string, number>();
  return node.items.map(({ key: keyNode, value }) => {
    const line = lineOf((keyNode as Node | null)?.range?.[0]);
    const key = read(keyNode, line);
    if (key.type !== 'text') {
      throw refusedAt(file, line, 'a key must be a text', path === '' ? undefined : path);
    }
    const name = path === '' ? key.text : `${path}: ${key.text}`;
    if (key.text === '<<' && key.plain) {
      throw refusedAt(file, line, 'merge keys are not supported: write the fields out', name);
    }
    const before = seen.get(key.text);
    if (before !== undefined) {
      throw refusedAt(file, line, `the key is given twice, first on line ${before}`, name);
    }
    seen.set(key.text, line);
    return { key: key.text, line, value: read(value, line) };
  });
}

/** The nodes with an anchor, looked for at the first alias; undefined for a name that has several. */
function anchorsOf(document: Document, file: string): () => ReadonlyMap<string, Node | undefined> {
  let anchors: Map<string, Node | undefined> | undefined;
  return () => {
    if (anchors !== undefined) return anchors;
    const found = new Map<string, Node | undefined>();
    unlessTooDeep(file, () =>
      visit(document, {
        Value: (_, node) => {
          if (node.anchor !== undefined) {
            found.set(node.anchor, found.has(node.anchor) ? undefined : node);
          }
        },
      }),
    );
    anchors = found;
    return anchors;
  };
}

function readValue(
  node: unknown,
  lineBefore: number,
  lineOf: (offset: number | undefined) => number,
  resolve: (anchor: string) => Node,
): Value {
  const start = (node as Node | null)?.range?.[0];
  // What is empty begins where the next thing does: it is said to be where its key is.
  const line = start === undefined || isNothing(node) ? lineBefore : lineOf(start);
  const target = isAlias(node) ? resolve(node.source) : node;
  if (isMap(target)) return { type: 'map', line, node: target };
  if (isSeq(target)) return { type: 'list', line, node: target };
  if (!isScalar(target)) return { type: 'nothing', line };
  const { value, source = '', type } = target;
  if (typeof value === 'string')
    return { type: 'text', line, text: value, plain: type === 'PLAIN' };
  if (typeof value === 'boolean') return { type: 'switch', line, on: value, text: source };
  if (typeof value === 'number' || typeof value === 'bigint') {
    return { type: 'number', line, number: Number(value), text: source };
  }
  return value === null
    ? { type: 'nothing', line }
    : { type: 'text', line, text: source, plain: false };
}
