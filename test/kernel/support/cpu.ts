import { readdirSync, readFileSync } from 'node:fs';

/** The CPU time of all threads of a process so far, ms. Source: proc(5), `schedstat`, field 1. */
export function cpuMs(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  const times = threads.map((thread) => {
    const text = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8');
    return Number(text.split(' ')[0]) / 1e6;
  });
  return times.reduce((sum, ms) => sum + ms, 0);
}

/** The resident set of a process, bytes. */
export function residentBytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}
