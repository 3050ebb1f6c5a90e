import { parsePodManifest, readPodManifest } from '../config/pod-manifest.ts';
import { type Admission, admitPod } from '../core/admission.ts';
import { escapeControl } from '../core/errors.ts';
import { NODE_CONDITIONS, type NodeCondition } from '../core/signal.ts';
import { STATUS_VERSION, type StatusDocument } from '../surfaces/status.ts';
import { askStatus } from './status.ts';

/** The exit status where a pod may not start: an answer, not an error. */
export const REFUSED_EXIT_STATUS = 3;

/** A pod and whether it may start. */
export interface PodAdmission extends Admission {
  /** `namespace/name`. */
  readonly pod: string;
}

/**
 * `evictd admit`: whether pods may start on the node as it is.
 *
 * @param options.conditions asked once the pods are read
 * @returns the exit status: 0, or 3 where one may not
 * @throws EvictdError EVICTD_MANIFEST for pods that cannot be read, and what asking throws
 */
export async function admitCommand(options: {
  readonly file: string;
  readonly conditions: () => Promise<readonly NodeCondition[]>;
  readonly json: boolean;
}): Promise<number> {
  const pods = parsePodManifest(await readPodManifest(options.file), options.file);
  const conditions = await options.conditions();
  const answers = pods.map((pod): PodAdmission => {
    const { namespace, name } = pod.metadata;
    return { pod: `${namespace}/${name}`, ...admitPod(pod, conditions) };
  });
  process.stdout.write(
    options.json ? jsonOf(answers, conditions) : answers.map(admissionLine).join(''),
  );
  return answers.every(({ admit }) => admit) ? 0 : REFUSED_EXIT_STATUS;
}

/**
 * The node conditions that hold by the running daemon, sorted.
 *
 * @throws EvictdError EVICTD_NOT_RUNNING when nobody listens, EVICTD_UNREACHABLE when nobody answers
 */
export async function askConditions(socketPath: string): Promise<readonly NodeCondition[]> {
  return conditionsIn(await askStatus(socketPath));
}

/** The conditions that hold by a status, sorted. */
export function conditionsIn({
  conditions,
}: Pick<StatusDocument, 'conditions'>): readonly NodeCondition[] {
  const held = conditions.filter(({ status }) => status).map(({ type }) => type);
  return NODE_CONDITIONS.filter((condition) => held.includes(condition)).sort();
}

/** One line for a person, its message as the kubelet words it. */
export function admissionLine({ pod, admit, reason, message }: PodAdmission): string {
  const answer = admit ? 'admitted' : `refused: ${reason}: ${message}`;
  return `${escapeControl(`${pod}: ${answer}`)}\n`;
}

function jsonOf(pods: readonly PodAdmission[], conditions: readonly NodeCondition[]): string {
  const document = { apiVersion: STATUS_VERSION, kind: 'Admission', conditions, pods };
  return `${escapeControl(JSON.stringify(document))}\n`;
}
