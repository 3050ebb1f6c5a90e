import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { FAULTS } from './faults.ts';

const ROOT = path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url))));

describe('planted faults', () => {
  it.each(FAULTS)('$file: $breaks', ({ file, text, replacement }) => {
    const source = readFileSync(path.join(ROOT, file), 'utf8');
    // What is not there any more tests nothing: write the fault for what is there now.
    expect(source.split(text)).toHaveLength(2);
    expect(replacement).not.toBe(text);
  });

  it('are at least 25, each another one', () => {
    expect(FAULTS.length).toBeGreaterThanOrEqual(25);
    expect(new Set(FAULTS.map(({ breaks }) => breaks)).size).toBe(FAULTS.length);
  });
});
