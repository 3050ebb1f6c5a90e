import { describe, expect, it } from 'vitest';
import { ownerOf } from '../../../src/runtimes/cri/owner.ts';

const REPLICA = { 'pod-template-hash': '7c5ddbdf54' };
const DAEMON = { 'controller-revision-hash': '6b8c' };
const JOB = { 'job-name': 'report', 'batch.kubernetes.io/job-name': 'report' };

describe('ownerOf', () => {
  it.each<[string, string, Readonly<Record<string, string>>, string]>([
    ['a pod by itself', 'web-x7k2p', {}, 'web-x7k2p'],
    ['a Deployment', 'web-7c5ddbdf54-x7k2p', REPLICA, 'web'],
    ['a Deployment, by a name of another kind', 'web-x7k2p', REPLICA, 'web-x7k2p'],
    ['a Deployment, without what was generated', 'web-7c5ddbdf54', REPLICA, 'web-7c5ddbdf54'],
    ['a DaemonSet', 'agent-x7k2p', DAEMON, 'agent'],
    ['a StatefulSet', 'db-0', { ...DAEMON, 'statefulset.kubernetes.io/pod-name': 'db-0' }, 'db-0'],
    ['a Job', 'report-x7k2p', JOB, 'report'],
    ['a CronJob', 'report-28912345-x7k2p', JOB, 'report'],
    ['nobody by a label of a prototype', 'a-x7k2p', Object.create(JOB), 'a-x7k2p'],
  ])('of %s', (_, name, labels, expected) => {
    expect(ownerOf('shop', name, labels)).toBe(`shop/${expected}`);
  });
});
