import { rmdirSync } from 'node:fs';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { watchGroups } from '../../../src/kernel/new-groups.ts';
import { makeCgroup } from '../../support/cgroup.ts';
import { describeWith } from '../../support/skip.ts';
import { until } from '../../support/wait.ts';

function made() {
  const cgroup = makeCgroup();
  onTestFinished(() => cgroup.remove());
  return cgroup;
}

describeWith({ root: true, cgroupV1: true }, 'groups that are made', () => {
  it('are told of in the directories that are followed, and in no others', async () => {
    const [first, second] = [made(), made()];
    const groups = watchGroups();
    onTestFinished(() => groups.close());
    let heard = 0;
    groups.changes$.subscribe(() => {
      heard += 1;
    });
    const isHeardOnce = async (act: () => unknown) => {
      heard = 0;
      act();
      await until('it is heard', () => heard > 0, { limitMs: 5000 });
      expect(heard).toBe(1);
    };
    groups.follow([first.path, path.join(first.path, 'absent')]);
    second.child('unheard');
    await isHeardOnce(() => first.child('a'));
    await isHeardOnce(() => rmdirSync(path.join(first.path, 'a')));

    groups.follow([second.path]);
    first.child('unheard');
    await isHeardOnce(() => second.child('b'));
  });

  it('in one that was removed and made again, once that is named again', async () => {
    const parent = made();
    const groups = watchGroups();
    onTestFinished(() => groups.close());
    let heard = 0;
    groups.changes$.subscribe(() => {
      heard += 1;
    });
    const pods = parent.child('pods');
    groups.follow([pods.path]);
    rmdirSync(pods.path);
    const again = parent.child('pods');
    groups.follow([again.path]);
    again.child('a');
    await until('it is heard', () => heard > 0, { limitMs: 4000 });
  });
});
