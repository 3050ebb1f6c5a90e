import { expect, it } from 'vitest';
import { loadSettings } from '../../src/config/load.ts';
import { settingsLoader } from '../../src/config/loader.ts';

it.each([
  ['flags alone', { '--dry-run': ['true'] }],
  ['a file', { '--config': [new URL('../fixtures/kubelet/k3s.yaml', import.meta.url).pathname] }],
])('loads %s, as often as it is asked to', async (_, values) => {
  const load = await settingsLoader(values);
  const { settings, warnings, notes } = loadSettings(values);
  for (const loaded of [load(), load()])
    expect(loaded).toMatchObject({ settings, warnings, notes });
});

it('refuses when it loads', async () => {
  const load = await settingsLoader({ '--config': ['/no/such/file'] });
  expect(load).toThrow(expect.objectContaining({ code: 'EVICTD_CONFIG_FILE' }));
});
