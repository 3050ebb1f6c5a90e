/** Whose figures and rules count where the kubelet's and evictd's differ. */
export type Compatibility = 'kubelet' | 'evictd';

/** A point on which the kubelet's rules and evictd's own differ. */
export interface RuleRow {
  /** What the kubelet does. */
  readonly kubelet: string;
  /** What evictd does by its own rules. */
  readonly evictd: string;
  readonly why: string;
  /** The version of evictd that has it. */
  readonly since: string;
}

/**
 * Every point on which the two rule sets differ, one switch each. `docs/reference/rules.md` and
 * `evictd check-config --explain` show the same rows.
 */
export const RULES = {
  unknownUsage: {
    kubelet: 'a pod without stats is evicted before all others',
    evictd: 'a pod of unknown usage comes after those known to exceed their request',
    why: 'an innocent pod went in place of the offender (k/k#123591)',
    since: '0.1.0',
  },
  inodeRequest: {
    kubelet: 'inodes are ranked by inodes less the bytes of ephemeral storage that a pod requests',
    evictd: 'inodes are ranked by inodes alone',
    why: 'bytes cannot be subtracted from a count',
    since: '0.1.0',
  },
  podRequest: {
    kubelet:
      'a pod’s request counts an init container that goes on like any other, and overhead only beside a request',
    evictd: 'as the scheduler counts it: what goes on is added to the sum, and the overhead always',
    why: 'a sidecar that keeps to its request made an offender of its pod',
    since: '0.1.0',
  },
  failedKill: {
    kubelet:
      'a kill that fails counts as an eviction, and the same pod may be chosen in the next round (in `simulate`)',
    evictd: 'a kill that fails is none: the next candidate is taken in the same pass',
    why: 'the pressure goes on meanwhile',
    since: '0.1.0',
  },
  storageLimits: {
    kubelet: 'all pods that exceed their own storage limits are evicted in one round',
    evictd: 'one at a time, each after the other has ended, by figures that are at most 1 s old',
    why: 'never two evictions in flight',
    since: '0.1.0',
  },
  rootfsLimit: {
    kubelet:
      'with a dedicated imagefs only the logs of a container count towards its storage limit',
    evictd: 'its writable layer and its logs count, wherever they lie',
    why: 'a container could fill the imagefs beyond its limit (k/k#99280)',
    since: '0.1.0',
  },
  volumeUsage: {
    kubelet: 'a volume without used bytes ends the kubelet',
    evictd: 'the limit of a volume whose use is not known is not checked',
    why: 'a missing figure is none that exceeds a limit; evictd does not crash under either rule set',
    since: '0.1.0',
  },
  reclaimedWhen: {
    kubelet:
      'reclaim has helped when no threshold of any resource is met, minimum reclaim included',
    evictd: 'when the threshold it was for, with its minimum reclaim, is regained',
    why: 'a shortage of memory does not make an image collection a failure',
    since: '0.1.0',
  },
  measuredAfterReclaim: {
    kubelet: 'the pod to evict after a reclaim is chosen and described by figures from before it',
    evictd:
      'all is measured afresh after a reclaim; figures that are no newer decide nothing, and the next that are ' +
      'decide without another reclaim',
    why: 'a cached figure evicted pods although space had been regained (k/k#41032)',
    since: '0.1.0',
  },
  collectedOften: {
    kubelet: 'dead containers and unused images are collected before each eviction for a disk',
    evictd: 'at most once in 10 s for each signal, for as long as it stays short',
    why:
      'between two evictions that follow each other at once nothing new has died; a collection that was enough ' +
      'has left something',
    since: '0.1.0',
  },
  imageOrder: {
    kubelet: 'all images that no container uses are deleted',
    evictd:
      'the least recently used first, until threshold and minimum reclaim are regained; fresh ones are kept',
    why: 'deleting everything has every pod that starts next pull its images again',
    since: '0.1.0',
  },
  nodefsReclaim: {
    kubelet: 'with a dedicated imagefs nothing is collected for nodefs',
    evictd: 'dead containers are, whose logs lie there',
    why: 'a pod went although logs of dead containers filled the disk (k/k#129616)',
    since: '0.1.0',
  },
  exclusiveImages: {
    kubelet:
      'images are no pod’s: where they have a filesystem of their own, pods go for it by their priority alone',
    evictd:
      'a pod uses what images take that it alone uses: of those who have any, the lowest priority, then the most; ' +
      'none goes that has none, or where no image may be removed afterwards; what it leaves is collected first',
    why: 'all tied at 0, and one went after the other whose end freed nothing',
    since: '0.2.0',
  },
  spaceHeld: {
    kubelet:
      'after an eviction for a disk the next pod goes once the victim’s containers are removed, or after 30 s ' +
      '(in the daemon)',
    evictd:
      'the same, but no longer than until an eighth of the threshold is taken meanwhile, and not at all where the ' +
      'victim had nothing there',
    why: 'space that a dead pod holds comes back by its removal; but whoever goes on filling the disk does not wait',
    since: '0.2.0',
  },
  nothingThere: {
    kubelet:
      'a pod that uses nothing of the disk that is short goes as its request and priority have it, and the message ' +
      'tells what it uses of all disks',
    evictd:
      'one that is known to use nothing there never goes for it; where a figure is missing that is not known',
    why: 'its end frees nothing there, and what fills the disk goes on',
    since: '0.2.0',
  },
  diskFigures: {
    kubelet: 'the pod to evict for a disk is chosen by the last figures, however old',
    evictd:
      'by figures from after the threshold was met; they are awaited for 15 s at most (in the daemon)',
    why: 'a pod that fills a disk in seconds is small in the figures from before that',
    since: '0.2.0',
  },
  cutFigures: {
    kubelet: 'what was not added up to the end counts as what was found (in the daemon)',
    evictd:
      'it counts as at least that: above its request if that is, else unknown, and before its equals (standing and ' +
      'priority), unless the runtime tells the whole',
    why:
      'whoever hides a file behind millions went after all the innocent; in the other order at worst one pod goes ' +
      'too early',
    since: '0.2.0',
  },
  containerfsLate: {
    kubelet: 'thresholds derived for containerfs take part from the second round on',
    evictd: 'from the first',
    why: 'nothing speaks for the delay',
    since: '0.1.0',
  },
  statsTime: {
    kubelet:
      'figures whose time is not later than that of the last ones are old, also after the clock was set back',
    evictd:
      'figures are old when their time is that of the last ones; any other time is a new reading',
    why: 'a clock that was set back by an hour ended all evictions for that hour (k/k#54130)',
    since: '0.1.0',
  },
  missingSignal: {
    kubelet:
      'a signal that cannot be read is under no pressure, and its grace begins anew (in `simulate`; ' +
      'the daemon reads each signal at its own pace)',
    evictd: 'what was known of it holds until it is read again; nothing becomes due unseen',
    why: 'a failed reading is no relief',
    since: '0.1.0',
  },
  missingSummary: {
    kubelet: 'node conditions stay as they are while no stats can be read at all',
    evictd: 'a condition that was not seen for its transition period ends',
    why: 'time goes on without a reading',
    since: '0.1.0',
  },
  impossibleSample: {
    kubelet:
      'what is available may be negative, above the capacity, or of a capacity of 0, and is acted on',
    evictd: 'figures that cannot be true are refused; a second source takes their place, or none',
    why: 'one pod went in each round without end (k/k#114332)',
    since: '0.1.0',
  },
  negativeMaxGrace: {
    kubelet:
      'a negative evictionMaxPodGracePeriod is given to the kill as it is, which ends the pod at once',
    evictd: 'it leaves the grace to the pod',
    why: 'that is what the documentation says of it (kubernetes/kubelet#42)',
    since: '0.1.0',
  },
  hardGrace: {
    kubelet: 'the victim of a hard threshold has 1 s by default',
    evictd: 'none: KILL at once',
    why: 'a leak at full speed fills a gigabyte in that second',
    since: '0.1.0',
  },
  escalation: {
    kubelet:
      'a soft victim has its grace to the end (in `simulate`; the daemon escalates under both)',
    evictd: 'a hard threshold that is crossed meanwhile cuts it',
    why: 'a hard threshold means now',
    since: '0.1.0',
  },
  repeatedEvent: {
    kubelet: 'EvictionThresholdMet is recorded in each round',
    evictd:
      'once for each burst of pressure and resource; a condition that flaps is reported with its count',
    why: 'a thousand equal events tell less than one',
    since: '0.1.0',
  },
  zeroTransition: {
    kubelet: 'a pressure transition period of 0 means 5m0s, an imageMinimumGCAge of 0 2m0s',
    evictd: '0 means 0',
    why: 'a default is what holds when nothing is said',
    since: '0.1.0',
  },
  percentOff: {
    kubelet:
      'only 0% and 100% in these spellings switch a threshold off; NaN and exponents are read',
    evictd:
      'a percentage equal to 0 or 100 is off however it is spelt; NaN and doubled signs are refused',
    why: '100.0% would be met always',
    since: '0.1.0',
  },
  comeback: {
    kubelet: 'nothing is remembered of a pod that was evicted',
    evictd:
      'one that comes straight back goes before its equals (standing and priority) while the same is short, once; ' +
      'after another eviction it goes after them for 10 s, 20 s … 5 min, unless its end alone would be enough',
    why: 'whoever filled the node goes again before an innocent, and not in a loop that frees nothing',
    since: '0.1.0',
  },
  countedPids: {
    kubelet: 'pods are counted by their processes in pid.available’s messages and ranking',
    evictd: 'by their tasks (threads)',
    why: 'pid_max and pids.max count tasks',
    since: '0.1.0',
  },
} as const satisfies Record<string, RuleRow>;

export type RuleName = keyof typeof RULES;

/** Whose rule holds on each point. */
export type Rules = Readonly<Record<RuleName, Compatibility>>;

function all(compatibility: Compatibility): Rules {
  const names = Object.keys(RULES) as readonly RuleName[];
  return Object.fromEntries(names.map((name) => [name, compatibility])) as Rules;
}

/** The two rule sets. */
export const RULE_SETS: Readonly<Record<Compatibility, Rules>> = {
  kubelet: all('kubelet'),
  evictd: all('evictd'),
};
