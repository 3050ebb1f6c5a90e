import { once } from 'node:events';
import { existsSync, renameSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  KNOWN_SOCKETS,
  type KnownSocket,
  openReclaimers,
  socketsFor,
} from '../../src/commands/runtime-choice.ts';
import { settingsFromFlags } from '../../src/config/check.ts';
import { startScriptedCri } from '../e2e/support/scripted-cri.ts';
import { privateDirectory } from '../kernel/support/daemon.ts';

const shown = (...args: Parameters<typeof socketsFor>): readonly string[] =>
  socketsFor(...args).map(({ protocol, path }) => `${protocol} ${path}`);

describe('socketsFor', () => {
  it('looks at all that are known where none is meant, those of CRI first', () => {
    expect(shown('auto', undefined)).toEqual([
      'cri /run/containerd/containerd.sock',
      'cri /run/k3s/containerd/containerd.sock',
      'cri /run/crio/crio.sock',
      'docker /var/run/docker.sock',
      'docker /run/podman/podman.sock',
    ]);
  });

  it('looks at those of one protocol', () => {
    for (const kind of ['cri', 'docker'] as const) {
      expect(socketsFor(kind, undefined)).toEqual(
        KNOWN_SOCKETS.filter(({ protocol }) => protocol === kind),
      );
    }
  });

  it('looks at the one that is given, and finds out what it speaks where that is not said', () => {
    expect(shown('cri', '/x')).toEqual(['cri /x']);
    expect(shown('docker', '/x')).toEqual(['docker /x']);
    expect(shown('auto', '/x')).toEqual(['cri /x', 'docker /x']);
  });
});

describe('openReclaimers', () => {
  const { settings } = settingsFromFlags({ '--runtime': ['auto'] });

  /** A socket at which nobody listens any more. */
  async function deadSocket(): Promise<string> {
    const [bound, left] = ['bound', 'left'].map((name) => path.join(privateDirectory(), name));
    const server = createServer().listen(bound);
    await once(server, 'listening');
    renameSync(bound as string, left as string);
    server.close();
    await once(server, 'close');
    expect(existsSync(left as string)).toBe(true);
    return left as string;
  }

  it('names who is there and does not answer beside who does', async () => {
    const { socketPath, close } = await startScriptedCri(path.join(privateDirectory(), 's'), {
      ListPodSandbox: () => ({ items: [] }),
      ListContainers: () => ({ containers: [] }),
      ImageFsInfo: () => ({ imageFilesystems: [{ fsId: { mountpoint: '/images/here' } }] }),
    });
    onTestFinished(() => close());
    const dead = await deadSocket();
    const sockets: readonly KnownSocket[] = [
      { name: 'containerd', protocol: 'cri', path: dead },
      { name: 'CRI-O', protocol: 'cri', path: socketPath },
      // It is asked for one language or the other, and answers in one.
      { name: 'Docker', protocol: 'docker', path: socketPath },
      { name: 'Podman', protocol: 'docker', path: path.join(privateDirectory(), 'none') },
    ];
    const { opened, silent } = await openReclaimers(settings, sockets);
    expect(opened.map(({ name }) => name)).toEqual([`CRI-O at ${socketPath}`]);
    expect(silent).toEqual([expect.stringContaining(`containerd at ${dead}: `)]);
    expect(await opened[0]?.filesystems()).toMatchObject({
      imagefs: ['/images/here', '/images'],
    });
    for (const one of opened) one.close();
    await expect(openReclaimers(settings, sockets.slice(0, 1))).rejects.toMatchObject({
      code: 'EVICTD_RUNTIME',
      message: expect.stringContaining(dead),
    });
  });
});
