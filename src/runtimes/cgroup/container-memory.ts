/** What a cgroup inside a pod's uses, read when somebody asks: it is no pod, and nothing holds it open. */
import { asPath, fromText } from '../../kernel/byte-path.ts';
import { readControlRecord } from '../../kernel/control-file.ts';
import { numberField, wholeNumber } from '../../kernel/fields.ts';

/**
 * Usage less inactive file, bytes; undefined where it cannot be read. What a decision waits for is `quick`: that is
 * one file, `memory.stat`, which leaves out what the kernel itself has there.
 *
 * @param directory of the node
 * @param path relative to it, no part of it `..`
 */
export function memoryBelow(
  directory: string,
  path: string,
  how: 'quick' | 'exact',
): number | undefined {
  const read = (file: string): string =>
    readControlRecord(asPath(fromText(`${directory}/${path}/${file}`)));
  try {
    const stat = read('memory.stat');
    const of = (name: string): number | undefined => numberField(stat, `total_${name} `);
    const inactiveFileBytes = of('inactive_file') ?? 0;
    if (how === 'exact') {
      return Math.max(0, wholeNumber(read('memory.usage_in_bytes')) - inactiveFileBytes);
    }
    const [anonymous, file] = [of('rss'), of('cache')];
    if (anonymous === undefined || file === undefined) return undefined;
    return anonymous + Math.max(0, file - inactiveFileBytes);
  } catch {
    return undefined;
  }
}
