/**
 * JSON that is plain, read byte by byte: ASCII, texts without escapes, whole numbers of up to 15 digits.
 * What is not plain, or no JSON, is refused without a reason: it is read by others.
 */

/** The bytes that tell what comes. */
export const BYTE = {
  quote: 0x22,
  comma: 0x2c,
  minus: 0x2d,
  colon: 0x3a,
  openList: 0x5b,
  closeList: 0x5d,
  falsehood: 0x66,
  nothing: 0x6e,
  truth: 0x74,
  openMap: 0x7b,
  closeMap: 0x7d,
} as const;

const ZERO = 0x30;
const SPACE = 0x20;
const POINT = 0x2e;
const EXPONENTS = [0x45, 0x65];
const BACKSLASH = 0x5c;
const DELETE = 0x7f;

/** The other kinds of white space, all of them below {@link SPACE}. */
const BLANKS = [0x09, 0x0a, 0x0d];

/** So many digits are a number that a double holds, and the first of them one of 32 bits. */
const MOST_DIGITS = 15;
const SMALL_DIGITS = 9;

/** Maps and lists within each other in what is skipped. */
const DEEPEST = 50;

/** 1 for each byte that stands for itself in a text. */
const IN_TEXT = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= SPACE && byte < DELETE && byte !== BYTE.quote && byte !== BACKSLASH ? 1 : 0,
);

/** What is thrown, always the same: it is no fault, and its stack is of no use. */
export const NOT_PLAIN = new Error('no plain JSON');

/** A text that is read from its first byte to its last. All methods throw {@link NOT_PLAIN}. */
export class PlainJson {
  readonly bytes: Uint8Array;
  /** The same bytes, for four of them at a time. */
  readonly view: DataView;
  /** The same, a character a byte. */
  readonly text: string;
  /** The next byte. */
  at = 0;

  constructor(bytes: Uint8Array, text: string) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    this.text = text;
  }

  blanks(): void {
    while (this.bytes[this.at] === SPACE || BLANKS.includes(this.bytes[this.at] as number)) {
      this.at += 1;
    }
  }

  /** Passes a byte, and white space before and after it. */
  mark(byte: number): void {
    const { bytes } = this;
    if ((bytes[this.at] as number) <= SPACE) this.blanks();
    if (bytes[this.at] !== byte) throw NOT_PLAIN;
    this.at += 1;
    if ((bytes[this.at] as number) <= SPACE) this.blanks();
  }

  /** Passes the byte that ends a map or a list, or else a comma; true for the end. */
  isLast(end: number): boolean {
    const { bytes } = this;
    if ((bytes[this.at] as number) <= SPACE) this.blanks();
    const byte = bytes[this.at];
    this.at += 1;
    if (byte === end) return true;
    if (byte !== BYTE.comma) throw NOT_PLAIN;
    if ((bytes[this.at] as number) <= SPACE) this.blanks();
    return false;
  }

  /** Passes the beginning of a map or a list; true where that is all of it. */
  isEmpty(begin: number, end: number): boolean {
    this.mark(begin);
    if (this.bytes[this.at] !== end) return false;
    this.at += 1;
    return true;
  }

  string(): string {
    const from = this.at + 1;
    this.skipString();
    return this.text.slice(from, this.at - 1);
  }

  skipString(): void {
    const { bytes } = this;
    if (bytes[this.at] !== BYTE.quote) throw NOT_PLAIN;
    let at = this.at + 1;
    while (IN_TEXT[bytes[at] as number] === 1) at += 1;
    if (bytes[at] !== BYTE.quote) throw NOT_PLAIN;
    this.at = at + 1;
  }

  integer(): number {
    const { bytes } = this;
    const isNegative = bytes[this.at] === BYTE.minus;
    const from = isNegative ? this.at + 1 : this.at;
    let at = from;
    let value = 0;
    for (const end = from + SMALL_DIGITS; at < end && isDigit(bytes[at]); at += 1) {
      value = (10 * value + (bytes[at] as number) - ZERO) | 0;
    }
    for (; isDigit(bytes[at]); at += 1) value = 10 * value + (bytes[at] as number) - ZERO;
    const count = at - from;
    const byte = bytes[at] as number;
    if (count === 0 || count > MOST_DIGITS || byte === POINT || EXPONENTS.includes(byte)) {
      throw NOT_PLAIN;
    }
    // 01 is no number, and -0 none that a whole number is compared with.
    if (bytes[from] === ZERO && (isNegative || count > 1)) throw NOT_PLAIN;
    this.at = at;
    return isNegative ? -value : value;
  }

  word(word: string): void {
    if (!this.text.startsWith(word, this.at)) throw NOT_PLAIN;
    this.at += word.length;
  }

  boolean(): boolean {
    const is = this.bytes[this.at] === BYTE.truth;
    this.word(is ? 'true' : 'false');
    return is;
  }

  null(): null {
    this.word('null');
    return null;
  }

  /** A value of any shape. */
  any(): unknown {
    const from = this.at;
    this.skip();
    return JSON.parse(this.text.slice(from, this.at));
  }

  /** Passes a value of any shape. */
  skip(depth = 0): void {
    if (depth > DEEPEST) throw NOT_PLAIN;
    switch (this.bytes[this.at]) {
      case BYTE.quote:
        this.skipString();
        break;
      case BYTE.openMap:
        if (this.isEmpty(BYTE.openMap, BYTE.closeMap)) break;
        do {
          this.skipString();
          this.mark(BYTE.colon);
          this.skip(depth + 1);
        } while (!this.isLast(BYTE.closeMap));
        break;
      case BYTE.openList:
        if (this.isEmpty(BYTE.openList, BYTE.closeList)) break;
        do this.skip(depth + 1);
        while (!this.isLast(BYTE.closeList));
        break;
      case BYTE.truth:
      case BYTE.falsehood:
        this.boolean();
        break;
      case BYTE.nothing:
        this.null();
        break;
      default:
        this.integer();
    }
  }

  /** That nothing follows. */
  end(): void {
    this.blanks();
    if (this.at !== this.bytes.length) throw NOT_PLAIN;
  }
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte < ZERO + 10;
}
