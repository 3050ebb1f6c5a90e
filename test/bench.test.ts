/** That the benches run as it is built; what they measure is for `npm run bench:decision` and the like. */
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const ROOT = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const LIMIT = { timeout: 120_000 } as const;

function run(script: string, ...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [path.join(ROOT, 'bench', script), ...args],
    { ...LIMIT, encoding: 'utf8' },
  );
  return { status, stdout, stderr };
}

describe('the benches', LIMIT, () => {
  it('of one decision has a figure for each case', () => {
    const { status, stdout, stderr } = run('decision/measure.mjs', 'default', '1', 'kubelet');
    expect([status, stderr]).toEqual([0, '']);
    const { cases } = JSON.parse(stdout) as {
      readonly cases: readonly { readonly pods: number; readonly situation: string }[];
    };
    expect(cases.map(({ pods, situation }) => [pods, situation])).toEqual(
      [110, 1000].flatMap((pods) => ['calm', 'memory', 'disk'].map((one) => [pods, one])),
    );
  });

  it('of simulate --batch checks what was done', () => {
    const { status, stdout, stderr } = run('simulate/batch.mjs', '300');
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^30\d ticks of \d+ scenarios, \d+ MiB, .* ticks\/s, /);
  });
});
