// Functions that are long formulas in the lazy graph and one op of the standard. What such a formula is
// says the method of Tensor itself: it is called on a placeholder, and a graph that has the same structure
// is this function. So a formula that changes is found again. In: a node of the lazy graph. Out: a node, or
// undefined.

import { type DType, dtypes } from "../../dtype.ts";
import { range } from "../../helpers.ts";
import { LazyBuffer } from "../../lazy/lazybuffer.ts";
import { make } from "../../tensor/core.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { ExportNode, NodeAttributes } from "./graph.ts";
import type { GraphReader } from "./lower.ts";
import { whole } from "./views.ts";

const { float32, float64 } = dtypes;

interface FunctionRecord {
  readonly op: string;
  /** as a method writes it; of an axis where the op has one */
  readonly call: (x: Tensor, axis: number) => Tensor;
  readonly hasAxis?: true;
  /** runtimes have it for float32 only */
  readonly isSingle?: true;
}
/** The largest formulas first: others may be parts of them. */
const FUNCTIONS: readonly FunctionRecord[] = [
  { op: "LogSoftmax", call: (x, axis) => x.logSoftmax(axis), hasAxis: true },
  { op: "Softmax", call: (x, axis) => x.softmax(axis), hasAxis: true },
  { op: "Gelu", call: (x) => x.gelu(), isSingle: true },
  // x * Sigmoid(x) of doubles is fused by onnxruntime to an op that it lacks
  { op: "Sigmoid", call: (x) => x.sigmoid(), isSingle: true },
  { op: "Tanh", call: (x) => x.tanh() },
  { op: "Softplus", call: (x) => x.softplus(), isSingle: true },
  { op: "Elu", call: (x) => x.elu(), isSingle: true },
  { op: "Selu", call: (x) => x.selu(), isSingle: true },
  { op: "Mish", call: (x) => x.mish(), isSingle: true },
  { op: "Exp", call: (x) => x.exp() },
  { op: "Log", call: (x) => x.log() },
  { op: "Floor", call: (x) => x.floor() },
  { op: "Ceil", call: (x) => x.ceil() },
  { op: "Round", call: (x) => x.round() },
  { op: "Abs", call: (x) => x.abs() },
  { op: "Sign", call: (x) => x.sign() },
  { op: "Sin", call: (x) => x.sin() },
  { op: "Cos", call: (x) => x.cos() },
  { op: "Tan", call: (x) => x.tan(), isSingle: true },
  { op: "Asin", call: (x) => x.asin(), isSingle: true },
  { op: "Acos", call: (x) => x.acos(), isSingle: true },
  { op: "Atan", call: (x) => x.atan(), isSingle: true },
  { op: "Sinh", call: (x) => x.sinh(), isSingle: true },
  { op: "Cosh", call: (x) => x.cosh(), isSingle: true },
  { op: "Asinh", call: (x) => x.asinh(), isSingle: true },
  { op: "Acosh", call: (x) => x.acosh(), isSingle: true },
  { op: "Atanh", call: (x) => x.atanh(), isSingle: true },
];

/** A formula: its result on a placeholder. */
interface Template {
  readonly op: string;
  readonly attributes: NodeAttributes;
  readonly place: LazyBuffer;
  readonly result: LazyBuffer;
}
/** By shape and type. Formulas depend on the shape through their constants. */
const templates = new Map<string, readonly Template[]>();
const MAX_SHAPES = 256;

function templatesFor(shape: readonly number[], dtype: DType, device: string): readonly Template[] {
  const key = `${shape.join("x")} ${dtype.name} ${device}`;
  const known = templates.get(key);
  if (known !== undefined) return known;
  const made = FUNCTIONS.flatMap(({ op, call, hasAxis, isSingle }) => {
    if (isSingle === true && dtype !== float32) return [];
    const axes = hasAxis === true ? range(shape.length) : [0];
    return axes.map((axis): Template => {
      const place = LazyBuffer.loadop("EMPTY", shape, dtype, device);
      const result = call(make(place), axis).lazydata;
      return { op, attributes: hasAxis === true ? { axis } : {}, place, result };
    });
  }).filter(({ result }) => result === result.base && result.op !== "EMPTY");
  if (templates.size >= MAX_SHAPES) templates.clear();
  templates.set(key, made);
  return made;
}

/** What the placeholder stands for, if the structures are the same. */
function matched({ place, result }: Template, root: LazyBuffer): LazyBuffer | undefined {
  let found: LazyBuffer | undefined;
  const same = new Map<LazyBuffer, LazyBuffer>();
  const todo: (readonly [LazyBuffer, LazyBuffer])[] = [[result, root]];
  for (let pair = todo.pop(); pair !== undefined; pair = todo.pop()) {
    const [t, g] = pair;
    if (t === place) {
      if (found === undefined) found = g;
      else if (
        found.base !== g.base ||
        (found.st !== g.st && found.st.simplify().key !== g.st.simplify().key)
      )
        return undefined;
      continue;
    }
    const [tb, gb] = [t.base, g.base];
    if (tb.op !== gb.op || tb.dtype !== gb.dtype || gb.realized !== undefined) return undefined;
    // a view of the placeholder itself is not told apart from views of what it stands for
    if (tb === place) return undefined;
    if ((t !== tb || g !== gb) && t.st.simplify().key !== g.st.simplify().key) return undefined;
    const before = same.get(tb);
    if (before === gb) continue;
    if (before !== undefined || !isSameArgument(tb.arg, gb.arg)) return undefined;
    same.set(tb, gb);
    const [ts, gs] = [tb.srcs ?? [], gb.srcs ?? []];
    if (ts.length !== gs.length) return undefined;
    for (let i = ts.length - 1; i >= 0; i--) todo.push([ts[i] as LazyBuffer, gs[i] as LazyBuffer]);
  }
  return found;
}
function isSameArgument(a: LazyBuffer["arg"], b: LazyBuffer["arg"]): boolean {
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((x, i) => x === b[i]);
  return Object.is(a, b);
}

/** The function that this node is the result of. */
export function recognised(l: GraphReader, base: LazyBuffer): ExportNode | undefined {
  if (base.dtype !== float32 && base.dtype !== float64) return undefined;
  if (base.op === undefined || base.isLoad || base.isReduce || base.op === "CAST") return undefined;
  const shape = base.shape.map(whole);
  for (const t of templatesFor(shape, base.dtype, base.device)) {
    const x = t.result.op === base.op ? matched(t, base) : undefined;
    if (x === undefined) continue;
    const given = l.operand(x);
    const ranked =
      given.shape.length === 0
        ? l.b.reshape(
            given,
            shape.map(() => 1),
          )
        : given;
    const { op, attributes } = t;
    const full = "axis" in attributes ? l.b.expand(ranked, shape) : ranked;
    return l.b.node(op, { inputs: [full], attributes, shape: full.shape, dtype: base.dtype });
  }
  return undefined;
}
