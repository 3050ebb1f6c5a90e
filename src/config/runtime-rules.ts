/**
 * The rules of `pods` that match what a runtime names, among all rules, in their order. Pure.
 *
 * - `namespace`, `name` and `image` are globs over those texts; of several containers, and of several names of one
 *   image, any will do. A rule that may be about an image of which the name is not known protects the pod.
 * - `labels` has a glob for the value of each label that must be there, all of them on the pod or on one container
 *   of it, with the pod's own.
 * - In a glob `*` stands for any characters and `?` for one.
 * - A rule about a cgroup matches a pod that has it.
 * - Of several rules that match a pod the first one counts.
 */
import { compilePodRules, isGlob, matchesGlob } from './pod-globs.ts';
import { type CgroupRule, isCgroupRule, type PodRule, type RuntimeRule } from './settings.ts';

/** A pod as far as rules look at it. All texts are from outside. */
export interface NamedPod {
  readonly namespace: string | undefined;
  /** Without the namespace. */
  readonly name: string;
  /** Its cgroups relative to the node's. */
  readonly paths: readonly string[];
  /** Sets of labels, of which one must have all. */
  readonly labels: readonly Readonly<Record<string, string>>[];
  /** Undefined for each that is not known. */
  readonly images: readonly (string | undefined)[];
}

/** No rule is about longer texts: matching takes the product of the lengths. */
const MAX_MATCHED = 1024;

/** The rule of a pod that a runtime names; undefined where none is about it. */
export type NamedPodMatcher = (pod: NamedPod) => PodRule | undefined;

/** The rules as one question. */
export function compileRuntimeRules(rules: readonly PodRule[]): NamedPodMatcher {
  const tests = rules.map((rule) => ({
    rule,
    matches: isCgroupRule(rule) ? cgroupTest(rule) : (pod: NamedPod) => matches(rule, pod),
  }));
  return (pod) => {
    const found = tests.find((test) => test.matches(pod));
    if (found === undefined) return undefined;
    return isGuess(found.rule, pod) ? { ...found.rule, protected: true } : found.rule;
  };
}

function cgroupTest(rule: CgroupRule): (pod: NamedPod) => boolean {
  const match = compilePodRules([rule]);
  return ({ paths }) => paths.some((path) => match(path) !== undefined);
}

function matches(rule: RuntimeRule, pod: NamedPod): boolean {
  return (
    isUnder(rule.namespace, pod.namespace) &&
    isUnder(rule.name, pod.name) &&
    (hasImage(rule, pod) || isGuess(rule, pod)) &&
    hasLabels(Object.entries(rule.labels), pod.labels)
  );
}

function hasImage({ image: glob }: RuntimeRule, { images }: NamedPod): boolean {
  return glob === undefined || images.some((image) => isUnder(glob, image));
}

/** Whether what is not known of a pod's images decides. */
function isGuess(rule: PodRule, pod: NamedPod): boolean {
  return !isCgroupRule(rule) && !hasImage(rule, pod) && pod.images.includes(undefined);
}

function hasLabels(
  wanted: readonly (readonly [string, string])[],
  sets: NamedPod['labels'],
): boolean {
  return (
    wanted.length === 0 ||
    sets.some((labels) =>
      wanted.every(([label, glob]) => Object.hasOwn(labels, label) && isUnder(glob, labels[label])),
    )
  );
}

/** Whether a text is what a glob stands for; without a glob any is, and none too. */
function isUnder(glob: string | undefined, text: string | undefined): boolean {
  if (glob === undefined) return true;
  if (text === undefined || text.length > MAX_MATCHED) return false;
  return isGlob(glob) ? matchesGlob(glob, text) : glob === text;
}
