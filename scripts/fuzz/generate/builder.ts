// Builds a program call by call: every call is tried on the reference first, and what the reference does not
// take, or what would make numbers or arrays too large, is as if it had not been made.

import {
  type Arg,
  type Call,
  type ClassName,
  type Input,
  node,
  nodesIn,
  type Program,
  resultCount,
  type TypeName,
  toJson,
} from "../language.ts";
import { type Arr, array, sizeOf, Unsuitable } from "../reference/array.ts";
import { perform } from "../reference/interpreter.ts";
import { castScalar, isBig, isFloat, roundFloat, TYPES } from "../reference/types.ts";
import type { Dice } from "./dice.ts";

/** How large programs may become. */
export interface Limits {
  /** elements of an input, and of an output */
  readonly elements: number;
  /** elements of what is computed in between */
  readonly between: number;
}
export const SMALL: Limits = { elements: 64, between: 512 };

/** What values an input has. */
export type Values = "eighths" | "whole" | "positive" | "distinct" | "unit" | "special" | "wide";

export class Builder {
  readonly dice: Dice;
  readonly limits: Limits;
  readonly nodes: Arr[] = [];
  readonly #inputs: Input[] = [];
  readonly #calls: Call[] = [];
  /** infinities, NaN and large numbers are welcome */
  special = false;

  constructor(dice: Dice, limits: Limits) {
    this.dice = dice;
    this.limits = limits;
  }

  // ---- inputs ----

  shape(min = 0, max = 3): number[] {
    const r = this.dice;
    const size = (): number =>
      r.chance(80) ? r.int(1, 4) : r.chance(90) ? r.pick([5, 6, 7, 8, 12]) : r.pick([16, 20, 33]);
    for (;;) {
      const s = Array.from({ length: r.int(min, max) }, size);
      if (sizeOf(s) <= this.limits.elements) return s;
    }
  }
  /** Inputs come before calls: a program that has begun takes no more of them. */
  input(d: TypeName, s: readonly number[], kind: Values = "eighths"): number {
    if (this.#calls.length > 0) throw new Error("fuzz: inputs come first");
    const n = sizeOf(s);
    const values =
      kind === "distinct" ? this.#distinct(d, n) : Array.from({ length: n }, () => this.#value(d, kind));
    this.nodes.push(array(d, s, values));
    this.#inputs.push([d, s, values.map(toJson)]);
    return this.nodes.length - 1;
  }
  /** An index: whole numbers from 0, or from -n, below n. */
  index(s: readonly number[], n: number, negative = false): number {
    if (this.#calls.length > 0) throw new Error("fuzz: inputs come first");
    const d = this.dice.pick<TypeName>(["int32", "int32", "int64"]);
    const values = Array.from({ length: sizeOf(s) }, () => {
      const i = this.dice.int(negative ? -n : 0, n - 1);
      return d === "int64" ? BigInt(i) : i;
    });
    this.nodes.push(array(d, s, values));
    this.#inputs.push([d, s, values.map(toJson)]);
    return this.nodes.length - 1;
  }
  #value(d: TypeName, kind: Values): number | bigint {
    const r = this.dice;
    if (d === "bool") return r.int(0, 1);
    if (kind === "special") return r.pick(edgesOf(d));
    if (!isFloat(d)) return this.#integer(d, kind);
    if (kind === "whole") return r.int(-4, 4);
    if (kind === "positive") return r.int(1, 24) / 8;
    if (kind === "unit") return r.int(-7, 7) / 8;
    if (kind === "wide") return roundFloat(d, (r.int(-(2 ** 20), 2 ** 20) / 2 ** 20) * 2 ** r.int(-6, 6));
    return r.int(-24, 24) / 8;
  }
  #integer(d: TypeName, kind: Values): number | bigint {
    const r = this.dice;
    if (kind === "wide" && r.chance(60)) return r.pick(edgesOf(d));
    const low = TYPES[d].kind === "uint" || kind === "positive" ? 0 : -9;
    const x = r.int(kind === "positive" ? 1 : low, 9);
    return isBig(d) ? BigInt(x) : x;
  }
  /** No two alike, so that order and corners are clear. */
  #distinct(d: TypeName, n: number): (number | bigint)[] {
    const all = Array.from({ length: n }, (_, i) => i - Math.floor(n / 2));
    const mixed = this.dice
      .shuffled(all)
      .map((i) => (isFloat(d) ? (i * 2 + 1) / 16 : TYPES[d].kind === "uint" ? i + n : i));
    return isBig(d) ? mixed.map(BigInt) : mixed;
  }

  // ---- calls ----

  at(i: number): Arr {
    return this.nodes[i] as Arr;
  }
  /** The first node that a call adds, or undefined where it was not taken. */
  call(method: string, receiver: number, ...args: Arg[]): number | undefined {
    const before = [...this.nodes];
    const call: Call = [method, receiver, ...args];
    try {
      perform(this.nodes, call);
      const fresh = [...this.nodes.slice(before.length), ...(receiver >= 0 ? [this.at(receiver)] : [])];
      if (fresh.some((x) => !this.#fits(x))) throw new Unsuitable("too large");
    } catch (e) {
      if (!(e instanceof Unsuitable) && !(e instanceof RangeError) && !(e instanceof SyntaxError)) throw e;
      this.nodes.splice(0, this.nodes.length, ...before);
      return undefined;
    }
    this.#calls.push(call);
    return before.length;
  }
  #fits(x: Arr): boolean {
    if (x.v.length > this.limits.between) return false;
    if (!isFloat(x.d) || this.special) return true;
    const most = x.d === "float16" ? 2000 : 1e6;
    return x.v.every((e) => Math.abs(Number(e)) <= most);
  }
  /** `call` that stays at the receiver where it was not taken. */
  step(method: string, receiver: number, ...args: Arg[]): number {
    return this.call(method, receiver, ...args) ?? receiver;
  }
  /** Computes a node now; it adds none. */
  realize(i: number): void {
    this.#calls.push(["realize", i]);
  }
  backward(loss: number, leaves: readonly number[]): number[] {
    this.#calls.push(["backward", loss, [...leaves]]);
    return leaves.map((i) => {
      this.nodes.push(this.at(i));
      return this.nodes.length - 1;
    });
  }
  /** The nodes that node i is made of. */
  reaches(i: number): ReadonlySet<number> {
    const seen = new Set([i]);
    let last = this.nodes.length;
    for (const call of [...this.#calls].reverse()) {
      const made = resultCount(call[0], call.slice(2) as Arg[]);
      const mine = Array.from({ length: made }, (_, k) => last - 1 - k);
      last -= made;
      if (mine.some((k) => seen.has(k)))
        for (const j of [call[1], ...call.slice(2).flatMap((a) => nodesIn(a as Arg))]) seen.add(j);
    }
    return seen;
  }
  /** A small output, if need be summed up along its dims. */
  small(i: number): number {
    let out = i;
    for (let k = 0; k < 4 && this.at(out).v.length > this.limits.elements; k++)
      out = this.step("sum", out, this.dice.int(0, this.at(out).s.length - 1));
    return out;
  }
  program(c: ClassName, out: readonly number[], zeros = false): Program | undefined {
    if (this.#calls.length === 0 || out.some((i) => this.at(i).v.length > this.limits.elements))
      return undefined;
    const base = { c, in: this.#inputs, ops: this.#calls, out: [...new Set(out)] };
    return zeros ? { ...base, z: 1 } : base;
  }
}
export const ref = node;

/** Both ends of the range, zeros, subnormals, infinities and NaN of a type. */
export function edgesOf(d: TypeName): (number | bigint)[] {
  const { kind, bits, most = 0, low = 0, digits = 0 } = TYPES[d];
  if (kind === "bool") return [0, 1];
  if (kind === "float") {
    const tiny = 2 ** (low - digits + 1);
    const all = [
      0,
      -0,
      1,
      -1,
      0.5,
      -2.5,
      1.5,
      3,
      7.25,
      100.125,
      255.5,
      65504,
      2 ** 31,
      -(2 ** 31),
      1e10,
      tiny,
      3 * tiny,
      2 ** low,
      most,
      -most,
      NaN,
      Infinity,
      -Infinity,
    ];
    return all.map((x) => roundFloat(d, x));
  }
  const half = 2n ** BigInt(bits - 1);
  const [min, max] = kind === "int" ? [-half, half - 1n] : [0n, 2n * half - 1n];
  const near = [0n, 1n, 2n, 3n, 7n, 31n, -1n, -2n, -7n].filter((x) => x >= min);
  return [min, min + 1n, max, max - 1n, max / 2n, ...near]
    .map((x) => castScalar(d, x, "int64"))
    .concat(d === "uint64" ? [max] : []);
}
