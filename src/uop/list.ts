// UOpGraph: a kernel as a linear list of UOps in which every source comes before its user. The name is that
// of the public interface: the list still holds the graph, since each UOp points to its sources. The graph
// that passes change is a KernelGraph (codegen/lower). linearize makes the list, renderers read it from top
// to bottom. `add` is also the public way to build a kernel by hand, and checks its arguments.

import { type DType, Pointer } from "../dtype.ts";
import { ArgumentError } from "../errors.ts";
import { isAluOp, opRecord } from "../ops.ts";
import type { Variable } from "../shape/symbolic.ts";
import { UOpArena } from "./arena.ts";
import { UOpMap } from "./map.ts";
import {
  type DefineGlobal,
  type DefineVar,
  type Expr,
  type UOp,
  type UOpArgs,
  type UOpName,
  UOps,
  type UType,
} from "./node.ts";

/** What a hand-written list may get wrong and folding would trip over; spec.ts checks the rest. */
function checkAdded(op: string, srcs: readonly UOp[], arg: unknown): void {
  if (!Object.hasOwn(UOps, op)) {
    throw new ArgumentError(
      `UOpGraph.add: there is no op ${op}; expected one of ${Object.keys(UOps).join(", ")}`,
    );
  }
  if (op !== "ALU") return;
  if (typeof arg !== "string" || !isAluOp(arg)) {
    throw new ArgumentError(
      `UOpGraph.add: ALU computes ${String(arg)}; expected the name of an op, as BinaryOps.ADD`,
    );
  }
  const { arity } = opRecord(arg);
  if (srcs.length !== arity) {
    throw new ArgumentError(`UOpGraph.add: ${arg} has ${srcs.length} sources, expected ${arity}`);
  }
  const values = arg === "WHERE" ? srcs.slice(1) : srcs;
  const type = values[0]?.dtype;
  const other = values.find((s) => s.dtype !== type || type === undefined || type instanceof Pointer);
  if (other === undefined) return;
  throw new ArgumentError(
    `UOpGraph.add: ${arg} of ${values.map((s) => s.dtype ?? `${s.op} without a type`).join(" and ")}; ` +
      "expected values of one dtype: add a CAST, or a LOAD for a pointer",
  );
}

export class UOpGraph implements Iterable<UOp> {
  readonly uops: UOp[] = [];
  readonly #arena: UOpArena;
  readonly #at: UOpMap<number>;
  readonly #vars: DefineVar[] = [];
  readonly #globals: DefineGlobal[] = [];
  /** a list that codegen made leaves out buffers that a kernel has no use for; one made by hand has all */
  isByHand = false;

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
    checkAdded(op, srcs, arg);
    this.isByHand ||= op === "DEFINE_GLOBAL";
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
