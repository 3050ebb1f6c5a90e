import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { parseCommandLine } from '../../src/commands/command-line.ts';
import { gcCommand } from '../../src/commands/gc.ts';
import type { FlagValues } from '../../src/config/flags.ts';
import { startScriptedCri } from '../e2e/support/scripted-cri.ts';
import { privateDirectory } from '../kernel/support/daemon.ts';

describe('evictd gc', () => {
  it.each<[FlagValues, string, string]>([
    [{ '--runtime': ['cgroup'] }, 'EVICTD_CHOICE', 'none of cri, docker, auto'],
    [{ '--runtime': ['foo'] }, 'EVICTD_CHOICE', 'none of cri, docker, auto'],
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

  it('names what it takes, and nothing else', async () => {
    await expect(gcCommand({ '--runtime': ['foo'] })).rejects.toMatchObject({
      message: 'none of cri, docker, auto',
      place: { source: '--runtime', value: 'foo' },
    });
  });

  it('takes no flags of the daemon', () => {
    expect(() => parseCommandLine(['gc', '--image-gc', 'on'])).toThrow('--image-gc');
    expect(parseCommandLine(['gc', '--dry-run', '--only', 'images'])).toStrictEqual({
      command: 'gc',
      values: { '--dry-run': ['true'], '--only': ['images'] },
    });
  });

  it('says on stderr who is there and does not answer, and goes on with who does', async () => {
    const [answering, dead] = ['a', 'b'].map((name) => path.join(privateDirectory(), name));
    const server = await startScriptedCri(answering as string, {
      ListPodSandbox: () => ({ items: [] }),
      ListContainers: () => ({ containers: [] }),
      ListImages: () => ({ images: [] }),
      Status: () => ({}),
    });
    onTestFinished(() => server.close());
    writeFileSync(dead as string, '');
    const said: string[] = [];
    for (const stream of [process.stdout, process.stderr]) {
      const spy = vi.spyOn(stream, 'write').mockImplementation((text, ...rest) => {
        said.push(String(text));
        for (const done of rest) if (typeof done === 'function') done();
        return true;
      });
      onTestFinished(() => spy.mockRestore());
    }
    const sockets = [
      { name: 'containerd', protocol: 'cri', path: dead as string },
      { name: 'CRI-O', protocol: 'cri', path: answering as string },
    ] as const;
    expect(await gcCommand({ '--dry-run': ['true'] }, sockets)).toBe(0);
    expect(said).toEqual([
      expect.stringContaining(`evictd: not asked: containerd at ${dead}: `),
      `CRI-O at ${answering}: 0 would be removed\n`,
    ]);
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
