/** Checks of what comes from outside: of the fields that are used, and no others. */

/** Whether a value of JSON is what it has to be. */
export type Check = (value: unknown) => boolean;

export const isText: Check = (value) => typeof value === 'string';
export const isSwitch: Check = (value) => typeof value === 'boolean';
/** JSON has larger numbers than there are, such as 1e999. */
export const isNumber: Check = (value) => Number.isFinite(value);
/** Whole, and exact. */
export const isCount: Check = (value) => Number.isSafeInteger(value);

/** What may be null. */
export function orNull(check: Check): Check {
  return (value) => value === null || check(value);
}

export function oneOf(...choices: readonly string[]): Check {
  return (value) => typeof value === 'string' && choices.includes(value);
}

export function listOf(check: Check): Check {
  return (value) => Array.isArray(value) && value.every(check);
}

/** An object with these fields, and maybe others. */
export function objectOf(fields: Readonly<Record<string, Check>>): Check {
  const entries = Object.entries(fields);
  return (value) =>
    typeof value === 'object' &&
    value !== null &&
    entries.every(([key, check]) => check((value as Readonly<Record<string, unknown>>)[key]));
}
