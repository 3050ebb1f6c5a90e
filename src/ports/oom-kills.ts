/** What the kernel's OOM killer did. */
export type OomNotice =
  /** It ended processes of a pod, before evictd did. */
  | { readonly kind: 'lostRace'; readonly race: LostRace }
  /** It ended processes that are in no pod, or whose cgroup is gone. */
  | { readonly kind: 'elsewhere'; readonly kills: number }
  /** Why its kills are noticed late, or not at all; undefined once they are again. */
  | { readonly kind: 'degraded'; readonly reason: string | undefined };

/** Kills in one pod since the last look. */
export interface LostRace {
  readonly podName: string;
  /** The cgroup of the victims; where there are several, the one with the most. */
  readonly cgroup: string;
  readonly kills: number;
  /** Monotonic ms at which they were noticed. */
  readonly atMs: number;
}
