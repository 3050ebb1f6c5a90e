import { escapeControl } from '../core/errors.ts';
import { approximateCount } from '../core/quantity.ts';
import { STATUS_VERSION, type StatusDocument } from '../surfaces/status.ts';
import { askDaemon } from './ask.ts';
import {
  type Check,
  isNumber,
  isSwitch,
  isText,
  listOf,
  objectOf,
  oneOf,
  orNull,
} from './shape.ts';
import { foreign } from './unanswered.ts';

const STATUS_PATH = '/v1/status';

/**
 * `evictd status`: what the running daemon believes, as JSON or for a person.
 *
 * @returns the exit status
 * @throws EvictdError EVICTD_NOT_RUNNING when nobody listens, EVICTD_UNREACHABLE when nobody answers
 */
export async function statusCommand(options: {
  readonly socketPath: string;
  readonly json: boolean;
}): Promise<number> {
  const text = await askDaemon(options.socketPath, STATUS_PATH);
  // What a script gets may have parts of another shape, but is a status.
  const document = parseStatus(text, options.socketPath, options.json ? isStatus : SHOWN);
  process.stdout.write(options.json ? `${text.trimEnd()}\n` : formatStatus(document));
  return 0;
}

/**
 * Which node conditions the running daemon believes to hold.
 *
 * @throws EvictdError EVICTD_NOT_RUNNING when nobody listens, EVICTD_UNREACHABLE when nobody answers
 */
export async function askStatus(socketPath: string): Promise<Pick<StatusDocument, 'conditions'>> {
  return parseStatus(await askDaemon(socketPath, STATUS_PATH), socketPath, CONDITIONS);
}

const CONDITIONS = objectOf({ conditions: listOf(objectOf({ type: isText, status: isSwitch })) });

/** All that {@link formatStatus} shows. */
const SHOWN = objectOf({
  evictd: objectOf({ version: isText, pid: isNumber, uptimeMs: isNumber, dryRun: isSwitch }),
  runtime: objectOf({ kind: isText, name: orNull(isText), socket: orNull(isText) }),
  garbage: objectOf({
    last: orNull(
      objectOf({
        ...texts('endedAt', 'purpose', 'because'),
        containers: isNumber,
        sandboxes: isNumber,
        images: isNumber,
        wouldRemove: isNumber,
        freedBytes: orNull(isNumber),
      }),
    ),
  }),
  state: orNull(objectOf({ file: isText, ageMs: orNull(isNumber) })),
  node: objectOf({
    name: isText,
    cgroup: isText,
    memorySource: oneOf('workingset', 'memavailable'),
    figures: orNull(isText),
    availableBytes: orNull(objectOf({ workingset: isNumber, memavailable: isNumber })),
  }),
  signals: listOf(
    objectOf({
      ...texts('signal', 'unit'),
      capacity: isNumber,
      available: isNumber,
      ageMs: isNumber,
    }),
  ),
  filesystems: listOf(
    objectOf({
      ...texts('name', 'path'),
      mountPoint: orNull(isText),
      type: orNull(isText),
      device: orNull(isText),
      unaccountedBytes: orNull(isNumber),
      ageMs: orNull(isNumber),
      stale: isSwitch,
      error: orNull(isText),
    }),
  ),
  thresholds: listOf(
    objectOf({
      ...texts('signal', 'kind', 'value'),
      met: isSwitch,
      due: isSwitch,
      graceRemainingMs: orNull(isNumber),
      notification: objectOf(texts('path', 'detail')),
    }),
  ),
  conditions: listOf(
    objectOf({
      type: isText,
      status: isSwitch,
      flapping: orNull(objectOf({ count: isNumber, since: isText })),
    }),
  ),
  pods: listOf(
    objectOf({
      ...texts('name', 'qosClass'),
      rank: isNumber,
      priority: isNumber,
      workingSetBytes: orNull(isNumber),
      disk: orNull(
        objectOf({
          bytes: isNumber,
          inodes: orNull(isNumber),
          unaccountedBytes: isNumber,
          isCut: isSwitch,
          ageMs: isNumber,
        }),
      ),
      requestBytes: isNumber,
      protected: orNull(isText),
      passedOver: isSwitch,
      ageMs: isNumber,
    }),
  ),
  evictions: listOf(
    objectOf({
      ...texts('pod', 'decidedAt', 'message'),
      outcome: orNull(isText),
      reason: orNull(isText),
      timing: objectOf({ killedMs: orNull(isNumber), emptyMs: orNull(isNumber) }),
    }),
  ),
  comebacks: listOf(
    objectOf({ ...texts('owner', 'pod', 'evictedAt'), returns: isNumber, heldForMs: isNumber }),
  ),
  impossible: listOf(
    objectOf({
      ...texts('decidedAt', 'signal', 'unit'),
      available: isNumber,
      pods: isNumber,
      protectedPods: isNumber,
      passedOverPods: isNumber,
      helplessPods: isNumber,
    }),
  ),
  events: listOf(
    objectOf({ ...texts('time', 'type', 'reason', 'object', 'message'), count: isNumber }),
  ),
  lostRaces: listOf(objectOf({ ...texts('pod', 'cgroup', 'noticedAt'), kills: isNumber })),
  degraded: listOf(objectOf(texts('part', 'reason'))),
});

function texts(...names: readonly string[]): Readonly<Record<string, Check>> {
  return Object.fromEntries(names.map((name) => [name, isText]));
}

/** @param isUsable a check of what is used of it */
function parseStatus(text: string, socketPath: string, isUsable: Check): StatusDocument {
  try {
    const document: unknown = JSON.parse(text);
    if (isStatus(document) && isUsable(document)) return document as StatusDocument;
  } catch {
    // Not JSON: the same answer.
  }
  throw foreign(socketPath);
}

const isStatus = objectOf({ apiVersion: oneOf(STATUS_VERSION), kind: oneOf('Status') });

/** What both memory sources make of the node; the one that counts first. */
function memoryLine({ memorySource, figures, availableBytes }: StatusDocument['node']): string[] {
  if (availableBytes === null) return [];
  const other = memorySource === 'workingset' ? 'memavailable' : 'workingset';
  const shown = `${approximateCount(availableBytes[memorySource], 'bytes')} by ${memorySource}`;
  return [
    `memory available ${shown} (${approximateCount(availableBytes[other], 'bytes')} by ${other}), from ${figures}`,
  ];
}

/** Where what outlives a restart is kept; what is wrong with that stands with what is degraded. */
function stateLine(state: StatusDocument['state']): string[] {
  if (state === null) return [];
  const written = state.ageMs === null ? 'not written yet' : `written ${seconds(state.ageMs)} ago`;
  return [`state ${escapeControl(state.file)}, ${written}`];
}

/** The document for a person: sections, aligned columns, nothing that drives a terminal. */
export function formatStatus(status: StatusDocument): string {
  const { evictd, node } = status;
  const daemon = [
    `evictd ${evictd.version}`,
    `pid ${evictd.pid}`,
    `up ${seconds(evictd.uptimeMs)}`,
    ...(evictd.dryRun ? ['dry run'] : []),
  ].join(', ');
  const sections = [
    [
      daemon,
      `node ${escapeControl(node.name)}, ${escapeControl(node.cgroup)}`,
      ...runtimeLine(status.runtime),
      ...memoryLine(node),
      ...stateLine(status.state),
    ].join('\n'),
    section('SIGNALS', ['signal', 'available', 'capacity', 'read'], signalRows(status)),
    section(
      'FILESYSTEMS',
      ['name', 'path', 'mounted at', 'type', 'device', 'read', 'remark'],
      filesystemRows(status),
    ),
    section(
      'THRESHOLDS',
      ['kind', 'threshold', 'state', 'grace', 'notification'],
      thresholdRows(status),
    ),
    section(
      'CONDITIONS',
      ['condition', 'status', 'remark'],
      status.conditions.map((row) => [
        row.type,
        row.status ? 'True' : 'False',
        row.flapping === null ? '' : `set ${row.flapping.count} times since ${row.flapping.since}`,
      ]),
    ),
    section(
      'PODS',
      ['rank', 'pod', 'priority', 'QoS', 'working set', 'request', 'read', 'disk', 'remark'],
      podRows(status),
    ),
    section('EVICTIONS', ['at', 'pod', 'outcome', 'KILL', 'empty', 'reason'], evictionRows(status)),
    section(
      'CAME STRAIGHT BACK',
      ['evicted at', 'owner', 'pod', 'times', 'held off for'],
      status.comebacks.map((row) => [
        row.evictedAt,
        row.owner,
        row.pod,
        String(row.returns),
        row.heldForMs === 0 ? '-' : seconds(row.heldForMs),
      ]),
    ),
    section(
      'LAST COLLECTION',
      ['ended', 'for', 'because', 'containers', 'sandboxes', 'images', 'would be', 'freed'],
      collectionRows(status.garbage.last),
    ),
    section(
      'NOBODY TO EVICT',
      ['at', 'signal', 'available', 'pods', 'protected', 'passed over', 'of no help'],
      status.impossible.map((row) => [
        row.decidedAt,
        row.signal,
        approximateCount(row.available, row.unit),
        ...[row.pods, row.protectedPods, row.passedOverPods, row.helplessPods].map(String),
      ]),
    ),
    section(
      'EVENTS',
      ['at', 'type', 'reason', 'object', 'times', 'message'],
      status.events.map((row) => [
        row.time,
        row.type,
        row.reason,
        row.object,
        String(row.count),
        row.message,
      ]),
    ),
    section(
      'LOST RACES',
      ['at', 'pod', 'kills', 'cgroup'],
      status.lostRaces.map((row) => [row.noticedAt, row.pod, String(row.kills), row.cgroup]),
    ),
    section(
      'DEGRADED',
      ['part', 'reason'],
      status.degraded.map(({ part, reason }) => [part, reason]),
    ),
  ];
  return `${sections.filter((text) => text !== '').join('\n\n')}\n`;
}

/** Nothing where cgroups alone are pods. */
function runtimeLine({ kind, name, socket }: StatusDocument['runtime']): readonly string[] {
  if (kind === 'cgroup') return [];
  const what = name === null ? 'none was found yet' : `${name} at ${socket}`;
  return [`runtime ${kind}: ${escapeControl(what)}`];
}

function signalRows(status: StatusDocument): readonly (readonly string[])[] {
  return status.signals.map((row) => [
    row.signal,
    approximateCount(row.available, row.unit),
    approximateCount(row.capacity, row.unit),
    `${seconds(row.ageMs)} ago`,
  ]);
}

function filesystemRows(status: StatusDocument): readonly (readonly string[])[] {
  return status.filesystems.map((row) => [
    row.name,
    row.path,
    row.mountPoint ?? '-',
    row.type ?? '-',
    row.device ?? '-',
    row.ageMs === null ? 'never' : `${seconds(row.ageMs)} ago`,
    [
      ...(row.error === null ? [] : [`${row.stale ? 'stale: ' : ''}${row.error}`]),
      ...unaccountedText(row.unaccountedBytes ?? 0),
    ].join('; '),
  ]);
}

/** What a pod uses, and since when that is known; at least that, where not all was looked at. */
function diskText(disk: StatusDocument['pods'][number]['disk']): string {
  if (disk === null) return '-';
  const inodes = disk.inodes === null ? [] : [approximateCount(disk.inodes, 'inodes')];
  const figures = [approximateCount(disk.bytes, 'bytes'), ...inodes];
  return [
    `${disk.isCut ? 'at least ' : ''}${figures.join(' in ')}`,
    ...unaccountedText(disk.unaccountedBytes),
    `${seconds(disk.ageMs)} ago`,
  ].join(', ');
}

/** Deleted files that are still open: what walks over directories find nothing of. */
function unaccountedText(bytes: number): readonly string[] {
  return bytes === 0 ? [] : [`unaccounted ${approximateCount(bytes, 'bytes')}`];
}

function thresholdRows(status: StatusDocument): readonly (readonly string[])[] {
  const isRead = (signal: string): boolean => status.signals.some((one) => one.signal === signal);
  return status.thresholds.map((row) => [
    row.kind,
    `${row.signal}<${row.value}`,
    row.due ? 'due' : row.met ? 'met' : isRead(row.signal) ? 'calm' : 'not read',
    row.graceRemainingMs === null || row.kind === 'hard'
      ? '-'
      : `${seconds(row.graceRemainingMs)} left`,
    [row.notification.path, row.notification.detail].filter((part) => part !== '').join(': '),
  ]);
}

function podRows(status: StatusDocument): readonly (readonly string[])[] {
  return status.pods.map((row) => [
    String(row.rank),
    row.name,
    String(row.priority),
    row.qosClass,
    row.workingSetBytes === null ? 'unknown' : approximateCount(row.workingSetBytes, 'bytes'),
    approximateCount(row.requestBytes, 'bytes'),
    `${seconds(row.ageMs)} ago`,
    diskText(row.disk),
    row.protected === null ? (row.passedOver ? 'passed over' : '') : `protected: ${row.protected}`,
  ]);
}

function evictionRows(status: StatusDocument): readonly (readonly string[])[] {
  return status.evictions.map((row) => [
    row.decidedAt,
    row.pod,
    row.reason === 'dryRun' ? 'dry run' : (row.outcome ?? 'running'),
    milliseconds(row.timing.killedMs),
    milliseconds(row.timing.emptyMs),
    row.reason === 'dryRun' ? row.message : (row.reason ?? row.message),
  ]);
}

function collectionRows(last: StatusDocument['garbage']['last']): readonly (readonly string[])[] {
  if (last === null) return [];
  const { endedAt, purpose, because, containers, sandboxes, images, wouldRemove, freedBytes } =
    last;
  return [
    [
      endedAt,
      purpose,
      because,
      ...[containers, sandboxes, images, wouldRemove].map(String),
      freedBytes === null ? 'unknown' : approximateCount(freedBytes, 'bytes'),
    ],
  ];
}

function section(
  title: string,
  head: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  if (rows.length === 0) return '';
  const cells = [head, ...rows].map((row) => row.map(escapeControl));
  const widths = head.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  const lines = cells.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  return [title, ...lines].join('\n');
}

function seconds(ms: number): string {
  return ms < 10_000 ? `${(ms / 1000).toFixed(1)}s` : `${Math.round(ms / 1000)}s`;
}

function milliseconds(ms: number | null): string {
  return ms === null ? '-' : `${ms.toFixed(1)} ms`;
}
