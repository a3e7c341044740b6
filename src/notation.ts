// The notation of functions that are sums, products and bit tricks (transcendental.ts, trigonometry.ts,
// power.ts): ops of any Algebra that take plain numbers as constants of their type.

import type { DType } from "./dtype.ts";
import type { Algebra, AluOp } from "./ops.ts";

/** Adding it to a float64 rounds to an integer, whose bits are then the low ones of the sum. */
export const FLOAT64_MAGIC = 1.5 * 2 ** 52;

/** Ops on floats of this type. */
export function notation<T>(a: Algebra<T>, d: DType) {
  const is = (x: T | number): x is number => typeof x === "number";
  const float = (x: T | number): T => (is(x) ? a.constant(d, x) : x);
  const op = (name: AluOp) => (x: T | number, y: T | number) => a.alu(name, float(x), float(y));
  const [add, mul] = [op("ADD"), op("MUL")];
  const fuses = a.fuses?.(d) === true;
  /** x y + z */
  const mulAdd = (x: T | number, y: T | number, z: T | number): T =>
    fuses ? a.alu("MULACC", float(x), float(y), float(z)) : add(mul(x, y), z);
  return {
    add,
    mul,
    mulAdd,
    sub: op("SUB"),
    div: op("DIV"),
    less: op("CMPLT"),
    where: (c: T, x: T | number, y: T | number) => a.alu("WHERE", c, float(x), float(y)),
    /** c[0] + c[1] x + … by Horner's rule */
    polynomial: (x: T, c: readonly number[]) =>
      float(c.slice(0, -1).reduceRight<T | number>((sum, k) => mulAdd(sum, x, k), c.at(-1) ?? 0)),
  };
}
export type Notation<T> = ReturnType<typeof notation<T>>;

/** A constant of the integer type that is as wide as the float. */
export const integers =
  <T>(a: Algebra<T>, d: DType) =>
  (x: number | bigint): T =>
    a.constant(d, d.isBig ? BigInt(x) : x);
