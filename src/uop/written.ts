// The public UOpGraph: a list that somebody writes by hand with `add`, which checks what it is given. Folding
// and the renderers would trip over what is refused here; spec.ts checks the rest. Codegen's own lists are
// those of list.ts, whose class has the same name.

import { bounds, DType, Pointer, scalarOf } from "../dtype.ts";
import { ArgumentError } from "../errors.ts";
import { isAluOp, opRecord } from "../ops.ts";
import { UOpGraph as List } from "./list.ts";
import { listing } from "./listing.ts";
import { type Expr, type UOp, type UOpArgs, type UOpName, UOps, type UType } from "./node.ts";

export class UOpGraph extends List {
  static override readonly name: string = "UOpGraph";
  override readonly isByHand: boolean = true;

  override toString(): string {
    return listing(this);
  }
  override add<K extends UOpName>(
    op: K,
    dtype: UType,
    srcs: readonly UOp[] = [],
    arg?: UOpArgs[K],
  ): K extends Expr["op"] ? Expr : UOp<K> {
    checkOp(op);
    checkSources(op, srcs);
    const stranger = srcs.find((x) => !this.has(x));
    if (stranger !== undefined)
      refuse(`a source of ${op} is ${stranger.op} of another list; add it to this one`);
    checkKinds(op, srcs);
    checkArgument(op, dtype, arg);
    if (op === "ALU") checkAlu(srcs, arg);
    return super.add(op, dtype, srcs, arg);
  }
}

const refuse = (why: string): never => {
  throw new ArgumentError(`UOpGraph.add: ${why}`);
};

function checkOp(op: string): void {
  if (!Object.hasOwn(UOps, op))
    refuse(`there is no op ${op}; expected one of ${Object.keys(UOps).join(", ")}`);
  const instead = GRAPH_OPS.get(op);
  if (instead !== undefined) refuse(`${op} is of the graph that a list is made of; a list has ${instead}`);
}
/** Ops that linearize replaces, and by what. */
const GRAPH_OPS: ReadonlyMap<string, string> = new Map([
  ["RANGE", "LOOP and ENDLOOP"],
  ["REDUCE", "DEFINE_ACC and PHI"],
  ["STAGE", "DEFINE_LOCAL"],
  ["TILE", "DEFINE_LOCAL"],
  ["ELEMENT", "LOAD"],
  ["SINK", "its last STORE"],
]);

/** What an op reads, in order; what may be left out is not here. */
const SOURCES: { readonly [K in UOpName]?: readonly string[] } = {
  LOOP: ["the start", "the end"],
  ENDLOOP: ["the LOOP"],
  IF: ["a condition"],
  ENDIF: ["the IF"],
  LOAD: ["a buffer", "an index"],
  STORE: ["a buffer", "an index", "a value"],
  CAST: ["a value"],
  BITCAST: ["a value"],
  PHI: ["an accumulator", "a value"],
  SHFL: ["a value"],
  ASYNC: ["shared memory", "an index", "a buffer", "an index"],
  LDMATRIX: ["shared memory", "an index"],
  LDFRAGMENT: ["shared memory", "an index"],
  WMMA: ["two operands", "of them"],
  GEP: ["a vector"],
  VECTORIZE: ["its lanes"],
};
function checkSources(op: UOpName, srcs: readonly UOp[]): void {
  const list: unknown = srcs;
  const isNode = (x: unknown): boolean => typeof x === "object" && x !== null && "op" in x && "srcs" in x;
  if (!Array.isArray(list) || !list.every(isNode))
    refuse(`the sources of ${op} are ${String(list)}; expected an array of what add returned`);
  const parts = SOURCES[op] ?? [];
  if (srcs.length >= parts.length) return;
  refuse(`${op} has ${srcs.length} sources, expected ${parts.length}: ${parts.join(", ")}`);
}

const isMemory = (u: UOp): boolean => u.dtype instanceof Pointer;
const isInteger = (u: UOp): boolean => !(u.dtype instanceof Pointer) && u.dtype?.isInt === true;
/** What sources have to be, by their places. */
const KINDS: { readonly [K in UOpName]?: readonly (readonly [is: (u: UOp) => boolean, what: string])[] } = {
  LOOP: [
    [isInteger, "an integer"],
    [isInteger, "an integer"],
  ],
  ENDLOOP: [[(u) => u.op === "LOOP", "a LOOP"]],
  ENDIF: [[(u) => u.op === "IF", "an IF"]],
  LOAD: [
    [isMemory, "a buffer"],
    [isInteger, "an integer"],
  ],
  STORE: [
    [isMemory, "a buffer"],
    [isInteger, "an integer"],
  ],
  PHI: [[(u) => u.op === "DEFINE_ACC" || u.op === "PHI", "a DEFINE_ACC"]],
};
function checkKinds(op: UOpName, srcs: readonly UOp[]): void {
  const kinds = KINDS[op] ?? [];
  srcs.slice(0, kinds.length).forEach((u, i) => {
    const [is, what] = kinds[i] ?? [() => true];
    if (!is(u)) refuse(`source ${i} of ${op} is ${u.op} of type ${u.dtype}, expected ${what}`);
  });
}

/** The ops that have a type and an argument, and how the argument is written; an array as JSON. */
const ARGUMENTS: { readonly [K in UOpName]?: string } = {
  DEFINE_GLOBAL: '[0, "data0", true]',
  DEFINE_LOCAL: '["temp0", 16]',
  DEFINE_ACC: "0",
  DEFINE_VAR: 'Variable("n", 1, 10)',
  SPECIAL: '[0, "gidx0", 16]',
  CONST: "199",
  GEP: "0",
};
function checkArgument(op: UOpName, dtype: UType, arg: unknown): void {
  const example = ARGUMENTS[op];
  if (example === undefined) return;
  const isMemory = op === "DEFINE_GLOBAL" || op === "DEFINE_LOCAL";
  if (dtype === undefined || dtype instanceof Pointer !== isMemory)
    refuse(
      `${op} is of type ${dtype}, expected ${isMemory ? "a pointer, as PtrDType(dtypes.int)" : "a dtype, as dtypes.int"}`,
    );
  if (!isLike(example, dtype, arg))
    refuse(`the argument of ${op} is ${String(arg)}; write, for example, ${example}`);
}
function isLike(example: string, dtype: UType, arg: unknown): boolean {
  if (example.startsWith("Variable")) return arg !== undefined;
  const like: unknown = JSON.parse(example);
  // a size may be symbolic
  const kindOf = (x: unknown): string => (typeof x === "object" && x !== null ? "number" : typeof x);
  if (Array.isArray(like))
    return (
      Array.isArray(arg) && arg.length === like.length && like.every((x, i) => kindOf(arg[i]) === typeof x)
    );
  if (typeof arg !== "number" && typeof arg !== "bigint") return false;
  if (!(dtype instanceof DType) || !dtype.isInt) return true;
  const [lo, hi] = bounds(scalarOf(dtype));
  return (typeof arg === "bigint" || Number.isInteger(arg)) && arg >= lo && arg <= hi;
}

function checkAlu(srcs: readonly UOp[], fn: unknown): void {
  if (typeof fn !== "string" || !isAluOp(fn))
    throw refuse(`ALU computes ${String(fn)}; expected the name of an op, as BinaryOps.ADD`);
  const { arity } = opRecord(fn);
  if (srcs.length !== arity) refuse(`${fn} has ${srcs.length} sources, expected ${arity}`);
  const values = fn === "WHERE" ? srcs.slice(1) : srcs;
  const type = values[0]?.dtype;
  if (values.every((s) => s.dtype === type && type !== undefined && !(type instanceof Pointer))) return;
  refuse(
    `${fn} of ${values.map((s) => s.dtype ?? `${s.op} without a type`).join(" and ")}; ` +
      "expected values of one dtype: add a CAST, or a LOAD for a pointer",
  );
}
