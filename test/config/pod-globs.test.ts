import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compilePodRules, podPlacesOf } from '../../src/config/pod-globs.ts';
import type { CgroupRule } from '../../src/config/settings.ts';

function rule(cgroup: string, overrides: Partial<CgroupRule> = {}): CgroupRule {
  return {
    cgroup,
    name: undefined,
    priority: undefined,
    memoryRequestNano: undefined,
    gracePeriodSeconds: undefined,
    protected: false,
    ...overrides,
  };
}

const matches = (cgroup: string, path: string): boolean =>
  compilePodRules([rule(cgroup)])(path) !== undefined;

describe('compilePodRules', () => {
  it.each([
    // Literal.
    ['a', 'a', true],
    ['a', 'b', false],
    ['a', 'a/b', false],
    ['a/b', 'a/b', true],
    ['system.slice/x\\x2dy.service', 'system.slice/x\\x2dy.service', true],
    // `*` and `?` stay within a component.
    ['*', 'a', true],
    ['*', '.a', true],
    ['*', 'a/b', false],
    ['a*', 'a', true],
    ['a*', 'ab', true],
    ['a*c', 'abbc', true],
    ['a*c', 'abb', false],
    ['*a*b*', 'xaxbx', true],
    ['*a*b*', 'xbxax', false],
    ['a?', 'a', false],
    ['a?', 'ä', false],
    ['?', 'ä', true],
    ['?', '😀', true],
    ['a?c', 'a/c', false],
    ['build/*/job', 'build/1/job', true],
    ['build/*/job', 'build/job', false],
    ['build/*/job', 'build/1/2/job', false],
    // `**` crosses, and takes none but at the end.
    ['a/**/z', 'a/z', true],
    ['a/**/z', 'a/b/c/z', true],
    ['a/**/z', 'a/b/c/z/y', false],
    ['a/**', 'a', false],
    ['a/**', 'a/b', true],
    ['a/**', 'a/b/c', true],
    ['**', 'a', true],
    ['**/x-*', 'a/b/x-1', true],
    ['**/a/*/b', 'a/a/b/a/c/b', true],
    ['**/a/**/b', 'x/a/y/b/z', false],
    // Nothing else is a wildcard.
    ['a(b|c)*', 'ab', false],
    ['!a*', 'b', false],
    ['a+', 'aa', false],
    ['a.*', 'abc', false],
    // Parents.
    ['docker', 'docker/0123', true],
    ['docker', 'docker', false],
    ['docker', 'docker/0123/init', false],
    ['docker', 'x/docker/0123', false],
    ['docker/abc', 'docker/abc', true],
    ['machine.slice', 'machine.slice/machine-qemu.scope', true],
    ['machine.slice', 'machine.slice', false],
    ['kubepods', 'kubepods/pod1', true],
    ['kubepods', 'kubepods/burstable/pod1', true],
    ['kubepods', 'kubepods/besteffort/pod1', true],
    ['kubepods', 'kubepods/burstable', false],
    ['kubepods', 'kubepods/pod1/container', false],
    ['kubepods', 'kubepods/burstable/pod1/container', false],
    ['kubepods', 'kubepods.slice/kubepods-pod1.slice', true],
    ['kubepods', 'kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice', true],
    ['kubepods', 'kubepods.slice/kubepods-burstable.slice', false],
    ['kubepods', 'kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod1.slice', true],
    ['kubepods.slice', 'kubepods/burstable/pod1', true],
    ['kubepods', 'pods/pod1', false],
    ['kubepods', 'kubepods', false],
    // What a wildcard may name, and what it may not.
    ['system.slice/*.service', 'system.slice/build.service', true],
    ['system.slice/*', 'system.slice/run-u12.scope', true],
    ['*/*', 'machine.slice/machine-a.scope', true],
    ['**', 'kubepods/burstable/pod1', true],
    ['user.slice/**', 'user.slice/user-1000.slice/user@1000.service/app.slice/app.scope', true],
  ])('%j, %j: %j', (cgroup, path, expected) => {
    expect(matches(cgroup, path)).toBe(expected);
  });

  const PROTECTED = [
    'init.scope',
    'user.slice/user-0.slice/user@0.service/init.scope',
    'system.slice/systemd-logind.service',
    'system.slice/systemd-journald.service',
    'system.slice/systemd-journald.socket',
    'system.slice/systemd-networkd.service',
    'system.slice/systemd-resolved.service',
    'system.slice/systemd-udevd.service/udev',
    'system.slice/systemd-timesyncd.service',
    'system.slice/system-getty.slice',
    'system.slice/system-getty.slice/getty@tty1.service',
    'system.slice/serial-getty@ttyS0.service',
    'system.slice/dbus.service',
    'system.slice/dbus-broker.service',
    'system.slice/dbus.socket',
    'user.slice/user-1000.slice/user@1000.service/app.slice/dbus.service',
    'system.slice/rsyslog.service',
    'system.slice/NetworkManager.service',
    'system.slice/NetworkManager-dispatcher.service',
    'system.slice/wpa_supplicant.service',
    'system.slice/ssh.service',
    'system.slice/sshd.service',
    'system.slice/sshd@1-10.0.0.1:22-10.0.0.2:4000.service',
    'system.slice/ssh.socket',
    'system.slice/containerd.service',
    'system.slice/containerd.service/kubepods-pod1',
    'system.slice/docker.service',
    'system.slice/docker.socket',
    'system.slice/crio.service',
    'system.slice/podman.service',
    'system.slice/cri-docker.service',
    'system.slice/cri-dockerd.service',
    'system.slice/buildkit.service',
    'system.slice/libvirtd.service',
    'system.slice/kubelet.service',
    'system.slice/k3s.service',
    'system.slice/k3s-agent.service',
    'system.slice/rke2-server.service',
    'system.slice/k0scontroller.service',
    'system.slice/evictd.service',
    'system.slice/evictd@a.service',
    'system.slice/evictd.service/helper',
    // What holds others.
    'system.slice',
    'user.slice',
    'user.slice/user-1000.slice',
    'user.slice/user-1000.slice/user@1000.service',
    'user.slice/user-1000.slice/session-3.scope',
    'machine.slice',
    'kubepods',
    'kubepods/burstable',
    'kubepods.slice',
    'kubepods.slice/kubepods-besteffort.slice',
    'docker',
  ];

  it.each(PROTECTED)('no glob names %s, its literal name does', (path) => {
    const components = path.split('/');
    const parent = components.slice(0, -1).join('/');
    // Below the literal name of a unit, what lies in it may be named.
    const isInUnit = /^system\.slice\/.*\.service\//.test(path);
    const named = [
      '**',
      components.map(() => '*').join('/'),
      ...(isInUnit ? [] : [`${path.slice(0, -1)}*`, parent === '' ? '*' : `${parent}/*`]),
    ].filter((glob) => matches(glob, path));
    expect(named).toEqual([]);
    const isParent = path === 'docker' || path === 'machine.slice' || path.startsWith('kubepods');
    expect(matches(path, path)).toBe(!isParent || path.includes('/'));
  });

  it('lets a literal name what no glob does', () => {
    expect(matches('system.slice/ssh.service', 'system.slice/ssh.service')).toBe(true);
    expect(matches('system.slice/docker.service/*', 'system.slice/docker.service/x')).toBe(true);
    expect(matches('system.slice/*/x', 'system.slice/docker.service/x')).toBe(false);
  });

  it('counts the first rule that matches', () => {
    const rules = [
      rule('system.slice/db.service', { protected: true }),
      rule('system.slice/*.service', { priority: 1 }),
      rule('**', { priority: 2 }),
    ];
    const match = compilePodRules(rules);
    expect(match('system.slice/db.service')).toBe(rules[0]);
    expect(match('system.slice/web.service')).toBe(rules[1]);
    expect(match('a')).toBe(rules[2]);
    expect(match('init.scope')).toBeUndefined();
    expect(compilePodRules([])('a')).toBeUndefined();
  });

  it('takes no longer than the product of the lengths', () => {
    const start = performance.now();
    const name = 'a'.repeat(255);
    expect(matches(`${'*a'.repeat(120)}*b`, name)).toBe(false);
    expect(matches(`${'**/a/'.repeat(400)}b`, Array(2000).fill('a').join('/'))).toBe(false);
    expect(performance.now() - start).toBeLessThan(1000);
  });

  it('agrees with a regular expression', () => {
    const glob = fc.stringMatching(/^[ab*?]{1,6}$/).filter((text) => !text.includes('**'));
    const path = fc.stringMatching(/^[ab]{1,6}$/);
    fc.assert(
      fc.property(
        fc.array(glob, { minLength: 1, maxLength: 3 }),
        fc.array(path, { minLength: 1, maxLength: 3 }),
        (globs, paths) => {
          const source = globs
            .map((text) => text.replaceAll('?', '[^/]').replaceAll('*', '[^/]*'))
            .join('/');
          expect(matches(globs.join('/'), paths.join('/'))).toBe(
            new RegExp(`^${source}$`).test(paths.join('/')),
          );
        },
      ),
    );
  });
});

describe('podPlacesOf', () => {
  it('says where to look', () => {
    const paths = [
      'kubepods.slice',
      'docker',
      'a/b',
      'a/b',
      'c',
      'system.slice/*.service',
      'system.slice/*/x',
      '*',
      'd/**/e',
      'd/*',
    ];
    expect(podPlacesOf(paths.map((path) => rule(path)))).toEqual({
      named: ['a/b', 'c'],
      parents: ['docker'],
      kubepods: true,
      globs: [
        { below: 'system.slice', levels: 2 },
        { below: '.', levels: 1 },
        { below: 'd', levels: Number.POSITIVE_INFINITY },
      ],
    });
    expect(podPlacesOf([])).toEqual({ named: [], parents: [], kubepods: false, globs: [] });
  });
});
