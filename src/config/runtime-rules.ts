/**
 * What the configuration says of pods that a runtime names: rules over names, labels and images. Pure.
 *
 * - `pod` is a glob over `namespace/name`, or over the one name that a pod has; `image` one over the names of
 *   what its containers are made of, any of them; `labels` has a glob for the value of each label that must
 *   be there.
 * - In a glob `*` stands for any characters, of a `pod` for any but `/`, and `?` for one of them.
 * - Of several rules that match a pod the first one counts.
 */
import { matchesGlob } from './pod-globs.ts';

/** A rule; what it leaves out matches anything. */
export interface RuntimeRule {
  readonly pod: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly image: string | undefined;
  readonly priority: number | undefined;
  /** In nano-bytes. */
  readonly memoryRequestNano: bigint | undefined;
  readonly gracePeriodSeconds: number | undefined;
  readonly protected: boolean;
}

/** A pod as far as rules look at it. All texts are from outside. */
export interface NamedPod {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly images: readonly string[];
}

/** No rule is about longer texts: matching takes the product of the lengths. */
const MAX_MATCHED = 1024;

/** The rule of a pod; undefined where none is about it. */
export function runtimeRuleOf(
  rules: readonly RuntimeRule[],
  pod: NamedPod,
): RuntimeRule | undefined {
  return rules.find((rule) => matches(rule, pod));
}

function matches(rule: RuntimeRule, { name, labels, images }: NamedPod): boolean {
  return (
    (rule.pod === undefined || matchesName(rule.pod, name)) &&
    (rule.image === undefined || images.some((image) => matchesText(rule.image ?? '', image))) &&
    Object.entries(rule.labels).every(
      ([label, glob]) => Object.hasOwn(labels, label) && matchesText(glob, labels[label] ?? ''),
    )
  );
}

/** Part by part: a wildcard stays in its own. */
function matchesName(glob: string, name: string): boolean {
  const [patterns, parts] = [glob.split('/'), name.split('/')];
  return (
    patterns.length === parts.length &&
    patterns.every((pattern, index) => matchesText(pattern, parts[index] ?? ''))
  );
}

function matchesText(glob: string, text: string): boolean {
  return text.length <= MAX_MATCHED && matchesGlob(glob, text);
}
