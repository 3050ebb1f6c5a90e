import { EvictdError } from '../core/errors.ts';

/**
 * Reads one of the listed words, in exactly that spelling.
 *
 * @throws EvictdError EVICTD_CHOICE
 */
export function parseChoice<T extends string>(text: string, choices: readonly T[]): T {
  const choice = choices.find((candidate) => candidate === text);
  if (choice !== undefined) return choice;
  throw new EvictdError('EVICTD_CHOICE', `none of ${choices.join(', ')}`, { value: text });
}
