import { describe, expect, it } from 'vitest';
import { parseCommandLine } from '../../src/commands/command-line.ts';
import { daemonArguments } from '../../src/commands/demo/plan.ts';
import { type Offer, requireMachine } from '../../src/commands/demo/requirements.ts';
import { Undo } from '../../src/commands/demo/undo.ts';
import { loadSettings } from '../../src/config/load.ts';
import type { NativeAddon } from '../../src/native/types.ts';

const addonWith = (
  capabilities: Partial<ReturnType<NativeAddon['capabilities']>>,
): NativeAddon => ({
  watchMemcg: () => {
    throw new Error('not called');
  },
  setRoundRobin: () => undefined,
  openPidfd: () => {
    throw new Error('not called');
  },
  capabilities: () => ({ pidfd: null, processMrelease: null, eventfd: null, ...capabilities }),
  build: { napi: 9, compiler: '', sanitized: false },
});

const GOOD: Offer = {
  uid: 0,
  hierarchy: { mountPoint: '/sys/fs/cgroup/memory', root: '/' },
  native: { addon: addonWith({}) },
  availableBytes: 2 ** 30,
};

describe('requireMachine', () => {
  it('gives what the demo uses', () => {
    const { hierarchy, addon } = requireMachine(GOOD);
    expect(hierarchy).toBe(GOOD.hierarchy);
    expect(addon).toBe(GOOD.native.addon);
  });

  it('does without what is not known or not needed', () => {
    const addon = addonWith({ processMrelease: 'ENOSYS' });
    expect(() =>
      requireMachine({ ...GOOD, native: { addon }, availableBytes: undefined }),
    ).not.toThrow();
  });

  it.each<[Partial<Offer>, string]>([
    [{ uid: 1000 }, 'it needs root, to make cgroups'],
    [{ uid: undefined }, 'it needs root, to make cgroups'],
    [{ hierarchy: undefined }, 'no cgroup v1 memory hierarchy is mounted'],
    [
      { native: { addon: undefined, reason: 'no such file', tried: [] } },
      'the native addon is missing: no such file',
    ],
    [{ native: { addon: addonWith({ pidfd: 'ENOSYS' }) } }, 'the kernel has no pidfd (ENOSYS)'],
    [{ native: { addon: addonWith({ eventfd: 'EMFILE' }) } }, 'the kernel has no eventfd (EMFILE)'],
    [{ availableBytes: 700 * 2 ** 20 }, 'it needs 768Mi of free memory, and 700Mi are available'],
  ])('says what is missing: %#', (changes, missing) => {
    expect(() => requireMachine({ ...GOOD, ...changes })).toThrowError(
      expect.objectContaining({
        code: 'EVICTD_UNSUPPORTED',
        exitStatus: 7,
        message: `the demo cannot run here: ${missing}`,
      }),
    );
  });

  it('says all that is missing', () => {
    expect(() => requireMachine({ ...GOOD, uid: 1, hierarchy: undefined })).toThrowError(
      /root.*; no cgroup v1/,
    );
  });
});

describe('daemonArguments', () => {
  it('are what evictd understands, without a warning', () => {
    const invocation = parseCommandLine(daemonArguments('/cg/node', '/tmp/evictd.sock'));
    expect(invocation.command).toBe('run');
    if (invocation.command === 'help') return;
    const { settings, warnings } = loadSettings(invocation.values);
    expect(warnings).toEqual([]);
    expect(settings).toMatchObject({ nodeCgroup: '/cg/node', kernelMemcgNotification: true });
    expect([...settings.pods.keys()]).toEqual(['web', 'cache', 'batch', 'leak']);
    expect(settings.pods.get('web')?.priority).toBe(1000);
  });
});

describe('Undo', () => {
  it('undoes the last step first, once', async () => {
    const order: string[] = [];
    const undo = new Undo();
    undo.add('one', () => void order.push('one'));
    undo.add('two', async () => void order.push('two'));
    await undo.run();
    await undo.run();
    expect(order).toEqual(['two', 'one']);
  });

  it('goes on after a step that fails, and names it', async () => {
    const order: string[] = [];
    const undo = new Undo();
    undo.add('one', () => void order.push('one'));
    undo.add('two', () => {
      throw new Error('busy');
    });
    undo.add('three', () => Promise.reject(new Error('gone')));
    await expect(undo.run()).rejects.toMatchObject({
      code: 'EVICTD_DEMO',
      message: 'left behind: three (gone); two (busy)',
    });
    expect(order).toEqual(['one']);
  });
});
