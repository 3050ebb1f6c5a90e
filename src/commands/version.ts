import { readFileSync } from 'node:fs';
import { escapeControl } from '../core/errors.ts';
import { loadNative } from '../native/index.ts';

/** The version in evictd's package.json, which stands two folders above this file, built or not. */
export function packageVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  const parsed: unknown = JSON.parse(text);
  const version =
    typeof parsed === 'object' && parsed !== null && 'version' in parsed && parsed.version;
  return typeof version === 'string' ? version : 'unknown';
}

/** `evictd version`: prints the version and what became of the addon; 0. */
export async function versionCommand(): Promise<number> {
  process.stdout.write(
    `evictd ${packageVersion()}, Node ${process.versions.node}\n${addonLine()}\n`,
  );
  return 0;
}

function addonLine(): string {
  const loaded = loadNative();
  if (loaded.addon === undefined) return `native addon: missing: ${escapeControl(loaded.reason)}`;
  const { napi, compiler } = loaded.addon.build;
  return `native addon: loaded (Node-API ${napi}, ${compiler})`;
}
