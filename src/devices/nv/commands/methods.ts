// The stream that a channel fetches, word by word: a header (opcode, count, subchannel, method) and its data.
// Spells methods by the names of the class headers, and reads streams back for people and for the mock of the
// tests.

import { InternalError } from "../../../errors.ts";
import { COMPUTE, COPY, HOST } from "./classes.ts";

interface Field {
  readonly bits: readonly [high: number, low: number];
  readonly values: Readonly<Record<string, number>>;
}
interface Method {
  /** its number: a byte address */
  readonly at: number;
  readonly fields: Readonly<Record<string, Field>>;
}

/** Which class listens where. The host's methods are understood on each of them. */
const SUBCHANNEL = { HOST: 0, COMPUTE: 1, COPY: 4 } as const;
type ClassName = keyof typeof SUBCHANNEL;

const CLASSES: Readonly<Record<ClassName, Readonly<Record<string, Method>>>> = { HOST, COMPUTE, COPY };
/** Data goes to this method and those after it. */
const INCREASING = 1;

/** A header and its data: the first goes to the method, the others to those after it. */
export const method = (to: ClassName, { at }: Method, ...data: readonly number[]): number[] => [
  ((INCREASING << 29) | (data.length << 16) | (SUBCHANNEL[to] << 13) | (at >>> 2)) >>> 0,
  ...data,
];

/** Fields of a word, each by the name of its value or as a number. */
type MethodValues<M extends Method> = {
  readonly [F in keyof M["fields"]]?: keyof M["fields"][F]["values"] | number;
};

/** The word that sets these fields of a method and leaves the others 0. */
export function pack<M extends Method>({ fields }: M, chosen: MethodValues<M>): number {
  let word = 0;
  for (const [name, value] of Object.entries(chosen)) {
    const { bits, values } = fields[name] as Field;
    word |= fitted(name, bits, typeof value === "number" ? value : (values[value as string] as number));
  }
  return word >>> 0;
}
function fitted(name: string, [high, low]: Field["bits"], value: number): number {
  if (value >= 0 && value < 2 ** (high - low + 1)) return value << low;
  throw new InternalError(`${value} does not fit the field ${name} of ${high - low + 1} bits`);
}

/** One word of data on its way to a method. */
export interface Sent {
  readonly to: ClassName;
  readonly name: string;
  readonly method: Method;
  readonly data: number;
}

const NAMES = new Map(
  (Object.keys(CLASSES) as ClassName[]).flatMap((to) =>
    Object.entries(CLASSES[to]).map(([name, m]) => [`${SUBCHANNEL[to]} ${m.at}`, { to, name, method: m }]),
  ),
);
NAMES.set(`${SUBCHANNEL.COPY} 0`, { to: "COPY", name: "SET_OBJECT", method: COMPUTE.SET_OBJECT });

/** What a stream says. A header or a method that we do not know is an error. */
export function* parse(words: ArrayLike<number>): Generator<Sent> {
  for (let i = 0; i < words.length; ) {
    const header = words[i++] as number;
    const [opcode, count] = [header >>> 29, (header >>> 16) & 0x1fff];
    const [subchannel, at] = [(header >>> 13) & 7, (header & 0xfff) << 2];
    if (opcode !== INCREASING || count === 0)
      throw new InternalError(
        `word ${i - 1}, 0x${(header >>> 0).toString(16)}, is not a header that we wrote`,
      );
    if (i + count > words.length)
      throw new InternalError(
        `the stream ends ${i + count - words.length} words before its last method does`,
      );
    for (let k = 0; k < count; k++) {
      const known = NAMES.get(`${subchannel} ${at + k * 4}`);
      if (known === undefined)
        throw new InternalError(`subchannel ${subchannel} has no method 0x${(at + k * 4).toString(16)}`);
      yield { ...known, data: (words[i++] as number) >>> 0 };
    }
  }
}

/** The fields of a word by name; bits outside of all fields are an error. */
export function unpack({ to, name, method: { fields }, data }: Sent): Record<string, number> {
  let rest = data;
  const found: Record<string, number> = {};
  for (const [field, { bits }] of Object.entries(fields)) {
    const mask = ((2 ** (bits[0] - bits[1] + 1) - 1) << bits[1]) >>> 0;
    found[field] = (data & mask) >>> bits[1];
    rest = (rest & ~mask) >>> 0;
  }
  if (rest === 0) return found;
  throw new InternalError(
    `${to}.${name} = 0x${data.toString(16)}: no field has the bits 0x${rest.toString(16)}`,
  );
}

/** One line a word of data: `COMPUTE.SEND_PCAS_A QMD_ADDRESS_SHIFTED8=0x4000`. */
export function show(words: ArrayLike<number>): string[] {
  return [...parse(words)].map((sent) => {
    const values = Object.entries(unpack(sent));
    const fields = values.flatMap(([name, value]) => {
      if (value === 0 && values.length > 1) return [];
      const { values: names } = sent.method.fields[name] as Field;
      const known = Object.entries(names).find(([, v]) => v === value)?.[0];
      return [`${name}=${known ?? `0x${value.toString(16)}`}`];
    });
    return `${sent.to}.${sent.name} ${fields.join(" ")}`.trimEnd();
  });
}
