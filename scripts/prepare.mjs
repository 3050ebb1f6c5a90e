// npm's "prepare": compiles the TypeScript of a source checkout. A package installed from the
// registry has dist/ already and no compiler, and nothing is to be done there.
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const main = path.join(root, 'dist', 'main.js');

let tsc;
try {
  tsc = createRequire(path.join(root, 'package.json')).resolve('typescript/bin/tsc');
} catch {
  if (existsSync(main)) process.exit(0);
  console.error(
    'evictd: dist/ is missing and so is the TypeScript compiler: run npm install with development dependencies',
  );
  process.exit(1);
}
rmSync(path.join(root, 'dist'), { recursive: true, force: true });
const built = spawnSync(process.execPath, [tsc, '-p', path.join(root, 'tsconfig.build.json')], {
  stdio: 'inherit',
});
if (built.status !== 0) process.exit(built.status ?? 1);
chmodSync(main, 0o755);
