// Runs what the documentation shows of evictd and compares what comes of it with what stands there; after
// `npm run build`.
//
//   node scripts/guide.mjs [PAGE…]           says what differs; the exit status is 1 then
//   node scripts/guide.mjs --write [PAGE…]   writes what comes of it into the pages
//
// Without a page it is README.md and all below docs/. Looked for are
//
// - `    $ evictd simulate …` with its output below it, indented as well; a line `…` stands for any number
//   of lines, and what is shown so is written whole where it no longer holds
// - a block `js` with its output in a block `text` below it
// - a line that begins with `data/FILE` in backquotes and ends with a colon, with that file in a block below it
// - `evictd simulate …` in a block `sh`, which has to end with 0
//
// All run in evictd's own folder.
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const main = path.join(root, 'dist/main.js');
const LIMIT_MS = 60_000;
/** What a shell ends with where a program is not there. */
const NOT_FOUND = 127;

const INDENT = '    ';

const write = process.argv.includes('--write');
const named = process.argv.slice(2).filter((argument) => argument !== '--write');
const pages =
  named.length > 0
    ? named.map((page) => path.resolve(page))
    : [path.join(root, 'README.md'), ...pagesBelow(path.join(root, 'docs'))];

function pagesBelow(directory) {
  return readdirSync(directory, { recursive: true })
    .filter((file) => file.endsWith('.md'))
    .sort()
    .map((file) => path.join(directory, file));
}

function run(program, args, input) {
  const options = { cwd: root, encoding: 'utf8', timeout: LIMIT_MS, input };
  const env = { ...process.env, NODE: process.execPath, MAIN: main };
  return spawnSync(program, args, { ...options, env, maxBuffer: 64 * 2 ** 20 });
}

const runCommand = (command) =>
  run('sh', ['-c', `evictd() { "$NODE" "$MAIN" "$@"; }\n${command}`], '');

/** From standard input a module finds the package that it is run in by its name, too. */
const runModule = (code) => run(process.execPath, ['--input-type=module', '-'], code);

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** Whether the lines shown are those printed; a line `…` is any number of them. */
function isShown(shown, printed) {
  const lines = shown.split('\n').slice(0, -1);
  const pattern = lines.map((line) =>
    line.trim() === '…' ? '(?:.*\\n)*?' : `${escaped(line)}\\n`,
  );
  return new RegExp(`^${pattern.join('')}$`).test(printed);
}

const indented = (text) => text.replace(/^(?=.)/gm, INDENT);
const outdented = (text) => text.replace(/^ {4}/gm, '');

let faults = 0;

function say(place, what, why) {
  process.stdout.write(`${place}: ${what}${why === '' ? '' : `: ${why}`}\n`);
}

/** What is to stand in the place of what is shown. */
function settle({ place, what, shown, result: { status, stdout, stderr, error } }) {
  if (status === NOT_FOUND) {
    say(place, what, `left out: ${stderr.trim()}`);
    return shown;
  }
  if (status !== 0) {
    faults += 1;
    say(place, what, `fails: ${error?.message ?? stderr.trim()}`);
    return shown;
  }
  if (shown === undefined || isShown(shown, stdout)) {
    say(place, what, '');
    return shown;
  }
  if (!write) {
    faults += 1;
    say(place, what, `prints otherwise (node scripts/guide.mjs --write writes it):\n${stdout}`);
    return shown;
  }
  say(place, what, 'written');
  return stdout;
}

/** What is looked for in a page, and how what it shows is made. */
const KINDS = [
  {
    pattern: /^( {4}\$ )(evictd simulate .*)\n((?:(?:\n)*^ {4}(?!\$ ).*\n)*)/gm,
    renew: ([, head, command, shown], place) => {
      const result = runCommand(command);
      const kept = settle({ place, what: command, shown: outdented(shown), result });
      return `${head}${command}\n${indented(kept)}`;
    },
  },
  {
    pattern: /^```js\n(.*?)^```\n\n```text\n(.*?)^```\n/gms,
    renew: ([, code, shown], place) => {
      const kept = settle({ place, what: 'example', shown, result: runModule(code) });
      return `\`\`\`js\n${code}\`\`\`\n\n\`\`\`text\n${kept}\`\`\`\n`;
    },
  },
  {
    pattern: /^(`(data\/\S+)`.*:\n\n```\w+\n)(.*?)^```\n/gms,
    renew: ([, head, file, shown], place) => {
      const result = { status: 0, stdout: readFileSync(path.join(root, file), 'utf8') };
      return `${head}${settle({ place, what: file, shown, result })}\`\`\`\n`;
    },
  },
  {
    pattern: /^```sh\n.*?^```\n/gms,
    renew: ([block], place) => {
      for (const [command] of block.matchAll(/^evictd simulate .*$/gm)) {
        settle({ place, what: command, shown: undefined, result: runCommand(command) });
      }
      return block;
    },
  },
];

for (const page of pages) {
  const before = readFileSync(page, 'utf8');
  let text = before;
  for (const { pattern, renew } of KINDS) {
    text = text.replace(pattern, (...match) => {
      const offset = match.find((part) => typeof part === 'number');
      const line = text.slice(0, offset).split('\n').length;
      return renew(match, `${path.relative(root, page)}:${line}`);
    });
  }
  if (text !== before) writeFileSync(page, text);
}
process.exitCode = faults === 0 ? 0 : 1;
