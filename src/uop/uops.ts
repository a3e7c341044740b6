// The UOp: the one node of codegen, immutable. `UOpArena` interns nodes for one kernel and folds them by the
// FOLD table as they are made; `UOpGraph` is the linear list that renderers read, with the public `add`.
// Lowering fills an arena, linearize turns its SINK into a UOpGraph, renderers only read.

import { type DType, Pointer, scalarOf, type Value, wrap } from "../dtype.ts";
import { ArgumentError, InternalError } from "../errors.ts";
import { arraysEqual, getOrMake } from "../helpers.ts";
import { type Algebra, type AluOp, isAluOp, opRecord, type ReduceOp, resultDType } from "../ops.ts";
import type { Variable } from "../shape/symbolic.ts";
import { FOLD } from "./fold.ts";
import { UOpMap, UOpSet } from "./map.ts";
import { rewriteOne } from "./rewrite.ts";

/** What each op carries besides its sources. A missing entry fails the type check. */
export interface UOpArgs {
  /** position, name, written to */
  DEFINE_GLOBAL: readonly [number, string, boolean];
  /** name, elements */
  DEFINE_LOCAL: readonly [string, number];
  /** the value before the first turn of the loop */
  DEFINE_ACC: Value;
  DEFINE_VAR: Variable;
  /** dimension 0..2, name (gidx0, lidx0), size */
  SPECIAL: readonly [number, string, number];
  CONST: Value;
  LOOP: undefined;
  ENDLOOP: undefined;
  IF: undefined;
  ENDIF: undefined;
  LOAD: undefined;
  STORE: undefined;
  ALU: AluOp;
  CAST: undefined;
  BITCAST: undefined;
  PHI: undefined;
  /** all items of the workgroup come by before any goes on; what they wrote to shared memory can be read after it */
  BARRIER: undefined;
  /** the value that the item has whose place in the warp differs in these bits; all items of the warp come by */
  SHFL: number;
  /** elements; from global to shared memory, done at some time before the WAIT for its COMMIT */
  ASYNC: number;
  /** ends a batch of this item's copies */
  COMMIT: undefined;
  /** all batches of this item but so many of the latest are done */
  WAIT: number;
  /** a warp reads 8x8 matrices of 16 bits, a row an address; whether each of them is turned over on the way */
  LDMATRIX: boolean;
  /** a warp multiplies two matrices and adds a third, each item holds parts of them (tensorcore.ts) */
  WMMA: TensorCore;
  /** lane */
  GEP: number;
  /** lanes from scalars */
  VECTORIZE: undefined;
  // in the graph only: linearize turns RANGE into LOOP or SPECIAL, REDUCE into an accumulator and loops, STAGE into loops
  /** the number of its axis in the kernel, which says how it is run */
  RANGE: number;
  REDUCE: ReduceOp;
  /** an array (DEFINE_LOCAL) after the STOREs into it have run in all turns of the ranges */
  STAGE: undefined;
  /** the part of a buffer that a workgroup needs in one turn of a loop, in shared memory (shared.ts) */
  TILE: Tile;
  /** of a vector the lane that an index of ranges of lanes names */
  ELEMENT: undefined;
  SINK: undefined;
}

/** A sum of parts of a number: each is `from / by % size * times`. */
export type Parts = readonly (readonly [from: "lane" | "element", by: number, size: number, times: number])[];
/** How the items of a warp hold a matrix: which row and column an element of an item is. */
export interface Fragment {
  readonly elements: number;
  readonly row: Parts;
  readonly column: Parts;
}
/** A product of matrices that a warp computes in one step: c (m × n) += a (m × k) · b (k × n). */
export interface TensorCore {
  readonly name: string;
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly from: DType;
  /** bits at the low end of an operand that are not looked at */
  readonly ignored: number;
  readonly to: DType;
  readonly a: Fragment;
  readonly b: Fragment;
  readonly c: Fragment;
}

/** Element x lies at x ^ (x / every % pieces * unit): rows that are read at once lie in different banks. */
export interface Swizzle {
  /** elements of a piece */
  readonly unit: number;
  /** pieces that change places; a power of two */
  readonly pieces: number;
  /** elements after which they do so in another way */
  readonly every: number;
}

/** How a part of a buffer lies in shared memory. */
export interface Tile {
  /** the dims of the part, the innermost first: elements apart in the buffer (stride) and in shared memory (pitch) */
  readonly dims: readonly { readonly size: number; readonly stride: number; readonly pitch: number }[];
  /** elements in shared memory, with gaps, for one turn */
  readonly size: number;
  /** rows that lie without gaps: so many 16-byte pieces of a row change places, in another way for each row of a few */
  readonly swizzle: Swizzle | undefined;
  /** elements that are copied at once */
  readonly vector: number;
  /** how far the part moves with each turn of the loop */
  readonly step: number;
  /** turns that are in shared memory at the same time */
  readonly stages: number;
}

export type UOpName = keyof UOpArgs;
export type UType = DType | Pointer | undefined;

interface Node<K extends UOpName> {
  readonly id: number;
  readonly op: K;
  readonly dtype: UType;
  readonly srcs: readonly UOp[];
  readonly arg: UOpArgs[K];
}
/** A union over the ops, so that `u.op === "ALU"` makes `u.arg` an AluOp. */
export type UOp<K extends UOpName = UOpName> = { [P in K]: Node<P> }[K];

const names = (...xs: UOpName[]) =>
  Object.fromEntries(xs.map((x) => [x, x])) as { readonly [K in UOpName]: K };
/** Linearize turns these into others: no list has them. */
export const GRAPH_ONLY = ["RANGE", "REDUCE", "STAGE", "TILE", "ELEMENT", "SINK"] as const;
/** The seeds' spelling: `UOps.ALU` is the string "ALU". */
export const UOps = names(
  "DEFINE_GLOBAL",
  "DEFINE_LOCAL",
  "DEFINE_ACC",
  "DEFINE_VAR",
  "SPECIAL",
  "CONST",
  "LOOP",
  "ENDLOOP",
  "IF",
  "ENDIF",
  "LOAD",
  "STORE",
  "ALU",
  "CAST",
  "BITCAST",
  "PHI",
  "BARRIER",
  "SHFL",
  "ASYNC",
  "COMMIT",
  "WAIT",
  "LDMATRIX",
  "WMMA",
  "GEP",
  "VECTORIZE",
  ...GRAPH_ONLY,
);

/** The element type of a value; pointers and effects have none. */
export function valueType(u: UOp): DType {
  if (u.dtype === undefined || u.dtype instanceof Pointer) {
    throw new InternalError(`${u.op} has no value type (it is ${u.dtype ?? "an effect"})`);
  }
  return u.dtype;
}

let nextId = 0;
export function makeUOp<K extends UOpName>(
  op: K,
  dtype: UType,
  srcs: readonly UOp[],
  arg: UOpArgs[K],
): UOp<K> {
  return { id: nextId++, op, dtype, srcs, arg } as UOp<K>;
}

/** Nodes with identity or effects: two equal ones are still two. */
const UNIQUE: ReadonlySet<UOpName> = new Set([
  "DEFINE_ACC",
  "DEFINE_LOCAL",
  "LOOP",
  "ENDLOOP",
  "IF",
  "ENDIF",
  "STORE",
  "PHI",
  "BARRIER",
  "SHFL",
  "ASYNC",
  "COMMIT",
  "WAIT",
  "SINK",
]);

/** Equal for equal args of nodes without sources; a constant's value is its own key, but for -0. */
const leafKey = (op: UOpName, arg: UOp["arg"]): Value | string => {
  if (op === "CONST") return Object.is(arg, -0) ? "-0" : (arg as Value);
  return `${op}|${op === "DEFINE_VAR" ? (arg as Variable).name : String(arg)}`;
};

/** Makes the nodes of one kernel: each distinct node once, folded as it is made. Dies with the kernel. */
export class UOpArena implements Algebra<UOp> {
  /** the ids of its nodes count from here */
  readonly first = nextId;
  readonly #leaves = new Map<UType, Map<Value | string, UOp>>();
  /** the last node made of each newest source, and the one made before it: the newest has the fewest users */
  readonly #lastUser = new UOpMap<UOp>({ first: nextId, size: 0 });
  readonly #userBefore = new UOpMap<UOp>({ first: nextId, size: 0 });
  /** values of which lowering knows that they are 0, below it, or NaN */
  readonly notPositive = new WeakSet<UOp>();
  /** what those nodes fold to that do not stay */
  readonly #folded = new UOpMap<UOp>({ first: nextId, size: 0 });
  readonly #sorted = new Map<UOp, readonly UOp[]>();

  /** Ids up to here are taken. */
  get size(): number {
    return nextId - this.first;
  }

  /** All nodes below the root and itself, sources first. Passes that change nothing share one list. */
  nodes(root: UOp): readonly UOp[] {
    return getOrMake(this.#sorted, root, () => {
      const order: UOp[] = [];
      const seen = new UOpSet(this);
      const visit = (u: UOp): void => {
        seen.add(u);
        for (let i = 0; i < u.srcs.length; i++) if (!seen.has(u.srcs[i]!)) visit(u.srcs[i]!);
        order.push(u);
      };
      visit(root);
      return order;
    });
  }

  make<K extends UOpName>(op: K, dtype: UType, srcs: readonly UOp[], arg: UOpArgs[K]): UOp {
    if (UNIQUE.has(op)) return makeUOp(op, dtype, srcs, arg) as UOp;
    let newest = srcs[0];
    if (newest === undefined) {
      const leaves = getOrMake(this.#leaves, dtype, () => new Map<Value | string, UOp>());
      return getOrMake(leaves, leafKey(op, arg as UOp["arg"]), () => makeUOp(op, dtype, srcs, arg) as UOp);
    }
    for (let i = 1; i < srcs.length; i++) if (srcs[i]!.id > newest.id) newest = srcs[i]!;
    const last = this.#lastUser.get(newest);
    for (let u = last; u !== undefined; u = this.#userBefore.get(u)) {
      if (u.op === op && u.arg === arg && u.dtype === dtype && arraysEqual(u.srcs, srcs)) {
        return this.#folded.get(u) ?? u;
      }
    }
    const made = makeUOp(op, dtype, srcs, arg) as UOp;
    this.#lastUser.set(newest, made);
    if (last !== undefined) this.#userBefore.set(made, last);
    const folded = rewriteOne(made, FOLD, this);
    if (folded === undefined) return made;
    this.#folded.set(made, folded);
    return folded;
  }

  /** The node with other sources, folded again. */
  withSrcs(u: UOp, srcs: readonly UOp[]): UOp {
    return this.make(u.op, u.dtype, srcs, u.arg as never);
  }
  alu(op: AluOp, ...srcs: readonly UOp[]): UOp {
    const last = srcs.at(-1);
    if (last === undefined || srcs.length !== opRecord(op).arity) {
      throw new InternalError(`${op} takes ${opRecord(op).arity} sources, got ${srcs.length}`);
    }
    return this.make("ALU", resultDType(op, valueType(last)), srcs, op);
  }
  /** A float keeps the digits it was given: listings and sources print 0.3333333333333333, whoever uses it rounds. */
  constant(dtype: DType, value: Value): UOp {
    return this.make("CONST", dtype, [], dtype.isFloat ? Number(value) : wrap(scalarOf(dtype), value));
  }
  cast(x: UOp, dtype: DType): UOp {
    return x.dtype === dtype ? x : this.make("CAST", dtype, [x], undefined);
  }
  bitcast(x: UOp, dtype: DType): UOp {
    return x.dtype === dtype ? x : this.make("BITCAST", dtype, [x], undefined);
  }
  dtypeOf(x: UOp): DType {
    return valueType(x);
  }
}

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

/** A kernel as a list: every source stands before its user. Also the public way to build one by hand. */
export class UOpGraph implements Iterable<UOp> {
  readonly uops: UOp[] = [];
  readonly #arena: UOpArena;
  readonly #at: UOpMap<number>;
  readonly #vars: UOp<"DEFINE_VAR">[] = [];
  readonly #globals: UOp<"DEFINE_GLOBAL">[] = [];

  constructor(arena: UOpArena = new UOpArena()) {
    this.#arena = arena;
    this.#at = new UOpMap(arena);
  }

  /** Adds a node and returns it, or what it folds to: ADD of the constants 199 and 200 is the constant 399. */
  add<K extends UOpName>(op: K, dtype: UType, srcs: readonly UOp[] = [], arg?: UOpArgs[K]): UOp {
    checkAdded(op, srcs, arg);
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
    return this.#vars.map((u) => u.arg);
  }
  /** The buffers of the kernel. */
  globals(): readonly UOp<"DEFINE_GLOBAL">[] {
    return this.#globals;
  }

  /** The listing of seed 002. */
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
  if (u.arg === undefined) return "None";
  if (u.op === "ALU") return `${opRecord(u.arg).group}.${u.arg}`;
  if (u.op === "REDUCE") return `ReduceOps.${u.arg}`;
  if (u.op === "DEFINE_VAR" || u.op === "WMMA") return u.arg.name;
  if (u.op === "TILE") return `${u.arg.size} x ${u.arg.stages}`;
  return Array.isArray(u.arg) ? `(${u.arg.map(show).join(", ")})` : show(u.arg);
}

/** The type of the elements that a LOAD or STORE moves. */
export function elementOf(access: UOp): DType {
  const { dtype } = access.srcs[0] as UOp;
  if (dtype instanceof Pointer) return dtype.base;
  throw new InternalError(`${access.op} of something that is no memory`);
}

/** Lanes of a value: 1 for a scalar. */
export const lanes = (u: UOp): number => valueType(u).count;

/** The largest value of an index: a constant, a variable or a sum or product of such. */
export function largest(u: UOp): number {
  if (u.op === "CONST") return Number(u.arg);
  if (u.op === "DEFINE_VAR") return u.arg.max;
  const [a, b] = u.srcs.map(largest) as [number, number];
  return u.arg === "ADD" ? a + b : u.arg === "MUL" ? a * b : u.arg === "IDIV" ? Math.floor(a / b) : 1;
}
