import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseCommandLine } from '../../src/commands/command-line.ts';
import { gcCommand } from '../../src/commands/gc.ts';
import type { FlagValues } from '../../src/config/flags.ts';
import { privateDirectory } from '../kernel/support/daemon.ts';

describe('evictd gc', () => {
  it.each<[FlagValues, string, string]>([
    [{ '--runtime': ['cgroup'] }, 'EVICTD_CHOICE', 'none of cri, docker, auto'],
    [{ '--only': ['pods'] }, 'EVICTD_CHOICE', 'none of containers, images'],
    [{ '--only': ['pods', 'images'] }, 'EVICTD_CHOICE', 'none of containers, images'],
    [{ '--container-gc-max-per-pod': ['x'] }, 'EVICTD_INTEGER', 'not a whole number'],
  ])('refuses %j', async (values, code, message) => {
    await expect(gcCommand(values)).rejects.toMatchObject({
      code,
      message: expect.stringContaining(message),
      exitStatus: 2,
    });
  });

  it('takes no flags of the daemon', () => {
    expect(() => parseCommandLine(['gc', '--image-gc', 'on'])).toThrow('--image-gc');
    expect(parseCommandLine(['gc', '--dry-run', '--only', 'images'])).toStrictEqual({
      command: 'gc',
      values: { '--dry-run': ['true'], '--only': ['images'] },
    });
  });

  it.each(['cri', 'docker', 'auto'])(
    'with %s ends with 9 where no runtime answers',
    async (runtime) => {
      const socket = path.join(privateDirectory(), 'none.sock');
      const values = { '--runtime': [runtime], '--runtime-endpoint': [`unix://${socket}`] };
      await expect(gcCommand(values)).rejects.toMatchObject({
        code: 'EVICTD_RUNTIME',
        message: expect.stringMatching(/^no runtime answers: .* is not there/),
        exitStatus: 9,
      });
    },
  );
});
