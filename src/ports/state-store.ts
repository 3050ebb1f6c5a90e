import type { Snapshot } from '../core/snapshot.ts';

/** Where what outlives a restart is kept. */
export interface StateStore {
  /** What people are told it is. */
  readonly path: string;
  /**
   * Keeps `snapshot` in place of what was kept; writings follow one another. Rejects where that failed:
   * what was kept before is then still there.
   */
  write(snapshot: Snapshot): Promise<void>;
}
