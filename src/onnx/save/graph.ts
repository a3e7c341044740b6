// The graph that is written: nodes of the standard's ops with shapes and types, made by a Builder. Equal
// nodes are one node, and movements that undo each other vanish as they are made. Sizes that a node takes
// as an input (the shape of a Reshape) are nodes, too: those are what may differ where a dim is open.

import type { DType, Value } from "../../dtype.ts";
import { dtypes } from "../../dtype.ts";
import { arraysEqual, prod, range } from "../../helpers.ts";
import type { LazyBuffer } from "../../lazy/lazybuffer.ts";

export type NodeAttribute = number | string | readonly number[];
export type NodeAttributes = Readonly<Record<string, NodeAttribute>>;

/** The body of a loop: nodes that stand for what a step is given, and what a step gives. */
export interface ExportBody {
  readonly parameters: readonly ExportNode[];
  readonly results: readonly ExportNode[];
}
/**
 * An op of the standard on its inputs; or "Input", "Weight", "Parameter" (of a body), "Result" (one of
 * several), "Number" (one value), "Ints" (a list of int64) and "Lattice" (offset + sum of coefficient
 * * index).
 */
export interface ExportNode {
  readonly id: number;
  readonly op: string;
  readonly inputs: readonly ExportNode[];
  readonly attributes: NodeAttributes;
  /** the numbers of a Number, Ints or Lattice */
  readonly values: readonly Value[];
  readonly shape: readonly number[];
  readonly dtype: DType;
  /** of a Weight: the node that holds it */
  readonly weight?: LazyBuffer;
  readonly body?: ExportBody;
}
interface NodeSpec {
  readonly inputs?: readonly ExportNode[];
  readonly attributes?: NodeAttributes;
  readonly values?: readonly Value[];
  readonly shape: readonly number[];
  readonly dtype: DType;
  readonly weight?: LazyBuffer;
  readonly body?: ExportBody;
}

/** The largest step back of a Slice: to before the first element. */
const BEFORE_ALL = -(2 ** 53);
const { int64 } = dtypes;

/** The shape that shapes are broadcast to. */
export function broadcastShape(shapes: readonly (readonly number[])[]): number[] {
  const rank = Math.max(0, ...shapes.map((s) => s.length));
  return range(rank).map((d) => {
    const sizes = shapes.map((s) => s[s.length - rank + d] ?? 1);
    return sizes.find((s) => s !== 1) ?? 1;
  });
}

export class GraphBuilder {
  readonly #known = new Map<string, ExportNode>();
  readonly #weights = new Map<LazyBuffer, number>();
  #next = 0;

  /** The node of this op; an equal one that was made before is that one. */
  node(op: string, spec: NodeSpec): ExportNode {
    const { inputs = [], attributes = {}, values = [], shape, dtype, weight, body } = spec;
    const isUnique = body !== undefined || op === "Parameter" || op === "Input";
    const key = isUnique
      ? `#${this.#next}`
      : [
          op,
          inputs.map((x) => x.id).join(),
          JSON.stringify(attributes),
          values.map((v) => (Object.is(v, -0) ? "-0" : `${typeof v}${v}`)).join(),
          shape.join("x"),
          dtype.name,
          weight === undefined ? "" : this.#numberOf(weight),
        ].join("|");
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const made: ExportNode = {
      id: this.#next++,
      op,
      inputs,
      attributes,
      values,
      shape,
      dtype,
      ...(weight === undefined ? {} : { weight }),
      ...(body === undefined ? {} : { body }),
    };
    this.#known.set(key, made);
    return made;
  }
  #numberOf(weight: LazyBuffer): number {
    const known = this.#weights.get(weight);
    if (known !== undefined) return known;
    this.#weights.set(weight, this.#weights.size);
    return this.#weights.size - 1;
  }

  /** An elementwise op: shapes are broadcast. */
  map(op: string, inputs: readonly ExportNode[], dtype: DType, attributes: NodeAttributes = {}): ExportNode {
    return this.node(op, { inputs, attributes, shape: broadcastShape(inputs.map((x) => x.shape)), dtype });
  }
  number(value: Value, dtype: DType): ExportNode {
    return this.node("Number", { values: [value], shape: [], dtype });
  }
  ints(values: readonly number[]): ExportNode {
    return this.node("Ints", { values, shape: [values.length], dtype: int64 });
  }
  /** offset + sum of coefficient * index, for all indexes below these sizes. */
  lattice(offset: number, coefficients: readonly number[], sizes: readonly number[]): ExportNode {
    return this.node("Lattice", { values: [offset, ...coefficients, ...sizes], shape: sizes, dtype: int64 });
  }
  cast(x: ExportNode, dtype: DType): ExportNode {
    if (x.dtype === dtype) return x;
    return this.node("Cast", { inputs: [x], shape: x.shape, dtype });
  }

  // ---- movements ----

  reshape(x: ExportNode, shape: readonly number[]): ExportNode {
    if (arraysEqual(x.shape, shape)) return x;
    if (x.op === "Reshape") return this.reshape(x.inputs[0] as ExportNode, shape);
    if (x.op === "Pad") {
      const { inner, before, after } = paddingOf(x);
      const places = keptDims(x.shape, shape, (d) => before[d] !== 0 || after[d] !== 0);
      if (places !== undefined) {
        const at = (amounts: readonly number[]): number[] =>
          places.map((d) => (d < 0 ? 0 : (amounts[d] as number)));
        const sizes = shape.map((n, i) => n - (at(before)[i] as number) - (at(after)[i] as number));
        return this.pad(this.reshape(inner, sizes), at(before), at(after), fillingOf(x));
      }
    }
    if (x.op === "Number" && prod(shape) === 1) return this.#spread(x, shape);
    const allowzero: NodeAttributes = shape.includes(0) ? { allowzero: 1 } : {};
    return this.node("Reshape", {
      inputs: [x, this.ints(shape)],
      attributes: allowzero,
      shape,
      dtype: x.dtype,
    });
  }
  transpose(x: ExportNode, order: readonly number[]): ExportNode {
    if (order.every((a, i) => a === i)) return x;
    const shape = order.map((a) => x.shape[a] as number);
    // dims of size 1 may go anywhere
    const real = order.filter((a) => x.shape[a] !== 1);
    if (real.every((a, i) => i === 0 || a > (real[i - 1] as number))) return this.reshape(x, shape);
    const [under] = x.inputs;
    if (x.op === "Reshape" && under !== undefined && arraysEqual(realSizes(x), realSizes(under))) {
      // only dims of size 1 came or went: what was moved before may be moved back
      const places = realDims(under);
      const back = new Map(realDims(x).map((d, i) => [d, places[i] as number]));
      const moved = real.map((a) => back.get(a) as number);
      const ones = range(under.shape.length).filter((d) => under.shape[d] === 1);
      return this.reshape(this.transpose(under, [...ones, ...moved]), shape);
    }
    if (x.op === "Pad") {
      const { inner, before, after } = paddingOf(x);
      const turned = (amounts: readonly number[]): number[] => order.map((a) => amounts[a] as number);
      return this.pad(this.transpose(inner, order), turned(before), turned(after), fillingOf(x));
    }
    if (x.op === "Transpose") {
      const before = x.attributes.perm as readonly number[];
      return this.transpose(
        x.inputs[0] as ExportNode,
        order.map((a) => before[a] as number),
      );
    }
    return this.node("Transpose", { inputs: [x], attributes: { perm: order }, shape, dtype: x.dtype });
  }
  /** To a shape that this one can be broadcast to. */
  expand(x: ExportNode, shape: readonly number[]): ExportNode {
    if (arraysEqual(x.shape, shape)) return x;
    if (x.op === "Expand") return this.expand(x.inputs[0] as ExportNode, shape);
    return this.#spread(x, shape);
  }
  #spread(x: ExportNode, shape: readonly number[]): ExportNode {
    return this.node("Expand", { inputs: [x, this.ints(shape)], shape, dtype: x.dtype });
  }
  /** Elements `start`, `start + step`, … of one axis, so many of them. */
  slice(x: ExportNode, axis: number, start: number, count: number, step = 1): ExportNode {
    const size = x.shape[axis] as number;
    if (count === size && step === 1) return x;
    if (x.op === "Pad" && step === 1) {
      const { inner, before, after } = paddingOf(x);
      const lead = before[axis] as number;
      const had = inner.shape[axis] as number;
      const [from, to] = [Math.max(0, start - lead), Math.min(had, start + count - lead)];
      if (to > from) {
        const kept = this.slice(inner, axis, from, to - from);
        const [head, tail] = [Math.max(0, lead - start), Math.max(0, start + count - lead - had)];
        return this.pad(kept, before.with(axis, head), after.with(axis, tail), fillingOf(x));
      }
    }
    if (x.op === "Concat" && x.attributes.axis === axis && step === 1 && count > 0) {
      let at = 0;
      const parts = x.inputs.flatMap((part) => {
        const n = part.shape[axis] as number;
        const [lo, hi] = [Math.max(start - at, 0), Math.min(start + count - at, n)];
        at += n;
        return hi > lo ? [this.slice(part, axis, lo, hi - lo)] : [];
      });
      return this.concat(parts, axis);
    }
    const end = count === 0 ? start : start + step * (count - 1) + 1;
    const inputs = [x, this.ints([start]), this.ints([end]), this.ints([axis]), this.ints([step])];
    return this.node("Slice", { inputs, shape: x.shape.with(axis, count), dtype: x.dtype });
  }
  flip(x: ExportNode, axes: readonly number[]): ExportNode {
    if (axes.length === 0) return x;
    const all = (v: number): ExportNode => this.ints(axes.map(() => v));
    const inputs = [x, all(-1), all(BEFORE_ALL), this.ints(axes), all(-1)];
    return this.node("Slice", { inputs, shape: x.shape, dtype: x.dtype });
  }
  pad(x: ExportNode, before: readonly number[], after: readonly number[], value: Value = 0): ExportNode {
    if ([...before, ...after].every((n) => n === 0)) return x;
    const amounts = this.ints([...before, ...after]);
    const filling = this.number(x.dtype.isBig ? BigInt(value) : value, x.dtype);
    const shape = x.shape.map((s, d) => s + (before[d] as number) + (after[d] as number));
    return this.node("Pad", { inputs: [x, amounts, filling], shape, dtype: x.dtype });
  }
  /** One after the other along an axis. */
  concat(parts: readonly ExportNode[], axis: number): ExportNode {
    const flat = parts.flatMap((p) => (p.op === "Concat" && p.attributes.axis === axis ? p.inputs : [p]));
    const [first] = flat as [ExportNode];
    if (flat.length === 1) return first;
    const total = flat.reduce((n, p) => n + (p.shape[axis] as number), 0);
    const shape = first.shape.with(axis, total);
    return this.node("Concat", { inputs: flat, attributes: { axis }, shape, dtype: first.dtype });
  }
  /** Reduces over axes, which stay as dims of size 1. */
  reduce(op: string, x: ExportNode, axes: readonly number[], dtype = x.dtype): ExportNode {
    if (axes.length === 0) return x;
    const shape = x.shape.map((s, d) => (axes.includes(d) ? 1 : s));
    const inputs = [x, this.ints(axes)];
    return this.node(op, { inputs, attributes: { keepdims: 1 }, shape, dtype });
  }
}

const realDims = (x: ExportNode): number[] => range(x.shape.length).filter((d) => x.shape[d] !== 1);
const realSizes = (x: ExportNode): number[] => x.shape.filter((n) => n !== 1);

interface PadOfNode {
  readonly inner: ExportNode;
  readonly before: readonly number[];
  readonly after: readonly number[];
}
/** What a Pad pads, and by how much. */
export function paddingOf(x: ExportNode): PadOfNode {
  const amounts = intsOf(x.inputs[1]);
  const rank = x.shape.length;
  return { inner: x.inputs[0] as ExportNode, before: amounts.slice(0, rank), after: amounts.slice(rank) };
}
export const fillingOf = (x: ExportNode): Value => x.inputs[2]?.values[0] ?? 0;

/**
 * For each dim of the new shape the dim it was, where all dims that `matters` stay as they are; -1 for
 * others.
 */
function keptDims(
  before: readonly number[],
  after: readonly number[],
  matters: (d: number) => boolean,
): number[] | undefined {
  const places = after.map(() => -1);
  // dims of size 1 come and go
  const real = (shape: readonly number[]): number[] => range(shape.length).filter((d) => shape[d] !== 1);
  const [from, to] = [real(before), real(after)];
  if (before.some((n, d) => n === 1 && matters(d))) return undefined;
  let [i, j] = [0, 0];
  while (i < from.length && j < to.length) {
    // one group: as many dims of both as it takes for equal products
    const [first, second] = [from[i] as number, to[j] as number];
    let [n, m] = [before[first] as number, after[second] as number];
    const start = i;
    const isPair = n === m;
    i++;
    j++;
    while (n !== m && i <= from.length && j <= to.length) {
      if (n < m) n *= before[from[i++] as number] ?? Number.NaN;
      else m *= after[to[j++] as number] ?? Number.NaN;
      if (Number.isNaN(n) || Number.isNaN(m)) return undefined;
    }
    if (isPair) places[second] = first;
    else if (from.slice(start, i).some(matters)) return undefined;
  }
  return places;
}

/** The amounts of a Pad, or the shape of a Reshape or Expand. */
export const intsOf = (x: ExportNode | undefined): number[] => (x?.values ?? []).map(Number);
/** A node and all below it, sources first; bodies of loops, too. */
export function nodesUnder(roots: readonly ExportNode[]): ExportNode[] {
  const seen = new Set<ExportNode>();
  const order: ExportNode[] = [];
  const stack: (readonly [ExportNode, boolean])[] = [...roots].reverse().map((r) => [r, false] as const);
  for (let top = stack.pop(); top !== undefined; top = stack.pop()) {
    const [node, isDone] = top;
    if (isDone) order.push(node);
    if (isDone || seen.has(node)) continue;
    seen.add(node);
    stack.push([node, true]);
    for (const s of [...node.inputs, ...(node.body?.results ?? [])]) if (!seen.has(s)) stack.push([s, false]);
  }
  return order;
}
