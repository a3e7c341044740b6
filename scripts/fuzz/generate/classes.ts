// The classes of random programs. Each makes its inputs, then calls of its own kind, and often goes on with
// steps of any kind: what meets in one kernel is what goes wrong.

import type { Arg, TypeName } from "../language.ts";
import { isFloat } from "../reference/types.ts";
import { type Builder, ref } from "./builder.ts";
import {
  ACTIVATIONS,
  ALL_TYPES,
  anyStep,
  backStep,
  binaryStep,
  castStep,
  FLOATS,
  INTS,
  moveStep,
  reduceStep,
  sliceOf,
  someSteps,
  storeStep,
  unaryStep,
  whereStep,
} from "./steps.ts";

/** Makes a program; the result are the nodes to look at. */
export type Maker = (b: Builder) => readonly number[];

/** A shape that broadcasts with `s`: some dims 1, some left out in front. */
function beside(b: Builder, s: readonly number[]): number[] {
  const r = b.dice;
  const full = s.map((n) => (r.chance(35) ? 1 : n));
  return r.chance(30) ? full.slice(r.int(0, full.length)) : full;
}
const floatType = (b: Builder): TypeName => b.dice.pick(FLOATS);
const either = (b: Builder): TypeName => (b.dice.chance(70) ? floatType(b) : b.dice.pick(ALL_TYPES));

const elementwise: Maker = (b) => {
  const r = b.dice;
  const s = b.shape(0, 3);
  const same = r.chance(50) ? floatType(b) : undefined;
  b.input(same ?? either(b), s, r.pick(["eighths", "positive", "unit", "wide"]));
  for (let k = r.int(1, 2); k > 0; k--)
    b.input(same ?? either(b), beside(b, s), r.pick(["eighths", "positive", "whole"]));
  let at = 0;
  for (let k = r.int(2, 6); k > 0; k--) {
    const pick = r.int(0, 99);
    if (pick < 35) at = unaryStep(b, at);
    else if (pick < 70) at = binaryStep(b, at);
    else if (pick < 80) at = whereStep(b, at);
    else if (pick < 85) at = b.step("clamp", at, isFloat(b.at(at).d) ? -0.75 : 1, 2);
    else if (pick < 90) at = b.step("lerp", at, ref(r.int(0, 1)), 0.25);
    else at = b.step(r.pick(["atan2", "hypot", "pow", "copysign"]), at, r.chance(50) ? ref(1) : 2);
  }
  return [at];
};

const integer: Maker = (b) => {
  const r = b.dice;
  const s = b.shape(1, 3);
  const d = r.pick(INTS);
  b.input(d, s, r.chance(60) ? "wide" : "whole");
  b.input(r.chance(70) ? d : r.pick(INTS), beside(b, s), r.chance(40) ? "wide" : "whole");
  let at = 0;
  for (let k = r.int(2, 6); k > 0; k--) {
    const pick = r.int(0, 99);
    if (pick < 60) at = binaryStep(b, at);
    else if (pick < 75) at = unaryStep(b, at);
    else if (pick < 85) at = castStep(b, at, INTS);
    else if (pick < 95) at = reduceStep(b, at, ["sum", "max", "min", "prod"]);
    else at = whereStep(b, at);
  }
  return [at];
};

const reduce: Maker = (b) => {
  const r = b.dice;
  const s = b.shape(1, 4);
  b.input(r.chance(65) ? floatType(b) : r.pick(ALL_TYPES), s, r.pick(["eighths", "positive", "unit"]));
  if (r.chance(50)) b.input(r.pick(["float32", "int32"] as const), beside(b, s));
  let at = 0;
  if (r.chance(12)) at = large(b, at);
  for (let k = r.int(2, 5); k > 0; k--) {
    const pick = r.int(0, 99);
    if (pick < 45) at = reduceStep(b, at);
    else if (pick < 60) at = backStep(b, at);
    else if (pick < 75) at = moveStep(b, at);
    else if (pick < 90) at = binaryStep(b, at);
    else at = b.step("vectorNorm", at, r.pick<Arg>([1, 2, "#inf"]), 0);
  }
  return [reduceStep(b, at)];
};
/** Thousands of elements out of few, so that kernels are cut into tiles and shared between threads. */
function large(b: Builder, i: number): number {
  const { s, d } = b.at(i);
  if (d === "bool" || b.limits.between < 4096) return i;
  const n = b.dice.pick([64, 96, 128, 100]);
  const wide = b.step("expand", b.step("unsqueeze", i, s.length), [...s, n]);
  return b.step("mul", wide, b.dice.pick([2, 3]));
}

const movement: Maker = (b) => {
  const r = b.dice;
  const s = b.shape(1, 4);
  const d = r.pick<TypeName>(["float32", "int32", "bool", "int64", "uint8", "float16", "int16", "float64"]);
  b.input(d, s);
  if (r.chance(40)) b.input(d, s);
  let at = 0;
  for (let k = r.int(3, 8); k > 0; k--) {
    const pick = r.int(0, 99);
    if (pick < 80) at = moveStep(b, at);
    else if (pick < 90) at = binaryStep(b, at);
    else if (pick < 95) at = reduceStep(b, at, ["sum", "max"]);
    else at = storeStep(b, at);
  }
  return [at];
};

const product: Maker = (b) => {
  const r = b.dice;
  const d = r.chance(75) ? floatType(b) : r.pick<TypeName>(["int32", "int8", "int64", "uint8"]);
  const [m, k, n, batch] = [r.int(1, 5), r.pick([1, 2, 3, 4, 5, 8, 12]), r.int(1, 5), r.int(2, 3)] as const;
  const kind = r.pick(["matmul", "matmul", "einsum", "bmm", "linear", "vectors", "addmm", "batch"] as const);
  const value = r.pick(["eighths", "unit", "wide"] as const);
  const make = (...s: number[]): number => b.input(d, s, value);
  let at: number | undefined;
  if (kind === "matmul") at = b.call("matmul", make(m, k), ref(make(k, n)));
  else if (kind === "bmm") at = b.call("bmm", make(batch, m, k), ref(make(batch, k, n)));
  else if (kind === "batch")
    at = b.call(
      "matmul",
      make(batch, 1, m, k),
      ref(make(...r.pick([[k, n], [2, k, n], [batch, 2, k, n], [k]]))),
    );
  else if (kind === "linear") at = b.call("linear", make(batch, m, k), ref(make(n, k)), ref(make(n)));
  else if (kind === "vectors") {
    const [x, y, z] = [make(k), make(k), make(m, k)];
    at = r.pick([
      () => b.call("dot", x, ref(y)),
      () => b.call("outer", x, ref(y)),
      () => b.call("mv", z, ref(y)),
      () => b.call("inner", z, ref(z)),
    ])();
  } else if (kind === "addmm" && isFloat(d)) {
    at = b.call("addmm", make(m, n), ref(make(m, k)), ref(make(k, n)), { alpha: 0.5, beta: 2 });
  } else {
    const [formula, ...shapes] = r.pick<[string, ...number[][]]>([
      ["ij,jk->ik", [m, k], [k, n]],
      ["ij,ij->i", [m, k], [m, k]],
      ["bij,bkj->bik", [batch, m, k], [batch, n, k]],
      ["ij,jk,kl->il", [m, 2], [2, 3], [3, n]],
      ["ij->ji", [m, k]],
      ["ii->i", [n, n]],
      ["ij->", [m, k]],
      ["abc,cd->abd", [2, m, k], [k, n]],
      ["bhid,bhjd->bhij", [1, 2, m, 3], [1, 2, n, 3]],
      ["i,j,ij->", [m], [n], [m, n]],
    ]);
    at = b.call("einsum", -1, formula, ...shapes.map((s) => ref(make(...s))));
  }
  if (at === undefined) return [0];
  return [someSteps(b, at, 3)];
};

const window: Maker = (b) => {
  const r = b.dice;
  const d = r.chance(80) ? r.pick<TypeName>(["float32", "float32", "float64", "float16"]) : "int32";
  const flat = r.chance(50);
  const spatial = flat ? [r.int(3, 9)] : [r.int(3, 5), r.int(3, 5)];
  const groups = r.pick([1, 1, 1, 2]);
  const inner = groups * r.int(1, 2);
  const batch = r.int(1, 2);
  const kernel = spatial.map(() => r.int(1, 3));
  const x = b.input(d, [batch, inner, ...spatial], r.pick(["eighths", "whole"]));
  const name = flat ? "1d" : "2d";
  const per = (low: number, high: number): Arg =>
    r.chance(50) ? r.int(low, high) : spatial.map(() => r.int(low, high));
  const kind = r.pick(["conv", "conv", "conv", "transpose", "avg", "max", "max", "adaptive"] as const);
  let at: number | undefined;
  if (kind === "conv") {
    const out = groups * r.int(1, 2);
    const w = b.input(d, [out, inner / groups, ...kernel]);
    const bias: Arg = r.chance(50) ? ref(b.input(d, [out])) : null;
    const o = { stride: per(1, 2), padding: per(0, 1), dilation: r.chance(70) ? 1 : 2, groups };
    at = b.call(`conv${name}`, x, ref(w), bias, o);
  } else if (kind === "transpose") {
    const out = r.int(1, 2);
    const w = b.input(d, [inner, out, ...kernel]);
    const bias: Arg = r.chance(50) ? ref(b.input(d, [out * groups])) : null;
    const stride = r.int(1, 2);
    at = b.call(`convTranspose${name}`, x, ref(w), bias, {
      stride,
      padding: r.int(0, 1),
      groups,
      outputPadding: stride > 1 ? r.int(0, 1) : 0,
    });
  } else if (kind === "adaptive") {
    at = isFloat(d) ? b.call(`adaptiveAvgPool${name}`, x, r.int(1, 3)) : b.call("sum", x, 0);
  } else {
    const size = kernel.map((k) => Math.max(k, 2));
    const o: Record<string, Arg> = { stride: per(1, 3), padding: r.int(0, 1) };
    if (r.chance(40)) o.ceilMode = true;
    if (kind === "avg" && r.chance(50)) o.countIncludePad = false;
    const both = kind === "max" && r.chance(30);
    at = b.call(`${kind}Pool${name}${both ? "WithIndices" : ""}`, x, size, o);
    if (both && at !== undefined) return [at, at + 1];
  }
  return at === undefined ? [] : [b.small(someSteps(b, at, 3))];
};

const index: Maker = (b) => {
  const r = b.dice;
  const d = r.pick<TypeName>(["float32", "float32", "int32", "int64", "float16", "uint8", "float64", "bool"]);
  const s = b.shape(1, 3);
  const dim = r.int(0, s.length - 1);
  const n = s[dim] as number;
  const x = b.input(d, s, "eighths");
  const kind = r.pick([
    "gather",
    "select",
    "take",
    "get",
    "scatter",
    "scatterReduce",
    "indexAdd",
    "indexCopy",
    "fill",
    "setitem",
    "setitem",
    "put",
    "oneHot",
    "embedding",
    "mask",
  ] as const);
  const chosen = r.int(1, n + 1);
  const as = s.with(dim, chosen);
  let at: number | undefined;
  if (kind === "gather") {
    const i = ref(b.index(as, n));
    at = r.chance(50) ? b.call("gather", x, dim, i) : b.call("takeAlongDim", x, i, dim);
  } else if (kind === "select") at = b.call("indexSelect", x, dim, ref(b.index([chosen], n)));
  else if (kind === "take") at = b.call("take", x, ref(b.index(b.shape(0, 2), b.at(x).v.length, true)));
  else if (kind === "get") at = b.call("get", x, ...tensorIndex(b, s, dim, n));
  else if (kind === "scatter") {
    const i = b.index(as, n);
    const src = b.input(d, as);
    at =
      d === "bool" || r.chance(50)
        ? b.call("scatterAdd", x, dim, ref(i), ref(src))
        : b.call(
            "scatter",
            x,
            dim,
            ref(i),
            ref(src),
            r.chance(50) ? {} : { reduce: r.pick(["add", "multiply"]) },
          );
  } else if (kind === "scatterReduce") {
    const i = b.index(as, n);
    at = b.call(
      "scatterReduce",
      x,
      dim,
      ref(i),
      ref(b.input(d, as)),
      r.pick(["sum", "prod", "amax", "amin", "mean"]),
      { includeSelf: r.chance(50) },
    );
  } else if (kind === "indexAdd" || kind === "indexCopy") {
    const i = b.index([chosen], n);
    at = b.call(kind, x, dim, ref(i), ref(b.input(d, as)));
  } else if (kind === "fill") at = b.call("indexFill", x, dim, ref(b.index([chosen], n, true)), 1);
  else if (kind === "setitem") {
    const where = r.chance(60) ? sliceOf(b, s) : tensorIndex(b, s, dim, n);
    at = b.call("setitem", b.step("clone", x), where, r.pick<Arg>([1, 0, 2]));
  } else if (kind === "put") {
    const i = b.index([r.int(1, 5)], b.at(x).v.length, true);
    at = b.call("put", x, ref(i), ref(b.input(d, b.at(i).s)), { accumulate: r.chance(50) });
  } else if (kind === "oneHot") at = b.call("oneHot", b.index(b.shape(0, 2), 4), 4);
  else if (kind === "embedding") {
    const w = b.input("float32", [r.int(2, 5), r.int(1, 4)]);
    at = b.call("embedding", b.index(b.shape(0, 2), b.at(w).s[0] as number), ref(w));
  } else at = b.call("maskedFill", x, ref(b.input("bool", beside(b, s))), 1);
  return at === undefined ? [] : [b.small(someSteps(b, at, 4))];
};
/** An index with a tensor, among slices. */
function tensorIndex(b: Builder, s: readonly number[], dim: number, n: number): Arg[] {
  const i = b.index(
    b.shape(1, 2).map((m) => Math.min(m, 4)),
    n,
    true,
  );
  return [...s.slice(0, dim).map((): Arg => []), ref(i)];
}

const order: Maker = (b) => {
  const r = b.dice;
  const d = r.pick<TypeName>(["float32", "float32", "int32", "int64", "uint8", "float64", "float16"]);
  const s = b.shape(1, 3);
  const dim = r.int(0, s.length - 1);
  const n = s[dim] as number;
  let x = b.input(d, s, r.pick(["eighths", "distinct", "whole"]));
  if (r.chance(30)) b.input(d, beside(b, s));
  if (r.chance(30)) x = moveStep(b, binaryStep(b, x));
  if (b.at(x).s.join() !== s.join()) return [b.small(x)];
  const kind = r.pick([
    "sort",
    "sort",
    "argsort",
    "topk",
    "topk",
    "cumsum",
    "cumsum",
    "cumprod",
    "cummax",
    "kthvalue",
    "median",
    "argmax",
    "maxWithIndices",
    "searchsorted",
    "msort",
    "diff",
    "logcumsumexp",
  ] as const);
  let at: number | undefined;
  if (kind === "sort" || kind === "argsort") at = b.call(kind, x, dim, r.chance(50));
  else if (kind === "topk") at = b.call("topk", x, r.int(1, n), dim, r.chance(70));
  else if (kind === "cumsum" || kind === "cumprod" || kind === "logcumsumexp") at = b.call(kind, x, dim);
  else if (kind === "cummax") at = b.call(r.pick(["cummax", "cummin"]), x, dim);
  else if (kind === "kthvalue") at = b.call("kthvalue", x, r.int(1, n), dim, r.chance(50));
  else if (kind === "median")
    at = r.chance(50) ? b.call("median", x) : b.call("median", x, dim, r.chance(50));
  else if (kind === "argmax") at = b.call(r.pick(["argmax", "argmin"]), x, dim, r.chance(50));
  else if (kind === "maxWithIndices") at = b.call(r.pick(["maxWithIndices", "minWithIndices"]), x, dim);
  else if (kind === "msort") at = b.call("msort", x);
  else if (kind === "diff") at = b.call("diff", x, 1, dim);
  else {
    const sorted = b.call("msort", b.step("flatten", x));
    at = sorted === undefined ? undefined : b.call("searchsorted", sorted, ref(x), { right: r.chance(50) });
  }
  if (at === undefined) return [];
  const several = b.nodes.length - at === 2 ? [at, at + 1] : [at];
  return r.chance(60) ? several : [b.small(someSteps(b, r.pick(several), 3))];
};

const network: Maker = (b) => {
  const r = b.dice;
  const d = r.pick<TypeName>(["float32", "float32", "float32", "float64", "float16", "bfloat16"]);
  const make = (s: readonly number[], v: "eighths" | "positive" | "unit" = "eighths"): number =>
    b.input(d, s, v);
  const kind = r.pick([
    "softmax",
    "softmax",
    "layerNorm",
    "rmsNorm",
    "batchNorm",
    "groupNorm",
    "loss",
    "loss",
    "classes",
    "attention",
    "activation",
    "similar",
  ] as const);
  const [n, c, w] = [r.int(1, 3), r.pick([2, 3, 4, 6]), r.pick([2, 3, 4, 5, 8, 12])] as const;
  let at: number | undefined;
  if (kind === "softmax") {
    const s = r.chance(50) ? [n, w] : [n, c, r.int(1, 5)];
    at = b.call(r.pick(["softmax", "logSoftmax", "softmin", "logsumexp"]), make(s), r.int(-1, s.length - 1));
  } else if (kind === "layerNorm") {
    const x = make([n, c, w].slice(r.int(0, 1)));
    const o: Record<string, Arg> = r.chance(60)
      ? { weight: ref(make([w], "positive")), bias: ref(make([w])) }
      : {};
    at = b.call("layerNorm", x, [w], o);
  } else if (kind === "rmsNorm") at = b.call("rmsNorm", make([n, w]), [w], { eps: 0.001 });
  else if (kind === "batchNorm") {
    const x = make([r.int(2, 3), c, r.int(2, 4)]);
    const [mean, variance] = [make([c]), make([c], "positive")];
    at = b.call("batchNorm", x, ref(mean), ref(variance), { weight: ref(make([c])), bias: ref(make([c])) });
  } else if (kind === "groupNorm") {
    const x = make([n, 4, r.int(2, 4)]);
    at = r.chance(50)
      ? b.call("groupNorm", x, r.pick([1, 2]), { weight: ref(make([4])) })
      : b.call("instanceNorm", x);
  } else if (kind === "loss") {
    const [x, t] = [make([n, w]), make([n, w], "unit")];
    at = b.call(r.pick(["mseLoss", "l1Loss", "smoothL1Loss", "huberLoss", "bceWithLogits"]), x, ref(t), {
      reduction: r.pick(["mean", "sum", "none"]),
    });
  } else if (kind === "classes") {
    const x = make([n, c]);
    const t = b.index([n], c);
    const o: Record<string, Arg> = { reduction: r.pick(["mean", "sum", "none"]) };
    if (r.chance(40)) o.weight = ref(make([c], "positive"));
    at = b.call(r.pick(["crossEntropy", "nllLoss"]), x, ref(t), o);
  } else if (kind === "attention") {
    const [q, k, v] = [make([1, 2, n, 4]), make([1, 2, 3, 4]), make([1, 2, 3, 2])];
    at = b.call("scaledDotProductAttention", q, ref(k), ref(v), r.chance(40) ? { isCausal: true } : {});
  } else if (kind === "activation") at = b.call(r.pick(ACTIVATIONS), make([n, w]));
  else {
    const [x, y] = [make([n, w]), make([n, w], "positive")];
    at = r.chance(50)
      ? b.call("cosineSimilarity", x, ref(y), { dim: 1 })
      : b.call("normalize", y, { dim: 1 });
  }
  return at === undefined ? [] : [b.small(someSteps(b, at, 3))];
};

const SIGN_SAFE =
  "neg abs trunc floor ceil round isnan isinf isfinite signbit sqrt reciprocal nanToNum".split(" ");
const special: Maker = (b) => {
  const r = b.dice;
  b.special = true;
  const d = r.chance(65) ? floatType(b) : r.pick(ALL_TYPES);
  const n = r.int(3, 12);
  b.input(d, [n], "special");
  b.input(r.chance(60) ? d : r.pick(ALL_TYPES), [r.chance(80) ? n : 1], "special");
  let at = 0;
  for (let k = r.int(1, 4); k > 0; k--) {
    const pick = r.int(0, 99);
    const { d: now } = b.at(at);
    if (pick < 40) at = castStep(b, at);
    else if (pick < 55) at = isFloat(now) ? signSafe(b, at) : unaryStep(b, at);
    else if (pick < 75) at = b.step(r.pick(["mul", "add", "sub", "div"]), at, ref(r.int(0, 1)));
    else if (pick < 82) at = b.step(r.pick(["lt", "eq", "ge", "ne"]), at, ref(1));
    else if (pick < 90 && isFloat(now) && isOrdered(b, 1)) at = b.step("copysign", at, ref(1));
    else if (pick < 95) at = moveStep(b, at);
    else at = bitcastStep(b, at);
  }
  return [at];
};
const isOrdered = (b: Builder, i: number): boolean => !b.at(i).v.some((e) => Number.isNaN(e));
function signSafe(b: Builder, i: number): number {
  const name = b.dice.pick(SIGN_SAFE);
  // which sign a NaN has is not specified
  return name === "signbit" && !isOrdered(b, i) ? i : b.step(name, i);
}
const TWINS: Readonly<Record<string, readonly TypeName[]>> = {
  float32: ["int32", "uint32"],
  int32: ["uint32"],
  uint32: ["int32"],
  float64: ["int64"],
  int64: ["uint64"],
  int8: ["uint8"],
  uint8: ["int8"],
  int16: ["uint16"],
};
function bitcastStep(b: Builder, i: number): number {
  const twins = TWINS[b.at(i).d];
  // which NaN a kernel makes is not specified
  if (twins === undefined || !isOrdered(b, i)) return i;
  return b.step("bitcast", i, b.dice.pick(twins));
}

const graph: Maker = (b) => {
  const r = b.dice;
  const s = b.shape(1, 3);
  const d = r.pick<TypeName>(["float32", "float32", "int32", "int32", "int64", "float64"]);
  b.input(d, s, "whole");
  b.input(d, beside(b, s), "whole");
  b.input(d, s, "whole");
  if (r.chance(10)) large(b, 0);
  const shared: number[] = [0, 1, 2];
  for (let k = r.int(4, 10); k > 0; k--) {
    const from = r.pick(shared.slice(-4));
    const pick = r.int(0, 99);
    let next = from;
    if (pick < 30) next = binaryStep(b, from);
    else if (pick < 50) next = moveStep(b, from);
    else if (pick < 65) next = reduceStep(b, from);
    else if (pick < 75) next = backStep(b, from);
    else if (pick < 82) next = storeStep(b, from);
    else if (pick < 90) assignStep(b, d);
    else next = anyStep(b, from);
    if (b.at(next).v.length > 0) shared.push(next);
  }
  const outs = [...new Set(shared.slice(-3).map((i) => b.small(i)))];
  return outs;
};
/** Writes a value into an input. What was built on the old one keeps it. */
function assignStep(b: Builder, d: TypeName): void {
  const same = b.nodes.flatMap((y, j) => (y.d === d && y.s.join() === b.at(0).s.join() && j > 0 ? [j] : []));
  if (same.length > 0) b.call("assign", 0, ref(b.dice.pick(same)));
}

const SMOOTH =
  "sin cos tanh sigmoid exp atan erf silu softplus square neg relu abs gelu softsign elu leakyRelu".split(
    " ",
  );
const gradient: Maker = (b) => {
  const r = b.dice;
  const d = r.chance(85) ? "float32" : "float64";
  const s = b.shape(1, 2).map((n) => Math.min(n, 5));
  const x = b.input(d, s, "distinct");
  const y = b.input(d, beside(b, s), "positive");
  const k = r.int(1, 3);
  const w = r.chance(40) ? b.input(d, [s.at(-1) as number, k], "unit") : undefined;
  const image = r.chance(15)
    ? [b.input(d, [1, 1, 4, 4], "distinct"), b.input(d, [1, 1, 2, 2], "unit")]
    : undefined;
  const places = r.chance(20) ? b.index([r.int(1, 4)], s[0] as number) : undefined;
  let at = x;
  for (let n = r.int(1, 4); n > 0; n--) at = smoothStep(b, at, y, w, places);
  if (image !== undefined) {
    const [i, kernel] = image as [number, number];
    const made = r.chance(50)
      ? b.call("conv2d", i, ref(kernel), null, { padding: r.int(0, 1) })
      : b.call(r.pick(["maxPool2d", "avgPool2d"]), i, 2);
    const total = made === undefined ? undefined : b.call("mean", b.step("tanh", made));
    if (total !== undefined) at = b.step("add", at, ref(total));
  }
  const loss =
    b.at(at).v.length === 1 && b.at(at).s.length === 0
      ? at
      : b.call(r.pick(["sum", "mean", "logsumexp"]), at);
  if (loss === undefined || !isFloat(b.at(loss).d)) return [];
  const below = b.reaches(loss);
  const leaves = [x, y, ...(w === undefined ? [] : [w]), ...(image ?? [])].filter((i) => below.has(i));
  if (leaves.length === 0) return [];
  return [loss, ...b.backward(loss, r.chance(70) ? leaves : [r.pick(leaves)])];
};
function smoothStep(
  b: Builder,
  i: number,
  y: number,
  w: number | undefined,
  places: number | undefined,
): number {
  const r = b.dice;
  const { s } = b.at(i);
  const pick = r.int(0, 99);
  if (places !== undefined && r.chance(40)) return b.step("indexSelect", i, 0, ref(places));
  if (w !== undefined && r.chance(40)) return b.step("matmul", i, ref(w));
  if (pick < 25) return b.step(r.pick(SMOOTH), i);
  if (pick < 50) return b.step(r.pick(["add", "sub", "mul", "div", "maximum", "minimum"]), i, ref(y));
  if (pick < 58) return b.step(r.pick(["mul", "add"]), i, r.pick([0.5, 2, -1.25]));
  if (pick < 75) return moveStep(b, i);
  if (pick < 85)
    return s.length === 0
      ? i
      : b.step(
          r.pick(["sum", "mean", "max", "logsumexp", "var", "prod", "min"]),
          i,
          r.int(0, s.length - 1),
          r.chance(50),
        );
  if (pick < 92)
    return s.length === 0
      ? i
      : b.step(r.pick(["softmax", "logSoftmax", "cumsum", "cumprod"]), i, r.int(0, s.length - 1));
  if (pick < 96) return s.length === 0 ? i : b.step("layerNorm", i, [s.at(-1) as number]);
  // which of two equal numbers is chosen changes the gradient but not the value
  return whereStep(b, i, ["lt", "gt"]);
}

export const MAKERS = {
  elementwise,
  integer,
  reduce,
  movement,
  product,
  window,
  index,
  order,
  network,
  special,
  graph,
  gradient,
} as const;
