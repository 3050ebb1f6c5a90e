/**
 * The library: evictd's policy as pure functions, its pipeline as an operator over streams and its
 * simulation, for programs that bring their own readings, pods and executor. What is exported here is
 * kept stable by semantic versioning; what is not is internal.
 */
export type { FlagValues } from './config/flags.ts';
export { type ParsedPolicy, type PolicyTexts, parsePolicy } from './config/policy-texts.ts';
export type { ScenarioConfig } from './config/scenario-config.ts';
export { type Admission, admitPod } from './core/admission.ts';
export type {
  Decision,
  EvictionAnnotations,
  EvictionOutcome,
  EvictionTiming,
  RefusalReason,
} from './core/decision.ts';
export { type ErrorCode, EvictdError } from './core/errors.ts';
export {
  type Flap,
  type FlapNotice,
  type Flapping,
  flapping,
  flapsOf,
  NOT_FLAPPING,
} from './core/flapping.ts';
export type { KubernetesContainer, KubernetesPod, Summary, Toleration } from './core/kubernetes.ts';
export type { SignalObservation } from './core/observation.ts';
export {
  conditionsOf,
  decisionsOf,
  evictionPipeline,
  type PipelineInputs,
  type Turn,
} from './core/pipeline.ts';
export type { PodObservation, QosClass } from './core/pod.ts';
export type { Compatibility, Policy } from './core/policy.ts';
export type { PolicyEvent } from './core/policy-events.ts';
export {
  formatQuantity,
  parsePercentage,
  parseQuantity,
  type QuantityFormat,
} from './core/quantity.ts';
export { type Ranking, rankPods } from './core/rank.ts';
export { RULE_SETS, RULES, type RuleName, type RuleRow, type Rules } from './core/rules.ts';
export type { NodeCondition, Signal } from './core/signal.ts';
export { INITIAL_STATE, type Sample, type State } from './core/state.ts';
export { type StepResult, step } from './core/step.ts';
export type { Threshold, ThresholdValue } from './core/threshold.ts';
export { type LoadedNative, loadNative } from './native/index.ts';
export type {
  MemcgEvent,
  MemcgWatch,
  NativeAddon,
  NativeCapabilities,
  Pidfd,
  SystemError,
} from './native/types.ts';
export { type SimulationOptions, simulate } from './simulation/engine.ts';
export { checkScenario, readScenario } from './simulation/read.ts';
export type { Scenario, SimulationResult, Tick, TickResult } from './simulation/scenario.ts';
