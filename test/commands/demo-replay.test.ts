import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { plainLine, render } from '../../src/commands/demo/render.ts';
import { replayOf } from '../../src/commands/demo/replay.ts';
import { emptyStory, tell } from '../../src/commands/demo/story.ts';
import type { Scenario } from '../../src/simulation/scenario.ts';

/** What the package ships. */
const RECORDING = fileURLToPath(new URL('../../data/demo-recording.json', import.meta.url));
const SCENARIO = JSON.parse(readFileSync(RECORDING, 'utf8')) as Scenario;
const START_MS = 1000;

const { happenings, closing } = replayOf(SCENARIO, START_MS);
const STORY = happenings.reduce(tell, emptyStory(START_MS, true));

describe('the replay of the shipped recording', () => {
  it('is decided as the demo promises, by the policy and not by the recording', () => {
    expect(closing).toMatch(
      /^replay: leak was evicted with \d+\.\dMi available; web, cache and batch were not$/,
    );
    const kinds = happenings.map(({ kind }) => kind).filter((kind) => kind !== 'usage');
    expect(kinds[0]).toBe('replaying');
    expect(new Set(kinds)).toEqual(
      new Set([
        'replaying',
        'thresholdMet',
        'conditionSet',
        'evicting',
        'thresholdOver',
        'podEnded',
        'conditionCleared',
      ]),
    );
    expect(happenings.map(({ atMs }) => atMs)).toEqual(
      happenings.map(({ atMs }) => atMs).toSorted((one, other) => one - other),
    );
  });

  it('is refused where it would be another story', () => {
    const off = { ...SCENARIO, config: { ...SCENARIO.config, evictionHard: {} } };
    expect(() => replayOf(off, 0)).toThrow('the recorded run went otherwise: nobody was evicted');
    const high = { 'memory.available': '500Mi' };
    const all = { ...SCENARIO, config: { ...SCENARIO.config, evictionHard: high } };
    expect(() => replayOf(all, 0)).toThrow(/went otherwise: .* was evicted/);
  });

  it('says on each line that it is one', () => {
    const lines = STORY.lines.map((line) => plainLine(STORY, line));
    expect(lines.length).toBeGreaterThan(5);
    expect(lines.filter((line) => !line.startsWith('replay '))).toEqual([]);
    expect(lines.join('\n')).toContain('evicts leak: The node was low on resource: memory.');
  });

  it.each([40, 60, 100])(
    'says so on each screen of %i columns, and on each line of it',
    (columns) => {
      const screen = render(STORY, { columns, rows: 60, color: false });
      expect(screen[0]).toMatch(/^REPLAY of a recorded run/);
      const timeline = screen.slice(screen.indexOf('') + 1);
      expect(timeline.filter((line) => !line.startsWith('replay '))).toEqual([]);
      expect(Math.max(...screen.map((line) => [...line].length))).toBeLessThanOrEqual(columns);
      expect(screen.find((line) => line.startsWith('leak'))).toContain('evicted');
    },
  );
});
