// The emitter of the WASM renderer: linear UOps in, the bytes of a module out. It imports `env.memory` and
// exports one function under the kernel's name: an i32 byte pointer per buffer by position, then an i32 per
// variable, then for a kernel with a grid the part of it to do: begin and end. A kernel with arrays of its
// own (DEFINE_LOCAL) also imports `env.scratch`, where SCRATCH_BYTES are free for the thread that runs it.
// On a memory above 4 GiB a pointer is an f64, see addresses.ts.
// plan.ts says which values stay on the stack, alu.ts how ops are spelt, the assembler turns both into bytes.

import {
  emitExtract,
  emitLoadSplat,
  emitMinMax,
  emitVectorAlu,
  emitVectorBitcast,
  emitVectorCast,
  emitVectorize,
  emitVectorLoad,
  emitVectorStore,
  inAllLanes,
  minMaxOf,
  pairIn,
  shiftOf,
} from "#render/simd";
import { type Source, sourceOf } from "../../codegen/target.ts";
import { type DType, scalarOf, type Value } from "../../dtype.ts";
import { InternalError } from "../../errors.ts";
import { getOrMake } from "../../helpers.ts";
import type { UOpGraph } from "../../uop/list.ts";
import { type Const, type Load, type Loop, type UOp, type UOpName, valueType } from "../../uop/node.ts";
import { addIndex, NARROW_PAGES, placeArrays, WIDE_PAGES, widened } from "./addresses.ts";
import {
  type AluContext,
  buildHelper,
  emitAlu,
  emitBitcast,
  emitCast,
  emitConst,
  hasAlu,
  reprOf,
  type WasmHelper,
} from "./alu.ts";
import { assemble, F64, FunctionBuilder, I32, OP, V128, type ValType } from "./assembler.ts";
import { isV128, simd, typeOf } from "./lanes.ts";
import type { LoadPlaces } from "./pairs.ts";
import {
  accumulatorOf,
  constantOf,
  countOf,
  type EmitPlan,
  isFree,
  isStatement,
  lanesOf,
  plan,
} from "./plan.ts";
import type { ModuleBytes, WasmOptions } from "./renderer.ts";

export { hasAlu, simd };
/** It is there; only a page loads it later. */
export const loadEmitter = (): undefined => {};

/** A constant vector in a local, and its bits. */
interface HeldVector {
  readonly local: number;
  readonly words: Uint32Array;
}

/** Writes one kernel. Values are asked for by lane; a scalar gives its one value to every lane. */
class WasmEmitter implements AluContext, LoadPlaces {
  readonly f: FunctionBuilder;
  /** the kernel has arrays of its own */
  readonly usesScratch: boolean;
  readonly #plan: EmitPlan;
  readonly #isWide: boolean;
  /** the first local of a value */
  readonly #locals = new Map<UOp, number>();
  readonly #params = new Map<UOp, number>();
  /** the parameters where the part of the grid begins and, next to it, ends */
  readonly #begin: number;
  readonly #scratch = new Map<ValType, number>();
  /** by their bits: the local of a vector that does not change, and what is in it */
  readonly #vectors = new Map<string, HeldVector>();
  /** the same by the constant; undefined: it is not held */
  readonly #held = new Map<Const, HeldVector | undefined>();
  readonly #helpers: WasmHelper[] = [];

  constructor(graph: UOpGraph, isWide: boolean) {
    this.#plan = plan(graph);
    this.#isWide = isWide;
    const buffers = graph.globals().toSorted((a, b) => a.position - b.position);
    for (const u of buffers) this.#params.set(u, this.#params.size);
    for (const u of graph.uops) if (u.op === "DEFINE_VAR") this.#params.set(u, this.#params.size);
    this.#begin = this.#params.size;
    const { grid } = this.#plan;
    if (grid.length > 1) throw new InternalError("WASM: a grid has one dimension here, the others are loops");
    const params = new Array<ValType>(this.#begin + 2 * grid.length).fill(I32);
    this.f = new FunctionBuilder({
      params: isWide ? params.fill(F64, 0, buffers.length) : params,
      results: [],
    });
    if (isWide) for (const u of buffers) this.#params.set(u, widened(this.f, this.#params.get(u) as number));
    this.usesScratch = placeArrays(this.f, graph, isWide, (u, local) => void this.#params.set(u, local)) > 0;
    for (const u of graph.uops) this.#hold(u);
  }
  /**
   * Constant vectors are globals, loaded into locals at the start. An engine makes a constant anew at each
   * use, in several instructions, but keeps a value that it does not know in a register.
   */
  #hold(u: UOp): void {
    if (u.op === "DEFINE_ACC" || u.op === "VECTORIZE") return;
    for (const s of u.srcs) {
      if (s.op === "CONST" && isV128(s.dtype) && !this.#held.has(s)) this.#held.set(s, this.#vector(s));
    }
  }
  #vector({ dtype, value }: Const): HeldVector | undefined {
    const words = inAllLanes(dtype, value);
    // a zero is made in one instruction
    if (words[0] === 0) return undefined;
    return getOrMake(this.#vectors, words.join(), () => {
      const local = this.f.local(V128);
      this.f.globalGet((this.usesScratch ? 1 : 0) + this.#vectors.size);
      this.f.set(local);
      return { local, words };
    });
  }
  get vectors(): Uint32Array[] {
    return [...this.#vectors.values()].map((v) => v.words);
  }

  readonly helper = (name: WasmHelper): number => {
    let at = this.#helpers.indexOf(name);
    if (at < 0) at = this.#helpers.push(name) - 1;
    return at + 1; // function 0 is the kernel
  };
  readonly scratch = (type: ValType): number => {
    const known = this.#scratch.get(type);
    if (known !== undefined) return known;
    const first = this.f.local(type, 2);
    this.#scratch.set(type, first);
    return first;
  };

  functions(): FunctionBuilder[] {
    const { uops, live, inline, grid } = this.#plan;
    for (let i = 0; i < uops.length; i++) {
      if (!live[i] || inline[i]) continue;
      const u = uops[i] as UOp;
      if (isStatement(u)) (STATEMENT[u.op] as EmitUOp<UOpName>)(this, u);
      else if (!isFree(u)) this.#keep(u);
    }
    for (const u of grid) this.closeGrid(u);
    return [this.f, ...this.#helpers.map(buildHelper)];
  }

  /** Computes a value where it stands, into its locals. */
  #keep(u: UOp): void {
    const first = this.declare(u);
    for (let lane = 0; lane < countOf(u); lane++) {
      (VALUE[u.op] as Emit<UOpName>)(this, u, lane);
      this.f.set(first + lane);
    }
  }
  /** Gives a uop its locals, one per lane. */
  declare(u: UOp): number {
    const first = this.f.local(typeOf(valueType(u)), countOf(u));
    this.#locals.set(u, first);
    return first;
  }
  /** The first local of a uop that has one. */
  place(u: UOp): number {
    const at = this.#locals.get(accumulatorOf(u) ?? u);
    if (at === undefined) throw new InternalError(`WASM: ${u.op} is read before it has a value`);
    return at;
  }

  /** Pushes one lane of a value. */
  push(u: UOp, lane: number): void {
    const param = u.op === "CONST" ? undefined : this.#params.get(u);
    if (u.op === "CONST") this.#constant(u);
    else if (param !== undefined) this.f.get(param);
    else if (this.isInline(u)) (VALUE[u.op] as Emit<UOpName>)(this, u, lane);
    else this.f.get(this.place(u) + (countOf(u) > 1 ? lane : 0));
  }
  /** The kernel's part of the grid is a loop around all that follows. */
  openGrid(u: UOp): void {
    const i = this.declare(u);
    this.f.get(this.#begin);
    this.f.tee(i);
    this.f.get(this.#begin + 1);
    this.f.op(OP["i32.lt_s"]);
    this.f.if();
    this.f.loop();
  }
  closeGrid(u: UOp): void {
    const i = this.place(u);
    this.f.get(i);
    this.f.i32(1);
    this.f.op(OP["i32.add"]);
    this.f.tee(i);
    this.f.get(this.#begin + 1);
    this.f.op(OP["i32.lt_s"]);
    this.f.brIf(0);
    this.f.end();
    this.f.end();
  }
  #constant(u: Const): void {
    const held = this.#held.get(u);
    if (held === undefined) this.constant(u.dtype, u.value);
    else this.f.get(held.local);
  }
  constant(d: DType, value: Value): void {
    const words = isV128(d) ? inAllLanes(d, value) : undefined;
    const held = words && this.#vectors.get(words.join());
    if (words === undefined) emitConst(this.f, scalarOf(d), value);
    else if (held === undefined) this.f.v128(words);
    else this.f.get(held.local);
  }
  /** Whether the value is written at its only use. */
  isInline(u: UOp): boolean {
    return this.#plan.inline[this.#plan.position(u)] === true;
  }
  /** Whether a load reads what lies behind that of another, in the same buffer. */
  follows(next: Load, before: Load): boolean {
    const [a, b] = [next, before].map((u) => this.#plan.index[this.#plan.position(u)]);
    return a !== undefined && b !== undefined && a.base === b.base && a.plus === b.plus + 1;
  }
  /** Pushes the byte address of a LOAD or STORE and returns the offset that belongs into the instruction. */
  address(u: UOp<"LOAD" | "STORE">, lane: number): number {
    const index = this.#plan.index[this.#plan.position(u)];
    if (index === undefined) throw new InternalError(`WASM: ${u.op} without a planned index`);
    const { align } = reprOf(scalarOf(u.buffer.dtype.base));
    this.push(u.buffer, 0);
    if (index.base !== undefined) {
      this.push(index.base, 0);
      addIndex(this.f, align, this.#isWide);
    }
    return (index.plus + lane) << align;
  }
}

type Emit<K extends UOpName> = (e: WasmEmitter, u: UOp<K>, lane: number) => void;

const refuse = (_: WasmEmitter, u: UOp): never => {
  throw new InternalError(`WASM: ${u.op} must not reach the renderer as a value`);
};

const emitLoad: Emit<"LOAD"> = (e, u, lane) => {
  const d = scalarOf(u.dtype);
  const r = reprOf(d);
  const { gate, otherwise } = u;
  const load = () => {
    const offset = e.address(u, lane);
    if (isV128(u.dtype)) emitVectorLoad(e.f, d, offset);
    else e.f.memory(r.load, r.align, offset);
  };
  if (gate === undefined || otherwise === undefined) load();
  else {
    e.push(gate, lane);
    e.f.if(typeOf(u.dtype));
    load();
    e.f.else();
    e.push(otherwise, lane);
    e.f.end();
  }
};

const emitOp: Emit<"ALU"> = (e, u, lane) => {
  const type = u.operandType;
  const shift = isV128(type) ? shiftOf(u) : undefined;
  const minMax = isV128(type) && type.isFloat ? minMaxOf(u) : undefined;
  if (minMax !== undefined) {
    for (const x of minMax.operands) e.push(x, lane);
    return emitMinMax(e.f, minMax.isMax);
  }
  if (u.fn === "WHERE") {
    const [condition, x, y] = u.operands;
    for (const s of [x, y, condition]) e.push(s, lane); // `select` takes the condition last
  } else if (shift !== undefined) {
    e.push(u.operands[0], lane);
    e.f.i32(shift);
  } else if (u.fn === "MULACC" && !isV128(type)) {
    const [x, y, z] = u.operands;
    e.push(x, lane);
    e.push(y, lane);
    emitAlu(e, "MUL", scalarOf(type), undefined);
    e.push(z, lane);
    return emitAlu(e, "ADD", scalarOf(type), undefined);
  } else for (const x of u.operands) e.push(x, lane);
  // one condition for all lanes chooses between vectors as between any two values
  if (isV128(type) && u.operands[0].dtype.count > 1) emitVectorAlu(e.f, u.fn, scalarOf(type));
  else emitAlu(e, u.fn, scalarOf(type), constantOf(u.operands[1]));
};

/** Pushes one lane of a value that is computed here. */
const VALUE: { readonly [K in UOpName]: Emit<K> } = {
  LOAD: emitLoad,
  ALU: emitOp,
  CAST: (e, u, lane) => {
    e.push(u.operand, lane);
    const [from, to] = [scalarOf(u.operand.dtype), scalarOf(u.dtype)];
    if (isV128(u.dtype)) emitVectorCast(e.f, from, to);
    else emitCast(e, from, to);
  },
  BITCAST: (e, u, lane) => {
    e.push(u.operand, lane);
    const [from, to] = [scalarOf(u.operand.dtype), scalarOf(u.dtype)];
    if (isV128(u.dtype)) emitVectorBitcast(e.f, from, to);
    else emitBitcast(e, from, to);
  },
  GEP: (e, u) => {
    e.push(u.vector, u.lane);
    if (isV128(u.vector.dtype)) emitExtract(e.f, u.dtype, u.lane);
  },
  VECTORIZE: (e, u, lane) => {
    const [first] = u.lanes;
    const wanted = u.lanes[isV128(u.dtype) ? 0 : lane];
    if (first === undefined || wanted === undefined)
      throw new InternalError(`WASM: ${u.op} has no lane ${lane}`);
    if (!isV128(u.dtype)) return e.push(wanted, 0);
    const isPlain = first.op === "LOAD" && first.gate === undefined && first.dtype.itemsize === 4;
    const word = isPlain ? first : pairIn(e, first);
    if (word !== undefined && u.lanes.every((x) => x === first) && e.isInline(first))
      emitLoadSplat(e.f, reprOf(word.dtype).align, e.address(word, 0));
    else emitVectorize(e.f, first.dtype, u.lanes, (x) => e.push(x, 0));
  },
  DEFINE_GLOBAL: refuse,
  DEFINE_LOCAL: refuse,
  DEFINE_ACC: refuse,
  DEFINE_VAR: refuse,
  SPECIAL: refuse,
  CONST: refuse,
  LOOP: refuse,
  ENDLOOP: refuse,
  IF: refuse,
  ENDIF: refuse,
  STORE: refuse,
  PHI: refuse,
  BARRIER: refuse,
  SHFL: refuse,
  ASYNC: refuse,
  COMMIT: refuse,
  WAIT: refuse,
  LDMATRIX: refuse,
  LDFRAGMENT: refuse,
  WMMA: refuse,
  TILE: refuse,
  ELEMENT: refuse,
  RANGE: refuse,
  REDUCE: refuse,
  STAGE: refuse,
  SINK: refuse,
};

type EmitUOp<K extends UOpName> = (e: WasmEmitter, u: UOp<K>) => void;
const noStatement = (_: WasmEmitter, u: UOp): never => {
  throw new InternalError(`WASM: ${u.op} is not a statement`);
};

const emitStore: EmitUOp<"STORE"> = (e, u) => {
  const { value, gate } = u;
  const d = scalarOf(value.dtype);
  const r = reprOf(d);
  if (gate !== undefined) {
    e.push(gate, 0);
    e.f.if();
  }
  for (let lane = 0; lane < lanesOf(u); lane++) {
    const offset = e.address(u, lane);
    e.push(value, lane);
    if (isV128(value.dtype)) emitVectorStore(e.f, d, offset);
    else e.f.memory(r.store, r.align, offset);
  }
  if (gate !== undefined) e.f.end();
};

/** Loops test at the end; one that may run zero iterations is entered through an `if`. */
const surelyRuns = (u: Loop): boolean => {
  const [start, end] = [constantOf(u.start), constantOf(u.end)];
  return start !== undefined && end !== undefined && start < end;
};

/** What a uop does where it stands. */
const STATEMENT: { readonly [K in UOpName]: EmitUOp<K> } = {
  STORE: emitStore,
  DEFINE_ACC: (e, u) => {
    const first = e.declare(u);
    for (let lane = 0; lane < countOf(u); lane++) {
      e.constant(u.dtype, u.initial);
      e.f.set(first + lane);
    }
  },
  PHI: (e, u) => {
    for (let lane = 0; lane < countOf(u); lane++) {
      e.push(u.value, lane);
      e.f.set(e.place(u) + lane);
    }
  },
  LOOP: (e, u) => {
    e.push(u.start, 0);
    const i = e.declare(u);
    e.f.set(i);
    if (!surelyRuns(u)) {
      e.f.get(i);
      e.push(u.end, 0);
      e.f.op(u.dtype.isBig ? OP["i64.lt_s"] : OP["i32.lt_s"]);
      e.f.if();
    }
    e.f.loop();
  },
  ENDLOOP: (e, u) => {
    const { loop } = u;
    const i = e.place(loop);
    const { isBig } = loop.dtype;
    e.f.get(i);
    if (isBig) e.f.i64(1n);
    else e.f.i32(1);
    e.f.op(isBig ? OP["i64.add"] : OP["i32.add"]);
    e.f.tee(i);
    e.push(loop.end, 0);
    e.f.op(isBig ? OP["i64.lt_s"] : OP["i32.lt_s"]);
    e.f.brIf(0);
    e.f.end();
    if (!surelyRuns(loop)) e.f.end();
  },
  IF: (e, u) => {
    e.push(u.condition, 0);
    e.f.if();
  },
  ENDIF: (e) => e.f.end(),
  BARRIER: () => {}, // a workgroup has one thread: nobody to wait for
  SHFL: refuse,
  ASYNC: refuse,
  COMMIT: refuse,
  WAIT: refuse,
  LDMATRIX: refuse,
  LDFRAGMENT: refuse,
  WMMA: refuse,
  TILE: refuse,
  ELEMENT: refuse,
  DEFINE_GLOBAL: noStatement,
  DEFINE_LOCAL: noStatement,
  DEFINE_VAR: noStatement,
  SPECIAL: (e, u) => e.openGrid(u),
  CONST: noStatement,
  LOAD: noStatement,
  ALU: noStatement,
  CAST: noStatement,
  BITCAST: noStatement,
  GEP: noStatement,
  VECTORIZE: noStatement,
  RANGE: noStatement,
  REDUCE: noStatement,
  STAGE: noStatement,
  SINK: noStatement,
};

/** The bytes of a module. */
export function emit(
  name: string,
  uops: UOpGraph,
  { shared, wide = false }: WasmOptions,
): Source<ModuleBytes> {
  const e = new WasmEmitter(uops, wide);
  const memory = { min: 1, max: wide ? WIDE_PAGES : NARROW_PAGES, shared, wide };
  const code = assemble({
    memory,
    scratch: e.usesScratch,
    functions: e.functions(),
    vectors: e.vectors,
    exports: [name],
  });
  const isPart = uops.uops.some((u) => u.op === "SPECIAL");
  return sourceOf(code, { buffers: uops.globals().length, vals: uops.vars().length, isPart });
}
