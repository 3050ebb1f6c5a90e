import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { privateDirectory } from './daemon.ts';

const COMPILE_LIMIT_MS = 60_000;

/** A C program, compiled for this test. */
export function compile(source: URL): string {
  const file = fileURLToPath(source);
  const program = path.join(privateDirectory(), path.basename(file, '.c'));
  const argv = ['-O2', '-Wall', '-Wextra', '-o', program, file];
  execFileSync('cc', argv, { stdio: ['ignore', 'inherit', 'inherit'], timeout: COMPILE_LIMIT_MS });
  return program;
}
