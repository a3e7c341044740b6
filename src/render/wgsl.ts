// Linear UOps to WGSL, the language of WebGPU. One kernel is one module: its buffers are bindings in their
// order, its variables one uniform after them. WGSL converts nothing by itself and may assume NaN away, so
// casts and NaN are spelt out. bool buffers hold one byte an element, four to a word; other types narrower
// than 32 bits (but f16, where the device has it) and 64-bit types are refused by `support`.

import { GRID } from "../codegen/linear/gridlinear.ts";
import { GRID_OPS } from "../codegen/opt/cpuops.ts";
import { cpuLists } from "../codegen/opt/heuristics/cpu.ts";
import { COMMON_CORE, type Renderer, type Source, type Support, sourceOf } from "../codegen/target.ts";
import { type DType, dtypes, Pointer, scalarOf, type Value } from "../dtype.ts";
import { InternalError } from "../errors.ts";
import { identifier, kernelIdentifier, ownIdentifier } from "../names.ts";
import type { AluOp, NativeOps } from "../ops.ts";
import type { UOpGraph } from "../uop/list.ts";
import type { Alu, Expr, Memory, UOp, UOpName } from "../uop/node.ts";
import { isCount, operand, pythonFloat } from "./spelling.ts";
import { helperTexts, type WgslHelper } from "./wgslhelpers.ts";
import { KernelWriter, lanesOf, type Prefix, refuseUOp, stripParens } from "./writer.ts";

const TYPES: Readonly<Record<string, string>> = {
  bool: "bool",
  int32: "i32",
  uint32: "u32",
  float16: "f16",
  float32: "f32",
};
function typeName(d: DType): string {
  const name = TYPES[scalarOf(d).name];
  if (name === undefined) throw new InternalError(`WGSL has no ${d}; \`support\` refuses it`);
  return d.count === 1 ? name : `vec${d.count}<${name}>`;
}

/** Asks for a helper function and returns its name. */
type Need = (helper: WgslHelper) => WgslHelper;

function literal(d: DType, value: Value, need: Need): string {
  if (d.kind === "bool") return value ? "true" : "false";
  if (d === dtypes.uint32) return `${value}u`;
  if (!d.isFloat) return value === -2147483648 ? "i32(-2147483648)" : String(value);
  const x = Number(value);
  const half = (text: string): string => (d === dtypes.float16 ? `f16(${text})` : text);
  if (Number.isNaN(x)) return half(`${need("nan")}()`);
  if (Math.abs(Math.fround(x)) === Infinity) return half(x > 0 ? `${need("inf")}()` : `(-${need("inf")}())`);
  return half(`${pythonFloat(x)}f`);
}

// ---- ops ----

type SpellWGSL = (d: DType, need: Need, ...srcs: string[]) => string;
const infix =
  (symbol: string): SpellWGSL =>
  (_, __, a = "", b = "") =>
    `(${a}${symbol}${operand(b)})`;
const call =
  (fn: string): SpellWGSL =>
  (_, __, ...xs) =>
    `${fn}(${xs.join(",")})`;
/** A helper on f32; f16 passes through it and rounds once. */
const helper =
  (name: WgslHelper): SpellWGSL =>
  (d, need, ...xs) => {
    if (d !== dtypes.float16) return `${need(name)}(${xs.join(",")})`;
    return `f16(${need(name)}(${xs.map((x) => `f32(${x})`).join(",")}))`;
  };
const same: SpellWGSL = (_, __, a = "") => a;
const bitsAreNaN: SpellWGSL = (d, need, x) => `${need("is_nan")}(${d === dtypes.float16 ? `f32(${x})` : x})`;
const shift =
  (symbol: string): SpellWGSL =>
  (_, __, a = "", b = "") =>
    `(${a}${symbol}${isCount(b, 32) ? `${Number.parseInt(b, 10)}u` : `(u32(${b})&31u)`})`;

const BOOL: Partial<Record<AluOp, SpellWGSL>> = {
  NEG: same,
  TRUNC: same,
  ADD: infix("|"),
  SUB: infix("!="),
  MUL: infix("&"),
  IDIV: infix("&"),
  MOD: () => "false",
  MAX: infix("|"),
  CMPLT: (_, __, a, b) => `(!${a}&${b})`,
  XOR: infix("!="),
  MULACC: (_, __, a, b, c) => `((${a}&${b})|${c})`,
};

/**
 * sin is not among them: WGSL promises it to 2^-11 only. exp2 and log2 are as exact as the driver makes them.
 */
const NUMBER: NativeOps<SpellWGSL> = {
  NEG: (d, _, a = "") => (d.kind === "uint" ? `(0u-${a})` : `(-${operand(a)})`),
  EXP2: helper("nan_exp2"),
  LOG2: helper("nan_log2"),
  SQRT: call("sqrt"),
  RECIP: (d, need, a) => `(${literal(d, 1, need)}/${a})`,
  TRUNC: (d, need, a = "") => (d.isFloat ? call("trunc")(d, need, a) : a),
  ADD: infix("+"),
  SUB: infix("-"),
  MUL: infix("*"),
  DIV: infix("/"),
  IDIV: infix("/"),
  // the % of floats is x - y*trunc(x/y), which rounds
  MOD: (d, need, a = "", b = "") => (d.isFloat ? helper("fmod") : infix("%"))(d, need, a, b),
  MAX: (d, need, a = "", b = "") => (d.isFloat ? helper("nan_max") : call("max"))(d, need, a, b),
  CMPLT: infix("<"),
  CMPEQ: (d, need, a, b) => (d.isFloat && a === b ? `(!${bitsAreNaN(d, need, a ?? "")})` : `(${a}==${b})`),
  // != of floats is an ordered comparison on some drivers: false for NaN
  CMPNE: (d, need, a, b) => {
    if (!d.isFloat) return `(${a}!=${b})`;
    return a === b ? bitsAreNaN(d, need, a ?? "") : `(!(${a}==${b}))`;
  },
  AND: infix("&"),
  OR: infix("|"),
  XOR: infix("^"),
  SHL: shift("<<"),
  SHR: shift(">>"),
  WHERE: (_, __, c, a, b) => `select(${b},${a},${c})`,
  MULACC: (_, __, a, b, c) => `((${a}*${b})+${c})`,
};

function cast(to: DType, from: DType, x: string, need: Need): string {
  if (to === from) return x;
  if (to.kind === "bool")
    return from.isFloat ? `(!(${x}==${literal(from, 0, need)}))` : `(${x}!=${literal(from, 0, need)})`;
  if (to === dtypes.float16 && from !== dtypes.float32 && from.kind !== "bool") return `f16(f32(${x}))`;
  if (!from.isFloat || to.isFloat) return `${typeName(to)}(${x})`;
  return `${need(to === dtypes.uint32 ? "to_u32" : "to_i32")}(${from === dtypes.float16 ? `f32(${x})` : x})`;
}

// ---- the walk ----

class WGSLText extends KernelWriter {
  readonly buffers: UOp<"DEFINE_GLOBAL">[] = [];
  readonly variables: UOp<"DEFINE_VAR">[] = [];
  readonly locals: string[] = [];
  readonly local = [1, 1, 1];
  usesHalf = false;

  constructor(uops: readonly UOp[]) {
    super(uops);
    for (const u of uops) {
      const d = u.dtype instanceof Pointer ? u.dtype.base : u.dtype;
      if (d !== undefined && scalarOf(d) === dtypes.float16) this.usesHalf = true;
      (RENDER[u.op] as (k: WGSLText, u: UOp) => void)(this, u);
    }
  }

  need: Need = (name) => {
    this.helpers.add(name);
    return name;
  };
  override declare(_: UOp, prefix: Prefix, text: string): string {
    const name = this.fresh(prefix);
    this.line(`let ${name} = ${text};`);
    return name;
  }
  constant(d: DType, value: Value): string {
    const one = literal(scalarOf(d), value, this.need);
    return d.count === 1 ? one : `${typeName(d)}(${one})`;
  }
  lane(u: Expr, i: number): string {
    if (u.op === "CONST") return literal(scalarOf(u.dtype), u.value, this.need);
    return lanesOf(u) === 1 ? this.text(u) : `${this.text(u)}[${i}]`;
  }
  perLane(d: DType, operands: readonly Expr[], spell: (...xs: string[]) => string): string {
    const lanes = Array.from({ length: d.count }, (_, i) => spell(...operands.map((x) => this.lane(x, i))));
    return d.count === 1 ? (lanes[0] ?? "") : `${typeName(d)}(${lanes.join(",")})`;
  }
  alu(u: Alu): string {
    const d = scalarOf(u.operandType);
    const spell = (d.kind === "bool" ? BOOL[u.fn] : undefined) ?? NUMBER[u.fn];
    if (spell === undefined) throw new InternalError(`WGSL has no ${u.fn}; codegen decomposes it`);
    return this.perLane(u.dtype, u.operands, (...xs) => spell(d, this.need, ...xs));
  }
  /** The index of lane `i` of an access. */
  at(index: Expr, i: number): string {
    return i === 0 ? stripParens(this.text(index)) : `${this.text(index)}+${i}`;
  }
}

/** A buffer of bools, four to a word. */
const isPacked = (buffer: Memory): boolean =>
  buffer.op === "DEFINE_GLOBAL" && buffer.dtype.base.kind === "bool";
const isWritten = (buffer: Memory): boolean => buffer.op === "DEFINE_GLOBAL" && buffer.isWritten;

function element(k: WGSLText, buffer: Memory, at: string): string {
  const name = k.text(buffer);
  if (!isPacked(buffer)) return `${name}[${at}]`;
  const word = isWritten(buffer) ? `atomicLoad(&${name}[(${at})>>2u])` : `${name}[(${at})>>2u]`;
  return `(((${word}>>(u32((${at})&3)*8u))&255u)!=0u)`;
}

/** Neighbours in a word belong to other threads: the byte is changed atomically. */
function storeElement(k: WGSLText, buffer: Memory, at: string, value: string): void {
  const name = k.text(buffer);
  if (!isPacked(buffer)) {
    k.line(`${name}[${at}] = ${value};`);
    return;
  }
  k.line(`atomicAnd(&${name}[(${at})>>2u], ~(255u<<(u32((${at})&3)*8u)));`);
  k.line(`atomicOr(&${name}[(${at})>>2u], select(0u,1u,${value})<<(u32((${at})&3)*8u));`);
}

const range = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

const RENDER: { readonly [K in UOpName]: (k: WGSLText, u: UOp<K>) => void } = {
  DEFINE_GLOBAL: (k, u) => {
    k.buffers.push(u);
    k.set(u, k.parameter(ownIdentifier(u.name)));
  },
  DEFINE_VAR: (k, u) => {
    k.variables.push(u);
    k.set(u, `vars.${k.parameter(identifier(u.variable.name))}`);
  },
  DEFINE_LOCAL: (k, u) => {
    const name = k.parameter(ownIdentifier(u.name));
    k.locals.push(`var<workgroup> ${name}: array<${typeName(u.dtype.base)}, ${u.elements}>;`);
    k.set(u, name);
  },
  DEFINE_ACC: (k, u) => {
    const name = k.fresh("acc");
    k.line(`var ${name}: ${typeName(u.dtype)} = ${k.constant(u.dtype, u.initial)};`);
    k.set(u, name);
  },
  SPECIAL: (k, u) => {
    const { dimension, size } = u;
    const name = ownIdentifier(u.name);
    const isGroup = name.startsWith("g");
    if (!isGroup) k.local[dimension] = size;
    k.line(`let ${name} = i32(${isGroup ? "gid" : "lid"}.${"xyz"[dimension]}); /* ${size} */`);
    k.set(u, name);
  },
  CONST: (k, u) => k.set(u, k.constant(u.dtype, u.value)),
  LOOP: (k, u) => {
    const i = k.fresh("ridx");
    k.open(`for (var ${i}: i32 = ${k.text(u.start)}; ${i} < ${k.text(u.end)}; ${i}++) {`);
    k.set(u, i);
  },
  ENDLOOP: (k) => k.close(),
  IF: (k, u) => k.open(`if (${stripParens(k.text(u.condition))}) {`),
  ENDIF: (k) => k.close(),
  LOAD: (k, u) => {
    const { buffer, index, gate, otherwise, dtype: d } = u;
    const lanes = range(d.count).map((i) => element(k, buffer, k.at(index, i)));
    const value = d.count === 1 ? (lanes[0] ?? "") : `${typeName(d)}(${lanes.join(",")})`;
    if (gate === undefined) return k.set(u, k.declare(u, "val", value));
    // select would read the memory in any case
    const name = k.fresh("val");
    k.line(`var ${name}: ${typeName(d)} = ${k.text(otherwise)};`);
    k.line(`if (${stripParens(k.text(gate))}) { ${name} = ${value}; }`);
    k.set(u, name);
  },
  STORE: (k, u) => {
    const { buffer, index, value, gate } = u;
    if (gate !== undefined) k.open(`if (${stripParens(k.text(gate))}) {`);
    if (lanesOf(value) === 1) storeElement(k, buffer, k.at(index, 0), k.text(value));
    else {
      const name = /^\w+$/.test(k.text(value)) ? k.text(value) : k.declare(value, "vec", k.text(value));
      for (const i of range(lanesOf(value))) storeElement(k, buffer, k.at(index, i), `${name}[${i}]`);
    }
    if (gate !== undefined) k.close();
  },
  ALU: (k, u) => k.value(u, "alu", k.alu(u)),
  CAST: (k, u) => {
    const [to, from] = [scalarOf(u.dtype), scalarOf(u.operand.dtype)];
    k.value(
      u,
      "cast",
      k.perLane(u.dtype, [u.operand], (x = "") => cast(to, from, x, k.need)),
    );
  },
  BITCAST: (k, u) => {
    const to = typeName(scalarOf(u.dtype));
    k.value(
      u,
      "cast",
      k.perLane(u.dtype, [u.operand], (x) => `bitcast<${to}>(${x})`),
    );
  },
  PHI: (k, u) => {
    k.line(`${k.text(u.accumulator)} = ${k.text(u.value)};`);
    k.set(u, k.text(u.accumulator));
  },
  BARRIER: (k) => k.line("workgroupBarrier();"),
  // the target says that its threads exchange nothing
  SHFL: refuseUOp,
  ASYNC: refuseUOp,
  COMMIT: refuseUOp,
  WAIT: refuseUOp,
  LDMATRIX: refuseUOp,
  WMMA: refuseUOp,
  TILE: refuseUOp,
  ELEMENT: refuseUOp,
  GEP: (k, u) => k.value(u, "val", k.lane(u.vector, u.lane)),
  VECTORIZE: (k, u) => {
    const lanes = u.lanes.map((x) => k.text(x)).join(",");
    k.value(u, "vec", `${typeName(u.dtype)}(${lanes})`);
  },
  RANGE: refuseUOp,
  REDUCE: refuseUOp,
  STAGE: refuseUOp,
  SINK: refuseUOp,
};

/** The bindings: buffers by position, then one uniform with all variables. */
function bindings(k: WGSLText): string[] {
  const buffers = k.buffers
    .toSorted((a, b) => a.position - b.position)
    .map((u) => {
      const { position } = u;
      const word = u.isWritten ? "atomic<u32>" : "u32";
      const type = isPacked(u) ? word : typeName(u.dtype.base);
      const access = u.isWritten ? "read_write" : "read";
      return `@group(0) @binding(${position}) var<storage, ${access}> ${k.text(u)}: array<${type}>;`;
    });
  if (k.variables.length === 0) return buffers;
  const members = k.variables.map((u) => `${k.text(u).slice("vars.".length)}: i32`).join(", ");
  const position = Math.max(-1, ...k.buffers.map((u) => u.position)) + 1;
  return [
    ...buffers,
    `struct Vars { ${members} }`,
    `@group(0) @binding(${position}) var<uniform> vars: Vars;`,
  ];
}

/** The text of a module with one entry point, `name`. */
export const uopsToWGSL = (name: string, uops: UOpGraph | readonly UOp[]): string =>
  renderWGSL(name, uops).code;

/**
 * Bindings are numbered: the buffers by position, after them one uniform with the variables, if there are
 * any.
 */
function renderWGSL(name: string, uops: UOpGraph | readonly UOp[]): Source<string> {
  const k = new WGSLText([...uops]);
  const args = "@builtin(workgroup_id) gid: vec3<u32>, @builtin(local_invocation_id) lid: vec3<u32>";
  const lines = [
    ...(k.usesHalf ? ["enable f16;"] : []),
    ...bindings(k),
    ...k.locals,
    ...helperTexts(k.helpers),
    `@compute @workgroup_size(${k.local.join(", ")}) fn ${kernelIdentifier(name)}(${args}) {`,
    ...k.lines,
    "}",
  ];
  return sourceOf(lines.join("\n"), { buffers: k.buffers.length, vals: k.variables.length });
}

/**
 * WebGPU's guaranteed limits. `hasHalf` says whether the device has the feature shader-f16.
 */
export const makeWGSLRenderer = (hasHalf: boolean): Renderer<string> => {
  const support: Readonly<Record<string, Support>> = { float16: hasHalf ? "native" : "none" };
  return {
    name: "WEBGPU",
    grid: GRID,
    hasThreads: false,
    globalMax: [65535, 65535, 65535],
    localMax: [256, 256, 64],
    sharedMax: 16384,
    // what every adapter has for a stage
    maxBuffers: 8,
    support: (d) => support[scalarOf(d).name] ?? (Object.hasOwn(TYPES, scalarOf(d).name) ? "native" : "none"),
    has: (op) => Object.hasOwn(NUMBER, op),
    saturatingCast: true,
    safeDivision: false,
    optOps: GRID_OPS,
    heuristic: cpuLists,
    core: COMMON_CORE,
    simd: undefined,
    gpu: undefined,
    render: renderWGSL,
  };
};
export const WGSLRenderer: Renderer<string> = makeWGSLRenderer(true);
