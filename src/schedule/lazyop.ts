// The AST of one kernel: LazyOps from STORE down to LOAD and CONST, each buffer seen through a ShapeTracker.
// The schedule builds it from LazyBuffers, codegen lowers it. Nodes are shared (a DAG); shapes and dtypes are
// known.

import type { DType, Value } from "../dtype.ts";
import { getOrMake, toposort } from "../helpers.ts";
import type { CustomFn, LazyBuffer } from "../lazy/lazybuffer.ts";
import { type AluOp, isOrdinary, isReduceOp, type ReduceOp } from "../ops.ts";
import type { ShapeTracker } from "../shape/shapetracker.ts";
import { type Shape, stridesFor } from "../shape/view.ts";
import type { LaunchList } from "./schedule.ts";

/** `idx` is the position among the kernel's buffers: outputs first. */
export class MemBuffer {
  readonly idx: number;
  readonly dtype: DType;
  readonly st: ShapeTracker;
  constructor(idx: number, dtype: DType, st: ShapeTracker) {
    this.idx = idx;
    this.dtype = dtype;
    this.st = st;
  }
  toString(): string {
    return `MemBuffer(${this.idx}, ${this.dtype}, ${this.st})`;
  }
}
/** One value, seen through a ShapeTracker. */
export class ConstBuffer {
  readonly val: Value;
  readonly dtype: DType;
  readonly st: ShapeTracker;
  constructor(val: Value, dtype: DType, st: ShapeTracker) {
    this.val = val;
    this.dtype = dtype;
    this.st = st;
  }
  toString(): string {
    return `ConstBuffer(${this.val}, ${this.dtype}, ${this.st})`;
  }
}

/** The argument of each op. COPY, EMPTY and CUSTOM are whole ASTs; they do not become kernels. */
interface Args extends Record<AluOp, undefined>, Record<ReduceOp, readonly number[]> {
  LOAD: MemBuffer;
  CONST: ConstBuffer;
  /** 0, 1, 2, … seen through a ShapeTracker */
  ARANGE: ShapeTracker;
  STORE: MemBuffer;
  /** its source (a reduction, or an op that padding cannot pass) seen through a ShapeTracker */
  VIEW: ShapeTracker;
  CAST: DType;
  BITCAST: DType;
  COPY: undefined;
  EMPTY: undefined;
  CUSTOM: CustomFn;
  /** a loop, until its launches take its place */
  SCAN: LaunchList;
}
type LazyOpKind = keyof Args;

/** The ops of one source. */
type OneSource = ReduceOp | "STORE" | "VIEW" | "CAST" | "BITCAST";

interface AstNode<K extends LazyOpKind> {
  readonly op: K;
  readonly srcs: K extends OneSource ? readonly [LazyOp] : readonly LazyOp[];
  readonly arg: Args[K];
  readonly dtype: DType;
  readonly shape: Shape;
}
/** A node of a kernel's AST. */
export type LazyOp<K extends LazyOpKind = LazyOpKind> = { [P in K]: AstNode<P> }[K];

export function lazyOp<K extends LazyOpKind>(
  op: K,
  srcs: readonly LazyOp[],
  arg: Args[K],
  dtype: DType,
  shape: Shape,
): LazyOp {
  return { op, srcs, arg, dtype, shape } as LazyOp;
}

/** The AST of a loop, given one of its results. */
export const loopAst = ({ arg, dtype, shape }: LazyBuffer): LazyOp[] => [
  lazyOp("SCAN", [], arg as LaunchList, dtype, shape),
];

export const showArg = (u: LazyOp): string => {
  if (u.arg === undefined) return "";
  if (u.op === "VIEW" || u.op === "ARANGE") return u.arg.key;
  if (u.op === "LOAD" || u.op === "STORE") return `${u.arg.idx}:${u.arg.dtype.name}${u.arg.st.key}`;
  if (u.op === "CONST") {
    const { val, dtype, st } = u.arg;
    return `${Object.is(val, -0) ? "-0" : val}:${dtype.name}${st.key}`;
  }
  return String(u.arg);
};

const keys = new WeakMap<readonly LazyOp[], string>();
/** Equal for equal kernels. Linear in the number of nodes, however much they are shared. */
export const astKey = (ast: readonly LazyOp[]): string => getOrMake(keys, ast, () => keyWith(ast, showArg));

/** How many different kernels are remembered. */
const MAX_ASTS = 4096;
const asts = new Map<string, readonly LazyOp[]>();
/** The AST of an equal kernel that was made before, or this one. What is derived from it is derived once. */
export function interned(ast: readonly LazyOp[]): readonly LazyOp[] {
  const key = astKey(ast);
  const known = asts.get(key);
  if (known !== undefined) return known;
  if (asts.size >= MAX_ASTS) asts.clear();
  asts.set(key, ast);
  return ast;
}

export interface AstStructure {
  /** equal for kernels that differ only in the constants below: the same OptOps suit all of them */
  readonly key: string;
  /** the ordinary float constants, in order */
  readonly constants: readonly number[];
}
export function astStructure(ast: readonly LazyOp[]): AstStructure {
  if (!astNodes(ast).some(isParametric)) return { key: astKey(ast), constants: [] };
  const constants: number[] = [];
  const key = keyWith(ast, (u) => {
    if (!isParametric(u)) return showArg(u);
    constants.push(u.arg.val);
    return `c:${u.dtype.name}${u.arg.st.key}`;
  });
  return { key, constants };
}
type ParametricConst = LazyOp<"CONST"> & { readonly arg: { readonly val: number } };
/** Whether a node is a constant in which kernels of one structure may differ. */
export const isParametric = (u: LazyOp): u is ParametricConst =>
  u.op === "CONST" && u.dtype.isFloat && isOrdinary(u.arg.val);

/** Equal for kernels that differ only in which of their buffers are the same one. */
export const astFormula = (ast: readonly LazyOp[]): string =>
  keyWith(ast, (u) =>
    u.op === "LOAD" || u.op === "STORE" ? `${u.arg.dtype.name}${u.arg.st.key}` : showArg(u),
  );

/** Equal for kernels that differ only in numbers: constants, sizes and strides. */
export const astSkeleton = (ast: readonly LazyOp[]): string => keyWith(ast, (u) => u.dtype.name);

/** A key of all nodes: their ops and sources, and what `show` says of each. */
export function keyWith(ast: readonly LazyOp[], show: (u: LazyOp) => string): string {
  const at = new Map<LazyOp, number>();
  let key = "";
  for (const u of astNodes(ast)) {
    at.set(u, at.size);
    key += `${u.op}(`;
    for (let i = 0; i < u.srcs.length; i++) key += i === 0 ? at.get(u.srcs[i]!) : `,${at.get(u.srcs[i]!)}`;
    key += `|${show(u)})`;
  }
  return key;
}

const sorted = new WeakMap<readonly LazyOp[], readonly LazyOp[]>();
/** All nodes of a kernel, sources first. Its keys, its name and lowering ask: it is sorted once. */
export const astNodes = (ast: readonly LazyOp[]): readonly LazyOp[] =>
  getOrMake(sorted, ast, () => toposort(ast, (u) => u.srcs));

/** The constants of a kernel, in order. */
export const constantsIn = (ast: readonly LazyOp[]): Value[] =>
  astNodes(ast).flatMap((u) => (u.op === "CONST" ? [u.arg.val] : []));

const isMoving = (u: LazyOp): boolean => u.op === "VIEW" || isReduceOp(u.op);
const below = (us: readonly LazyOp[]): ReadonlySet<LazyOp> =>
  new Set(
    toposort(
      us.flatMap((u) => u.srcs),
      (x) => x.srcs,
    ),
  );
/** The indexes of the buffers of which every load satisfies `here`. */
function readOnly(nodes: readonly LazyOp[], here: (load: LazyOp<"LOAD">) => boolean): number[] {
  const places = new Map<number, boolean>();
  for (const u of nodes)
    if (u.op === "LOAD") places.set(u.arg.idx, here(u) && places.get(u.arg.idx) !== false);
  return [...places].flatMap(([idx, all]) => (all ? [idx] : []));
}

/**
 * The buffers that a kernel reads only at the element it writes, by index: its result may overwrite them.
 * Below a reduction or a view an element depends on other elements.
 */
export function readInPlace(store: LazyOp): number[] {
  if (store.op !== "STORE" || !store.arg.st.contiguous) return [];
  const nodes = toposort<LazyOp>([store], (x) => x.srcs);
  const moved = below(nodes.filter(isMoving));
  const shape = String(store.shape);
  return readOnly(nodes, (u) => !moved.has(u) && u.arg.st.contiguous && String(u.arg.st.shape) === shape);
}

/**
 * The buffers that a kernel reads only at the element it writes: once, or in every iteration of a reduction
 * to that element. Another output of the same kernel may be such a buffer. For a kernel of one output.
 */
export function readInIteration(ast: readonly LazyOp[]): number[] {
  const [store] = ast as readonly [LazyOp];
  if (store.op !== "STORE" || !store.arg.st.contiguous) return [];
  const nodes = astNodes(ast);
  const here = new Map<LazyOp, boolean>();
  const look = (roots: readonly LazyOp[], axes: readonly number[]): void => {
    for (const u of toposort<LazyOp>(roots, (x) => (isMoving(x) ? [] : x.srcs)))
      if (u.op === "LOAD") here.set(u, showsRow(u.arg.st, store.shape, axes) && here.get(u) !== false);
  };
  look([store], []);
  for (const u of nodes) if (isReduceOp(u.op)) look(u.srcs, u.arg as readonly number[]);
  // a padded view shifts its source to neighbouring elements, even where the source is also read in place
  const moved = below(nodes.filter((u) => u.op === "VIEW" && !repeats(u.srcs[0] as LazyOp, u.arg)));
  return readOnly(nodes, (u) => here.get(u) === true && !moved.has(u));
}
/** Whether a view only repeats elements, along axes where its source has size 1. */
const repeats = ({ shape }: LazyOp, st: ShapeTracker): boolean =>
  showsRow(
    st,
    shape,
    shape.flatMap((d, i) => (d === 1 ? [i] : [])),
  );
/** Whether a view shows a contiguous array of this shape, repeated along these axes. */
function showsRow(st: ShapeTracker, shape: Shape, axes: readonly number[]): boolean {
  const [v] = st.views;
  if (v === undefined || st.views.length !== 1 || v.mask !== undefined || v.offset !== 0) return false;
  if (!shape.every((d, i) => (axes.includes(i) ? d === 1 : d === v.shape[i]))) return false;
  const strides = stridesFor(shape);
  return shape.every((d, i) => v.strides[i] === (axes.includes(i) ? 0 : d === 1 ? v.strides[i] : strides[i]));
}

/**
 * The tree as text, for DEBUG=3. A node with several users is written once and referred to by number after
 * that.
 */
export function showAst(root: LazyOp): string {
  const users = new Map<LazyOp, number>();
  for (const u of toposort([root], (x) => x.srcs)) {
    for (const s of new Set(u.srcs)) users.set(s, (users.get(s) ?? 0) + u.srcs.filter((x) => x === s).length);
  }
  const numbers = new Map<LazyOp, number>();
  const lines: string[] = [];
  const walk = (u: LazyOp, depth: number): void => {
    const indent = "  ".repeat(depth);
    const known = numbers.get(u);
    if (known !== undefined) {
      lines.push(`${indent}%${known}`);
      return;
    }
    if ((users.get(u) ?? 0) > 1) numbers.set(u, numbers.size);
    const name = numbers.has(u) ? `%${numbers.get(u)} = ` : "";
    const arg = u.op === "STORE" || u.op === "LOAD" || u.op === "CONST" ? String(u.arg) : showArg(u);
    lines.push(`${indent}${name}${u.op}${arg === "" ? "" : ` ${arg}`}`);
    for (const s of u.srcs) walk(s, depth + 1);
  };
  walk(root, 0);
  return lines.join("\n");
}
