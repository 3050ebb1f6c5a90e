import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const ROOT = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const DECISIONS = 'docs/decisions';

const read = (file: string) => readFileSync(path.join(ROOT, file), 'utf8');

/** Code is quoted, not linked or titled: what is in it is left out. */
const withoutCode = (markdown: string) =>
  markdown.replace(/^(```|~~~).*?^\1/gms, '').replace(/`[^`\n]*`/g, '');

/** The anchors of a page, as GitHub makes them from its headings. */
function anchors(markdown: string): Set<string> {
  const seen = new Map<string, number>();
  const names = [
    ...markdown.replace(/^(```|~~~).*?^\1/gms, '').matchAll(/^#{1,6}\s+(.+?)\s*#*$/gm),
  ];
  return new Set(
    names.map(([, heading = '']) => {
      const name = heading
        .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, '')
        .replace(/\s/g, '-');
      const times = seen.get(name) ?? 0;
      seen.set(name, times + 1);
      return times === 0 ? name : `${name}-${times}`;
    }),
  );
}

/** What a page links to in the repository. */
function linksOf(page: string): readonly string[] {
  return [...withoutCode(read(page)).matchAll(/\]\(\s*<?([^)\s>]+)>?[^)]*\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z][a-z+.-]*:/i.test(target));
}

const PAGES = execFileSync(
  'git',
  ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--', '*.md'],
  { cwd: ROOT, encoding: 'utf8' },
)
  .split('\0')
  .filter((file) => file !== '' && existsSync(path.join(ROOT, file)));

const RECORDS = readdirSync(path.join(ROOT, DECISIONS)).filter((file) => file !== 'README.md');

describe('documentation', () => {
  it.each(['README.md', 'ARCHITECTURE.md', 'CHANGELOG.md', 'LICENSE'])('has %s', (file) => {
    expect(existsSync(path.join(ROOT, file))).toBe(true);
  });

  it.each(PAGES)('%s links to what is there', (page) => {
    const broken = linksOf(page).filter((target) => {
      const [file = '', anchor] = decodeURI(target).split('#');
      const linked = file === '' ? page : path.join(path.dirname(page), file);
      if (linked.startsWith('..') || !existsSync(path.join(ROOT, linked))) return true;
      return anchor !== undefined && linked.endsWith('.md') && !anchors(read(linked)).has(anchor);
    });
    expect(broken).toEqual([]);
  });

  it.each(['docs/README.md', 'README.md'])(
    '%s names every page and schema below docs/',
    (index) => {
      const links = linksOf(index).map((link) => link.split('#')[0] ?? '');
      const named = links.map((link) => path.join(path.dirname(index), link));
      const files = readdirSync(path.join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
        .map((file) => `docs/${file}`)
        .filter((file) => /\.(md|json)$/.test(file) && file !== index);
      // Decisions have an index of their own; what a schema is of is told by the page about it.
      const own = files.filter(
        (file) => path.dirname(file) !== DECISIONS || file.endsWith('README.md'),
      );
      const wanted = index === 'README.md' ? own.filter((file) => file.endsWith('.md')) : own;
      expect(wanted.length).toBeGreaterThan(15);
      expect(wanted.filter((file) => !named.includes(file))).toEqual([]);
    },
  );

  it('maps every folder and root file of src/ in ARCHITECTURE.md', () => {
    const architecture = read('ARCHITECTURE.md');
    const missing = readdirSync(path.join(ROOT, 'src'), { withFileTypes: true })
      .map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name))
      .filter((name) => !architecture.includes(name));
    expect(missing).toEqual([]);
  });

  it('has the version of the package in CHANGELOG.md', () => {
    const { version } = JSON.parse(read('package.json')) as { readonly version: string };
    const headings = [...read('CHANGELOG.md').matchAll(/^## \[?(\d+\.\d+\.\d+)/gm)];
    expect(headings.map(([, heading]) => heading)).toContain(version);
  });
});

describe('decision records', () => {
  it('are numbered without a gap', () => {
    const numbers = RECORDS.map((file) => /^(\d{4})-[a-z0-9-]+\.md$/.exec(file)?.[1] ?? file);
    expect(numbers.sort()).toEqual(numbers.map((_, at) => String(at + 1).padStart(4, '0')));
  });

  it.each(RECORDS)('%s has its four parts in order', (file) => {
    const headings = [...read(`${DECISIONS}/${file}`).matchAll(/^## (.+)$/gm)].map(
      ([, text]) => text,
    );
    const parts = ['Status', 'Decision', 'Reason', 'Consequence'];
    expect(headings.filter((heading) => parts.includes(heading ?? ''))).toEqual(parts);
  });

  it('are all in the index', () => {
    const index = read(`${DECISIONS}/README.md`);
    expect(RECORDS.filter((file) => !index.includes(`(${file})`))).toEqual([]);
  });

  it('name every package that evictd depends on', () => {
    const manifest = JSON.parse(read('package.json')) as {
      readonly dependencies: Record<string, string>;
      readonly devDependencies: Record<string, string>;
    };
    const records = RECORDS.map((file) => read(`${DECISIONS}/${file}`)).join('\n');
    const names = Object.keys({ ...manifest.dependencies, ...manifest.devDependencies });
    expect(names.filter((name) => !records.includes(`\`${name}\``))).toEqual([]);
  });
});
