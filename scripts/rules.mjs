// Writes the table of docs/reference/rules.md from the table of rules; after `npm run build`.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { RULES } from '../dist/core/rules.js';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const file = path.join(root, 'docs/reference/rules.md');
const HEAD = '| Name | kubelet | evictd | Why | Since |\n| --- | --- | --- | --- | --- |\n';

const cell = (text) => text.replaceAll('|', '\\|');
const rows = Object.entries(RULES).map(
  ([name, { kubelet, evictd, why, since }]) =>
    `| \`${name}\` | ${cell(kubelet)} | ${cell(evictd)} | ${cell(why)} | ${since} |\n`,
);
const page = readFileSync(file, 'utf8');
const start = page.indexOf(HEAD);
if (start < 0) throw new Error(`${file}: the head of the table is not there`);
const body = page.slice(start + HEAD.length);
const rest = body.replace(/^(\|.*\n)*/, '');
writeFileSync(file, page.slice(0, start) + HEAD + rows.join('') + rest);
