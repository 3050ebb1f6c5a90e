/** What images are called that containers name by their ids, as a kubelet has them do. */
import { firstValueFrom, from, race, type SchedulerLike, timer } from 'rxjs';
import { againMs, SLOW_MS } from '../shared/questions.ts';
import type { CriClient } from './client.ts';

/** How many images are looked at. */
const MOST_IMAGES = 20_000;

const ID = /^(?:sha256:)?[0-9a-f]{64}$/;

interface Image {
  readonly id: string;
  readonly repoTags: readonly string[];
  readonly repoDigests: readonly string[];
}

/** A container's id and what it names its image by. */
export type Use = readonly [containerId: string, image: string];

export interface ImageNames {
  /**
   * Told of all containers: asks the runtime where one is new that names its image by an id, and waits for the
   * answer unless it is late. Never rejects.
   */
  readonly learn: (uses: readonly Use[]) => Promise<void>;
  /**
   * What a container's image is called, as long as the container is there and whoever takes the name meanwhile: the
   * name that it was asked for by, or all its tags, or its digests where it has none. Undefined for what the
   * runtime has not told yet, or has no name for.
   */
  readonly namesOf: (containerId: string) => readonly string[] | undefined;
}

export function imageNames(client: CriClient, scheduler: SchedulerLike): ImageNames {
  const known = new Map<string, readonly string[] | undefined>();
  let asking: Promise<void> | undefined;
  let failures = 0;
  let dueAtMs = 0;
  const ask = async (open: readonly Use[]): Promise<void> => {
    const { images } = await client.call<{ readonly images: readonly Image[] }>('ListImages');
    const names = new Map(
      images.slice(0, MOST_IMAGES).map((image) => [bare(image.id), namesIn(image)]),
    );
    // Also what has no name: it is not asked about again.
    for (const [id, image] of open) known.set(id, names.get(bare(image)));
    failures = 0;
  };
  return {
    learn: async (uses) => {
      const ids = new Set(uses.map(([id]) => id));
      for (const id of known.keys()) if (!ids.has(id)) known.delete(id);
      for (const [id, image] of uses) if (!known.has(id) && !ID.test(image)) known.set(id, [image]);
      const open = uses.filter(([id]) => !known.has(id));
      if (open.length === 0 || asking !== undefined || scheduler.now() < dueAtMs) return;
      const asked = ask(open)
        .catch(() => {
          dueAtMs = scheduler.now() + againMs(failures);
          failures += 1;
        })
        .finally(() => {
          asking = undefined;
        });
      asking = asked;
      await firstValueFrom(race(from(asked), timer(SLOW_MS, scheduler)));
    },
    namesOf: (containerId) => known.get(containerId),
  };
}

/** What it is called; undefined where it has no name. */
function namesIn({ repoTags, repoDigests }: Image): readonly string[] | undefined {
  const names = repoTags.length > 0 ? repoTags : repoDigests;
  return names.length > 0 ? names : undefined;
}

/** Runtimes say an id with its algorithm, or without. */
function bare(id: string): string {
  return id.replace(/^sha256:/, '');
}
