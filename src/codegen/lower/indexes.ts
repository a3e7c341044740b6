// Symbolic integers as UOps. Lowering computes indexes with symbolic integers, which simplify themselves;
// here they become nodes. A variable stands for the range of a loop, for an index made of several of them, or
// for a variable of the kernel.

import { dtypes } from "../../dtype.ts";
import { fold, type Sint, type Variable, type Visitor, vars } from "../../shape/symbolic.ts";
import type { UOpArena } from "../../uop/arena.ts";
import type { Expr } from "../../uop/node.ts";

export class Indexes {
  readonly #arena: UOpArena;
  /** what each symbolic integer became */
  readonly #known = new Map<Sint, Expr>();
  readonly #bound = new Map<Variable, Expr>();
  /** for an index that may be beyond the end of its axis: the condition that it is not */
  readonly #guards = new Map<Variable, Expr>();

  constructor(arena: UOpArena) {
    this.#arena = arena;
  }

  /**
   * From now on the variable stands for this node. `guard`: false where the index is beyond the end of its
   * axis.
   */
  bind(variable: Variable, index: Expr, guard?: Expr): void {
    this.#bound.set(variable, index);
    if (guard !== undefined) this.#guards.set(variable, guard);
  }

  /** int32 for indexes, bool for conditions. */
  toExpr(x: Sint): Expr {
    return fold(x, this.#visitor, this.#known);
  }

  /** Whether an index is within its axes; undefined where it always is. */
  inBounds(index: Sint): Expr | undefined {
    if (this.#guards.size === 0) return undefined;
    const guards = [...vars(index)].flatMap((v) => this.#guards.get(v) ?? []);
    return guards.length === 0 ? undefined : this.#arena.and(guards);
  }

  /** A dividend that is never negative: symbolic division rounds down, IDIV and MOD towards zero. */
  #lifted(x: Expr, y: Expr, lift: number): Expr {
    return this.#arena.alu("ADD", x, this.#arena.alu("MUL", y, this.#arena.int(lift)));
  }
  readonly #visitor: Visitor<Expr> = {
    const: (n) => this.#arena.constant(dtypes.int32, n),
    variable: (v) => this.#bound.get(v) ?? this.#arena.variable(v),
    add: (x, y) => this.#arena.alu("ADD", x, y),
    mul: (x, y) => this.#arena.alu("MUL", x, y),
    idiv: (x, y, lift) => {
      const quotient = this.#arena.alu("IDIV", this.#lifted(x, y, lift), y);
      return this.#arena.alu("ADD", quotient, this.#arena.int(-lift));
    },
    mod: (x, y, lift) => this.#arena.alu("MOD", this.#lifted(x, y, lift), y),
    lt: (x, y) => this.#arena.alu("CMPLT", x, y),
    and: (x, y) => this.#arena.alu("AND", x, y),
  };
}
