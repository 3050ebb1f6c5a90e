import type { Scenario } from '../../simulation/scenario.ts';

/** What fits into so many columns is written on one line. */
const WIDTH = 100;

/** A scenario as JSON that can be read, and compared line by line. */
export function formatScenario(scenario: Scenario): string {
  return `${plainJson(formatValue(scenario, '', 0))}\n`;
}

/**
 * The same JSON, with what could drive a terminal or break a line as escapes: names are text from outside. Such
 * characters stand in texts alone, where JSON itself escapes no more than C0.
 */
export function plainJson(json: string): string {
  return json.replace(
    /[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** @param taken how many columns stand before the value on its line */
function formatValue(value: unknown, indent: string, taken: number): string {
  const line = JSON.stringify(value);
  const isLeaf = typeof value !== 'object' || value === null;
  if (isLeaf || indent.length + taken + line.length < WIDTH) return line;
  const inner = `${indent} `;
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  const parts = Array.isArray(value)
    ? value.map((item) => formatValue(item, inner, 0))
    : Object.entries(value)
        .filter(([, item]) => item !== undefined)
        .map(([key, item]) => {
          const name = `${JSON.stringify(key)}: `;
          return `${name}${formatValue(item, inner, name.length)}`;
        });
  return `${open}\n${parts.map((part) => `${inner}${part}`).join(',\n')}\n${indent}${close}`;
}
