// Vectors in C through the extensions that gcc and clang share: how values of several lanes are made,
// computed, cast, loaded and stored as one. A vector of bools is a mask of ints, all ones or all zeros,
// whatever it was compared; in memory a bool stays one byte. What has no operator is a small function,
// written before the kernel that calls it.

import { COMMON_PORTS, type Simd } from "../codegen/target.ts";
import { type DType, dtypes, floatToIntVia, Pointer, scalarOf } from "../dtype.ts";
import type { AluOp } from "../ops.ts";
import { type UOp, valueType } from "../uop/node.ts";
import { isCount, operand, type Spell } from "./spelling.ts";

/** What a processor has. */
export interface Vectors {
  /** lanes of 32 bits, the widest first */
  readonly widths: readonly number[];
  /** vectors that fit into its registers beside their operands */
  readonly accumulators: number;
  readonly registers: number;
  /** a product is added in one instruction */
  readonly fused: boolean;
}

const nameOf = (d: DType): string => `${scalarOf(d).alias}${d.count}`;
const isBool = (d: DType): boolean => d.kind === "bool";
const convert = (x: string, to: string): string => `__builtin_convertvector(${x},${to})`;
const call =
  (fn: string): Spell =>
  (d, ...xs) =>
    `${nameOf(d)}_${fn}(${xs.join(",")})`;

/** C spreads a number over the lanes by itself where the other operand is a vector. */
const NUMBER = /^\w+_all\((-?\d[^()]*)\)$/;
const numberIn = (x: string): string | undefined => NUMBER.exec(x)?.[1];
const infix =
  (symbol: string): Spell =>
  (d, a = "", b = "") => {
    const wide = !isBool(d) && scalarOf(d).itemsize >= 4;
    const [x, y] = wide ? [numberIn(a), numberIn(b)] : [];
    return y === undefined ? `(${x ?? a}${symbol}${b})` : `(${a}${symbol}${operand(y)})`;
  };

const INTS: Readonly<Record<number, DType>> = {
  1: dtypes.int8,
  2: dtypes.int16,
  4: dtypes.int32,
  8: dtypes.int64,
};
const UINTS: Readonly<Record<number, DType>> = {
  1: dtypes.uint8,
  2: dtypes.uint16,
  4: dtypes.uint32,
  8: dtypes.uint64,
};
/** The lanes in which C answers a comparison of values of this type. */
const maskOf = (d: DType): DType => (INTS[scalarOf(d).itemsize] as DType).vec(d.count);
const compare =
  (symbol: string): Spell =>
  (d, a = "", b = "") => {
    const answer = infix(symbol)(d, a, b);
    return isBool(d) || scalarOf(d).itemsize === 4
      ? answer
      : convert(answer, nameOf(dtypes.bool.vec(d.count)));
  };
const shift =
  (symbol: string): Spell =>
  (d, a, b = "") => {
    const bits = scalarOf(d).itemsize * 8;
    const count = numberIn(b);
    return `(${a}${symbol}${count !== undefined && isCount(count, bits) ? count : `(${b}&${bits - 1})`})`;
  };

type SpellByKind = readonly [bool: Spell | undefined, int: Spell | undefined, float: Spell | undefined];
const same = (s: Spell): SpellByKind => [s, s, s];

/**
 * What is missing goes lane by lane. Types below int are computed in lanes of their own width, so nothing has
 * to be cut to it.
 */
const ALU: Readonly<Partial<Record<AluOp, SpellByKind>>> = {
  NEG: [(_, a = "") => a, (_, a) => `(-${a})`, (_, a) => `(-${a})`],
  SQRT: [undefined, undefined, call("sqrt")],
  RECIP: [undefined, undefined, (d, a) => `(1.0${scalarOf(d) === dtypes.float64 ? "" : "f"}/${a})`],
  TRUNC: [undefined, undefined, call("trunc")],
  ADD: [infix("|"), infix("+"), infix("+")],
  SUB: [infix("^"), infix("-"), infix("-")],
  MUL: [infix("&"), infix("*"), infix("*")],
  DIV: [undefined, undefined, infix("/")],
  // compilers take these apart by themselves, and nothing else of the kernel
  IDIV: [infix("&"), infix("/"), undefined],
  MOD: [undefined, infix("%"), undefined],
  MAX: [infix("|"), call("max"), call("max")],
  CMPLT: [(_, a, b) => `(~${a}&${b})`, compare("<"), compare("<")],
  CMPEQ: same(compare("==")),
  CMPNE: same(compare("!=")),
  AND: [infix("&"), infix("&"), undefined],
  OR: [infix("|"), infix("|"), undefined],
  XOR: [infix("^"), infix("^"), undefined],
  SHL: [undefined, shift("<<"), undefined],
  SHR: [undefined, shift(">>"), undefined],
  DOT2: [undefined, call("dot2"), undefined],
  WHERE: same(call("where")),
  MULACC: [
    (_, a, b, c) => `((${a}&${b})|${c})`,
    (_, a, b, c) => `((${a}*${b})+${c})`,
    (_, a, b, c) => `((${a}*${b})+${c})`,
  ],
};

/** Conversions of half are the compilers' weak spot: it goes lane by lane. */
const isVectorType = (d: DType): boolean => !d.isFloat || scalarOf(d).itemsize >= 4;

const spellingOf = (op: AluOp, d: DType): Spell | undefined =>
  isVectorType(d) ? ALU[op]?.[isBool(d) ? 0 : d.isFloat ? 2 : 1] : undefined;

/** The op on whole vectors; `d` is the type of the last source. Undefined: lane by lane. */
export const vectorAlu = (op: AluOp, d: DType, ...xs: string[]): string | undefined =>
  spellingOf(op, d)?.(d, ...xs);

/** The same in unsigned arithmetic, which wraps. */
export function vectorUnsigned(op: AluOp, d: DType, ...xs: string[]): string | undefined {
  const twin = (UINTS[scalarOf(d).itemsize] as DType).vec(d.count);
  const text = vectorAlu(op, twin, ...xs.map((x) => `(${nameOf(twin)})${x}`));
  return text === undefined ? undefined : `((${nameOf(d)})${text})`;
}

/** `a * b + c`, rounded once. */
export const vectorFma = call("fma");

/** The maximum or minimum of two, as minmax.ts says. */
export const vectorMinMax = (isMax: boolean): Spell => call(isMax ? "pmax" : "pmin");

/** One value in all lanes. */
const vectorAll = call("all");

export function vectorMake(d: DType, lanes: readonly string[]): string {
  if (isVectorType(d) && lanes.every((l) => l === lanes[0])) return vectorAll(d, lanes[0] as string);
  return `(${nameOf(d)}){${lanes.map((l) => (isBool(d) ? `-((${l})!=0)` : l)).join(",")}}`;
}
export const vectorLane = (d: DType, x: string, lane: number): string =>
  isBool(d) ? `(${x}[${lane}]&1)` : `${x}[${lane}]`;

/** Undefined: lane by lane. */
export function vectorCast(to: DType, from: DType, x: string): string | undefined {
  if (!isVectorType(to) || !isVectorType(from)) return undefined;
  if (to === from) return x;
  const zero = scalarOf(from).isFloat ? "0.0f" : "0";
  if (isBool(to)) return compare("!=")(from, x, call("all")(from, zero));
  if (isBool(from)) return convert(`(${x}&1)`, nameOf(to));
  const via = from.isFloat && to.isInt ? floatToIntVia(scalarOf(to)).vec(to.count) : to;
  return via === to ? convert(x, nameOf(to)) : convert(convert(x, nameOf(via)), nameOf(to));
}
export function vectorBitcast(to: DType, from: DType, x: string): string | undefined {
  if (!isVectorType(to) || !isVectorType(from) || isBool(to) || isBool(from)) return undefined;
  return to === from ? x : `((${nameOf(to)})${x})`;
}

/** What expand.ts may make vectors of: the node is still on scalars. */
export const vectorSimd = ({ widths, accumulators, registers, fused }: Vectors): Simd => ({
  widths,
  accumulators,
  registers,
  ...COMMON_PORTS,
  // compilers make pointers of the indexes
  nesting: 0,
  fuses: (d) => fused && scalarOf(d) === dtypes.float32,
  memory: (buffer) => buffer.dtype instanceof Pointer && isVectorType(buffer.dtype.base),
  has(u) {
    return isVectorType(valueType(u)) && !isByLane(u);
  },
});

/** A uop on vectors that is spelt lane by lane. */
export function isByLane(u: UOp): boolean {
  if (u.op === "GEP") return true;
  if (u.op !== "ALU" && u.op !== "CAST" && u.op !== "BITCAST") return false;
  if (u.op === "ALU") return spellingOf(u.fn, u.operandType) === undefined;
  return (u.op === "CAST" ? vectorCast : vectorBitcast)(u.dtype, u.operand.dtype, "") === undefined;
}

/** How the lanes lie in memory. */
export const vectorMemory = (d: DType): DType => (isBool(d) ? dtypes.uint8.vec(d.count) : d);
/** A value out of what was read from memory, and back. */
export const vectorRead = (d: DType, x: string): string => (isBool(d) ? `(${convert(x, nameOf(d))}!=0)` : x);
export const vectorWritten = (d: DType, x: string): string =>
  isBool(d) ? convert(`(${x}&1)`, nameOf(vectorMemory(d))) : x;

// ---- what stands before the kernel ----

const CALLS = /\b([a-z]+)(\d+)_(all|where|max|pmax|pmin|sqrt|trunc|fma|dot2)\(/g;
type VectorHelper = "all" | "where" | "max" | "pmax" | "pmin" | "sqrt" | "trunc" | "fma" | "dot2";
const byAlias = new Map(dtypes.all.map((d) => [d.alias, d]));
const TYPES = new RegExp(`\\b(${[...byAlias.keys()].join("|")})(\\d+)(?![a-z\\d])`, "gi");

const lanesOf = (d: DType, lane: (i: number) => string): string =>
  `{${Array.from({ length: d.count }, (_, i) => lane(i)).join(",")}}`;
const suffix = (d: DType): string => (scalarOf(d) === dtypes.float64 ? "" : "f");

/** gcc has no way to allow contraction for one expression: the instruction is named. */
const X86_FMA: Readonly<Record<number, string>> = {
  4: "__builtin_ia32_vfmaddps(a,b,c)",
  8: "__builtin_ia32_vfmaddps256(a,b,c)",
  16: "__builtin_ia32_vfmaddps512_mask(a,b,c,-1,4)",
};

const X86_MAX: Readonly<
  Record<number, { readonly when: string; readonly max: string; readonly min: string }>
> = {
  4: { when: "__SSE__", max: "__builtin_ia32_maxps", min: "__builtin_ia32_minps" },
  8: { when: "__AVX__", max: "__builtin_ia32_maxps256", min: "__builtin_ia32_minps256" },
};
/**
 * As minmax.ts has them: the first operand where a comparison fails, which for the instruction is the
 * second.
 */
function minMax(d: DType, name: "pmax" | "pmin"): string {
  const [v, bits] = [nameOf(d), nameOf(maskOf(d))];
  const x86 = scalarOf(d) === dtypes.float32 ? X86_MAX[d.count] : undefined;
  const first = name === "pmax" ? "a<b" : "b<a";
  const plain = `${bits} m = ${first}; return (${v})(((${bits})b&m)|((${bits})a&~m));`;
  const head = `${v}_${name}(${v} a, ${v} b) {`;
  if (x86 === undefined) return `${head} ${plain} }`;
  return `${head}\n#if ${x86.when}\n  return ${name === "pmax" ? x86.max : x86.min}(b,a);\n#else\n  ${plain}\n#endif\n}`;
}

/** The instruction multiplies pairs of int16; compilers add its result to a sum in the same step (VNNI). */
const X86_DOT2: Readonly<Record<number, { readonly when: string; readonly name: string }>> = {
  4: { when: "__SSE2__", name: "pmaddwd128" },
  8: { when: "__AVX2__", name: "pmaddwd256" },
  16: { when: "__AVX512BW__&&__clang__", name: "pmaddwd512" },
};
/** Unsigned: the sum wraps. */
function dot2(d: DType): string {
  const [v, pairs, u] = [
    nameOf(d),
    nameOf(dtypes.int16.vec(2 * d.count)),
    nameOf(dtypes.uint32.vec(d.count)),
  ];
  const x86 = X86_DOT2[d.count];
  const plain = `return (${v})((${u})((a<<16>>16)*(b<<16>>16))+(${u})((a>>16)*(b>>16)));`;
  const head = `${v}_dot2(${v} a, ${v} b) {`;
  if (x86 === undefined) return `${head} ${plain} }`;
  const named = `return (${v})__builtin_ia32_${x86.name}((${pairs})a,(${pairs})b);`;
  return `${head}\n#if ${x86.when}\n  ${named}\n#else\n  ${plain}\n#endif\n}`;
}

const HELPERS: Readonly<Record<VectorHelper, (d: DType, scalar: string) => string>> = {
  all: (d, scalar) =>
    `${nameOf(d)}_all(${scalar} x) { return (${nameOf(d)})${lanesOf(d, () => (isBool(d) ? "-(x!=0)" : "x"))}; }`,
  where: (d) => {
    const [v, bits, mask] = [nameOf(d), nameOf(maskOf(d)), nameOf(dtypes.bool.vec(d.count))];
    if (isBool(d)) return `${v}_where(${v} c, ${v} a, ${v} b) { return (a&c)|(b&~c); }`;
    const c = bits === nameOf(dtypes.int32.vec(d.count)) ? "c" : convert("c", bits);
    return `${v}_where(${mask} c, ${v} a, ${v} b) { ${bits} m = ${c}; return (${v})(((${bits})a&m)|((${bits})b&~m)); }`;
  },
  max: (d) => {
    const [v, bits] = [nameOf(d), nameOf(maskOf(d))];
    const x86 = X86_MAX[d.count];
    const head = `${v}_max(${v} a, ${v} b) {`;
    const choose = (m: string, c: string, b: string): string =>
      `${bits} ${m} = ${c}; return (${v})(((${bits})a&${m})|((${bits})${b}&~${m}));`;
    if (!d.isFloat) return `${head} ${choose("m", "a>b", "b")} }`;
    if (scalarOf(d) !== dtypes.float32 || x86 === undefined)
      return `${head} ${choose("m", "(a>b)|(a!=a)", "b")} }`;
    // the instruction gives b where one is not a number
    return `${head}\n#if ${x86.when}\n  ${v} x = ${x86.max}(a,b); ${choose("m", "a!=a", "x")}\n#else\n  ${choose("m", "(a>b)|(a!=a)", "b")}\n#endif\n}`;
  },
  pmax: (d) => minMax(d, "pmax"),
  pmin: (d) => minMax(d, "pmin"),
  dot2,
  sqrt: (d) =>
    `${nameOf(d)}_sqrt(${nameOf(d)} x) { return (${nameOf(d)})${lanesOf(d, (i) => `__builtin_sqrt${suffix(d)}(x[${i}])`)}; }`,
  trunc: (d) =>
    `${nameOf(d)}_trunc(${nameOf(d)} x) { return (${nameOf(d)})${lanesOf(d, (i) => `__builtin_trunc${suffix(d)}(x[${i}])`)}; }`,
  fma: (d) => {
    const v = nameOf(d);
    const gcc = scalarOf(d) === dtypes.float32 ? X86_FMA[d.count] : undefined;
    const named = gcc === undefined ? "" : `#elif __FMA__\n  return ${gcc};\n`;
    return `${v}_fma(${v} a, ${v} b, ${v} c) {
#if __clang__
  _Pragma("clang fp contract(fast)") return a*b+c;
${named}#else
  return a*b+c;
#endif
}`;
  },
};

/** Aligned as one element: a row of a tensor may start anywhere. */
function typedef(d: DType, typeName: (d: DType) => string): string {
  const lane = isBool(d) ? dtypes.int32 : scalarOf(d);
  const attributes = `vector_size(${lane.itemsize * d.count}), aligned(${lane.itemsize})`;
  return `typedef ${typeName(lane)} ${nameOf(d)} __attribute__((${attributes}));`;
}

/** The types and functions that a kernel's text names. */
export function vectorPreamble(body: string, typeName: (d: DType) => string): string[] {
  const called = new Map<string, string>();
  for (const [text, alias = "", count, fn] of body.matchAll(CALLS)) {
    const d = byAlias.get(alias)?.vec(Number(count));
    if (d === undefined) continue;
    called.set(
      text,
      `static inline __attribute__((always_inline)) ${nameOf(d)} ${HELPERS[fn as VectorHelper](d, typeName(scalarOf(d)))}`,
    );
  }
  const helpers = [...called.values()];
  const types = new Map<string, DType>();
  for (const [name, alias = "", count] of [...helpers, body].join("\n").matchAll(TYPES)) {
    types.set(name, (byAlias.get(alias) as DType).vec(Number(count)));
  }
  return [...[...types.values()].map((d) => typedef(d, typeName)), ...helpers];
}
