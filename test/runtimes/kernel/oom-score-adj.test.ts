import { describe, expect, it } from 'vitest';
import { OOM_SCORE_ADJ_NEVER, oomScoreAdj } from '../../../src/kernel/oom-score-adj.ts';
import { fixture } from '../support.ts';

/** As this kernel writes it: a negative one cannot be set here without CAP_SYS_RESOURCE. */
const proc = fixture('proc', 'oom-score-adj');

describe('oomScoreAdj', () => {
  it.each([
    [4001, OOM_SCORE_ADJ_NEVER],
    [4002, -999],
    [4003, 0],
    [4004, 1000],
  ])('of the process %i is %i', (pid, adjustment) => {
    expect(oomScoreAdj(pid, proc)).toBe(adjustment);
  });

  it('of a real process is what it says', () => {
    expect(oomScoreAdj(process.pid)).toEqual(expect.any(Number));
  });

  it('of a process that is gone, or of another PID namespace, is unknown', () => {
    expect(oomScoreAdj(4005, proc)).toBeUndefined();
    expect(oomScoreAdj(2 ** 22)).toBeUndefined();
    expect(oomScoreAdj(0, proc)).toBeUndefined();
  });

  it('that cannot be read is not passed off as unknown', () => {
    expect(() => oomScoreAdj(1, `${proc}/4001/oom_score_adj`)).toThrow(
      expect.objectContaining({ code: 'ENOTDIR' }),
    );
  });
});
