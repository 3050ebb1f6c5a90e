/** What the settings say of what nobody uses: dead containers and unused images. */
import { formatDuration } from '../core/duration.ts';
import { describeAt, EvictdError } from '../core/errors.ts';
import { FRESH_IMAGE_MS } from '../core/image-gc.ts';
import type { Compatibility } from '../core/policy.ts';
import type { ReclaimFunction } from '../core/reclaim.ts';
import { parseChoice } from './choice.ts';
import type { Given } from './given.ts';
import type { TextOption } from './options.ts';
import { durationWithin, INT32, integerWithin } from './ranges.ts';
import {
  COLLECTINGS,
  type Collecting,
  type GarbageSettings,
  type RuntimeChoice,
} from './settings.ts';
import type { TextReader } from './text-reader.ts';

const PERCENT = { min: 0, max: 100 } as const;

const NOT_NEGATIVE = { min: 0, max: Number.POSITIVE_INFINITY } as const;

/**
 * Checks what was given of it.
 *
 * @throws EvictdError where the value stood: EVICTD_CHOICE for a runtime that cannot remove anything,
 * EVICTD_INTEGER for marks that are none, EVICTD_DURATION
 */
export function garbageOf(
  texts: TextReader,
  given: Given,
  runtime: RuntimeChoice,
  compatibility: Compatibility,
): { readonly garbage: GarbageSettings; readonly warnings: readonly string[] } {
  const collecting = (option: '--container-gc' | '--image-gc'): Collecting => {
    const chosen = texts.last(option, (text) => parseChoice(text, COLLECTINGS));
    if (chosen === 'off' || runtime !== 'cgroup') return chosen;
    throw refused(given, option, chosen, 'EVICTD_CHOICE', 'takes --runtime cri, docker or auto');
  };
  const highPercent = texts.last('--image-gc-high-threshold', integerWithin(PERCENT));
  const lowPercent = texts.last('--image-gc-low-threshold', integerWithin(PERCENT));
  if (lowPercent >= highPercent) {
    const message = `not below the high threshold, ${highPercent}`;
    throw refused(given, LOW, `${lowPercent}`, 'EVICTD_INTEGER', message);
  }
  const images = collecting('--image-gc');
  const minimumAgeMs = texts.last('--image-minimum-gc-age', durationWithin(NOT_NEGATIVE));
  const isDefault = minimumAgeMs === 0 && compatibility === 'kubelet';
  const imageMinimumAgeMs = isDefault ? FRESH_IMAGE_MS : minimumAgeMs;
  const imageMaximumAgeMs = texts.last('--image-maximum-gc-age', durationWithin(NOT_NEGATIVE));
  if (imageMaximumAgeMs > 0 && imageMaximumAgeMs <= imageMinimumAgeMs) {
    const message = `not longer than the minimum age, ${formatDuration(imageMinimumAgeMs)}`;
    const value = formatDuration(imageMaximumAgeMs);
    throw refused(given, '--image-maximum-gc-age', value, 'EVICTD_DURATION', message);
  }
  return {
    garbage: {
      containers: collecting('--container-gc'),
      containerPolicy: {
        minimumAgeMs: texts.last('--container-gc-minimum-age', durationWithin(NOT_NEGATIVE)),
        mostPerOwner: texts.last('--container-gc-max-per-pod', integerWithin(INT32)),
      },
      images,
      marks: { highPercent, lowPercent },
      imageMinimumAgeMs,
      imageMaximumAgeMs,
    },
    warnings: isDefault && images !== 'off' ? [zeroAge(given)] : [],
  };
}

/** Source: kubelet `apis/config/v1beta1/defaults.go`. */
function zeroAge({ texts }: Given): string {
  const { text, place } = texts['--image-minimum-gc-age']?.at(-1) ?? { text: '', place: {} };
  const message = `means ${formatDuration(FRESH_IMAGE_MS)} to the kubelet`;
  return describeAt({ value: text, ...place }, message);
}

const LOW = '--image-gc-low-threshold';

/** At the place of the option itself, or of the one that it does not go with where only that was given. */
export function refused(
  { texts }: Given,
  option: TextOption,
  value: string,
  code: 'EVICTD_CHOICE' | 'EVICTD_INTEGER' | 'EVICTD_DURATION',
  message: string,
): EvictdError {
  const place = texts[option]?.at(-1)?.place ?? { source: option };
  return new EvictdError(code, message, { ...place, value });
}

/** What can be collected before a pod goes for a disk. */
export function reclaimsBy({ containers, images }: GarbageSettings): readonly ReclaimFunction[] {
  return [
    ...(containers === 'off' ? [] : (['containers'] as const)),
    ...(images === 'off' ? [] : (['images'] as const)),
  ];
}
