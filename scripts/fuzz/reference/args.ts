// What the ops of the reference make of their arguments: the program has been resolved, so that arguments are
// arrays, numbers, strings, lists and records. An argument of another kind is a program that is not taken.

import type { Resolved } from "../language.ts";
import { type Arr, isArr, type Term, Unsuitable } from "./array.ts";

export type Value = Resolved<Arr>;
/** One method: the receiver and the arguments in, one array or several out. */
export type Op = (x: Arr, ...args: Value[]) => Arr | readonly Arr[];
export type Ops = Readonly<Record<string, Op>>;

export function arr(x: Value): Arr {
  if (!isArr(x)) throw new Unsuitable("expected a tensor");
  return x;
}
export function num(x: Value, otherwise?: number): number {
  if (typeof x === "number") return x;
  if (x === undefined && otherwise !== undefined) return otherwise;
  throw new Unsuitable("expected a number");
}
export function text(x: Value, otherwise?: string): string {
  if (typeof x === "string") return x;
  if (x === undefined && otherwise !== undefined) return otherwise;
  throw new Unsuitable("expected a word");
}
export const flag = (x: Value): boolean => x === true;
export function list(x: Value): readonly Value[] {
  if (!Array.isArray(x)) throw new Unsuitable("expected a list");
  return x as readonly Value[];
}
export const nums = (x: Value): number[] => (Array.isArray(x) ? x.map((e: Value) => num(e)) : [num(x)]);
/** Sizes given one by one or as a list. */
export const sizes = (args: readonly Value[]): number[] =>
  nums(args.length === 1 && Array.isArray(args[0]) ? args[0] : [...args]);
export function options(x: Value): Readonly<Record<string, Value>> {
  if (x === undefined || x === null) return {};
  if (typeof x !== "object" || Array.isArray(x) || isArr(x)) throw new Unsuitable("expected options");
  return x as Readonly<Record<string, Value>>;
}
export function term(x: Value): Term {
  if (isArr(x) || typeof x === "number" || typeof x === "bigint" || typeof x === "boolean") return x;
  throw new Unsuitable("expected a tensor or a number");
}
