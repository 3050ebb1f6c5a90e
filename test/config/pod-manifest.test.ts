import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  MAX_MANIFEST_BYTES,
  parsePodManifest,
  readPodManifest,
} from '../../src/config/pod-manifest.ts';
import { describeError, EvictdError } from '../../src/core/errors.ts';

const FILE = 'pods.yaml';

const parse = (text: string) => parsePodManifest(text, FILE);
const names = (text: string) =>
  parse(text).map(({ metadata: { namespace, name } }) => `${namespace}/${name}`);

function refusal(text: string): string {
  try {
    parse(text);
  } catch (error) {
    if (error instanceof EvictdError && error.code === 'EVICTD_MANIFEST') {
      return describeError(error);
    }
    throw error;
  }
  throw new Error(`not refused: ${text}`);
}

const pod = (name: string, spec = '{}') => `{kind: Pod, metadata: {name: ${name}}, spec: ${spec}}`;

describe('parsePodManifest', () => {
  it.each<[string, string, readonly string[]]>([
    ['a pod', pod('a'), ['default/a']],
    ['JSON', '{"kind":"Pod","metadata":{"name":"a","namespace":"n"},"spec":{}}', ['n/a']],
    ['a List', `{kind: List, items: [${pod('a')}, ${pod('b')}]}`, ['default/a', 'default/b']],
    [
      'a PodList, whose pods have no kind',
      '{kind: PodList, items: [{metadata: {name: a}, spec: {}}]}',
      ['default/a'],
    ],
    ['a bare list', `[${pod('a')}, ${pod('b')}]`, ['default/a', 'default/b']],
    [
      'documents',
      `---\n${pod('a')}\n---\n---\n{kind: List, items: [${pod('b')}]}\n---\n`,
      ['default/a', 'default/b'],
    ],
    ['a namespace of null', '{metadata: {name: a, namespace: null}, spec: {}}', ['default/a']],
  ])('reads %s', (_, text, expected) => {
    expect(names(text)).toEqual(expected);
  });

  it('keeps what the policy looks at, exactly', () => {
    const [read] = parse(`
kind: Pod
apiVersion: v1
metadata: {name: a, uid: u, annotations: {k: v}, labels: {app: x}}
spec:
  priority: -5
  terminationGracePeriodSeconds: 7
  overhead: {cpu: 250m}
  unknown: [1, {2: 3}]
  containers:
  - name: main
    resources: {requests: {memory: 12345678901234567890, cpu: 0.1}, limits: {memory: 1e3}}
  initContainers: [{name: i, restartPolicy: Always}]
  volumes:
  - {name: e, emptyDir: {medium: Memory, sizeLimit: 1Gi}}
  - {name: h, hostPath: {path: /x}}
  - {name: s, emptyDir: {}}
  tolerations: [{key: k, operator: Exists, effect: NoSchedule}]
status: {qosClass: Burstable}
`);
    expect(JSON.parse(JSON.stringify(read))).toEqual({
      metadata: { name: 'a', namespace: 'default', uid: 'u', annotations: { k: 'v' } },
      spec: {
        priority: -5,
        terminationGracePeriodSeconds: 7,
        overhead: { cpu: '250m' },
        containers: [
          {
            name: 'main',
            resources: {
              requests: { memory: '12345678901234567890', cpu: '0.1' },
              limits: { memory: '1000' },
            },
          },
        ],
        initContainers: [{ name: 'i', restartPolicy: 'Always' }],
        volumes: [
          { name: 'e', emptyDir: { medium: 'Memory', sizeLimit: '1Gi' } },
          { name: 'h', hostPath: {} },
          { name: 's', emptyDir: {} },
        ],
        tolerations: [{ key: 'k', operator: 'Exists', effect: 'NoSchedule' }],
      },
      status: { qosClass: 'Burstable' },
    });
  });

  it.each<[string, number | undefined]>([
    ['{priorityClassName: system-node-critical}', 2_000_001_000],
    ['{priorityClassName: system-cluster-critical}', 2_000_000_000],
    ['{priorityClassName: system-node-critical, priority: 3}', 3],
    ['{priorityClassName: mine}', undefined],
    ['{priorityClassName: constructor}', undefined],
    ['{priority: 2147483647}', 2_147_483_647],
  ])('of %s the priority is %s', (spec, priority) => {
    expect(parse(pod('a', spec))[0]?.spec.priority).toBe(priority);
  });

  it.each<[string, string]>([
    ['', 'pods.yaml: holds no pod'],
    ['{kind: List}', 'pods.yaml: holds no pod'],
    ['{kind: List, items: []}', 'pods.yaml: holds no pod'],
    ['text', 'pods.yaml:1 "text": must be a map'],
    ['{kind: Pod', 'pods.yaml:1: neither YAML nor JSON'],
    ['\n{kind: Deployment}', 'pods.yaml:2: kind "Deployment": neither Pod nor List'],
    ['{kind: 7}', 'pods.yaml:1: kind "7": must be a text'],
    ['{kind: Pod, apiVersion: v2}', 'apiVersion "v2": the apiVersion of a Pod is v1'],
    ['{kind: Pod}', 'pods.yaml:1 "{…}": lacks metadata'],
    ['{metadata: {name: a}}', 'lacks spec'],
    ['{metadata: {}, spec: {}}', 'metadata "{…}": lacks name'],
    ['{metadata: {name: ""}, spec: {}}', 'metadata.name "": no name'],
    ['{metadata: {name: a/b}, spec: {}}', 'metadata.name "a/b": no name'],
    ['{metadata: {name: a, name: b}, spec: {}}', 'the key is given twice'],
    ['{kind: List, items: {a: 1}}', 'items "{…}": must be a list'],
    [
      `{kind: List, items: [${pod('a')}, {metadata: {name: b}, spec: []}]}`,
      'items[1].spec "[…]": must be a map',
    ],
    [
      pod('a', '{contaners: [{name: b}]}'),
      'spec.contaners "[…]": no field (did you mean containers?)',
    ],
    [pod('a', '{priority: high}'), 'spec.priority "high": must be a whole number'],
    [pod('a', '{priority: 2147483648}'), 'spec.priority "2147483648": must be from -2147483648'],
    [pod('a', '{priority: 1.5}'), 'spec.priority "1.5": must be a whole number'],
    [pod('a', '{terminationGracePeriodSeconds: "30"}'), 'must be a whole number'],
    [pod('a', '{containers: {}}'), 'spec.containers "{…}": must be a list'],
    [pod('a', '{containers: [{}]}'), 'spec.containers[0] "{…}": lacks name'],
    [
      pod('a', '{containers: [{name: c, resources: {requests: {memory: 5KB}}}]}'),
      'spec.containers[0].resources.requests.memory "5KB": not a quantity',
    ],
    [
      pod('a', '{containers: [{name: c, resources: {limits: {memory: true}}}]}'),
      'spec.containers[0].resources.limits.memory "true": must be a quantity',
    ],
    [pod('a', '{volumes: [{name: v, emptyDir: {sizeLimit: 1 Gi}}]}'), 'emptyDir.sizeLimit "1 Gi"'],
    [
      pod('a', '{tolerations: [{operator: 1}]}'),
      'spec.tolerations[0].operator "1": must be a text',
    ],
    ['{metadata: {name: a, annotations: {k: 1}}, spec: {}}', 'metadata.annotations.k "1"'],
    ['[[[[]]]]', 'lists nested too deeply'],
    ['&a [*a]', 'lists nested too deeply'],
  ])('refuses %j', (text, expected) => {
    expect(refusal(text)).toContain(expected);
  });

  it('escapes what a path and a value hold', () => {
    expect(refusal('{"metadata": {"name": "a"}, "spec": {}, "kind": "\\u001b[2J"}')).toContain(
      'kind "\\u001b[2J": neither',
    );
  });

  it('follows aliases up to a limit', () => {
    const containers = `[${'{name: c},'.repeat(1000)}]`;
    const spec = `spec: &s {containers: ${containers}}`;
    const items = Array.from({ length: 1000 }, () => '{metadata: {name: b}, spec: *s}');
    const text = `[{metadata: {name: a}, ${spec}}, ${items.join(',')}]`;
    expect(refusal(text)).toBe('pods.yaml: more than 300000 fields');
  });

  it('throws nothing but EVICTD_MANIFEST, whatever comes in', () => {
    const value = fc.anything({ withNullPrototype: false, maxDepth: 4 });
    const isRead = (text: string): boolean => {
      try {
        return parse(text).length > 0;
      } catch (error) {
        return error instanceof EvictdError && error.code === 'EVICTD_MANIFEST';
      }
    };
    fc.assert(
      fc.property(value, fc.string(), (metadata, text) => {
        const json = JSON.stringify({ metadata, spec: metadata }) ?? '';
        return isRead(json) && isRead(text) && isRead(`{metadata: {name: a}, spec: ${text}}`);
      }),
    );
  });
});

describe('readPodManifest', () => {
  function fileOf(content: string | Buffer): string {
    const directory = mkdtempSync(path.join(tmpdir(), 'evictd-'));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    const file = path.join(directory, 'pods');
    writeFileSync(file, content);
    return file;
  }

  it('reads a file of the largest size, and no larger one', async () => {
    const text = '#'.repeat(MAX_MANIFEST_BYTES);
    await expect(readPodManifest(fileOf(text))).resolves.toHaveLength(MAX_MANIFEST_BYTES);
    await expect(readPodManifest(fileOf(`${text}#`))).rejects.toMatchObject({
      code: 'EVICTD_MANIFEST',
      message: `larger than ${MAX_MANIFEST_BYTES} bytes`,
    });
  });

  it.each([
    ['/no/such/file', 'no such file'],
    [tmpdir(), 'is a directory'],
    ['/etc/passwd/x', 'a part of its path is no directory'],
    ['', 'no path of a file'],
    ['a\0b', 'no path of a file'],
    ['/dev/zero', `larger than ${MAX_MANIFEST_BYTES} bytes`],
  ])('refuses %j', async (file, message) => {
    await expect(readPodManifest(file)).rejects.toMatchObject({
      code: 'EVICTD_MANIFEST',
      exitStatus: 2,
      message,
      place: { source: file },
    });
  });

  it('refuses what is no UTF-8', async () => {
    await expect(readPodManifest(fileOf(Buffer.from([0xff])))).rejects.toThrow('no UTF-8 text');
  });
});
