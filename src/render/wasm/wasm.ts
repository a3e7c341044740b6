// The WASM renderer: linear UOps in, the bytes of a module out. The module imports `env.memory` and exports
// one function under the kernel's name: an i32 byte pointer per buffer by position, then an i32 per variable,
// then for a kernel with a grid the part of it to do: begin and end. A kernel with arrays of its own
// (DEFINE_LOCAL) also imports `env.scratch`, where SCRATCH_BYTES are free for the thread that runs it.
// plan.ts says which values stay on the stack, alu.ts how ops are spelt, the assembler turns both into bytes.

import { CPU_OPS } from "../../codegen/opt/cpuops.ts";
import { cpuLists } from "../../codegen/opt/heuristics/cpu.ts";
import { COMMON_CORE, type Renderer, sourceOf } from "../../codegen/target.ts";
import { type DType, Pointer, scalarOf, type Value } from "../../dtype.ts";
import { InternalError } from "../../errors.ts";
import type { UOpGraph } from "../../uop/list.ts";
import { type UOp, type UOpName, valueType } from "../../uop/node.ts";
import { extremeOf } from "../extreme.ts";
import {
  buildHelper,
  type Context,
  emitAlu,
  emitBitcast,
  emitCast,
  emitConst,
  type Helper,
  hasAlu,
  reprOf,
} from "./alu.ts";
import { assemble, FunctionBuilder, I32, OP, V128, type ValType } from "./assembler.ts";
import { accumulatorOf, constantOf, countOf, isFree, isStatement, lanesOf, type Plan, plan } from "./plan.ts";
import {
  emitExtract,
  emitLoadSplat,
  emitVectorAlu,
  emitVectorBitcast,
  emitVectorCast,
  emitVectorize,
  emitVectorLoad,
  emitVectorStore,
  isV128,
  shiftOf,
  simd,
  vectorBits,
} from "./simd.ts";

export interface WasmOptions {
  /** the memory is a SharedArrayBuffer: workers run kernels on it */
  readonly shared: boolean;
  /** the engine has relaxed SIMD: a product is added in one instruction */
  readonly relaxed: boolean;
}

/** Whether this engine takes relaxed SIMD. */
export function hasRelaxedSimd(): boolean {
  const f = new FunctionBuilder({ params: [], results: [] });
  for (let i = 0; i < 3; i++) f.v128(new Uint32Array(4));
  f.op(OP["f32x4.relaxed_madd"]);
  f.op(OP.drop);
  return WebAssembly.validate(assemble({ memory: { ...PAGES, shared: false }, functions: [f], exports: [] }));
}

/** What a thread has for the arrays of a kernel. */
export const SCRATCH_BYTES = 1 << 18;

const PAGES = { min: 1, max: 65536 } as const;

/** Writes one kernel. Values are asked for by lane; a scalar gives its one value to every lane. */
class Emitter implements Context {
  readonly f: FunctionBuilder;
  /** the kernel has arrays of its own */
  readonly usesScratch: boolean;
  readonly #plan: Plan;
  /** the first local of a value */
  readonly #locals = new Map<UOp, number>();
  readonly #params = new Map<UOp, number>();
  /** the parameters where the part of the grid begins and, next to it, ends */
  readonly #begin: number;
  readonly #scratch = new Map<ValType, number>();
  /** by their bits: the local of a vector that does not change, and what is in it */
  readonly #vectors = new Map<string, { local: number; words: Uint32Array }>();
  readonly #helpers: Helper[] = [];

  constructor(graph: UOpGraph) {
    this.#plan = plan(graph);
    const buffers = graph.uops.filter((u) => u.op === "DEFINE_GLOBAL").sort((a, b) => a.arg[0] - b.arg[0]);
    for (const u of buffers) this.#params.set(u, this.#params.size);
    for (const u of graph.uops) if (u.op === "DEFINE_VAR") this.#params.set(u, this.#params.size);
    this.#begin = this.#params.size;
    const grid = graph.uops.filter((u) => u.op === "SPECIAL");
    if (grid.length > 1) throw new InternalError("WASM: a grid has one dimension here, the others are loops");
    const params = this.#begin + 2 * grid.length;
    this.f = new FunctionBuilder({ params: new Array<ValType>(params).fill(I32), results: [] });
    let offset = 0;
    for (const u of graph.uops) {
      if (u.op !== "DEFINE_LOCAL") continue;
      const at = this.f.local(I32);
      this.f.globalGet(0);
      this.f.i32(offset);
      this.f.op(OP["i32.add"]);
      this.f.set(at);
      this.#params.set(u, at);
      // vectors start where they may
      offset += Math.ceil((u.arg[1] * (u.dtype as Pointer).base.itemsize) / 64) * 64;
    }
    this.usesScratch = offset > 0;
    for (const u of graph.uops) this.#hold(u);
  }
  /**
   * Vectors that do not change come from globals, into locals at the start: engines write a constant out at
   * each use, in several instructions, and a value that might be any they keep in a register.
   */
  #hold(u: UOp): void {
    if (u.op === "DEFINE_ACC" || u.op === "VECTORIZE") return;
    for (const s of u.srcs) {
      if (s.op !== "CONST" || !isV128(valueType(s))) continue;
      const words = inAllLanes(valueType(s), s.arg);
      const key = words.join();
      // nothing is quicker than making a zero
      if (words[0] === 0 || this.#vectors.has(key)) continue;
      const local = this.f.local(V128);
      this.f.globalGet((this.usesScratch ? 1 : 0) + this.#vectors.size);
      this.f.set(local);
      this.#vectors.set(key, { local, words });
    }
  }
  get vectors(): Uint32Array[] {
    return [...this.#vectors.values()].map((v) => v.words);
  }

  readonly helper = (name: Helper): number => {
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
    const { uops, live, inline } = this.#plan;
    for (let i = 0; i < uops.length; i++) {
      if (!live[i] || inline[i]) continue;
      const u = uops[i] as UOp;
      if (isStatement(u)) STATEMENT[u.op](this, u);
      else if (!isFree(u)) this.#keep(u);
    }
    for (const u of uops) if (u.op === "SPECIAL") this.closeGrid(u);
    return [this.f, ...this.#helpers.map(buildHelper)];
  }

  /** Computes a value where it stands, into its locals. */
  #keep(u: UOp): void {
    const first = this.declare(u);
    for (let lane = 0; lane < countOf(u); lane++) {
      VALUE[u.op](this, u, lane);
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
    const param = this.#params.get(u);
    if (u.op === "CONST") this.constant(u, u.arg);
    else if (param !== undefined) this.f.get(param);
    else if (this.#plan.inline[this.#plan.position(u)]) VALUE[u.op](this, u, lane);
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
  constant(u: UOp, value: Value): void {
    const d = valueType(u);
    const words = isV128(d) ? inAllLanes(d, value) : undefined;
    const held = this.#vectors.get(String(words));
    if (words === undefined) emitConst(this.f, scalarOf(d), value);
    else if (held === undefined) this.f.v128(words);
    else this.f.get(held.local);
  }
  /** Whether the value is written at its only use. */
  isInline(u: UOp): boolean {
    return this.#plan.inline[this.#plan.position(u)] === true;
  }
  /** Pushes the byte address of a LOAD or STORE and returns the offset that belongs into the instruction. */
  address(u: UOp, lane: number): number {
    const pointer = (u.srcs[0] as UOp).dtype;
    const index = this.#plan.index[this.#plan.position(u)];
    if (!(pointer instanceof Pointer) || index === undefined) {
      throw new InternalError(`WASM: ${u.op} without a planned index`);
    }
    const { align } = reprOf(scalarOf(pointer.base));
    this.push(u.srcs[0] as UOp, 0);
    if (index.base !== undefined) {
      this.push(index.base, 0);
      if (align > 0) {
        this.f.i32(align);
        this.f.op(OP["i32.shl"]);
      }
      this.f.op(OP["i32.add"]);
    }
    return (index.plus + lane) << align;
  }
}

type Emit = (e: Emitter, u: UOp, lane: number) => void;

const inAllLanes = (d: DType, value: Value): Uint32Array =>
  vectorBits(scalarOf(d), [value, value, value, value]);
const typeOf = (d: DType): ValType => (isV128(d) ? V128 : reprOf(scalarOf(d)).type);

const refuse: Emit = (_, u) => {
  throw new InternalError(`WASM: ${u.op} must not reach the renderer as a value`);
};

function emitLoad(e: Emitter, u: UOp, lane: number): void {
  const d = scalarOf(valueType(u));
  const r = reprOf(d);
  const [, , gate, alt] = u.srcs;
  const load = () => {
    const offset = e.address(u, lane);
    if (isV128(valueType(u))) emitVectorLoad(e.f, d, offset);
    else e.f.memory(r.load, r.align, offset);
  };
  if (gate === undefined || alt === undefined) load();
  else {
    e.push(gate, lane);
    e.f.if(typeOf(valueType(u)));
    load();
    e.f.else();
    e.push(alt, lane);
    e.f.end();
  }
}

const emitOp: Emit = (e, u, lane) => {
  if (u.op !== "ALU") return;
  const [a, b, c] = u.srcs;
  const type = valueType(u.srcs.at(-1) as UOp);
  const shift = isV128(type) ? shiftOf(u) : undefined;
  const extreme = isV128(type) && type.isFloat ? extremeOf(u) : undefined;
  if (extreme !== undefined) {
    for (const s of extreme.of) e.push(s, lane);
    return e.f.op(OP[extreme.largest ? "f32x4.pmax" : "f32x4.pmin"]);
  }
  if (u.arg === "WHERE") {
    e.push(b as UOp, lane); // `select` takes the condition last
    e.push(c as UOp, lane);
    e.push(a as UOp, lane);
  } else if (shift !== undefined) {
    e.push(a as UOp, lane);
    e.f.i32(shift);
  } else if (u.arg === "MULACC" && !isV128(type)) {
    e.push(a as UOp, lane);
    e.push(b as UOp, lane);
    emitAlu(e, "MUL", scalarOf(type), undefined);
    e.push(c as UOp, lane);
    return emitAlu(e, "ADD", scalarOf(type), undefined);
  } else for (const s of u.srcs) e.push(s, lane);
  // one condition for all lanes chooses between vectors as between any two values
  if (isV128(type) && valueType(a as UOp).count > 1) emitVectorAlu(e.f, u.arg, scalarOf(type));
  else emitAlu(e, u.arg, scalarOf(type), constantOf(b));
};

/** Pushes one lane of a value that is computed here. */
const VALUE: Record<UOpName, Emit> = {
  LOAD: emitLoad,
  ALU: emitOp,
  CAST: (e, u, lane) => {
    const from = u.srcs[0] as UOp;
    e.push(from, lane);
    const [d, to] = [scalarOf(valueType(from)), scalarOf(valueType(u))];
    if (isV128(valueType(u))) emitVectorCast(e.f, d, to);
    else emitCast(e, d, to);
  },
  BITCAST: (e, u, lane) => {
    const from = u.srcs[0] as UOp;
    e.push(from, lane);
    const [d, to] = [scalarOf(valueType(from)), scalarOf(valueType(u))];
    if (isV128(valueType(u))) emitVectorBitcast(e.f, d, to);
    else emitBitcast(e, d, to);
  },
  GEP: (e, u) => {
    const from = u.srcs[0] as UOp;
    e.push(from, u.arg as number);
    if (isV128(valueType(from))) emitExtract(e.f, valueType(u), u.arg as number);
  },
  VECTORIZE: (e, u, lane) => {
    if (!isV128(valueType(u))) return e.push(u.srcs[lane] as UOp, 0);
    const first = u.srcs[0] as UOp;
    const plain = first.op === "LOAD" && first.srcs.length === 2 && valueType(first).itemsize === 4;
    if (plain && u.srcs.every((s) => s === first) && e.isInline(first))
      emitLoadSplat(e.f, e.address(first, 0));
    else emitVectorize(e.f, valueType(first), u.srcs, (s) => e.push(s, 0));
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
  WMMA: refuse,
  TILE: refuse,
  ELEMENT: refuse,
  RANGE: refuse,
  REDUCE: refuse,
  STAGE: refuse,
  SINK: refuse,
};

type Run = (e: Emitter, u: UOp) => void;
const refuseRun: Run = (e, u) => refuse(e, u, 0);
const noStatement: Run = (_, u) => {
  throw new InternalError(`WASM: ${u.op} is not a statement`);
};

function emitStore(e: Emitter, u: UOp): void {
  const [, , value, gate] = u.srcs as [UOp, UOp, UOp, UOp?];
  const d = scalarOf(valueType(value));
  const r = reprOf(d);
  if (gate !== undefined) {
    e.push(gate, 0);
    e.f.if();
  }
  for (let lane = 0; lane < lanesOf(u); lane++) {
    const offset = e.address(u, lane);
    e.push(value, lane);
    if (isV128(valueType(value))) emitVectorStore(e.f, d, offset);
    else e.f.memory(r.store, r.align, offset);
  }
  if (gate !== undefined) e.f.end();
}

/** Loops test at the end; one whose bounds are not known to hold a turn is entered through an `if`. */
const surelyRuns = (u: UOp): boolean => {
  const [start, end] = [constantOf(u.srcs[0]), constantOf(u.srcs[1])];
  return start !== undefined && end !== undefined && start < end;
};

/** What a uop does where it stands. */
const STATEMENT: Record<UOpName, Run> = {
  STORE: emitStore,
  DEFINE_ACC: (e, u) => {
    const first = e.declare(u);
    for (let lane = 0; lane < countOf(u); lane++) {
      e.constant(u, (u as UOp<"DEFINE_ACC">).arg);
      e.f.set(first + lane);
    }
  },
  PHI: (e, u) => {
    const value = u.srcs[1] as UOp;
    for (let lane = 0; lane < countOf(u); lane++) {
      e.push(value, lane);
      e.f.set(e.place(u) + lane);
    }
  },
  LOOP: (e, u) => {
    e.push(u.srcs[0] as UOp, 0);
    const i = e.declare(u);
    e.f.set(i);
    if (!surelyRuns(u)) {
      e.f.get(i);
      e.push(u.srcs[1] as UOp, 0);
      e.f.op(OP["i32.lt_s"]);
      e.f.if();
    }
    e.f.loop();
  },
  ENDLOOP: (e, u) => {
    const loop = u.srcs[0] as UOp;
    const i = e.place(loop);
    e.f.get(i);
    e.f.i32(1);
    e.f.op(OP["i32.add"]);
    e.f.tee(i);
    e.push(loop.srcs[1] as UOp, 0);
    e.f.op(OP["i32.lt_s"]);
    e.f.brIf(0);
    e.f.end();
    if (!surelyRuns(loop)) e.f.end();
  },
  IF: (e, u) => {
    e.push(u.srcs[0] as UOp, 0);
    e.f.if();
  },
  ENDIF: (e) => e.f.end(),
  BARRIER: () => {}, // one work item a group: nobody to wait for
  SHFL: refuseRun,
  ASYNC: refuseRun,
  COMMIT: refuseRun,
  WAIT: refuseRun,
  LDMATRIX: refuseRun,
  WMMA: refuseRun,
  TILE: refuseRun,
  ELEMENT: refuseRun,
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

export type WasmRenderer = Renderer<Uint8Array<ArrayBuffer>>;

export const wasmRenderer = ({ shared, relaxed }: WasmOptions): WasmRenderer => ({
  name: "WASM",
  hasLocal: false,
  hasThreads: true,
  globalMax: [],
  localMax: [],
  sharedMax: SCRATCH_BYTES,
  // a function takes 1000 arguments
  maxBuffers: 500,
  saturatingCast: true,
  safeDivision: true,
  optOps: CPU_OPS,
  heuristic: cpuLists,
  core: COMMON_CORE,
  simd: simd(relaxed),
  gpu: undefined,
  support: (d) => (scalarOf(d).isFloat && scalarOf(d).itemsize < 4 ? "bits" : "native"),
  has: (op, d) => hasAlu(op, scalarOf(d)),
  render(name, uops) {
    const e = new Emitter(uops);
    const memory = { ...PAGES, shared };
    const code = assemble({
      memory,
      scratch: e.usesScratch,
      functions: e.functions(),
      vectors: e.vectors,
      exports: [name],
    });
    const isPart = uops.uops.some((u) => u.op === "SPECIAL");
    return sourceOf(code, { buffers: uops.globals().length, vals: uops.vars().length, isPart });
  },
});

/** On a memory of one thread. */
export const WASMRenderer: WasmRenderer = wasmRenderer({ shared: false, relaxed: false });
