// UOpGraph: a kernel as a linear list of UOps in which every source comes before its user. The name is that
// of the public interface: the list still holds the graph, since each UOp points to its sources. The graph
// that passes change is a KernelGraph (codegen/lower). linearize makes the list, renderers read it from top
// to bottom. One that is written by hand is in written.ts.

import type { DType } from "../dtype.ts";
import { opRecord } from "../ops.ts";
import type { Variable } from "../shape/symbolic.ts";
import { UOpArena } from "./arena.ts";
import { UOpMap } from "./map.ts";
import type { DefineGlobal, DefineVar, Expr, UOp, UOpArgs, UOpName, UType } from "./node.ts";

export class UOpGraph implements Iterable<UOp> {
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

  /** A row for each UOp: its position, op, type, the positions of its sources, its argument. */
  toString(): string {
    const head = "step  Op_name               type                      input                           arg";
    const rows = this.uops.map((u, i) => {
      const type = u.dtype === undefined ? "" : String(u.dtype);
      const input = `[${u.srcs.map((s) => this.indexOf(s)).join(", ")}]`;
      return `${String(i).padStart(4)} ${`UOps.${u.op}`.padEnd(20)}: ${type.padEnd(25)} ${input.padEnd(32)} ${showArg(u)}`;
    });
    return [head, ...rows].join("\n");
  }
}

function showArg(u: UOp): string {
  const show = (x: unknown): string => {
    if (typeof x === "boolean") return x ? "True" : "False";
    return typeof x === "string" ? `'${x}'` : String(x);
  };
  switch (u.op) {
    case "ALU":
      return `${opRecord(u.fn).group}.${u.fn}`;
    case "REDUCE":
      return `ReduceOps.${u.fn}`;
    case "DEFINE_VAR":
      return u.variable.name;
    case "WMMA":
      return u.core.name;
    case "TILE":
      return `${u.tile.size} x ${u.tile.stages}`;
    case "RANGE":
      return `${u.axis.kind} ${u.axis.id}`;
    default: {
      const { arg } = u;
      if (arg === undefined) return "None";
      return Array.isArray(arg) ? `(${arg.map(show).join(", ")})` : show(arg);
    }
  }
}

/** The element type of what an access moves, as it is in memory. */
export const elementOf = (access: UOp<"LOAD" | "STORE" | "LDMATRIX" | "LDFRAGMENT">): DType =>
  access.buffer.dtype.base;
