import { EvictdError, quote } from '../core/errors.ts';
import { type FlagValues, isSwitchedOn, lastValue, socketPathFromFlags } from './flags.ts';
import { durationWithin, integerWithin } from './ranges.ts';

/** What `evictd record` was told, checked. */
export interface RecordSettings {
  readonly source: DaemonSource | KubeletSource;
  readonly intervalMs: number;
  /** 0 for no end but a signal. */
  readonly durationMs: number;
  readonly maxSamples: number;
  /** Undefined for standard output. */
  readonly file: string | undefined;
}

export interface DaemonSource {
  readonly kind: 'daemon';
  readonly socketPath: string;
}

export interface KubeletSource {
  readonly kind: 'kubelet';
  readonly url: URL;
  readonly tokenFile: string | undefined;
  readonly caFile: string | undefined;
  readonly insecure: boolean;
}

/** How far apart samples may be: of the daemon's pods in each, of the kubelet's the stats. */
export const RECORD_INTERVAL_MS = { min: 100, max: 3_600_000 } as const;
const DURATION_MS = { min: 0, max: 7 * 24 * 3_600_000 } as const;
const SAMPLES = { min: 2, max: 1_000_000 } as const;

const STANDARD_OUTPUT = '-';

/**
 * The settings of `evictd record`.
 *
 * @throws EvictdError with the flag as its place's source: EVICTD_DURATION, EVICTD_INTEGER,
 * EVICTD_SOCKET_PATH, EVICTD_CHOICE, EVICTD_USAGE for flags that do not go together
 */
export function recordSettings(values: FlagValues): RecordSettings {
  const file = lastValue(values, '--output', (text) => text);
  return {
    source: sourceOf(values),
    intervalMs: lastValue(values, '--interval', durationWithin(RECORD_INTERVAL_MS)),
    durationMs: lastValue(values, '--duration', durationWithin(DURATION_MS)),
    maxSamples: lastValue(values, '--max-samples', integerWithin(SAMPLES)),
    file: file === STANDARD_OUTPUT ? undefined : file,
  };
}

/** Flags that say how a kubelet is asked. */
const KUBELET_FLAGS = [
  '--config',
  '--token-file',
  '--ca-file',
  '--insecure-skip-tls-verify',
] as const satisfies readonly (keyof FlagValues)[];

function sourceOf(values: FlagValues): RecordSettings['source'] {
  const insecure = isSwitchedOn(values, '--insecure-skip-tls-verify');
  const text = values['--kubelet']?.at(-1);
  if (text === undefined) {
    const foreign = KUBELET_FLAGS.find((flag) => values[flag] !== undefined);
    if (foreign !== undefined) throw apart(foreign, 'goes with --kubelet');
    return { kind: 'daemon', socketPath: socketPathFromFlags(values) };
  }
  if (values['--socket'] !== undefined) throw apart('--socket', 'does not go with --kubelet');
  return {
    kind: 'kubelet',
    url: kubeletUrl(text),
    tokenFile: values['--token-file']?.at(-1),
    caFile: values['--ca-file']?.at(-1),
    insecure,
  };
}

function apart(source: string, message: string): EvictdError {
  return new EvictdError('EVICTD_USAGE', message, { source });
}

function kubeletUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isWeb = url?.protocol === 'https:' || url?.protocol === 'http:';
  if (url !== undefined && isWeb && url.username === '' && url.password === '') return url;
  const isSocket = url?.protocol === 'unix:' && url.host === '' && url.pathname.startsWith('/');
  if (url !== undefined && isSocket && url.search === '' && url.hash === '') return url;
  const message = `no address of a kubelet, such as ${quote('https://127.0.0.1:10250')}`;
  throw new EvictdError('EVICTD_USAGE', message, { source: '--kubelet', value: text });
}
