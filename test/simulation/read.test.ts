import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { describeError, EvictdError } from '../../src/core/errors.ts';
import { MAX_YAML_LENGTH, readJson, readScenario } from '../../src/simulation/read.ts';
import { SCENARIO_SCHEMA } from '../../src/simulation/schema.ts';
import { scenario, scenarioPod, shortage } from '../support/stories.ts';

/** What can be written as JSON. */
type Json = Readonly<Record<string, unknown>>;

/** A scenario with a value put at a path, or taken away where it is undefined. */
function changed(path: readonly (string | number)[], value: unknown): string {
  const data = JSON.parse(JSON.stringify(shortage())) as Record<string, unknown>;
  let target = data;
  for (const name of path.slice(0, -1)) target = target[name] as Record<string, unknown>;
  const last = path.at(-1) ?? '';
  if (value === undefined) delete target[last];
  else target[last] = value;
  return JSON.stringify(data);
}

function refusalOf(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    if (!(error instanceof EvictdError)) throw error;
    expect(error).toMatchObject({ code: 'EVICTD_SCENARIO', exitStatus: 2 });
    return describeError(error);
  }
  throw new Error('not refused');
}

const AVAILABLE = ['ticks', 3, 'summary', 'node', 'memory', 'availableBytes'] as const;

describe('readJson', () => {
  it('reads a scenario as it stands', () => {
    expect(readJson(JSON.stringify(shortage()))).toEqual(shortage());
  });

  it.each<[string, string]>([
    ['', 'no JSON: Unexpected end of JSON input'],
    ['[]', 'must be a map, not a list'],
    ['null', 'must be a map, not null'],
    ['"x"', 'must be a map, not "x"'],
    ['{}', 'name: is missing'],
    [changed(['ticks'], undefined), 'ticks: is missing'],
    [changed(['description'], undefined), 'description: is missing'],
    [changed(['pods'], {}), 'pods: must be a list, not a map'],
    [changed(['pods'], null), 'pods: must be a list, not null'],
    [changed(['tick'], []), 'tick: no field (did you mean ticks?)'],
    [changed(['xyz'], []), 'xyz: no field'],
    [
      changed(['config', 'evictionHrd'], {}),
      'config.evictionHrd: no field (did you mean evictionHard?)',
    ],
    [
      changed(['node', 'splitImagefs'], true),
      'node.splitImagefs: no field (did you mean splitImageFs?)',
    ],
    [
      changed(['config', 'evictionHard', 'memory.available'], 5),
      'config.evictionHard["memory.available"]: must be a text, not 5',
    ],
    [
      changed(['config', 'evictionMaxPodGracePeriod'], 1.5),
      'config.evictionMaxPodGracePeriod: must be a whole number, not 1.5',
    ],
    [changed(['ticks', 0, 'at'], undefined), 'ticks[0].at: is missing'],
    [changed(['ticks', 0, 'at'], 5), 'ticks[0].at: must be a text, not 5'],
    [
      changed(['ticks', 0, 'killfails'], []),
      'ticks[0].killfails: no field (did you mean killFails?)',
    ],
    [changed(['ticks', 0, 'at'], '5'), 'ticks[0].at "5": '],
    [changed(['ticks', 1, 'at'], '-1s'), 'ticks[1].at "-1s": before what precedes it'],
    [
      changed(['ticks', 0, 'evictd'], { wallClockStep: 'bogus' }),
      'ticks[0].evictd.wallClockStep "bogus": ',
    ],
    [
      changed(['ticks', 0, 'evictd'], { samples: [{ after: '-1h' }] }),
      'ticks[0].evictd.samples[0].after "-1h": before what precedes it',
    ],
    [
      changed(['ticks', 0, 'evictd'], { samples: [{ after: '2s' }, { after: '1s' }] }),
      'ticks[0].evictd.samples[1].after "1s": before what precedes it',
    ],
    // The next round is 10 s later.
    [
      changed(['ticks', 0, 'evictd'], { samples: [{ after: '11s' }] }),
      'ticks[1].at "10s": before what precedes it',
    ],
    [
      changed(['ticks', 1, 'killFails'], ['default/wbe']),
      'ticks[1].killFails[0] "default/wbe": no pod of the scenario (did you mean default/web?)',
    ],
    [
      changed(['ticks', 1, 'evictd'], { kills: { 'a\u001bb': { takes: '1s' } } }),
      'ticks[1].evictd.kills "a\\u001bb": no pod of the scenario',
    ],
    [
      changed(['evictd'], { protected: { 'default/wbe': 'db' } }),
      'evictd.protected "default/wbe": no pod of the scenario (did you mean default/web?)',
    ],
    ...['2026-02-30T00:00:00Z', '2026-01-01T25:00:00Z', '2026-01-01T00:00:00+25:00'].map(
      (time): [string, string] => [
        changed(['ticks', 0, 'summary', 'node', 'memory', 'time'], time),
        `ticks[0].summary.node.memory.time: must be a time as RFC 3339 has it, not "${time}"`,
      ],
    ),
    [changed(['pods', 0, 'metadata', 'uid'], undefined), 'pods[0].metadata.uid: is missing'],
    [
      changed(['pods', 1, 'metadata', 'uid'], 'uid-web'),
      'pods[1].metadata.uid "uid-web": another pod has it too',
    ],
    [
      changed(['pods', 1, 'metadata', 'name'], 'web'),
      'pods[1].metadata "default/web": another pod is called so too',
    ],
    [
      changed(['pods', 0, 'spec', 'containers', 0, 'resources', 'requests', 'memory'], true),
      'pods[0].spec.containers[0].resources.requests.memory: must be a text or a number, not true',
    ],
    [
      changed(['pods', 0, 'metadata', 'annotations'], { 'a/b~c': 1 }),
      'pods[0].metadata.annotations["a/b~c"]: must be a text, not 1',
    ],
    [
      changed(AVAILABLE, 'x'),
      'ticks[3].summary.node.memory.availableBytes: must be a whole number, not "x"',
    ],
    [
      changed(AVAILABLE, 0.5),
      'ticks[3].summary.node.memory.availableBytes: must be a whole number, not 0.5',
    ],
    [
      changed(AVAILABLE, 2 ** 53),
      'ticks[3].summary.node.memory.availableBytes: must lie within ±2^53, not 9007199254740992',
    ],
    [
      changed(['ticks', 0, 'summary', 'node', 'memory', 'time'], 'noon'),
      'ticks[0].summary.node.memory.time: must be a time as RFC 3339 has it, not "noon"',
    ],
    [
      changed(['ticks', 0, 'summary', 'pods', 0, 'podRef'], undefined),
      'ticks[0].summary.pods[0].podRef: is missing',
    ],
    [
      changed(['evictd'], { kills: { 'default/web': { outcome: 'fled' } } }),
      'evictd.kills["default/web"].outcome: ' +
        'none of evicted, timedOut, failed, nothingToKill, pressureGone, dryRun: "fled"',
    ],
    [changed(['name'], '\u001b[31m').replace('"name"', '"nam"'), 'name: is missing'],
    [changed(['\u001b[31m'], 1), '["\\u001b[31m"]: no field'],
  ])('refuses what is no scenario, %#', (text, said) => {
    expect(refusalOf(() => readJson(text))).toContain(said);
  });

  it('cuts what is long and escapes what could drive a terminal', () => {
    const said = refusalOf(() => readJson(changed(AVAILABLE, `\u001b[31m${'x'.repeat(10_000)}`)));
    expect(said.length).toBeLessThan(200);
    expect(said).not.toContain('\u001b');
  });

  it.each<[string, readonly (string | number)[], unknown]>([
    ['a summary that is null', ['ticks', 0, 'summary'], null],
    ['a summary that is missing', ['ticks', 0, 'summary'], undefined],
    ['a part of it that is null', ['ticks', 0, 'summary', 'node', 'memory'], null],
    ['a negative number', AVAILABLE, -5],
    ['the largest number', AVAILABLE, 2 ** 53 - 1],
    ['pods that are not told of', ['ticks', 0, 'summary', 'pods'], null],
    ['fields of Kubernetes that nothing is made of', ['pods', 0, 'spec', 'nodeName'], 'n1'],
    ['numbers of a summary that nothing is made of', ['ticks', 0, 'summary', 'node', 'cpu'], {}],
    ['fields of the kubelet that nothing is made of', ['config', 'podPidsLimit'], 100],
    ['a quantity that is a number', ['pods', 0, 'spec', 'overhead'], { memory: 1024 }],
    ['a limit of any kind', ['pods', 0, 'spec', 'volumes'], [{ name: 'v', emptyDir: null }]],
    ['a node without flags', ['node'], {}],
    ['no rounds', ['ticks'], []],
    ['two rounds at one time', ['ticks', 1, 'at'], '0s'],
    ['a file of evictd’s own', ['evictd'], { kills: { 'default/web': { takes: '3s' } } }],
  ])('takes %s', (_, path, value) => {
    expect(() => readJson(changed(path, value))).not.toThrow();
  });

  it('throws nothing but EVICTD_SCENARIO', () => {
    const data = fc.oneof(
      fc.json(),
      fc.string(),
      fc.json().map((json) => `{"name":${json}}`),
    );
    fc.assert(
      fc.property(data, (text) => {
        expect(refusalOf(() => readJson(text))).not.toBe('');
      }),
    );
  });
});

describe('readScenario', { timeout: 60_000 }, () => {
  const YAML = `
name: small
description: one
config: {evictionHard: {memory.available: 100Mi}}
node: {dedicatedImageFs: false, splitImageFs: false}
pods:
  - metadata: &web {name: web, namespace: default, uid: a}
    spec: {priority: 5}
ticks:
  - at: 0s
    summary: null
    activePods: [default/web]
`;

  it.each(['f.yaml', 'f.yml', 'f', 'standard input'])('reads YAML of %s', async (file) => {
    expect(await readScenario(YAML, file)).toEqual({
      ...scenario(),
      name: 'small',
      description: 'one',
      pods: [{ metadata: { name: 'web', namespace: 'default', uid: 'a' }, spec: { priority: 5 } }],
      ticks: [{ at: '0s', summary: null, activePods: ['default/web'] }],
    });
  });

  it('reads JSON, also of what is called YAML', async () => {
    const text = JSON.stringify(shortage());
    expect(await readScenario(text, 'f.json')).toEqual(shortage());
    expect(await readScenario(text, 'f.yaml')).toEqual(shortage());
  });

  it('follows aliases', async () => {
    const text = `${YAML}    admit: [{metadata: *web, spec: {}}]\n`;
    const { ticks } = await readScenario(text, 'f.yaml');
    expect(ticks[0]?.admit).toEqual([
      { ...scenarioPod('web'), metadata: { name: 'web', namespace: 'default', uid: 'a' } },
    ]);
  });

  const bomb = [
    'a: &a [x, x, x, x, x, x, x, x, x, x]',
    ...['b', 'c', 'd', 'e', 'f', 'g', 'h'].map((name, index) => {
      const inner = 'abcdefg'[index];
      return `${name}: &${name} [${Array.from({ length: 10 }, () => `*${inner}`).join(', ')}]`;
    }),
  ].join('\n');

  it.each<[string, string, string]>([
    ['f.json', '{"name": }', 'f.json: no JSON: '],
    ['f.yaml', 'name: [', 'f.yaml:1: neither YAML nor JSON: '],
    ['f.yaml', '', 'f.yaml:1: the file is empty'],
    ['f.yaml', 'name: a\nname: b', 'f.yaml:2: name: the key is given twice, first on line 1'],
    ['f.yaml', 'name: a', 'f.yaml: description: is missing'],
    ['f.yaml', 'a: &a [*a]', 'f.yaml:1: nested too deeply'],
    ['f.yaml', bomb, 'more than 500000 values'],
    ['f.yaml', '['.repeat(200_000), 'nested too deeply'],
    // Its parser throws of the one, and says it of the other.
    ['f.yaml', `${'- '.repeat(3000)}a\n`, 'nested too deeply'],
    ['f.yaml', `${'- '.repeat(3000)}a\n`.repeat(2), 'nested too deeply'],
    ['f.yaml', ' '.repeat(MAX_YAML_LENGTH + 1), 'use JSON'],
    ['f', 'just words', 'f: must be a map, not "just words"'],
  ])('refuses %s, %#', async (file, text, said) => {
    const error = await readScenario(text, file).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'EVICTD_SCENARIO' });
    expect(describeError(error as EvictdError)).toContain(said);
  });
});

describe('the published schema', () => {
  it('is the one that scenarios are checked by', () => {
    const file = '../../docs/schema/evictd.dev_scenario_v1alpha1.json';
    const text = readFileSync(new URL(file, import.meta.url), 'utf8');
    expect(text).toBe(`${JSON.stringify(SCENARIO_SCHEMA, null, 2)}\n`);
  });

  it('describes every field that only evictd has', () => {
    const text = readFileSync(new URL('../../docs/reference/scenario.md', import.meta.url), 'utf8');
    const properties = (schema: unknown): Json =>
      (schema as { properties?: Json }).properties ?? {};
    const root = properties(SCENARIO_SCHEMA);
    const tick = properties((root['ticks'] as { items: unknown }).items);
    const own = properties(tick['evictd']);
    const listed = Object.values(own).flatMap((field) => {
      const { items } = field as { items?: unknown };
      return items === undefined ? [] : Object.keys(properties(items));
    });
    const names = [...Object.keys(properties(root['evictd'])), ...Object.keys(own), ...listed];
    expect(names.length).toBeGreaterThan(8);
    expect(names.filter((name) => !text.includes(`\`${name}\``))).toEqual([]);
  });
});
