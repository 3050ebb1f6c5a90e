import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { logsBelow } from '../../../src/runtimes/cri/logs.ts';
import { privateDirectory } from '../../kernel/support/daemon.ts';

function makeLogs(...files: readonly string[]): string {
  const root = path.join(privateDirectory(), 'pods');
  for (const file of files) {
    mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
    writeFileSync(path.join(root, file), 'log');
  }
  return root;
}

describe('logsBelow', () => {
  it('removes a file and those rotated away from it, and no other', async () => {
    const root = makeLogs(
      'a_web_1/main/0.log',
      'a_web_1/main/0.log.20260101',
      'a_web_1/main/0.logs',
    );
    writeFileSync(path.join(root, 'a_web_1/main/1.log'), 'log');
    mkdirSync(path.join(root, 'a_web_1/main/0.log.d'));
    await logsBelow(root).remove(path.join(root, 'a_web_1/main/0.log'), []);
    expect(readdirSync(path.join(root, 'a_web_1/main')).sort()).toEqual([
      '0.log.d',
      '0.logs',
      '1.log',
    ]);
  });

  it.each<[string, string, readonly string[], readonly string[]]>([
    [
      'what only begins like it',
      'app',
      [],
      ['app.log', 'app.1.log', 'app.old', 'app.20260101-010203', 'app.2.gz', 'app.3.tmp'],
    ],
    [
      'the one that it shares with a later attempt',
      'app.log',
      ['app.log'],
      ['app.log', 'app.log.1'],
    ],
    ['another’s, that looks like a rotated one', 'app', ['app.1'], ['app.1', 'app.1.20260101']],
    ['one of the same name elsewhere does not count', 'app', ['../else/app'], []],
  ])('leaves %s', async (_, file, others, more) => {
    const root = makeLogs('a/app', ...more.map((name) => `a/${name}`));
    const isRotated = ['app.20260101-010203', 'app.2.gz', 'app.3.tmp'];
    const logPath = path.join(root, 'a', file);
    const paths = others.map((other) => path.join(root, 'a', other));
    await logsBelow(root).remove(logPath, paths);
    const left = [...(file === 'app' ? [] : ['app']), ...more];
    expect(readdirSync(path.join(root, 'a')).sort()).toEqual(
      left.filter((name) => !isRotated.includes(name)).sort(),
    );
  });

  it('takes a root that is a link', async () => {
    const root = makeLogs('a/0.log');
    const link = path.join(path.dirname(root), 'link');
    symlinkSync(root, link);
    await logsBelow(link).remove(path.join(link, 'a/0.log'), []);
    await logsBelow(link).tidy(path.join(link, 'a/0.log'));
    expect(readdirSync(root)).toEqual([]);
  });

  it('removes the directories that are empty, up to the root', async () => {
    const root = makeLogs('a_web_1/main/0.log', 'a_web_1/other/0.log', 'b_db_2/main/0.log');
    const logs = logsBelow(root);
    for (const file of ['a_web_1/main/0.log', 'b_db_2/main/0.log']) {
      await logs.remove(path.join(root, file), []);
      await logs.tidy(path.join(root, file));
    }
    expect(readdirSync(root)).toEqual(['a_web_1']);
    expect(readdirSync(path.join(root, 'a_web_1'))).toEqual(['other']);
    await logs.tidy(path.join(root, 'a_web_1/other/0.log'));
    expect(existsSync(path.join(root, 'a_web_1/other/0.log'))).toBe(true);
  });

  it.each(['../outside.log', '/etc/hostname', 'a/../../outside.log', '', '.', 'a\0b'])(
    'leaves %j alone, which is not below it',
    async (file) => {
      const root = makeLogs('a/0.log');
      const outside = path.join(path.dirname(root), 'outside.log');
      writeFileSync(outside, 'mine');
      await logsBelow(root).remove(file.startsWith('/') ? file : `${root}/${file}`, []);
      await logsBelow(root).tidy(file.startsWith('/') ? file : `${root}/${file}`);
      expect(existsSync(outside)).toBe(true);
      expect(existsSync(path.join(root, 'a/0.log'))).toBe(true);
    },
  );

  it('follows no link, to a directory or to a file', async () => {
    const root = makeLogs('a/0.log');
    const outside = path.join(path.dirname(root), 'outside');
    mkdirSync(outside);
    writeFileSync(path.join(outside, '0.log'), 'mine');
    symlinkSync(outside, path.join(root, 'linked'));
    symlinkSync(path.join(outside, '0.log'), path.join(root, 'a/1.log'));
    const logs = logsBelow(root);
    await expect(logs.remove(path.join(root, 'linked/0.log'), [])).rejects.toThrow(/ENOTDIR|ELOOP/);
    await logs.remove(path.join(root, 'a/1.log'), []);
    expect(readdirSync(outside)).toEqual(['0.log']);
  });

  it('is content where nothing is there any more', async () => {
    const root = makeLogs('a/0.log');
    const logs = logsBelow(root);
    await logs.remove(path.join(root, 'b/main/0.log'), []);
    await logs.tidy(path.join(root, 'b/main/0.log'));
    await logsBelow('/nowhere').remove('/nowhere/a/0.log', []);
  });
});
