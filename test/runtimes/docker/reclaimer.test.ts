import { createServer } from 'node:http';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { dockerReclaimer } from '../../../src/runtimes/docker/reclaimer.ts';
import { privateDirectory } from '../../kernel/support/daemon.ts';

/** A status with a message, or a value with 200. */
type Answer = readonly [number, string] | object;

const SEVERAL: Answer = [409, 'conflict: image is referenced in multiple repositories'];
const USED: Answer = [409, 'conflict: container 1 is using its referenced image'];

const IMAGE = {
  id: 'sha256:aa',
  names: ['host:5000/app:1', 'app:2', 'app:3'],
  sizeBytes: 1,
  pinned: undefined,
  usedBy: [],
};

/** A reclaimer of an engine that answers so by method and path, 200 to all else; says what it was asked for. */
async function reclaimerOf(answers: Readonly<Record<string, Answer>>) {
  const socketPath = path.join(privateDirectory(), 'd.sock');
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://engine');
    const what = `${request.method} ${url.pathname}`;
    const { repo = '', tag = '' } = Object.fromEntries(url.searchParams);
    asked.push(`${what}${repo && ` ${repo} ${tag}`}`);
    const answer = answers[what] ?? [];
    const [status, message] = Array.isArray(answer) && answer.length === 2 ? answer : [200, ''];
    response.statusCode = status;
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(status === 200 ? answer : { message }));
  });
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { reclaimer: dockerReclaimer(socketPath), asked };
}

const LISTING = 'GET /containers/json';
const WHOLE = 'DELETE /images/sha256:aa';

describe('dockerReclaimer: an image of several names', () => {
  it('goes name by name, where nobody uses it', async () => {
    const { reclaimer, asked } = await reclaimerOf({ [WHOLE]: SEVERAL });
    expect(await reclaimer.removeImage(IMAGE)).toEqual({ kind: 'removed' });
    expect(asked).toEqual([
      WHOLE,
      LISTING,
      'DELETE /images/host:5000/app:1',
      'DELETE /images/app:2',
      'DELETE /images/app:3',
    ]);
  });

  it('keeps all of them where somebody has come to use it since', async () => {
    const { reclaimer, asked } = await reclaimerOf({
      [WHOLE]: SEVERAL,
      [LISTING]: [{ Id: 'c1', ImageID: 'aa' }],
    });
    expect(await reclaimer.removeImage(IMAGE)).toEqual({
      kind: 'inUse',
      detail: 'used by container c1',
    });
    expect(asked).toEqual([WHOLE, LISTING]);
  });

  it('has those back that went before the last one was refused', async () => {
    const { reclaimer, asked } = await reclaimerOf({
      [WHOLE]: SEVERAL,
      'DELETE /images/app:3': USED,
    });
    expect(await reclaimer.removeImage(IMAGE)).toMatchObject({ kind: 'inUse' });
    expect(asked.slice(-2)).toEqual([
      'POST /images/sha256:aa/tag host:5000/app 1',
      'POST /images/sha256:aa/tag app 2',
    ]);
  });

  it('says which could not be put back', async () => {
    const { reclaimer } = await reclaimerOf({
      [WHOLE]: SEVERAL,
      'DELETE /images/app:3': USED,
      'POST /images/sha256:aa/tag': [500, 'no'],
    });
    expect(await reclaimer.removeImage(IMAGE)).toMatchObject({
      kind: 'failed',
      detail: expect.stringMatching(/could not be put back: host:5000\/app:1, app:2$/),
    });
  });

  it('keeps all where it cannot be told who uses it', async () => {
    const { reclaimer, asked } = await reclaimerOf({
      [WHOLE]: SEVERAL,
      [LISTING]: [500, 'no'],
    });
    expect(await reclaimer.removeImage(IMAGE)).toMatchObject({ kind: 'failed', isAway: false });
    expect(asked).toEqual([WHOLE, LISTING]);
  });
});
