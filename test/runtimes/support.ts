import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

/** A fixture's path: files as this kernel wrote them, and broken ones. */
export function fixture(...names: readonly string[]): string {
  return path.join(fileURLToPath(new URL('../fixtures', import.meta.url)), ...names);
}

/** A directory that goes with the test. */
export function temporaryDirectory(parent: string = tmpdir()): string {
  const directory = mkdtempSync(path.join(parent, 'evictd-unit-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** A copy of a fixture tree that the test may change. */
export function copyOf(...names: readonly string[]): string {
  const directory = temporaryDirectory();
  cpSync(fixture(...names), directory, { recursive: true });
  return directory;
}

/** How many descriptors this process has open. */
export function openDescriptors(): number {
  return readdirSync('/proc/self/fd').length;
}
