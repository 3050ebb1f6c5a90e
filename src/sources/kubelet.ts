import { readFileSync } from 'node:fs';
import { request as plainRequest } from 'node:http';
import { request as secureRequest } from 'node:https';
import { EvictdError } from '../core/errors.ts';
import type { KubernetesPod, Summary } from '../core/kubernetes.ts';

/** How long a kubelet may take for an answer, ms. */
const ANSWER_LIMIT_MS = 10_000;
/** The largest answer that is read, bytes: pods with all their fields are some 10 KiB each. */
const ANSWER_LIMIT_BYTES = 64 * 2 ** 20;

/** How a kubelet is reached. */
export interface KubeletAccess {
  readonly url: URL;
  /** Read anew for each request: tokens are short-lived. */
  readonly tokenFile: string | undefined;
  readonly caFile: string | undefined;
  /** Whether any certificate is taken. */
  readonly insecure: boolean;
}

/** What a kubelet says of its node at one moment. */
export interface KubeletAnswer {
  readonly summary: Summary;
  readonly pods: readonly PodWithPhase[];
}

/** A pod, and how far it is. */
export type PodWithPhase = KubernetesPod & {
  readonly status?: { readonly phase?: string | null } | null;
};

/**
 * Asks a kubelet for its stats and its pods.
 *
 * @throws EvictdError EVICTD_KUBELET where it cannot be asked, refuses, or answers something else
 */
export async function askKubelet(access: KubeletAccess): Promise<KubeletAnswer> {
  const [summary, list] = await Promise.all([ask(access, '/stats/summary'), ask(access, '/pods')]);
  const { items } = list as { readonly items?: unknown };
  if (!isObject((summary as Summary).node) || !(items === null || Array.isArray(items))) {
    throw refused(access.url, 'answers, but not as a kubelet does');
  }
  return { summary: summary as Summary, pods: (items ?? []) as readonly PodWithPhase[] };
}

function ask(access: KubeletAccess, path: string): Promise<object> {
  const { url, caFile, tokenFile, insecure } = access;
  const target = new URL(`${url.pathname.replace(/\/$/, '')}${path}`, url);
  return new Promise((resolve, reject) => {
    const fail = (cause: unknown): void => {
      const why = cause instanceof Error ? cause.message : String(cause);
      reject(refused(target, why, cause));
    };
    try {
      const headers = tokenFile === undefined ? {} : authorization(tokenFile);
      const ca = caFile === undefined ? {} : { ca: readFileSync(caFile) };
      const request = target.protocol === 'https:' ? secureRequest : plainRequest;
      const signal = AbortSignal.timeout(ANSWER_LIMIT_MS);
      const options = { headers, ...ca, rejectUnauthorized: !insecure, agent: false, signal };
      const asked = request(target, options, (response) => {
        const parts: Buffer[] = [];
        let size = 0;
        response.on('data', (part: Buffer) => {
          size += part.length;
          if (size > ANSWER_LIMIT_BYTES) asked.destroy(new Error('the answer is too long'));
          else parts.push(part);
        });
        response.on('end', () => {
          if (response.statusCode !== 200) {
            fail(new Error(`HTTP status ${response.statusCode}`));
            return;
          }
          const answer = parse(Buffer.concat(parts).toString());
          if (answer === undefined) fail(new Error('answers, but not as a kubelet does'));
          else resolve(answer);
        });
        response.on('error', fail);
      });
      asked.on('error', (error) =>
        fail(signal.aborted ? new Error(`no answer within ${ANSWER_LIMIT_MS / 1000} s`) : error),
      );
      asked.end();
    } catch (error) {
      fail(error);
    }
  });
}

function authorization(tokenFile: string): Readonly<Record<string, string>> {
  return { authorization: `Bearer ${readFileSync(tokenFile, 'utf8').trim()}` };
}

function parse(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function refused(url: URL, why: string, cause?: unknown): EvictdError {
  const place = { source: '--kubelet', value: url.href };
  return new EvictdError('EVICTD_KUBELET', why, place, cause);
}
