/** Single values of options, parsed where they stand. */
import type { Given } from './given.ts';
import { type DefaultedOption, OPTIONS, type TextOption } from './options.ts';
import { placed } from './place.ts';

type Parser<T> = (text: string) => T;

/** What was given of options whose values are texts. */
export interface TextReader {
  /** Every value of an option, parsed. */
  all<T>(option: TextOption, parse: Parser<T>): readonly T[];
  /** All values are parsed, so that none is wrong unseen; the last one counts, else the default. */
  last<T>(option: TextOption & DefaultedOption, parse: Parser<T>): T;
}

export function textReader({ texts }: Given): TextReader {
  const all: TextReader['all'] = (option, parse) =>
    (texts[option] ?? []).map(({ text, place }) => placed(place, () => parse(text)));
  return {
    all,
    last: (option, parse) => all(option, parse).at(-1) ?? parse(OPTIONS[option].default),
  };
}
