import { VirtualTimeScheduler } from 'rxjs';

/** A clock that stands still until a test moves it on; what was awaited meanwhile has its turn after each step. */
export interface Clock {
  readonly scheduler: VirtualTimeScheduler;
  /** Lets so much time pass, ms. */
  pass(ms: number): Promise<void>;
}

/** How many turns of promises follow a step: more than any chain of them here has. */
const TURNS = 1000;

export function clock(): Clock {
  const scheduler = new VirtualTimeScheduler();
  return {
    scheduler,
    pass: async (ms) => {
      const untilMs = scheduler.frame + ms;
      await settled();
      // What is due one after the other may set what is due next.
      for (
        let due = nextOf(scheduler);
        due !== undefined && due <= untilMs;
        due = nextOf(scheduler)
      ) {
        scheduler.maxFrames = due;
        scheduler.flush();
        await settled();
      }
      scheduler.frame = untilMs;
    },
  };
}

function nextOf({ actions }: VirtualTimeScheduler): number | undefined {
  const delays = actions.map((action) => action.delay as number);
  return delays.length === 0 ? undefined : Math.min(...delays);
}

async function settled(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn += 1) await Promise.resolve();
}
