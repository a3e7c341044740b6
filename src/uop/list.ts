// UOpGraph: a kernel as a linear list of UOps in which every source comes before its user. The name is that
// of the public interface: the list still holds the graph, since each UOp points to its sources. The graph
// that passes change is a KernelGraph (codegen/lower). linearize makes the list, renderers read it from top
// to bottom. One that is written by hand is in written.ts.

import type { DType } from "../dtype.ts";
import type { Variable } from "../shape/symbolic.ts";
import { UOpArena } from "./arena.ts";
import { UOpMap } from "./map.ts";
import type { DefineGlobal, DefineVar, Expr, UOp, UOpArgs, UOpName, UType } from "./node.ts";

class UOpList implements Iterable<UOp> {
  readonly uops: UOp[] = [];
  readonly #arena: UOpArena;
  readonly #at: UOpMap<number>;
  readonly #vars: DefineVar[] = [];
  readonly #globals: DefineGlobal[] = [];
  /** a list that codegen made leaves out buffers that a kernel has no use for; one made by hand has all */
  readonly isByHand: boolean = false;

  constructor(arena: UOpArena = new UOpArena()) {
    this.#arena = arena;
    this.#at = new UOpMap(arena);
  }

  /**
   * Adds a node and returns it, or what it folds to: ADD of the constants 199 and 200 is the constant 399.
   */
  add<K extends UOpName>(
    op: K,
    dtype: UType,
    srcs: readonly UOp[] = [],
    arg?: UOpArgs[K],
  ): K extends Expr["op"] ? Expr : UOp<K> {
    const u = this.#arena.make(op, dtype, srcs, arg as UOpArgs[K]);
    this.push(u);
    return u;
  }

  /** Appends a node that an arena made already, once. */
  push(u: UOp): void {
    if (this.#at.has(u)) return;
    this.#at.set(u, this.uops.length);
    this.uops.push(u);
    if (u.op === "DEFINE_VAR") this.#vars.push(u);
    else if (u.op === "DEFINE_GLOBAL") this.#globals.push(u);
  }

  has(u: UOp): boolean {
    return this.#at.has(u);
  }
  indexOf(u: UOp): number {
    return this.#at.get(u) ?? -1;
  }
  [Symbol.iterator](): Iterator<UOp> {
    return this.uops[Symbol.iterator]();
  }
  /** The symbolic variables of the kernel, in the order in which it takes them. */
  vars(): Variable[] {
    return this.#vars.map((u) => u.variable);
  }
  /** The buffers of the kernel. */
  globals(): readonly DefineGlobal[] {
    return this.#globals;
  }

  /** A row for each UOp. In a page, once listing.ts is loaded: by DEBUG=5, or by who writes lists by hand. */
  toString(): string {
    return list(this);
  }
}

export { UOpList as UOpGraph };

let list = (g: UOpList): string => `${g.uops.length} UOps`;
export const setListing = (listing: typeof list): void => {
  list = listing;
};

/** The element type of what an access moves, as it is in memory. */
export const elementOf = (access: UOp<"LOAD" | "STORE" | "LDMATRIX" | "LDFRAGMENT">): DType =>
  access.buffer.dtype.base;
