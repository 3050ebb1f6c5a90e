import { constants } from 'node:os';
import { describe, expect, test } from 'vitest';

import { runProgram } from './support.ts';

const NORMAL = { priority: 0, policy: 0 };
const ROUND_ROBIN = { priority: 1, policy: 2 };

describe('setRoundRobin', () => {
  test('puts the calling thread under SCHED_RR, and no child', async () => {
    expect(JSON.parse(await runProgram('round-robin'))).toEqual({
      before: NORMAL,
      after: ROUND_ROBIN,
      child: NORMAL,
      refused: null,
    });
  });

  test('EPERM without CAP_SYS_NICE, and nothing changed', async () => {
    const command = [
      'setpriv',
      '--bounding-set=-sys_nice',
      '--inh-caps=-sys_nice',
      process.execPath,
    ];
    expect(JSON.parse(await runProgram('round-robin', [], { command }))).toEqual({
      before: NORMAL,
      after: NORMAL,
      child: NORMAL,
      refused: { code: 'EPERM', errno: -constants.errno.EPERM, syscall: 'sched_setscheduler' },
    });
  });
});
