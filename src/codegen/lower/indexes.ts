// Symbolic integers as UOps. Lowering computes indexes with symbolic integers, which simplify themselves;
// here they become nodes. A variable stands for the range of a loop, for an index made of several of them, or
// for a variable of the kernel. Integers are int32 where their bounds allow it, and int64 beyond.

import { dtypes } from "../../dtype.ts";
import { ShapeError } from "../../errors.ts";
import { fold, type Sint, smax, smin, type Variable, type Visitor, vars } from "../../shape/symbolic.ts";
import type { UOpArena } from "../../uop/arena.ts";
import type { Expr } from "../../uop/node.ts";
import type { Target } from "../target.ts";

const { int32, int64 } = dtypes;

/** The bounds of a value, and whether 32 bits are too few for something that it is made of. */
interface Bounds {
  readonly min: number;
  readonly max: number;
  readonly isWide: boolean;
}
const fits = (min: number, max: number): boolean => min >= -(2 ** 31) && max < 2 ** 31;
const CONDITION = { min: 0, max: 1 };

export class Indexes {
  readonly #arena: UOpArena;
  readonly #target: Pick<Target, "name" | "support">;
  /** what each symbolic integer became: in 32 bits, and in 64 */
  readonly #known = new Map<Sint, Expr>();
  readonly #knownWide = new Map<Sint, Expr>();
  readonly #bounds = new Map<Sint, Bounds>();
  readonly #narrow: Visitor<Expr>;
  readonly #wide: Visitor<Expr>;
  readonly #bound = new Map<Variable, Expr>();
  /** for an index that may be beyond the end of its axis: the condition that it is not */
  readonly #guards = new Map<Variable, Expr>();

  constructor(arena: UOpArena, target: Pick<Target, "name" | "support">) {
    this.#arena = arena;
    this.#target = target;
    this.#narrow = this.#visitor(int32);
    this.#wide = this.#visitor(int64);
  }

  /**
   * From now on the variable stands for this node. `guard`: false where the index is beyond the end of its
   * axis.
   */
  bind(variable: Variable, index: Expr, guard?: Expr): void {
    this.#bound.set(variable, index);
    if (guard !== undefined) this.#guards.set(variable, guard);
  }

  /** int32 for indexes, or int64 where their bounds are beyond; bool for conditions. */
  toExpr(x: Sint): Expr {
    if (!this.#isWide(x) && fits(smin(x), smax(x))) return fold(x, this.#narrow, this.#known);
    return this.#wideExpr(x);
  }
  /**
   * An index into a buffer, as an int32. Sums and products may leave its range on the way: they wrap, and
   * come back. What is divided or compared must not.
   */
  toAddress(x: Sint): Expr {
    if (!this.#isWide(x)) return fold(x, this.#narrow, this.#known);
    return this.#arena.cast(this.#wideExpr(x), int32);
  }
  /** Two integers in a type that holds both. */
  alike(x: Expr, y: Expr): readonly [Expr, Expr] {
    if (x.dtype === y.dtype) return [x, y];
    return [this.#arena.cast(x, int64), this.#arena.cast(y, int64)];
  }

  /** Whether an index is within its axes; undefined where it always is. */
  inBounds(index: Sint): Expr | undefined {
    if (this.#guards.size === 0) return undefined;
    const guards = [...vars(index)].flatMap((v) => this.#guards.get(v) ?? []);
    return guards.length === 0 ? undefined : this.#arena.and(guards);
  }

  #isWide(x: Sint): boolean {
    return fold(x, this.#measure, this.#bounds).isWide;
  }
  #wideExpr(x: Sint): Expr {
    if (this.#target.support(int64) === "none") {
      throw new ShapeError(
        `kernel: a view of 2^31 elements or more needs 64-bit integers, which ${this.#target.name} does not have; ` +
          "split the tensor, or use another device",
      );
    }
    return fold(x, this.#wide, this.#knownWide);
  }

  readonly #measure: Visitor<Bounds> = {
    const: (n) => ({ min: n, max: n, isWide: false }),
    variable: (v) => ({ min: v.min, max: v.max, isWide: this.#bound.get(v)?.dtype === int64 }),
    add: (x, y) => ({ min: x.min + y.min, max: x.max + y.max, isWide: x.isWide || y.isWide }),
    mul: (x, y) => {
      const corners = [x.min * y.min, x.min * y.max, x.max * y.min, x.max * y.max];
      return { min: Math.min(...corners), max: Math.max(...corners), isWide: x.isWide || y.isWide };
    },
    idiv: (x, y, lift) => {
      const [min, max] = [Math.floor(x.min / y.min), Math.floor(x.max / y.min)];
      return { min: Math.min(min, 0), max: Math.max(max, 0), isWide: divides(x, y, lift) };
    },
    mod: (x, y, lift) => ({ min: 0, max: y.max - 1, isWide: divides(x, y, lift) }),
    lt: (x, y) => ({
      ...CONDITION,
      isWide: x.isWide || y.isWide || ![x, y].every((b) => fits(b.min, b.max)),
    }),
    and: (x, y) => ({ ...CONDITION, isWide: x.isWide || y.isWide }),
  };
  #visitor(type: typeof int32): Visitor<Expr> {
    const a = this.#arena;
    const constant = (n: number): Expr => a.constant(type, type.isBig ? BigInt(n) : n);
    /** A dividend that is never negative: symbolic division rounds down, IDIV and MOD towards zero. */
    const lifted = (x: Expr, y: Expr, lift: number): Expr => a.alu("ADD", x, a.alu("MUL", y, constant(lift)));
    return {
      const: constant,
      variable: (v) => a.cast(this.#bound.get(v) ?? a.variable(v), type),
      add: (x, y) => a.alu("ADD", x, y),
      mul: (x, y) => a.alu("MUL", x, y),
      idiv: (x, y, lift) => a.alu("ADD", a.alu("IDIV", lifted(x, y, lift), y), constant(-lift)),
      mod: (x, y, lift) => a.alu("MOD", lifted(x, y, lift), y),
      lt: (x, y) => a.alu("CMPLT", x, y),
      and: (x, y) => a.alu("AND", x, y),
    };
  }
}

/** Whether 32 bits are too few for a division. */
const divides = (x: Bounds, y: Bounds, lift: number): boolean =>
  x.isWide || y.isWide || !fits(y.min, y.max) || !fits(x.min, x.max + lift * y.max);
