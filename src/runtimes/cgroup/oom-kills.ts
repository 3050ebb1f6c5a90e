import { statSync } from 'node:fs';
import { asPath, type BytePath, toText } from '../../kernel/byte-path.ts';
import { readControlFile } from '../../kernel/control-file.ts';
import { numberField } from '../../kernel/fields.ts';
import type { OomKillCount } from '../../ports/runtime.ts';
import { listPods, type PodPlaces } from './discovery.ts';
import { subtree } from './subtree.ts';

/**
 * The cgroups of each pod in which the OOM killer has ended somebody. The kernel counts a kill in
 * the victim's own cgroup alone (v1), so all below a pod are looked at. Lists the pods at once, and
 * reads each when its step comes; what vanishes meanwhile is left out.
 */
export function* oomKillsOf(places: PodPlaces): Generator<readonly OomKillCount[]> {
  for (const { name } of listPods(places).pods) {
    const counts: OomKillCount[] = [];
    for (const directory of subtree(`${places.directory}/${name}`)) {
      const count = readCount(directory);
      if (count !== undefined) counts.push({ podName: toText(name), ...count });
    }
    yield counts;
  }
}

/** Undefined where nobody was killed, and where it cannot be read. */
function readCount(directory: BytePath): Omit<OomKillCount, 'podName'> | undefined {
  try {
    const text = readControlFile(asPath(`${directory}/memory.oom_control`));
    const kills = numberField(text, 'oom_kill ') ?? 0;
    if (kills === 0) return undefined;
    // cgroupfs never gives an inode number twice: one that is made again counts from 0.
    const inode = statSync(asPath(directory), { bigint: true }).ino;
    return { cgroup: toText(directory), cgroupId: `${directory}@${inode}`, kills };
  } catch {
    return undefined;
  }
}
