/**
 * Whether two values of plain data (texts, numbers, lists, records) are the same. Node's own comparison
 * takes 60 ms for 1,000 pods where this takes 2, and runtimes list all their pods each second.
 */
export function isSame(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true;
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) {
    return false;
  }
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const names = Object.keys(one);
  if (names.length !== Object.keys(other).length) return false;
  const [left, right] = [one as Record<string, unknown>, other as Record<string, unknown>];
  return names.every((name) => Object.hasOwn(right, name) && isSame(left[name], right[name]));
}

/**
 * A listing with what it has in common with the one before taken from that, so that whoever remembers something of
 * a pod finds it again. The one before itself where nothing is new.
 *
 * @param before each with an id of its own; of several with one id the last counts
 */
export function reused<T extends { readonly id: string }>(
  before: readonly T[],
  now: readonly T[],
): readonly T[] {
  const known = new Map(before.map((one) => [one.id, one]));
  const merged = now.map((one) => {
    const former = known.get(one.id);
    return former !== undefined && isSame(former, one) ? former : one;
  });
  const isOld =
    merged.length === before.length && merged.every((one, index) => one === before[index]);
  return isOld ? before : merged;
}
