import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileReader } from '../../src/simulation/schema-reader.ts';

const FORMATS = { short: (text: string): boolean => text.length < 4 };

function read(schema: Readonly<Record<string, unknown>>, text: string): unknown {
  return compileReader(schema, FORMATS)(Buffer.from(text), text);
}

const OPEN = {
  type: 'object',
  properties: {
    name: { type: 'string' },
    names: { type: 'array', items: { type: 'string' } },
    namespace: { type: ['string', 'null'] },
    on: { type: 'boolean' },
    count: { type: 'integer' },
  },
  required: ['name'],
};

const CLOSED = { ...OPEN, additionalProperties: false };
const MAP = { type: 'object', additionalProperties: { type: ['integer', 'null'] } };

describe('a reader compiled of a schema', () => {
  it.each<[object, string, unknown]>([
    [{ type: 'string' }, '"text"', 'text'],
    [{ type: 'string' }, ' \t\r\n"" ', ''],
    [{ type: 'string', format: 'short' }, '"abc"', 'abc'],
    [{ enum: ['a', 'b'] }, '"b"', 'b'],
    [{ type: 'integer' }, '0', 0],
    [{ type: 'integer' }, '-12', -12],
    [{ type: 'integer' }, '4294967296', 4_294_967_296],
    [{ type: 'number' }, '999999999999999', 999_999_999_999_999],
    [{ type: ['number', 'null'] }, 'null', null],
    [{ type: 'boolean' }, 'true', true],
    [{ type: ['boolean', 'null'] }, 'false', false],
    [{ type: 'array', items: { type: 'integer' } }, '[]', []],
    [{ type: 'array', items: { type: 'integer' } }, '[ 1 , 2,3 ]', [1, 2, 3]],
    [{}, '{"a": [1, {}, [], "x", true, false, null]}', { a: [1, {}, [], 'x', true, false, null] }],
    [MAP, '{}', {}],
    [MAP, '{"a":1,"b":null,"a":2}', { a: 2, b: null }],
    [CLOSED, '{"name":"x"}', { name: 'x' }],
    [CLOSED, '{ "on" : true , "name" : "x" , "count" : 3 }', { on: true, name: 'x', count: 3 }],
    [
      { $ref: '#/definitions/it', definitions: { it: { type: 'integer', description: 'd' } } },
      '7',
      7,
    ],
  ])('%j reads %s', (schema, text, value) => {
    expect(read(schema as never, text)).toStrictEqual(value);
  });

  it('gives an open map all of its fields, and no others', () => {
    const missing = { namespace: undefined, on: undefined, count: undefined };
    expect(
      read(OPEN, '{"name":"x","nam":1,"nameless":{"a":[2]},"na":"","names":["y"]}'),
    ).toStrictEqual({ ...missing, name: 'x', names: ['y'] });
    expect(Object.keys(read(OPEN, '{"count":1,"name":"x"}') as object)).toEqual(
      Object.keys(OPEN.properties),
    );
  });

  it.each<[object, string]>([
    [{ type: 'string' }, ''],
    [{ type: 'string' }, '"open'],
    [{ type: 'string' }, '"two" "texts"'],
    [{ type: 'string' }, '"\\u0061"'],
    [{ type: 'string' }, '"\u007f"'],
    [{ type: 'string' }, '"\t"'],
    [{ type: 'string' }, '1'],
    [{ type: 'string', format: 'short' }, '"abcd"'],
    [{ enum: ['a', 'b'] }, '"c"'],
    [{ enum: ['a', 'b'] }, '1'],
    [{ type: 'integer' }, '01'],
    [{ type: 'integer' }, '-0'],
    [{ type: 'integer' }, '-'],
    [{ type: 'integer' }, '1.5'],
    [{ type: 'integer' }, '1e3'],
    [{ type: 'integer' }, '1E3'],
    [{ type: 'integer' }, '1234567890123456'],
    [{ type: 'integer' }, '"1"'],
    [{ type: 'integer' }, 'null'],
    [{ type: 'boolean' }, 'tru'],
    [{ type: 'boolean' }, 'fals'],
    [{ type: 'null' }, 'nul'],
    [{ type: 'array', items: { type: 'integer' } }, '[1'],
    [{ type: 'array', items: { type: 'integer' } }, '[1,]'],
    [{ type: 'array', items: { type: 'integer' } }, '[1 2]'],
    [{}, '{"a":1.5}'],
    [{}, '{"a" 1}'],
    [{}, '{1:1}'],
    [{}, `${'['.repeat(100)}${']'.repeat(100)}`],
    [MAP, '{"__proto__":1}'],
    [MAP, '{"a":"b"}'],
    [MAP, '{"a":1'],
    [CLOSED, '{}'],
    [CLOSED, '{"name":"x","other":1}'],
    [CLOSED, '{"name":"x","nam":1}'],
    [CLOSED, '{"name":1}'],
    [OPEN, '{"count":1}'],
    [OPEN, '{"name":null}'],
    [OPEN, '{"name":"x",}'],
    [OPEN, '{"name":"x"'],
    [OPEN, '{"na'],
    [OPEN, '[]'],
  ])('%j leaves %s to others', (schema, text) => {
    expect(read(schema as never, text)).toBeUndefined();
  });

  it('reads what JSON.parse reads, or leaves it', () => {
    const schema = { type: 'array', items: {} };
    const reader = compileReader(schema, FORMATS);
    let plain = 0;
    fc.assert(
      fc.property(fc.array(fc.jsonValue({ maxDepth: 3 })), fc.nat(2), (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        const bytes = Buffer.from(text);
        const actual = reader(bytes, bytes.toString('latin1'));
        if (actual === undefined) return;
        plain += 1;
        expect(actual).toStrictEqual(JSON.parse(text));
      }),
    );
    expect(plain).toBeGreaterThan(10);
  });

  it.each<[object, string]>([
    [{ pattern: 'a' }, 'pattern'],
    [{ type: 'text' }, 'type text'],
    [{ type: 'integer', minimum: 0 }, 'a limit'],
    [{ type: 'integer', maximum: 2 ** 31 }, 'a limit'],
    [{ type: 'object', properties: { a: { type: 'integer' } } }, 'a name of one character'],
  ])('is not made of %j', (schema, said) => {
    expect(() => compileReader(schema as never, FORMATS)).toThrow(
      `not understood in a schema: ${said}`,
    );
  });
});
