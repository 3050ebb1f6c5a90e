import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type ClientRequest, type IncomingMessage, request as plainRequest } from 'node:http';
import { type RequestOptions as SecureOptions, request as secureRequest } from 'node:https';
import { EvictdError } from '../core/errors.ts';

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

/** What a kubelet says of its node at one moment: of neither more is known than that it is there. */
export interface KubeletAnswer {
  readonly summary: { readonly node: object; readonly pods?: unknown };
  readonly pods: readonly unknown[];
}

/**
 * Asks a kubelet for its stats and its pods.
 *
 * @throws EvictdError EVICTD_KUBELET where it cannot be asked, refuses, or answers something else;
 * EVICTD_USAGE, before it is asked, for a file of the token or of certificates that is none
 */
export async function askKubelet(access: KubeletAccess): Promise<KubeletAnswer> {
  const { url } = access;
  const options = requestOptions(access);
  const [summary, list] = await Promise.all([
    ask(url, options, '/stats/summary'),
    ask(url, options, '/pods'),
  ]);
  const { items } = list as { readonly items?: unknown };
  const { node, pods } = summary as { readonly node?: unknown; readonly pods?: unknown };
  if (!isObject(node) || !(items === null || Array.isArray(items))) {
    throw kubeletRefused(url, 'answers, but not as a kubelet does');
  }
  return { summary: { node, pods }, pods: items ?? [] };
}

/** That a kubelet cannot be recorded. */
export function kubeletRefused(url: URL, why: string, cause?: unknown): EvictdError {
  const place = { source: '--kubelet', value: url.href };
  return new EvictdError('EVICTD_KUBELET', why, place, cause);
}

/** What the files of the flags say of a request. */
function requestOptions({ caFile, tokenFile, insecure }: KubeletAccess): SecureOptions {
  return {
    headers: tokenFile === undefined ? {} : { authorization: `Bearer ${tokenIn(tokenFile)}` },
    ...(caFile === undefined ? {} : { ca: certificatesIn(caFile) }),
    rejectUnauthorized: !insecure,
    agent: false,
  };
}

/** What the file says is shown nowhere. */
function tokenIn(file: string): string {
  const token = readFlagFile('--token-file', file).toString().trim();
  if (!/^[!-~]+$/.test(token)) throw unusable('--token-file', file, 'holds no token');
  return token;
}

/** Node takes what is no certificate for none at all, and then trusts nobody. */
function certificatesIn(file: string): Buffer {
  const bytes = readFlagFile('--ca-file', file);
  try {
    if (bytes.includes('-----BEGIN ')) new X509Certificate(bytes);
    else throw new Error('no PEM');
  } catch (error) {
    throw unusable('--ca-file', file, 'holds no certificate in PEM', error);
  }
  return bytes;
}

function readFlagFile(flag: string, file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why = code === 'ENOENT' ? 'no such file' : `cannot be read: ${code ?? String(error)}`;
    throw unusable(flag, file, why, error);
  }
}

function unusable(source: string, value: string, why: string, cause?: unknown): EvictdError {
  return new EvictdError('EVICTD_USAGE', why, { source, value }, cause);
}

function ask(url: URL, given: SecureOptions, path: string): Promise<object> {
  const isSocket = url.protocol === 'unix:';
  const target = isSocket ? url : new URL(`${url.pathname.replace(/\/$/, '')}${path}`, url);
  return new Promise((resolve, reject) => {
    const fail = (cause: unknown): void => {
      const why = cause instanceof Error ? cause.message : String(cause);
      reject(kubeletRefused(target, why, cause));
    };
    try {
      const request = target.protocol === 'https:' ? secureRequest : plainRequest;
      const signal = AbortSignal.timeout(ANSWER_LIMIT_MS);
      const options = { ...given, signal };
      const listen = (response: IncomingMessage): void => {
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
      };
      const socketPath = decodeURIComponent(url.pathname);
      const asked: ClientRequest = isSocket
        ? plainRequest({ ...options, socketPath, path }, listen)
        : request(target, options, listen);
      asked.on('error', (error) =>
        fail(signal.aborted ? new Error(`no answer within ${ANSWER_LIMIT_MS / 1000} s`) : error),
      );
      asked.end();
    } catch (error) {
      fail(error);
    }
  });
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
