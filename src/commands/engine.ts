import { setFlagsFromString } from 'node:v8';

/**
 * Sets V8 up for a daemon that sleeps for days and then has a millisecond. To be called before
 * the modules of the daemon are loaded. Measured on Node 20.20 with 100 pods, in
 * docs/decisions/0003-engine-flags.md.
 */
export function tuneEngine(): void {
  for (const flag of ENGINE_FLAGS) setFlagsFromString(flag);
}

/**
 * Sets V8 up for a batch, which takes seconds: a third of the time that the optimising compiler takes goes to
 * putting functions into one another, and gains little.
 */
export function tuneForBatch(): void {
  setFlagsFromString('--max-inlined-bytecode-size-cumulative=300');
}

const ENGINE_FLAGS = [
  // The young generation stays at its first size: a burst of garbage at the start does not grow
  // the process for good.
  '--semi-space-growth-factor=1',
  // Code that has not run for a while stays compiled: the way to a kill is such code.
  '--no-flush-bytecode',
  // No compaction because nothing happened for a while: it costs 50 ms and comes at any moment. (The
  // flag for just that is read too early. Without marking in steps it does not start; the heap is
  // so small that marking in one go takes 10 ms, once in hours.)
  '--no-incremental-marking',
  // Young garbage is collected in evictd's own thread: helpers run at normal priority, and a
  // real-time thread that waits for them waits behind the whole node. (What concerns the marker
  // cannot be changed any more: V8 aborts.)
  '--no-parallel-scavenge',
  // No optimising compiler: its threads cost memory, and on code that runs for a millisecond a day
  // it only adds the risk of being thrown back in the middle of it.
  '--no-opt',
] as const;
