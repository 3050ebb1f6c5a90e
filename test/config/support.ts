import type { FlagValues } from '../../src/config/flags.ts';
import { loadSettings } from '../../src/config/load.ts';
import { EvictdError } from '../../src/core/errors.ts';

/** What the files of these tests are called; they are not on any disk. */
export const FILE = '/etc/evictd.yaml';

export const KUBELET = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
export const OWN = 'apiVersion: evictd.dev/v1alpha1\nkind: EvictdConfiguration\n';

/** The settings that a file of this text gives, with flags over it. */
export function load(text: string, flags: FlagValues = {}) {
  return loadSettings({ '--config': [FILE], ...flags }, { readConfigFile: () => text });
}

/** The refusal of a text; fails where it is taken. */
export function refusal(text: string, flags: FlagValues = {}): EvictdError {
  try {
    load(text, flags);
  } catch (error) {
    if (error instanceof EvictdError) return error;
    throw error;
  }
  throw new Error(`not refused: ${text}`);
}
