// The data: one sample a line as the conformance README describes it, read into tensors, and values compared
// with its tolerances. A leaf that wants a gradient is kept in the order input, args, kwargs.

import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { type DTypeName, dtypes, Tensor } from "gradloom";

export interface RawTensor {
  readonly t: string;
  readonly s: readonly number[];
  readonly v: readonly (number | boolean | string)[];
  readonly g?: 1;
}
export type Raw =
  | null
  | number
  | boolean
  | string
  | readonly Raw[]
  | RawTensor
  | { readonly l: readonly Raw[] }
  | { readonly dtype: string }
  | { readonly f: string };

export interface Sample {
  readonly op: string;
  readonly variant: string;
  readonly dtype: string;
  readonly input: Raw;
  readonly args: readonly Raw[];
  readonly kwargs: Readonly<Record<string, Raw>>;
  readonly out: Raw;
  readonly grads?: readonly (RawTensor | null)[];
}

/** What an argument is for us; a dtype is its name. */
export type Arg = undefined | number | boolean | string | Tensor | readonly Arg[];

export function readSamples(file: string): Sample[] {
  const bytes = readFileSync(file);
  const text = (file.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString("utf8");
  return text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => JSON.parse(line) as Sample);
}

export const isTensor = (x: Raw): x is RawTensor => typeof x === "object" && x !== null && "t" in x;
export const listOf = (x: Raw): readonly Raw[] | undefined => {
  if (Array.isArray(x)) return x as readonly Raw[];
  return typeof x === "object" && x !== null && "l" in x ? x.l : undefined;
};

const SPELT: Readonly<Record<string, number>> = { nan: Number.NaN, inf: Infinity, "-inf": -Infinity };
export const toNumber = (x: number | boolean | string): number =>
  typeof x === "string" ? (SPELT[x] ?? Number(x)) : Number(x);

/** Reads arguments; tensors that want a gradient are noted in `leaves`. */
export class Decoder {
  readonly leaves: Tensor[] = [];
  readonly #device: string;
  readonly #place: (t: Tensor) => Tensor;
  /** `place` puts every tensor where it is wanted, on several devices say. */
  constructor(device: string, place: (t: Tensor) => Tensor = (t) => t) {
    this.#device = device;
    this.#place = place;
  }
  decode(x: Raw): Arg {
    if (x === null) return undefined;
    if (typeof x !== "object") return x;
    const list = listOf(x);
    if (list !== undefined) return list.map((y) => this.decode(y));
    if (isTensor(x)) return this.#tensor(x);
    if ("dtype" in x) return x.dtype;
    return toNumber((x as { f: string }).f);
  }
  #tensor(x: RawTensor): Tensor {
    const dtype = dtypes[x.t as DTypeName];
    if (dtype === undefined) throw new Error(`the file has dtype ${x.t}, which is not ours`);
    const values = x.v.map((v) => (dtype.isBig ? BigInt(v as number) : toNumber(v)));
    const flat = new Tensor(values, { dtype: x.t as DTypeName, device: this.#device });
    const t = this.#place(flat.reshape(x.s));
    if (x.g === 1) {
      t.requiresGrad = true;
      this.leaves.push(t);
    }
    return t;
  }
}

/** The weights of the loss: fixed, of both signs, none the same as its neighbours. */
export const weight = (i: number): number => (((i * 7) % 11) - 5) / 5;

export interface Tolerance {
  readonly relative: number;
  readonly absolute: number;
}

/** The first element that differs too much, in words; undefined where all agree. */
export function mismatch(
  got: ArrayLike<number | bigint>,
  want: RawTensor,
  exact: boolean,
  { relative, absolute }: Tolerance,
): string | undefined {
  if (got.length !== want.v.length) return `${got.length} elements, expected ${want.v.length}`;
  for (let i = 0; i < got.length; i++) {
    const [a, b] = [Number(got[i]), toNumber(want.v[i] as number)];
    if (a === b || (Number.isNaN(a) && Number.isNaN(b))) continue;
    if (!exact && Math.abs(a - b) <= absolute + relative * Math.abs(b)) continue;
    return `[${i}] is ${a}, expected ${b}`;
  }
  return undefined;
}
