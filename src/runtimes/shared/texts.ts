/**
 * Texts that a runtime tells of pods, as far as they are kept. Whoever makes a pod chooses them, and all pods of
 * a node are kept: what is longer than anybody reads is cut.
 */

/** Of a name, a namespace or an image: more than Kubernetes and Docker allow. */
export const MOST_NAME = 512;

/** Of a label's value: more than any rule or label of evictd's looks at. */
const MOST_VALUE = 2048;

/** How many labels of a pod or a container are kept; evictd's own are, however many others there are. */
export const MOST_LABELS = 1000;

const OWN_LABEL = 'evictd.';

/** A name, cut with `…` where it is too long. */
export function keptName(text: string): string {
  return text.length <= MOST_NAME ? text : `${copied(text, MOST_NAME - 1)}…`;
}

/** Labels or annotations: long values are cut, long keys and those beyond the limit left out. */
export function keptLabels(
  labels: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const all = Object.entries(labels);
  const isOwn = ([key]: readonly [string, string]): boolean => key.startsWith(OWN_LABEL);
  const kept = all.length <= MOST_LABELS ? all : [...all.filter(isOwn), ...all];
  return Object.fromEntries(
    kept.slice(0, MOST_LABELS).flatMap(([key, value]) => {
      if (key.length > MOST_VALUE) return [];
      return [[key, value.length <= MOST_VALUE ? value : copied(value, MOST_VALUE)]];
    }),
  );
}

/** The beginning as a text of its own: a slice would hold on to the whole. */
function copied(text: string, length: number): string {
  return Buffer.from(text.slice(0, length), 'utf16le').toString('utf16le');
}
