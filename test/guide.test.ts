/** What the documentation shows of evictd, run by scripts/guide.mjs as it is built. */
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const ROOT = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const SCRIPT = path.join(ROOT, 'scripts/guide.mjs');
const GUIDE = path.join(ROOT, 'docs/guides/simulate.md');
const LIMIT = { timeout: 120_000 } as const;

function guide(...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [SCRIPT, ...args], {
    ...LIMIT,
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

/** What was looked at on each page, without lines. */
function lookedAt(stdout: string): readonly string[] {
  return stdout.split('\n').map((line) => line.replace(/^(\S+?):\d+: /, '$1: '));
}

describe('the documentation shows what evictd prints', LIMIT, () => {
  let all: ReturnType<typeof guide>;
  beforeAll(() => {
    all = guide();
  }, LIMIT.timeout);

  it('in each command, example and file', () => {
    expect(all, 'npm run build && node scripts/guide.mjs --write writes it').toMatchObject({
      status: 0,
      stderr: '',
    });
  });

  it('and none is passed over', () => {
    const docs = readdirSync(path.join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' });
    const pages = ['README.md', ...docs.map((file) => `docs/${file}`)].filter((file) =>
      file.endsWith('.md'),
    );
    const shown = pages.flatMap((page) => {
      const text = readFileSync(path.join(ROOT, page), 'utf8');
      const commands = [...text.matchAll(/^ *\$ (evictd simulate .*)$/gm)];
      const examples = [...text.matchAll(/^```js$/gm)].map(() => ['', 'example']);
      return [...commands, ...examples].map(([, what]) => `${page}: ${what}`);
    });
    expect(shown.length).toBeGreaterThanOrEqual(5);
    const seen = lookedAt(all.stdout);
    for (const what of new Set(shown)) {
      const count = (lines: readonly string[]) => lines.filter((line) => line === what).length;
      // A program that a command is piped into may be missing.
      const left = seen.filter((line) => line.startsWith(`${what}: left out: `)).length;
      expect([what, count(seen) + left]).toEqual([what, count(shown)]);
    }
    expect(seen).toContain('docs/guides/simulate.md: data/incident.yaml');
    const offered = seen.filter((line) => line.startsWith('README.md: evictd simulate '));
    expect(offered).not.toEqual([]);
  });
});

describe('scripts/guide.mjs', LIMIT, () => {
  let directory: string;
  let page: string;
  beforeAll(() => {
    directory = mkdtempSync(path.join(tmpdir(), 'evictd-guide-'));
    page = path.join(directory, 'page.md');
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  it('says what differs, and writes what is printed', () => {
    const text = readFileSync(GUIDE, 'utf8');
    const changed = text
      .replace(/(\$ evictd simulate .* --explain\n {4})/, '$1not so: ')
      .replace('priority: 1000\n', 'priority: 1001\n');
    writeFileSync(page, changed);
    const { status, stdout } = guide(page);
    expect(status).toBe(1);
    expect(stdout).toMatch(
      /:\d+: evictd simulate data\/incident\.yaml --explain: prints otherwise/,
    );
    expect(stdout).toMatch(/:\d+: data\/incident\.yaml: prints otherwise/);
    expect(readFileSync(page, 'utf8')).toBe(changed);

    expect(guide('--write', page).status).toBe(0);
    expect(readFileSync(page, 'utf8')).toBe(text);
  });

  it('takes a line … for any number of lines, and for nothing else', () => {
    const shown = (...lines: readonly string[]) =>
      writeFileSync(page, ['    $ evictd simulate --help | head -4', ...lines, ''].join('\n    '));
    shown('Usage: evictd simulate [options] [FILE...]', '…');
    expect(guide(page)).toMatchObject({ status: 0 });
    shown('…', 'Usage: evictd simulate [options] [FILE...]');
    expect(guide(page)).toMatchObject({ status: 1 });
  });

  it('says that a command or an example fails', () => {
    writeFileSync(page, '    $ evictd simulate nothing.yaml\n');
    expect(guide(page)).toMatchObject({
      status: 1,
      stdout: expect.stringContaining('fails: evictd: nothing.yaml: no such file'),
    });
    writeFileSync(page, '```js\nthrow new Error("so");\n```\n\n```text\n```\n');
    expect(guide(page)).toMatchObject({ status: 1, stdout: expect.stringContaining('Error: so') });
  });

  it('leaves a page as it is that holds', () => {
    copyFileSync(GUIDE, page);
    expect(guide('--write', page)).toMatchObject({ status: 0 });
    expect(readFileSync(page, 'utf8')).toBe(readFileSync(GUIDE, 'utf8'));
  });
});
