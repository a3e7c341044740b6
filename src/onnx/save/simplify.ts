// Rules on the graph before it is written: what several nodes say that one op of the standard says. In: the
// results. Out: the same results of fewer nodes.

import { type DType, dtypes } from "../../dtype.ts";
import { arraysEqual, prod } from "../../helpers.ts";
import { type ExportNode, type GraphBuilder, intsOf, nodesUnder } from "./graph.ts";

type GraphRule = (b: GraphBuilder, x: ExportNode) => ExportNode | undefined;

const numberOf = (x: ExportNode | undefined): number | undefined =>
  x?.op === "Number" ? Number(x.values[0]) : undefined;

/** A sum divided by how many were added. */
const mean: GraphRule = (b, x) => {
  if (x.op !== "Mul" && x.op !== "Div") return undefined;
  const by = numberOf(x.inputs[1]);
  const [top] = x.inputs as [ExportNode];
  const sum = top.op === "Reshape" ? (top.inputs[0] as ExportNode) : top;
  if (by === undefined || sum.op !== "ReduceSum" || !x.dtype.isFloat) return undefined;
  const [source] = sum.inputs as [ExportNode];
  const axes = intsOf(sum.inputs[1]);
  const count = prod(axes.map((a) => source.shape[a] as number));
  if ((x.op === "Mul" ? 1 / count : count) !== by) return undefined;
  return b.reshape(b.reduce("ReduceMean", source, axes), x.shape);
};
/** 1 / sqrt(x), multiplied: a division, which runtimes look for in normalisations. */
const quotient: GraphRule = (b, x) => {
  if (x.op !== "Mul") return undefined;
  const at = x.inputs.findIndex((y) => y.op === "Reciprocal");
  if (at < 0) return undefined;
  const by = (x.inputs[at] as ExportNode).inputs[0] as ExportNode;
  if (by.op !== "Sqrt") return undefined;
  return b.map("Div", [x.inputs[1 - at] as ExportNode, by], x.dtype);
};
const relu: GraphRule = (b, x) => {
  if (x.op !== "Max" || !x.dtype.isFloat || numberOf(x.inputs[1]) !== 0) return undefined;
  return b.map("Relu", [x.inputs[0] as ExportNode], x.dtype);
};
/** A mean over windows, times their size and divided by it. */
const windowMean: GraphRule = (b, x) => {
  if (x.op !== "Mul" && x.op !== "Div") return undefined;
  const by = numberOf(x.inputs[1]);
  const [top] = x.inputs as [ExportNode];
  const sum = top.op === "Reshape" ? (top.inputs[0] as ExportNode) : top;
  const count = sum.op === "Mul" ? numberOf(sum.inputs[1]) : undefined;
  const [pool] = sum.inputs;
  if (by === undefined || count === undefined || pool?.op !== "AveragePool") return undefined;
  return (x.op === "Mul" ? 1 / count : count) === by ? b.reshape(pool, x.shape) : undefined;
};

/** A bias of the channels of a convolution. */
const convBias: GraphRule = (b, x) => {
  if (x.op !== "Add") return undefined;
  const at = x.inputs.findIndex((y) => convOf(y) !== undefined);
  const data = x.inputs[at];
  const conv = data === undefined ? undefined : convOf(data);
  const bias = x.inputs[1 - at];
  if (data === undefined || conv === undefined || bias === undefined || !isConstant(bias)) return undefined;
  const [n, channels] = conv.shape as readonly [number, number];
  if (conv.inputs.length > 2 || prod(bias.shape) !== channels || !arraysEqual(x.shape, data.shape))
    return undefined;
  const lead = data.shape.length - bias.shape.length;
  const dim = lead + bias.shape.findIndex((s) => s !== 1);
  const isChannel = bias.shape.some((s) => s !== 1) && data.shape[dim] === channels;
  if (!isChannel || bias.shape[dim - lead] !== channels || prod(data.shape.slice(0, dim)) !== n)
    return undefined;
  const inputs = [...conv.inputs, b.reshape(bias, [channels])];
  return b.reshape(b.node("Conv", { ...conv, inputs }), x.shape);
};
const convOf = (x: ExportNode): ExportNode | undefined =>
  x.op === "Conv" ? x : x.op === "Reshape" && x.inputs[0]?.op === "Conv" ? x.inputs[0] : undefined;

/** (x - mean) / sqrt(mean of squares + epsilon), over the last dims. */
const layerNorm: GraphRule = (b, x) => {
  const [centred, root] = x.inputs as [ExportNode, ExportNode];
  if (x.op !== "Div" || centred.op !== "Sub" || root.op !== "Sqrt" || x.dtype !== dtypes.float32)
    return undefined;
  const [source, middle] = centred.inputs as [ExportNode, ExportNode];
  const sum = root.inputs[0] as ExportNode;
  const epsilon = numberOf(sum.inputs[1]);
  const [spread] = sum.inputs as [ExportNode];
  if (sum.op !== "Add" || epsilon === undefined || spread.op !== "ReduceMean" || middle.op !== "ReduceMean")
    return undefined;
  const square = spread.inputs[0] as ExportNode;
  const isSquare =
    (square.op === "Mul" && square.inputs.every((y) => y === centred)) ||
    (square.op === "Pow" && square.inputs[0] === centred && numberOf(square.inputs[1]) === 2);
  const axes = intsOf(spread.inputs[1]);
  const isLast = axes.every((a, i) => a === source.shape.length - axes.length + i);
  if (!isSquare || !isLast || middle.inputs[0] !== source || !arraysEqual(axes, intsOf(middle.inputs[1])))
    return undefined;
  if (!arraysEqual(source.shape, x.shape)) return undefined;
  const axis = axes[0] as number;
  const ones = b.expand(
    b.reshape(
      b.number(1, x.dtype),
      axes.map(() => 1),
    ),
    source.shape.slice(axis),
  );
  const attributes = { axis, epsilon };
  return b.node("LayerNormalization", { inputs: [source, ones], attributes, shape: x.shape, dtype: x.dtype });
};
/** Scale and bias of a normalisation, where they have the shape of what is normalised. */
const scaledNorm: GraphRule = (b, x) => {
  const at = x.inputs.findIndex((y) => y.op === "LayerNormalization");
  if ((x.op !== "Mul" && x.op !== "Add") || at < 0) return undefined;
  const norm = x.inputs[at] as ExportNode;
  const [source, scale] = norm.inputs as [ExportNode, ExportNode];
  const given = x.inputs[1 - at] as ExportNode;
  const rest = source.shape.slice(norm.attributes.axis as number);
  const isPlain = scale.op === "Expand";
  const own = given.shape.slice(given.shape.length - rest.length);
  const isOne = given.shape.slice(0, -rest.length).every((n) => n === 1) && arraysEqual(own, rest);
  if (!isOne || !isConstant(given) || norm.inputs.length > 2 || (x.op === "Mul") !== isPlain)
    return undefined;
  const part = b.reshape(given, rest);
  const inputs = x.op === "Mul" ? [source, part] : [source, scale, part];
  return b.node("LayerNormalization", {
    inputs,
    attributes: norm.attributes,
    shape: x.shape,
    dtype: x.dtype,
  });
};
const isConstant = (x: ExportNode): boolean =>
  x.op === "Weight" || (x.op === "Reshape" && (x.inputs[0] as ExportNode).op === "Weight");

/** Types that runtimes do not pad or repeat, by op, and what carries them. */
const MOVED_AS: Readonly<Partial<Record<string, ReadonlyMap<DType, DType>>>> = {
  Pad: new Map([
    [dtypes.int16, dtypes.int32],
    [dtypes.uint16, dtypes.int32],
    [dtypes.bfloat16, dtypes.float32],
  ]),
  Expand: new Map([[dtypes.bfloat16, dtypes.float32]]),
};
const carriedMove: GraphRule = (b, x) => {
  const wide = MOVED_AS[x.op]?.get(x.dtype);
  if (wide === undefined) return undefined;
  const inputs = x.inputs.map((y) => (y.dtype === x.dtype ? b.cast(y, wide) : y));
  return b.cast(b.node(x.op, { ...x, inputs, dtype: wide }), x.dtype);
};

const RULES: readonly GraphRule[] = [
  carriedMove,
  mean,
  quotient,
  relu,
  windowMean,
  convBias,
  layerNorm,
  scaledNorm,
];

function firstOf(b: GraphBuilder, x: ExportNode): ExportNode | undefined {
  for (const rule of RULES) {
    const made = rule(b, x);
    if (made !== undefined && made !== x) return made;
  }
  return undefined;
}

export function simplified(b: GraphBuilder, roots: readonly ExportNode[]): ExportNode[] {
  const done = new Map<ExportNode, ExportNode>();
  for (const node of nodesUnder(roots)) {
    const inputs = node.inputs.map((x) => done.get(x) as ExportNode);
    const isSame = inputs.every((x, i) => x === node.inputs[i]);
    const again = isSame || node.body !== undefined ? node : b.node(node.op, { ...node, inputs });
    let made = again;
    for (let next: ExportNode | undefined = again; next !== undefined; next = firstOf(b, made)) made = next;
    done.set(node, made);
  }
  return roots.map((r) => done.get(r) as ExportNode);
}
