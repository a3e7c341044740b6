// The arena makes the nodes of one kernel: it interns them (equal structure is `===`), folds each by the FOLD
// table as it is made, and hands out the ids of ranges. It dies with the kernel.

import { type DType, dtypes, Pointer, PtrDType, scalarOf, type Value, wrap } from "../dtype.ts";
import { InternalError } from "../errors.ts";
import { arraysEqual, getOrMake } from "../helpers.ts";
import { type Algebra, type AluOp, opRecord, type ReduceOp, resultDType } from "../ops.ts";
import { FOLD } from "./fold.ts";
import { UOpSet } from "./map.ts";
import type { Tile } from "./matrix.ts";
import {
  type Axis,
  type Const,
  type DefineGlobal,
  type DefineLocal,
  type DefineVar,
  type Expr,
  type Load,
  type Memory,
  makeUOp,
  nextUOpId,
  type Range,
  type Sink,
  type Stage,
  type Store,
  type TileNode,
  type UOp,
  type UOpArgs,
  type UOpName,
  type UType,
} from "./node.ts";
import { Parameter } from "./parameter.ts";
import { rewriteOne } from "./rewrite.ts";

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
function leafKey<K extends UOpName>(op: K, arg: UOpArgs[K]): Value | string {
  if (arg instanceof Parameter) return arg.key;
  if (typeof arg === "number") return Object.is(arg, -0) ? "-0" : arg;
  if (typeof arg === "bigint") return arg;
  return `${op}|${typeof arg === "object" && "name" in arg ? arg.name : String(arg)}`;
}

const valueIn = (dtype: DType, value: Value): Value =>
  dtype.isFloat ? Number(value) : wrap(scalarOf(dtype), value);

/** What `make` returns: an expression may fold to another. */
export type Made<K extends UOpName> = K extends Expr["op"] ? Expr : UOp<K>;

export class UOpArena implements Algebra<Expr> {
  /** ids of its nodes start here */
  readonly first = nextUOpId();
  readonly #leaves = new Map<UType, Map<Value | string, UOp>>();
  /**
   * intern chains: for each node, the latest user whose newest source it is, then earlier ones. A new node is
   * looked up among the users of its newest source, which has the fewest. By id, from `first` on, as a UOpMap
   * has them; without its calls, because every node that is made comes here
   */
  readonly #lastUser: (UOp | undefined)[] = [];
  readonly #userBefore: (UOp | undefined)[] = [];
  /**
   * values that are 0, negative or NaN: lower.ts marks x - max(x), and the decomposition of exp2
   * (decompose.ts) leaves out a clamp for them. A mark and not a rule, since only the AST shows that the
   * maximum is over the row of x
   */
  readonly notPositive = new UOpSet({ first: this.first, size: 0 });
  /** what nodes fold to, for those that fold */
  readonly #folded: (UOp | undefined)[] = [];
  readonly #sorted = new Map<UOp, readonly UOp[]>();
  #ranges = 0;
  readonly ieee: boolean;

  constructor(ieee = true) {
    this.ieee = ieee;
  }

  /** How many ids the arena spans so far. */
  get size(): number {
    return nextUOpId() - this.first;
  }

  /** All nodes below the root and itself, sources first. Passes that change nothing share one list. */
  nodes(root: UOp): readonly UOp[] {
    return getOrMake(this.#sorted, root, () => this.nodesFrom([root], (u) => u.srcs));
  }
  /** The nodes that are reached from the roots, sources first; `sources`: where to go from a node. */
  nodesFrom(roots: readonly UOp[], sources: (u: UOp) => readonly UOp[]): UOp[] {
    const order: UOp[] = [];
    const seen = new UOpSet(this);
    const visit = (u: UOp): void => {
      if (seen.has(u)) return;
      seen.add(u);
      const srcs = sources(u);
      for (let i = 0; i < srcs.length; i++) visit(srcs[i]!);
      order.push(u);
    };
    for (const root of roots) visit(root);
    return order;
  }

  /**
   * Any node by its op. The methods below say what each op takes; this one is for code that treats all ops
   * alike.
   */
  make<K extends UOpName>(op: K, dtype: UType, srcs: readonly UOp[], arg: UOpArgs[K]): Made<K> {
    return this.#make(op, dtype, srcs, arg) as Made<K>;
  }
  #make<K extends UOpName>(op: K, dtype: UType, srcs: readonly UOp[], arg: UOpArgs[K]): UOp {
    if (UNIQUE.has(op)) return makeUOp(op, dtype, srcs, arg);
    let newest: UOp | undefined;
    for (let i = 0; i < srcs.length; i++) {
      if (newest === undefined || srcs[i]!.id > newest.id) newest = srcs[i]!;
    }
    if (newest === undefined) return this.#leaf(op, dtype, arg);
    const { first } = this;
    const last = this.#lastUser[newest.id - first];
    for (let u = last; u !== undefined; u = this.#userBefore[u.id - first]) {
      if (u.op === op && u.arg === arg && u.dtype === dtype && arraysEqual(u.srcs, srcs)) {
        return this.#folded[u.id - first] ?? u;
      }
    }
    const made: UOp = makeUOp(op, dtype, srcs, arg);
    this.#lastUser[newest.id - first] = made;
    if (last !== undefined) this.#userBefore[made.id - first] = last;
    const folded = rewriteOne(made, FOLD, this);
    if (folded === undefined) return made;
    this.#folded[made.id - first] = folded;
    return folded;
  }
  #leaf<K extends UOpName>(op: K, dtype: UType, arg: UOpArgs[K]): UOp {
    const leaves = getOrMake(this.#leaves, dtype, () => new Map<Value | string, UOp>());
    const key = leafKey(op, arg);
    const known = leaves.get(key);
    if (known === undefined) {
      const made: UOp = makeUOp(op, dtype, [], arg);
      leaves.set(key, made);
      return made;
    }
    // a parameter that is the same node as another constant has its value for good
    if (known.arg !== arg) for (const x of [known.arg, arg]) if (x instanceof Parameter) x.read();
    return known;
  }
  /** The float constants that were made so far. */
  floats(): Const[] {
    const found: Const[] = [];
    for (const [dtype, leaves] of this.#leaves) {
      if (dtype === undefined || dtype instanceof Pointer || !dtype.isFloat) continue;
      for (const u of leaves.values()) if (u.op === "CONST") found.push(u);
    }
    return found;
  }
  /** The node with other sources, folded again. */
  withSrcs<U extends UOp>(u: U, srcs: readonly UOp[]): Made<U["op"]> {
    return this.#make(u.op, u.dtype, srcs, u.arg) as Made<U["op"]>;
  }
  /** The same op with another type and other sources. */
  withType<U extends UOp>(u: U, dtype: UType, srcs: readonly UOp[]): Made<U["op"]> {
    return this.#make(u.op, dtype, srcs, u.arg) as Made<U["op"]>;
  }

  // ---- expressions ----

  alu(fn: AluOp, ...operands: readonly Expr[]): Expr {
    const last = operands.at(-1);
    if (last === undefined || operands.length !== opRecord(fn).arity) {
      throw new InternalError(`${fn} takes ${opRecord(fn).arity} sources, got ${operands.length}`);
    }
    return this.make("ALU", resultDType(fn, last.dtype), operands, fn);
  }
  /**
   * A float keeps the digits it was given: listings and sources print 0.3333333333333333, and it is rounded
   * where it is used.
   */
  constant(dtype: DType, value: Value | Parameter): Expr {
    return this.make("CONST", dtype, [], value instanceof Parameter ? value : valueIn(dtype, value));
  }
  /** A whole number as an index. */
  int(n: number): Expr {
    return this.constant(dtypes.int32, n);
  }
  cast(operand: Expr, dtype: DType): Expr {
    return operand.dtype === dtype ? operand : this.make("CAST", dtype, [operand], undefined);
  }
  bitcast(operand: Expr, dtype: DType): Expr {
    return operand.dtype === dtype ? operand : this.make("BITCAST", dtype, [operand], undefined);
  }
  dtypeOf(x: Expr): DType {
    return x.dtype;
  }
  /** All of these hold; true where there are none. */
  and(conditions: readonly Expr[]): Expr {
    const [first, ...rest] = conditions;
    if (first === undefined) return this.constant(dtypes.bool, 1);
    return rest.reduce((x, y) => this.alu("AND", x, y), first);
  }
  /** `lanes`: the width of a vector of neighbours. Where the gate is false the value is `otherwise`, or 0. */
  load(buffer: Memory, index: Expr, { gate, otherwise, lanes = 1 }: LoadParts = {}): Expr {
    const dtype = lanes === 1 ? buffer.dtype.base : buffer.dtype.base.vec(lanes);
    const gated = gate === undefined ? [] : [gate, otherwise ?? this.constant(dtype, 0)];
    return this.make("LOAD", dtype, [buffer, index, ...gated], undefined);
  }
  reduce(fn: ReduceOp, body: Expr, ranges: readonly Range[]): Expr {
    return ranges.length === 0 ? body : this.make("REDUCE", body.dtype, [body, ...ranges], fn);
  }
  vectorize(lanes: readonly Expr[]): Expr {
    const [first] = lanes;
    if (first === undefined) throw new InternalError("a vector needs lanes");
    return this.make("VECTORIZE", first.dtype.vec(lanes.length), lanes, undefined);
  }
  /** The lane of a vector that an index of ranges of lanes names. */
  element(vector: Expr, index: Expr): Expr {
    return this.make("ELEMENT", scalarOf(vector.dtype), [vector, index], undefined);
  }
  /** One lane of a vector; for a VECTORIZE, the scalar itself. */
  gep(vector: Expr, lane: number): Expr {
    if (vector.op === "VECTORIZE" && vector.lanes[lane] !== undefined) return vector.lanes[lane];
    const type = scalarOf(vector.dtype);
    return vector.op === "CONST" ? this.withType(vector, type, []) : this.make("GEP", type, [vector], lane);
  }
  /** A new loop from 0 to `end`, in its type; no other has its id. */
  range(axis: Omit<Axis, "id">, end: Expr = this.#sizeOf(axis)): Range {
    const numbered: Axis = { id: this.#ranges++, ...axis };
    return this.make("RANGE", end.dtype, [this.constant(end.dtype, 0), end], numbered) as Range;
  }
  #sizeOf({ size }: Omit<Axis, "id">): Expr {
    if (typeof size === "number") return this.int(size);
    throw new InternalError(`a range of ${size} iterations needs its end as a node`);
  }
  variable(v: DefineVar["variable"]): Expr {
    return this.make("DEFINE_VAR", dtypes.int32, [], v);
  }

  // ---- memory and effects ----

  global(dtype: DType, position: number, isWritten: boolean): DefineGlobal {
    return this.make("DEFINE_GLOBAL", PtrDType(dtype), [], [position, `data${position}`, isWritten]);
  }
  local(dtype: DType, name: string, elements: number): DefineLocal {
    return this.make("DEFINE_LOCAL", PtrDType(dtype, true), [], [name, elements]);
  }
  stage(array: Stage["array"], stores: readonly Store[], ranges: readonly Range[]): Stage {
    return this.make("STAGE", array.dtype, [array, ...stores, ...ranges], undefined);
  }
  tile(dtype: Pointer, tile: Tile, buffer: Memory, base: Expr, loop: Range | undefined): TileNode {
    return this.make("TILE", dtype, loop === undefined ? [buffer, base] : [buffer, base, loop], tile);
  }
  store(buffer: Memory, index: Expr, value: Expr, gate?: Expr): Store {
    const srcs = gate === undefined ? [buffer, index, value] : [buffer, index, value, gate];
    return this.make("STORE", undefined, srcs, undefined);
  }
  sink(stores: readonly Store[]): Sink {
    return this.make("SINK", undefined, stores, undefined);
  }
}

export interface LoadParts {
  readonly gate?: Load["gate"];
  readonly otherwise?: Load["otherwise"];
  readonly lanes?: number;
}
