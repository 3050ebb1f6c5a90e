/** What images are called that containers name by their ids, as a kubelet has them do. */
import type { CriClient } from './client.ts';

/** How many images are looked at. */
const MOST_IMAGES = 20_000;

const ID = /^(?:sha256:)?[0-9a-f]{64}$/;

interface Image {
  readonly id: string;
  readonly repoTags: readonly string[];
  readonly repoDigests: readonly string[];
}

export interface ImageNames {
  /** The first tag or digest of an image, or what was given where it is no id, or not known. */
  readonly nameOf: (image: string) => string;
  /** Told of all that containers name: asks the runtime, once for each that is new, and waits for nothing. */
  readonly learn: (images: readonly string[]) => void;
}

export function imageNames(client: CriClient): ImageNames {
  let known = new Map<string, string>();
  let isAsking = false;
  const ask = async (ids: readonly string[]): Promise<void> => {
    const { images } = await client.call<{ readonly images: readonly Image[] }>('ListImages');
    const names = new Map(
      images
        .slice(0, MOST_IMAGES)
        .map(({ id, repoTags, repoDigests }) => [bare(id), repoTags[0] ?? repoDigests[0] ?? id]),
    );
    // What it does not know of is called by its id: it is not asked for again.
    known = new Map(ids.map((id) => [id, names.get(bare(id)) ?? id]));
  };
  return {
    nameOf: (image) => known.get(image) ?? image,
    learn: (images) => {
      const ids = [...new Set(images.filter((image) => ID.test(image)))];
      if (isAsking || ids.every((id) => known.has(id))) return;
      isAsking = true;
      ask(ids)
        // Asked again at the next listing.
        .catch(() => undefined)
        .finally(() => {
          isAsking = false;
        });
    },
  };
}

/** Runtimes say an id with its algorithm, or without. */
function bare(id: string): string {
  return id.replace(/^sha256:/, '');
}
