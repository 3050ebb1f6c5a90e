import { type ErrorPlace, EvictdError, withPlace } from '../core/errors.ts';

/** A text of the configuration and where it stood, for the errors and warnings about it. */
export interface PlacedText {
  readonly text: string;
  readonly place: ErrorPlace;
}

/** Runs `parse`; an EvictdError that it throws is given what it lacks of `place`. */
export function placed<T>(place: ErrorPlace, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw error instanceof EvictdError ? withPlace(error, place) : error;
  }
}
