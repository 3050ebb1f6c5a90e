import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';

beforeEach(() => {
  vi.resetModules();
});

afterEach(() => {
  vi.unstubAllEnvs();
});

async function load() {
  const { loadNative } = await import('../../src/native/index.ts');
  return { first: loadNative(), second: loadNative() };
}

test('the addon is loaded once', async () => {
  const { first, second } = await load();
  expect(first.addon).toBeDefined();
  expect(second).toBe(first);
});

test('"none" stands for a missing addon', async () => {
  vi.stubEnv('EVICTD_NATIVE_PATH', 'none');
  const { first, second } = await load();
  expect(first).toEqual({
    addon: undefined,
    reason: 'EVICTD_NATIVE_PATH is "none"',
    tried: [],
  });
  expect(second).toBe(first);
});

test('a file that is not there is named in the reason, on one line', async () => {
  vi.stubEnv('EVICTD_NATIVE_PATH', '/nowhere/evictd.node');
  expect((await load()).first).toEqual({
    addon: undefined,
    reason: "/nowhere/evictd.node: Cannot find module '/nowhere/evictd.node'",
    tried: ['/nowhere/evictd.node'],
  });
});

test('a file that is no shared object is refused', async () => {
  const directory = mkdtempSync(path.join(tmpdir(), 'evictd-test-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const file = path.join(directory, 'evictd.node');
  writeFileSync(file, 'not a shared object');
  vi.stubEnv('EVICTD_NATIVE_PATH', file);
  const { first } = await load();
  expect(first).toMatchObject({ addon: undefined, tried: [file] });
});

for (const override of ['build/Release/evictd.node', '/dev/null', '']) {
  test(`"${override}" is no override: not absolute, or not an addon by name`, async () => {
    vi.stubEnv('EVICTD_NATIVE_PATH', override);
    expect((await load()).first).toMatchObject({ addon: undefined, tried: [] });
  });
}
