import { describe, expect, it } from 'vitest';
import { statField } from '../../../src/kernel/process-stat.ts';

describe('statField', () => {
  it('is what procfs says of this process', () => {
    expect(statField(process.pid, 'parent')).toBe(String(process.ppid));
    expect(Number(statField(process.pid, 'startTime'))).toBeGreaterThan(0);
    expect(statField(process.pid, 'startTime')).toBe(statField(process.pid, 'startTime'));
  });

  it('is none of a process that is gone', () => {
    expect(statField(2 ** 22, 'parent')).toBeUndefined();
  });
});
