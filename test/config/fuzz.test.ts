import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { KUBELET_FIELDS } from '../../src/config/kubelet-fields.ts';
import { KEYS } from '../../src/config/options.ts';
import { RULE_FIELDS } from '../../src/config/pod-rules.ts';
import { EvictdError } from '../../src/core/errors.ts';
import { SIGNAL_NAMES } from '../../src/core/signal.ts';
import { FILE, KUBELET, load, OWN } from './support.ts';

/** What one text may take at most, ms: there is no wait in it, so only a loop could exceed that. */
const LIMIT_MS = 2000;

/** Loads a text; what it throws must be coded, of exit status 2, and say where. */
function tryLoad(text: string): void {
  const start = performance.now();
  try {
    load(text);
  } catch (error) {
    expect(error).toBeInstanceOf(EvictdError);
    const { exitStatus, place } = error as EvictdError;
    expect(exitStatus).toBe(2);
    expect(place.source).toMatch(new RegExp(`^${FILE}:[1-9][0-9]*$`));
  }
  expect(performance.now() - start).toBeLessThan(LIMIT_MS);
}

const number = fc.stringMatching(
  /^[+-]?[0-9]{0,3}(\.[0-9]{0,3})?([eE][+-]?[0-9]{1,20}|[A-Za-z]{0,2}|%{1,2})$/,
);
const scalar = fc.oneof(
  number,
  fc.string({ maxLength: 12 }),
  fc.integer(),
  fc.double(),
  fc.boolean(),
  fc.constantFrom(
    null,
    '0s',
    '5m',
    '10%',
    '100Mi',
    '*',
    '**/a',
    'kubepods',
    '..',
    'NaN%',
    '1e999999999',
  ),
);
const value: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    scalar,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(
      fc.oneof(
        fc.constantFrom(
          ...SIGNAL_NAMES,
          ...RULE_FIELDS,
          'disk',
          'memory',
          'floor',
          'assumedFallPerSecond',
        ),
        fc.string({ maxLength: 8 }),
      ),
      tie('value'),
      { maxKeys: 4 },
    ),
  ),
})).value;

describe('whatever a file holds, what is thrown is coded and says where', () => {
  it.each([
    ['of the kubelet’s kind', KUBELET, KUBELET_FIELDS],
    ['of evictd’s kind', OWN, KEYS.map(({ name }) => name)],
  ])('%s, with known keys', (_, head, keys) => {
    const fields = fc.dictionary(fc.constantFrom(...keys), value, { maxKeys: 4 });
    fc.assert(
      fc.property(fields, (given) => {
        tryLoad(`${head}${Object.keys(given).length === 0 ? '' : stringify(given)}`);
        tryLoad(
          JSON.stringify({
            apiVersion: 'evictd.dev/v1alpha1',
            kind: 'EvictdConfiguration',
            ...given,
          }),
        );
      }),
      { numRuns: 300 },
    );
  });

  it('with any text', () => {
    const fragment = fc.constantFrom(
      ...[
        '{',
        '}',
        '[',
        ']',
        ':',
        ': ',
        '- ',
        '? ',
        '\n',
        '  ',
        '"',
        "'",
        '&a ',
        '*a',
        '!!str ',
        '|',
        '>',
        '#',
        '---',
        '%',
      ],
      ...[
        'evictionHard',
        'memory.available',
        'pods',
        'cgroup',
        '1',
        '10%',
        '\t',
        '\0',
        '<<',
        '~',
        'é',
      ],
    );
    const text = fc.oneof(
      fc.string({ maxLength: 60 }),
      fc.array(fragment, { maxLength: 30 }).map((parts) => parts.join('')),
    );
    fc.assert(
      fc.property(text, fc.constantFrom('', KUBELET, OWN), (given, head) => {
        tryLoad(head + given);
      }),
      { numRuns: 1000 },
    );
  });

  it.each([
    ['anchors', `${OWN}podParents: [&a x${', *a'.repeat(50_000)}]`],
    ['keys', `${KUBELET}featureGates: {${'a: 1, '.repeat(40_000)}}`],
    ['documents', `${OWN}${'---\n'.repeat(50_000)}`],
    ['rules', `${OWN}pods: [${'{cgroup: "*a*a*a*a*a*b"}, '.repeat(999)}]`],
    ['digits', `${OWN}evictionMaxPodGracePeriod: ${'9'.repeat(200_000)}`],
    ['a long quantity', `${OWN}evictionHard: {memory.available: "${'9'.repeat(200_000)}"}`],
    ['a long exponent', `${KUBELET}evictionHard: {memory.available: "1e${'9'.repeat(200_000)}%"}`],
    ['a long duration', `${OWN}pollInterval: "${'1s'.repeat(100_000)}"`],
    ['a long key', `${OWN}${'x'.repeat(200_000)}: 1`],
    ['a long word', `${OWN}compatibility: ${'x'.repeat(200_000)}`],
  ])('with many or long %s, soon enough', (_, text) => {
    const start = performance.now();
    try {
      load(text);
    } catch (error) {
      expect(error).toMatchObject({ exitStatus: 2 });
    }
    expect(performance.now() - start).toBeLessThan(5 * LIMIT_MS);
  });
});
