// How an expression moves from one element of an aligned vector to the next: positions v * width + 0, 1, 2 …
// along one range, for any v. Division and remainder by a multiple of the width do not hinder that, nor does
// a comparison whose bound is such a multiple. In go an expression and a range, out comes the widest vector
// in which every load is a vector too.

import type { UOpArena } from "../../uop/arena.ts";
import { UOpMap } from "../../uop/map.ts";
import type { Expr, Range, UOp } from "../../uop/node.ts";

/** From one element to the next; and what the first is modulo the width, if that is known. */
interface VectorStep {
  /** undefined: it varies, or is not known */
  readonly step: number | undefined;
  readonly residue: number | undefined;
}
const UNKNOWN: VectorStep = { step: undefined, residue: undefined };

export class VectorSteps {
  readonly #along: Range;
  readonly #width: number;
  readonly #known: UOpMap<VectorStep>;

  constructor(along: Range, width: number, arena: UOpArena) {
    this.#along = along;
    this.#width = width;
    this.#known = new UOpMap<VectorStep>(arena);
  }

  of(u: UOp): VectorStep {
    const known = this.#known.get(u);
    if (known !== undefined) return known;
    const made = this.#make(u);
    this.#known.set(u, made);
    return made;
  }
  /** The value is the same in the whole vector. */
  isSame(u: UOp | undefined): boolean {
    return u === undefined || this.of(u).step === 0;
  }

  #modulo(n: number): number {
    return ((n % this.#width) + this.#width) % this.#width;
  }
  #make(u: UOp): VectorStep {
    if (u === this.#along) return { step: 1, residue: 0 };
    if (u.op === "CONST")
      return { step: 0, residue: u.dtype.isInt ? this.#modulo(Number(u.value)) : undefined };
    if (u.op === "CAST" && u.dtype.isInt && u.operand.dtype.isInt) return this.of(u.operand);
    if (u.op === "ALU") {
      const made = this.#alu(u);
      if (made !== undefined) return made;
    }
    return u.srcs.every((s) => this.isSame(s)) ? { step: 0, residue: undefined } : UNKNOWN;
  }
  #alu(u: UOp<"ALU">): VectorStep | undefined {
    const [x, y] = u.operands;
    if (y === undefined || !x.dtype.isInt) return undefined;
    const [a, b] = [this.of(x), this.of(y)];
    if (a.step === undefined || b.step === undefined) return UNKNOWN;
    const both = (f: (p: number, q: number) => number): number | undefined =>
      a.residue === undefined || b.residue === undefined ? undefined : this.#modulo(f(a.residue, b.residue));
    const by = y.op === "CONST" ? Number(y.value) : undefined;
    switch (u.fn) {
      case "ADD":
        return { step: a.step + b.step, residue: both((p, q) => p + q) };
      case "SUB":
        return { step: a.step - b.step, residue: both((p, q) => p - q) };
      case "MUL":
        if (by === undefined) return undefined;
        return { step: a.step * by, residue: this.#modulo(by) === 0 ? 0 : both((p, q) => p * q) };
      case "IDIV":
      case "MOD":
        return by === undefined ? undefined : this.#divided(u.fn, a, by);
      case "CMPLT":
        return this.#compared(a, b);
      default:
        return undefined;
    }
  }
  /** A quotient is the same in a vector that no multiple of the divisor splits, and its remainders go on. */
  #divided(fn: "IDIV" | "MOD", { step, residue }: VectorStep, by: number): VectorStep | undefined {
    const isWhole = by % this.#width === 0;
    if (step === 0) return { step: 0, residue: fn === "MOD" && isWhole ? residue : undefined };
    if (step !== 1 || residue !== 0 || !isWhole) return undefined;
    return fn === "IDIV" ? { step: 0, residue: undefined } : { step: 1, residue: 0 };
  }
  /** x < y is the same in a vector that their difference does not change its sign in. */
  #compared(x: VectorStep, y: VectorStep): VectorStep | undefined {
    const same = { step: 0, residue: undefined };
    if (x.step === y.step) return same;
    if (x.residue === undefined || y.residue === undefined) return undefined;
    const apart = this.#modulo(y.residue - x.residue);
    if (x.step === 1 && y.step === 0 && apart === 0) return same;
    return x.step === 0 && y.step === 1 && apart === this.#modulo(1) ? same : undefined;
  }
}

/** How well the loads of an expression go along a range. */
export interface Loading {
  /** elements that each load moves at once */
  readonly width: number;
  /** the first of its loads goes to neighbours */
  readonly isNear: boolean;
}

/** The widest vectors along a range, of up to `most` elements, in which all loads are vectors, too. */
export function loadingAlong(value: Expr, along: Range, most: number, arena: UOpArena): Loading {
  const loads = arena.nodes(value).filter((u) => u.op === "LOAD");
  const fits = (width: number): boolean => {
    const steps = new VectorSteps(along, width, arena);
    const isVector = ({ index, gate }: UOp<"LOAD">): boolean => {
      const { step, residue } = steps.of(index);
      return steps.isSame(gate) && (step === 0 || (step === 1 && residue === 0));
    };
    return loads.every(isVector) && !loads.every((l) => steps.isSame(l));
  };
  let width = most;
  while (width > 1 && !fits(width)) width /= 2;
  const [first] = loads;
  const pairs = new VectorSteps(along, 2, arena);
  return { width, isNear: first !== undefined && pairs.of(first.index).step === 1 };
}
