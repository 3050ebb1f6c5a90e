import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EvictdError } from '../../src/core/errors.ts';
import { simulate } from '../../src/simulation/engine.ts';
import { readPlain } from '../../src/simulation/plain-scenario.ts';
import { readJson } from '../../src/simulation/read.ts';
import type { Scenario } from '../../src/simulation/scenario.ts';
import { scenario, shortage } from '../support/stories.ts';

const CASES = new URL('../fixtures/conformance/', import.meta.url);

function textOf(file: string): string {
  return readFileSync(new URL(file, CASES), 'utf8');
}

const texts: readonly string[] = [
  ...readdirSync(new URL('named/', CASES)).map((file) => textOf(`named/${file}`)),
  ...textOf('random.jsonl').trim().split('\n'),
].map((text) => JSON.stringify((JSON.parse(text) as { scenario: unknown }).scenario));

/** What a scenario comes to; undefined for one that cannot be read. */
function resultOf(read: () => Scenario | undefined): string | undefined {
  try {
    const data = read();
    if (data === undefined) return undefined;
    return JSON.stringify([
      simulate(data, { flags: { '--compatibility': ['kubelet'] } }),
      simulate(data, { flags: { '--compatibility': ['evictd'] } }),
    ]);
  } catch (error) {
    if (!(error instanceof EvictdError)) throw error;
    return undefined;
  }
}

const plain = (text: string): Scenario | undefined => readPlain(Buffer.from(text));

/** Some hundred scenarios, by both sets of rules. */
const LIMIT = { timeout: 60_000 };

describe('readPlain', LIMIT, () => {
  it('reads most cases, which come to the same', () => {
    const read = texts.filter((text) => plain(text) !== undefined);
    expect(read.length).toBeGreaterThan(0.9 * texts.length);
    for (const text of read) {
      expect(resultOf(() => plain(text))).toBe(resultOf(() => readJson(text)));
    }
  });

  it.each<[string, Partial<Scenario>]>([
    ['a text that is not ASCII', { name: 'é' }],
    ['a text with an escape', { name: '"' }],
    ['two pods of one name', { pods: [...shortage().pods, ...shortage().pods] }],
    ['rounds out of order', { ticks: [{ at: '10s' }, { at: '5s' }] }],
    ['what is no duration', { ticks: [{ at: 'soon' }] }],
  ])('leaves %s to others', (_, changes) => {
    const text = JSON.stringify(scenario(changes));
    expect(plain(text)).toBeUndefined();
  });

  it('reads the scenario that those are made of', () => {
    expect(plain(JSON.stringify(scenario()))).toEqual(scenario());
  });

  it('leaves what is no time to others', () => {
    const text = texts.find((one) => one.includes('2026-01-01T00:00:0')) ?? '';
    expect(plain(text)).toBeDefined();
    expect(plain(text.replace('2026-01-01T00:00:0', '2026-13-01T00:00:0'))).toBeUndefined();
  });

  it('reads no text otherwise than readJson, or leaves it', () => {
    let read = 0;
    let left = 0;
    fc.assert(
      fc.property(
        fc.constantFrom(...texts),
        fc.nat(),
        fc.nat(3),
        fc.constantFrom(...'{}[],:"0123456789-.eE tn\\', 'null', '"x":1,', ''),
        (text, place, length, put) => {
          const at = place % text.length;
          const changed = text.slice(0, at) + put + text.slice(at + length);
          const data = plain(changed);
          if (data === undefined) left += 1;
          else {
            read += 1;
            expect(resultOf(() => data)).toBe(resultOf(() => readJson(changed)));
          }
        },
      ),
      { numRuns: 500 },
    );
    expect(Math.min(read, left)).toBeGreaterThan(20);
  });
});
