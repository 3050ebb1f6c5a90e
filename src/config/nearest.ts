/** Nobody misspells what is longer; comparing takes the product of two lengths. */
const MOST_COMPARED = 200;

/**
 * The name that `text` is most likely a misspelling of: the least number of characters to insert,
 * delete or replace, at most a third of the name's length; the first of several.
 */
export function nearestName(text: string, names: readonly string[]): string | undefined {
  if (text.length > MOST_COMPARED) return undefined;
  let nearest: { name: string; distance: number } | undefined;
  for (const name of names) {
    const limit = Math.floor(name.length / 3);
    // The difference in length is the least that the distance can be; it spares long texts.
    if (Math.abs(name.length - text.length) > limit) continue;
    const distance = editDistance(text, name);
    if (distance <= limit && distance < (nearest?.distance ?? Number.POSITIVE_INFINITY)) {
      nearest = { name, distance };
    }
  }
  return nearest?.name;
}

/** ` (did you mean NAME?)`, to be put behind a refusal; empty when no name is near. */
export function suggestion(text: string, names: readonly string[]): string {
  const name = nearestName(text, names);
  return name === undefined ? '' : ` (did you mean ${name}?)`;
}

/** Levenshtein's distance, one row of his matrix at a time. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (const [index, character] of [...from].entries()) {
    const next = [index + 1];
    for (let column = 1; column <= to.length; column += 1) {
      const replaced = at(row, column - 1) + (character === to[column - 1] ? 0 : 1);
      next.push(Math.min(replaced, at(row, column) + 1, at(next, column - 1) + 1));
    }
    row = next;
  }
  return at(row, to.length);
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY;
}
