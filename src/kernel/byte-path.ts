/**
 * A path as the kernel has it: bytes, of which any but NUL and `/` may stand in a name. As a string
 * of one character for each byte (Latin-1), so that nothing is lost where it is no UTF-8, and two
 * names that look alike stay two.
 */
export type BytePath = string;

/** What `node:fs` is to be given for it. */
export function asPath(path: BytePath): Buffer {
  return Buffer.from(path, 'latin1');
}

/** The path that a text from the command line or the configuration means. */
export function fromText(text: string): BytePath {
  return Buffer.from(text, 'utf8').toString('latin1');
}

/** For a person, and to compare with what a person wrote; bytes that are no UTF-8 become U+FFFD. */
export function toText(path: BytePath): string {
  return Buffer.from(path, 'latin1').toString('utf8');
}
