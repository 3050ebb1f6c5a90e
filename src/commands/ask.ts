/** What the running daemon answers on its socket. */
import { request } from 'node:http';
import type { EvictdError } from '../core/errors.ts';
import { refusedWith, tooLong, unanswered } from './unanswered.ts';

/** How long the daemon may take to answer, ms. */
const ANSWER_LIMIT_MS = 5000;
/** The largest answer that is read, bytes: 20,000 pods fit. */
const ANSWER_LIMIT_BYTES = 32 * 2 ** 20;

/**
 * Asks for a document.
 *
 * @throws EvictdError EVICTD_NOT_RUNNING when nobody listens, EVICTD_UNREACHABLE when nobody answers
 */
export function askDaemon(socketPath: string, path: string): Promise<string> {
  const fail = (cause: unknown): EvictdError => unanswered(socketPath, cause);
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath, path, timeout: ANSWER_LIMIT_MS }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
        if (text.length > ANSWER_LIMIT_BYTES) asked.destroy(tooLong(socketPath));
      });
      response.on('end', () => {
        if (response.statusCode === 200) resolve(text);
        else reject(refusedWith(socketPath, response.statusCode, text));
      });
      response.on('error', (error) => reject(fail(error)));
    });
    asked.on('timeout', () => asked.destroy(new Error('no answer in time')));
    asked.on('error', (error) => reject(fail(error)));
    asked.end();
  });
}
