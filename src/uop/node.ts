// The UOp: the one node of the IR, immutable. Each op is an interface that names its sources and arguments,
// so that `u.op === "LOAD"` makes `u.buffer`, `u.index` and `u.gate` known to the type checker. Only this
// file knows where in `srcs` and `arg` they are. arena.ts makes nodes, list.ts lists them.

import { type DType, Pointer, type Value } from "../dtype.ts";
import { InternalError } from "../errors.ts";
import type { AluOp, BinaryOp, ReduceOp, TernaryOp, UnaryOp } from "../ops.ts";
import type { Variable } from "../shape/symbolic.ts";
import type { Axis } from "./axis.ts";
import type { FragmentLoad, TensorCore, Tile } from "./matrix.ts";
import { Parameter } from "./parameter.ts";

/** What each op carries besides its sources. A missing entry fails the type check. */
export interface UOpArgs {
  /** position, name, written to */
  DEFINE_GLOBAL: readonly [number, string, boolean];
  /** name, elements */
  DEFINE_LOCAL: readonly [string, number];
  /** the value before the first iteration of the loop */
  DEFINE_ACC: Value;
  DEFINE_VAR: Variable;
  /** dimension 0..2, name (gidx0, lidx0), size */
  SPECIAL: readonly [number, string, number];
  /** a parameter while the kernel is lowered, a value in its list */
  CONST: Value | Parameter;
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
  BARRIER: undefined;
  /** the bits in which the numbers of two threads that exchange values differ */
  SHFL: number;
  /** elements */
  ASYNC: number;
  COMMIT: undefined;
  /** copy groups that may still be in flight */
  WAIT: number;
  /** whether each matrix is transposed on the way */
  LDMATRIX: boolean;
  LDFRAGMENT: FragmentLoad;
  WMMA: TensorCore;
  /** lane */
  GEP: number;
  VECTORIZE: undefined;
  RANGE: Axis;
  REDUCE: ReduceOp;
  STAGE: undefined;
  TILE: Tile;
  ELEMENT: undefined;
  SINK: undefined;
}
export type { Axis };
export type UOpName = keyof UOpArgs;
export type UType = DType | Pointer | undefined;

interface Node<K extends UOpName, D extends UType> {
  readonly id: number;
  readonly op: K;
  readonly dtype: D;
  readonly srcs: readonly UOp[];
  readonly arg: UOpArgs[K];
}

// ---- memory ----

/** A buffer that the kernel is given. */
export interface DefineGlobal extends Node<"DEFINE_GLOBAL", Pointer> {
  readonly position: number;
  readonly name: string;
  readonly isWritten: boolean;
}
/** An array of the workgroup, or of the thread where there are no workgroups. */
export interface DefineLocal extends Node<"DEFINE_LOCAL", Pointer> {
  readonly name: string;
  readonly elements: number;
}
/**
 * Graph only: an array, or the result of the kernel, after a loop has filled it, that is, after the stores
 * into it have run in all iterations of the ranges.
 */
export interface Stage extends Node<"STAGE", Pointer> {
  readonly array: DefineLocal | DefineGlobal;
  readonly stores: readonly Store[];
  readonly ranges: readonly Range[];
}
/** Graph only: the part of a buffer that a workgroup needs in one iteration of a loop, in shared memory. */
export interface TileNode extends Node<"TILE", Pointer> {
  readonly buffer: Memory;
  /** where the part begins; if it is computed, the vector of elements at its coordinates */
  readonly base: Expr;
  /** the loop that the part moves with; undefined: it does not move */
  readonly loop: Range | undefined;
  readonly tile: Tile;
}
export type Memory = DefineGlobal | DefineLocal | Stage | TileNode;

// ---- expressions ----

export interface Const extends Node<"CONST", DType> {
  /** reading it binds a parameter to it: `is` and `sign` do not */
  readonly value: Value;
  readonly sign: number;
  is(value: number): boolean;
}
export interface DefineAcc extends Node<"DEFINE_ACC", DType> {
  readonly initial: Value;
}
export interface DefineVar extends Node<"DEFINE_VAR", DType> {
  readonly variable: Variable;
}
/** An index of the grid. */
export interface Special extends Node<"SPECIAL", DType> {
  readonly dimension: number;
  readonly name: string;
  readonly size: number;
}
export interface Loop extends Node<"LOOP", DType> {
  readonly start: Expr;
  readonly end: Expr;
}
export interface Load extends Node<"LOAD", DType> {
  readonly buffer: Memory;
  readonly index: Expr;
  /** where it is false nothing is read, and the value is `otherwise` */
  readonly gate: Expr | undefined;
  readonly otherwise: Expr | undefined;
}
type Operands<F extends AluOp> = F extends UnaryOp
  ? readonly [Expr]
  : F extends BinaryOp
    ? readonly [Expr, Expr]
    : F extends TernaryOp
      ? readonly [Expr, Expr, Expr]
      : never;
interface AluNode<F extends AluOp> extends Node<"ALU", DType> {
  readonly fn: F;
  readonly operands: Operands<F>;
  /** the type that it computes on; that of the result is another for comparisons */
  readonly operandType: DType;
}
/** A union over the functions: `u.fn === "MUL"` says that there are two operands. */
export type Alu<F extends AluOp = AluOp> = { [P in F]: AluNode<P> }[F];
export interface Cast extends Node<"CAST", DType> {
  readonly operand: Expr;
}
export interface Bitcast extends Node<"BITCAST", DType> {
  readonly operand: Expr;
}
/** The accumulator after it got a new value; after the loops it holds the last one. */
export interface Phi extends Node<"PHI", DType> {
  readonly accumulator: DefineAcc;
  readonly value: Expr;
  readonly loops: readonly Loop[];
}
/**
 * The value of the thread whose number in the warp differs in the bits of the mask; all threads of the warp
 * take part.
 */
export interface Shuffle extends Node<"SHFL", DType> {
  readonly operand: Expr;
  readonly mask: number;
}
/** A warp reads 8x8 matrices of 16 bits from shared memory; each thread gives the address of a row. */
export interface LoadMatrix extends Node<"LDMATRIX", DType> {
  readonly buffer: Memory;
  readonly index: Expr;
  readonly isTransposed: boolean;
}
/** A warp reads an operand of WMMA from shared memory; all threads give the address of its first element. */
export interface LoadFragment extends Node<"LDFRAGMENT", DType> {
  readonly buffer: Memory;
  readonly index: Expr;
  readonly operandLoad: FragmentLoad;
}
/** A warp multiplies two matrices and adds a third; each thread holds parts of them. */
export interface MatrixMultiply extends Node<"WMMA", DType> {
  readonly a: Expr;
  readonly b: Expr;
  /** undefined in the graph, where a REDUCE is around it */
  readonly c: Expr | undefined;
  readonly core: TensorCore;
}
/** One lane of a vector. */
export interface Gep extends Node<"GEP", DType> {
  readonly vector: Expr;
  readonly lane: number;
}
/** A vector made of scalars. */
export interface Vectorize extends Node<"VECTORIZE", DType> {
  readonly lanes: readonly Expr[];
}
/** Graph only: a loop. linearize makes a LOOP or an index of the grid of it. */
export interface Range extends Node<"RANGE", DType> {
  readonly start: Expr;
  readonly end: Expr;
  readonly axis: Axis;
}
/** Graph only: linearize makes an accumulator, its loops and a PHI of it. */
export interface Reduce extends Node<"REDUCE", DType> {
  readonly fn: ReduceOp;
  readonly body: Expr;
  readonly ranges: readonly Range[];
}
/** Graph only: the lane of a vector that an index, made of ranges of lanes, names. */
export interface ElementNode extends Node<"ELEMENT", DType> {
  readonly vector: Expr;
  readonly index: Expr;
}
export type Expr =
  | Const
  | DefineAcc
  | DefineVar
  | Special
  | Loop
  | Load
  | Alu
  | Cast
  | Bitcast
  | Phi
  | Shuffle
  | LoadMatrix
  | LoadFragment
  | MatrixMultiply
  | Gep
  | Vectorize
  | Range
  | Reduce
  | ElementNode;

// ---- effects ----

export interface Store extends Node<"STORE", undefined> {
  readonly buffer: Memory;
  readonly index: Expr;
  readonly value: Expr;
  /** where it is false nothing is written */
  readonly gate: Expr | undefined;
}
export interface EndLoop extends Node<"ENDLOOP", undefined> {
  readonly loop: Loop;
}
export interface If extends Node<"IF", undefined> {
  readonly condition: Expr;
}
export interface EndIf extends Node<"ENDIF", undefined> {
  readonly branch: If;
}
/**
 * All threads of the workgroup arrive before any goes on; after it they can read what others wrote to shared
 * memory.
 */
export interface Barrier extends Node<"BARRIER", undefined> {}
/** A copy from global to shared memory, done at some time before the WAIT for its COMMIT. */
export interface AsyncCopy extends Node<"ASYNC", undefined> {
  readonly to: Memory;
  readonly toIndex: Expr;
  readonly from: Memory;
  readonly fromIndex: Expr;
  /** where it is false this thread copies nothing */
  readonly gate: Expr | undefined;
  /** where it is false zeros are written, and nothing is read */
  readonly inside: Expr | undefined;
  readonly elements: number;
}
/** Ends a group of this thread's copies. */
export interface Commit extends Node<"COMMIT", undefined> {}
/** Waits until at most `pending` copy groups are in flight. */
export interface Wait extends Node<"WAIT", undefined> {
  readonly pending: number;
}
/** Graph only: the root. */
export interface Sink extends Node<"SINK", undefined> {
  readonly stores: readonly Store[];
}
export type Effect = Store | EndLoop | If | EndIf | Barrier | AsyncCopy | Commit | Wait | Sink;

type AnyUOp = Memory | Expr | Effect;
/** A union over the ops, so that `u.op` says which sources and arguments there are. */
export type UOp<K extends UOpName = UOpName> = Extract<AnyUOp, { readonly op: K }>;
/** What runs in loops of its own. */
export type LoopOwner = Reduce | Stage;

const names = (...xs: UOpName[]) =>
  Object.fromEntries(xs.map((x) => [x, x])) as { readonly [K in UOpName]: K };
/** linearize turns these into others: no list has them. */
export const GRAPH_ONLY = ["RANGE", "REDUCE", "STAGE", "TILE", "ELEMENT", "SINK"] as const;
/** As the public interface spells them: `UOps.ALU` is the string "ALU". */
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
  "LDFRAGMENT",
  "WMMA",
  "GEP",
  "VECTORIZE",
  ...GRAPH_ONLY,
);

/**
 * One class for all ops: the engine's inline caches see one shape. The interfaces above say which of the
 * names an op has; the getters say where they are.
 */
class UOpNode {
  // declared only: fields that the class defines would be set to undefined first, in a call of their own
  declare readonly id: number;
  declare readonly op: UOpName;
  declare readonly dtype: UType;
  declare readonly srcs: readonly UOp[];
  declare readonly arg: UOpArgs[UOpName];

  constructor(id: number, op: UOpName, dtype: UType, srcs: readonly UOp[], arg: UOpArgs[UOpName]) {
    this.id = id;
    this.op = op;
    this.dtype = dtype;
    this.srcs = srcs;
    this.arg = arg;
  }

  // sources
  get array() {
    return this.srcs[0];
  }
  get buffer() {
    return this.srcs[0];
  }
  get operand() {
    return this.srcs[0];
  }
  get operands() {
    return this.srcs;
  }
  get operandType() {
    return this.srcs.at(-1)?.dtype;
  }
  get vector() {
    return this.srcs[0];
  }
  get body() {
    return this.srcs[0];
  }
  get start() {
    return this.srcs[0];
  }
  get accumulator() {
    return this.srcs[0];
  }
  get condition() {
    return this.srcs[0];
  }
  get branch() {
    return this.srcs[0];
  }
  get to() {
    return this.srcs[0];
  }
  get a() {
    return this.srcs[0];
  }
  get index() {
    return this.srcs[1];
  }
  get base() {
    return this.srcs[1];
  }
  get end() {
    return this.srcs[1];
  }
  get toIndex() {
    return this.srcs[1];
  }
  get b() {
    return this.srcs[1];
  }
  get from() {
    return this.srcs[2];
  }
  get c() {
    return this.srcs[2];
  }
  get otherwise() {
    return this.srcs[3];
  }
  get fromIndex() {
    return this.srcs[3];
  }
  get gate() {
    return this.srcs[this.op === "LOAD" ? 2 : this.op === "STORE" ? 3 : 4];
  }
  get loop() {
    return this.srcs[this.op === "TILE" ? 2 : 0];
  }
  get inside() {
    return this.srcs[5];
  }
  get loops() {
    return this.srcs.slice(2);
  }
  get lanes() {
    return this.srcs;
  }
  get ranges() {
    return this.op === "REDUCE" ? this.srcs.slice(1) : this.srcs.filter((s) => s.op === "RANGE");
  }
  get stores() {
    return this.op === "SINK" ? this.srcs : this.srcs.filter((s) => s.op === "STORE");
  }

  // arguments
  get fn() {
    return this.arg;
  }
  get variable() {
    return this.arg;
  }
  get initial() {
    return this.arg;
  }
  get axis() {
    return this.arg;
  }
  get tile() {
    return this.arg;
  }
  get core() {
    return this.arg;
  }
  get mask() {
    return this.arg;
  }
  get pending() {
    return this.arg;
  }
  get lane() {
    return this.arg;
  }
  get isTransposed() {
    return this.arg;
  }
  get operandLoad() {
    return this.arg;
  }
  get name() {
    const { arg } = this as unknown as DefineGlobal | DefineLocal | Special;
    return this.op === "DEFINE_LOCAL" ? arg[0] : arg[1];
  }
  get position() {
    return (this as unknown as DefineGlobal).arg[0];
  }
  get isWritten() {
    return (this as unknown as DefineGlobal).arg[2];
  }
  get dimension() {
    return (this as unknown as Special).arg[0];
  }
  get size() {
    return (this as unknown as Special).arg[2];
  }
  get elements() {
    return this.op === "ASYNC" ? this.arg : (this as unknown as DefineLocal).arg[1];
  }
  get value() {
    if (this.op !== "CONST") return this.srcs[this.op === "STORE" ? 2 : 1];
    return this.arg instanceof Parameter ? this.arg.read() : this.arg;
  }
  get sign() {
    return this.arg instanceof Parameter ? this.arg.sign : Math.sign(Number(this.arg));
  }
  is(value: number): boolean {
    return this.arg instanceof Parameter ? this.arg.is(value) : Object.is(Number(this.arg), value);
  }
}

let nextId = 0;
/** The id that the next node of the process gets. */
export const nextUOpId = (): number => nextId;

/** A node as it is asked for: not interned, not folded. */
export function makeUOp<K extends UOpName>(
  op: K,
  dtype: UType,
  srcs: readonly UOp[],
  arg: UOpArgs[K],
): UOp<K> {
  return new UOpNode(nextId++, op, dtype, srcs, arg) as unknown as UOp<K>;
}

/** Puts the value of a parameter in its node: the kernel is lowered, and what was read of it is known. */
export function settle(u: Const): void {
  const node = u as { -readonly [K in keyof Const]: Const[K] };
  if (node.arg instanceof Parameter) node.arg = node.arg.read();
}

/** A copy of a node with other sources, not interned. */
export const copyUOp = (u: UOp, srcs: readonly UOp[]): UOp => makeUOp(u.op, u.dtype, srcs, u.arg);

/** Whether a node reads memory. */
export const isLoad = (u: UOp): u is Load | LoadMatrix | LoadFragment =>
  u.op === "LOAD" || u.op === "LDMATRIX" || u.op === "LDFRAGMENT";

/** The sources of an access to memory with another index among them. */
export const withIndex = (srcs: readonly UOp[], change: (index: Expr) => Expr): UOp[] =>
  srcs.map((s, i) => (i === 1 ? change(s as Expr) : s));

/** The element type of a value; pointers and effects have none. */
export function valueType(u: UOp): DType {
  if (u.dtype === undefined || u.dtype instanceof Pointer) {
    throw new InternalError(`${u.op} has no value type (it is ${u.dtype ?? "an effect"})`);
  }
  return u.dtype;
}

/** Whether a node is a value: pointers and effects are not. */
export const isExpr = (u: UOp): u is Expr => u.dtype !== undefined && !(u.dtype instanceof Pointer);

/** A term of a sum that can be added to it in one step, by a fused multiply-add. */
export const isProduct = (u: UOp): u is Alu<"MUL"> => u.op === "ALU" && u.fn === "MUL";
