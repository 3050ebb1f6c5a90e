import { describe, expect, it } from 'vitest';
import { KNOWN_SOCKETS, socketsFor } from '../../src/commands/runtime-choice.ts';

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
