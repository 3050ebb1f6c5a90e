/**
 * What brings a pod of Kubernetes back: of a Deployment, a DaemonSet or a Job another pod takes the place of one,
 * with a name of its own. Pure.
 *
 * @see Kubernetes, "Well-Known Labels", and the names that its controllers generate
 */

/** What is added to the name of what makes a pod. */
const GENERATED = /-[bcdfghjklmnpqrstvwxz2456789]{5}$/;

const REPLICA_HASH = 'pod-template-hash';
const ORDINAL = 'statefulset.kubernetes.io/pod-name';

/** Labels of pods whose names end with what was generated. */
const GENERATING: readonly string[] = [
  'controller-revision-hash',
  'job-name',
  'batch.kubernetes.io/job-name',
];

/** A run of a CronJob has its time in minutes since 1970 in its name. */
const CRON_RUN = /-[0-9]{8}$/;

/**
 * The same text for each pod of one controller, of a pod by itself its name.
 *
 * @param labels of the pod; text from outside, as the rest
 */
export function ownerOf(
  namespace: string,
  name: string,
  labels: Readonly<Record<string, string>>,
): string {
  return `${namespace}/${ownName(name, labels)}`;
}

function ownName(name: string, labels: Readonly<Record<string, string>>): string {
  if (Object.hasOwn(labels, ORDINAL)) return name;
  const base = name.replace(GENERATED, '');
  if (Object.hasOwn(labels, REPLICA_HASH)) {
    const hash = `-${labels[REPLICA_HASH]}`;
    return base !== name && base.endsWith(hash) ? base.slice(0, -hash.length) : name;
  }
  return GENERATING.some((label) => Object.hasOwn(labels, label))
    ? base.replace(CRON_RUN, '')
    : name;
}
