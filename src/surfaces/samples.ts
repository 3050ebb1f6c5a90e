import { concat, concatMap, type Observable, of } from 'rxjs';
import { recordedConfig } from '../config/recorded-config.ts';
import type { ScenarioConfig } from '../config/scenario-config.ts';
import type { Settings } from '../config/settings.ts';
import type { Turn } from '../core/pipeline.ts';
import {
  type NamespaceOf,
  type RecordedPod,
  type RecordedTurn,
  recordedPod,
  recordedTurn,
  worthRecording,
} from '../core/recorded.ts';
import { layoutOf, type Model } from './status.ts';

/** The version of the lines' shape: raised when a field changes its meaning or goes away. */
export const SAMPLES_VERSION = 'evictd.dev/v1alpha1';

/** The first line of a stream: what is known before the first turn. */
export interface SamplesHead {
  readonly apiVersion: typeof SAMPLES_VERSION;
  readonly kind: 'Samples';
  readonly version: string;
  readonly nodeCgroup: string;
  /** Wall clock, RFC 3339. */
  readonly startedAt: string;
  readonly config: ScenarioConfig;
  readonly dedicatedImageFs: boolean;
  readonly splitImageFs: boolean;
  /** As they were last read. */
  readonly pods: readonly RecordedPod[];
  /** Whether an eviction is in flight whose decision the stream does not have. */
  readonly evicting: boolean;
  /** Whether a threshold is met already: for how long is not told. */
  readonly pressure: boolean;
}

/** A line of a stream of samples. */
export type SampleLine =
  | SamplesHead
  | RecordedTurn
  /** The configuration of the turns from here on, after a reload. */
  | { readonly kind: 'config'; readonly config: ScenarioConfig }
  /** Lines that the client was too slow for. */
  | { readonly kind: 'dropped'; readonly count: number };

/** What a stream is made of. */
export interface SampleSource {
  readonly version: string;
  readonly nodeCgroup: string;
  readonly startedAt: string;
  readonly settings: () => Settings;
  readonly model: Model;
  /** The namespace of a pod by its observation's id. */
  readonly namespaceOf: NamespaceOf;
  readonly turns$: Observable<Turn>;
  readonly intervalMs: number;
}

/**
 * A stream of samples: the head, then a line for each turn that is worth recording. Cold; what it holds
 * is the subscription.
 */
export function sampleLines(source: SampleSource): Observable<SampleLine> {
  const { settings, turns$, intervalMs, namespaceOf, model } = source;
  let { policy } = settings();
  const lines$ = turns$.pipe(
    worthRecording(intervalMs, model.turn),
    concatMap((turn): readonly SampleLine[] => {
      const line = recordedTurn(turn, namespaceOf);
      if (turn.policy === policy) return [line];
      policy = turn.policy;
      return [{ kind: 'config', config: recordedConfig(settings()) }, line];
    }),
  );
  return concat(of(headOf(source)), lines$);
}

function headOf({
  version,
  nodeCgroup,
  startedAt,
  settings,
  model,
  namespaceOf,
}: SampleSource): SamplesHead {
  const { layout } = layoutOf(model.filesystems);
  return {
    apiVersion: SAMPLES_VERSION,
    kind: 'Samples',
    version,
    nodeCgroup,
    startedAt,
    config: recordedConfig(settings()),
    dedicatedImageFs: layout === 'dedicatedImagefs' || layout === 'splitImagefs',
    splitImageFs: layout === 'splitImagefs',
    pods: model.pods.map((pod) => recordedPod(pod, namespaceOf)),
    evicting: model.turn?.state.inFlight !== undefined,
    pressure: (model.turn?.state.met.length ?? 0) > 0,
  };
}
