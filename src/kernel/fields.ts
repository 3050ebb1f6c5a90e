/**
 * The number after `name` in a "name number" file such as `memory.stat` or `/proc/meminfo`;
 * undefined when the file has no such line. Limits beyond 2^53 − 1 come out as that.
 */
export function numberField(text: string, name: string): number | undefined {
  const start = text.startsWith(name) ? 0 : text.indexOf(`\n${name}`) + 1;
  if (start === 0 && !text.startsWith(name)) return undefined;
  const end = text.indexOf('\n', start);
  const words = text.slice(start + name.length, end === -1 ? undefined : end);
  const value = Number.parseInt(words, 10);
  return Number.isNaN(value) ? undefined : Math.min(value, Number.MAX_SAFE_INTEGER);
}

/** What a file that is one whole number says. Throws an Error with the text when it is none. */
export function wholeNumber(text: string): number {
  const value = Number(text.trim());
  if (!Number.isFinite(value) || text.trim() === '')
    throw new Error(`not a number: ${JSON.stringify(text.slice(0, 40))}`);
  return Math.min(value, Number.MAX_SAFE_INTEGER);
}

/** The process ids in a `cgroup.procs`; 0 stands for one outside evictd's PID namespace. */
export function pidList(text: string): readonly number[] {
  if (text === '') return [];
  const pids: number[] = [];
  for (const line of text.split('\n')) if (line !== '') pids.push(Number(line));
  return pids;
}
