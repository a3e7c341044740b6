// Ops on small arrays of the host: those of which exporters make the arithmetic of shapes. A graph computes
// them beside its Tensors, so that reshaping never waits for a device. Elements mean what they mean on every
// device: OPS.evaluate does the arithmetic. Each entry has its op's name, and says which nodes it accepts.

import { castValue, dtypes, type Value } from "../dtype.ts";
import { prod, range } from "../helpers.ts";
import { type AluOp, OPS } from "../ops.ts";
import { decided } from "../shape/guards.ts";
import { add, eq, idiv, lt, mod, mul, type Sint, Sym, smin, sub } from "../shape/symbolic.ts";
import { type ElementType, TYPES } from "./elements.ts";
import type { Call } from "./ops/op.ts";
import { broadcastShapes, sliceBounds } from "./ops/shapes.ts";
import { plainElement, type SizeArray, type SizeElement, sintOf } from "./values.ts";

/** More elements are the work of a device. */
export const MAX_FOLDED = 2048;

type Hosts = readonly (SizeArray | undefined)[];
interface Fold {
  accepts(call: Call): boolean;
  run(call: Call, inputs: Hosts): readonly SizeArray[];
}
const always = (): boolean => true;
const fold = (
  run: (call: Call, ...inputs: SizeArray[]) => SizeArray,
  accepts: (call: Call) => boolean = always,
): Fold => ({
  accepts,
  run: (call, inputs) => [run(call, ...(inputs as SizeArray[]))],
});

const filled = (shape: readonly number[], type: ElementType, at: (i: number) => SizeElement): SizeArray => ({
  type,
  shape,
  data: Array.from({ length: prod(shape) }, (_, i) => at(i)),
});

/** The element of an array that stands at place `i` of a larger shape. */
function broadcastTo({ shape, data }: SizeArray, larger: readonly number[]): (i: number) => SizeElement {
  const lead = larger.length - shape.length;
  return (i) => {
    let [rest, at, step] = [i, 0, 1];
    for (let d = larger.length - 1; d >= 0; d--) {
      const size = larger[d] as number;
      const own = shape[d - lead] ?? 1;
      if (d >= lead && own !== 1) at += (rest % size) * step;
      if (d >= lead) step *= own;
      rest = Math.floor(rest / size);
    }
    return data[at] as SizeElement;
  };
}

/** Where an element decides what is done, a symbolic one counts with its present value. */
const ints = (h: SizeArray): number[] => Array.from(h.data, (x) => Number(plainElement(x, h.type)));

function binary(op: AluOp, type?: ElementType): Fold {
  return fold(
    (_, a, b) => {
      const shape = broadcastShapes([a.shape, b.shape]);
      const [x, y] = [broadcastTo(a, shape), broadcastTo(b, shape)];
      return filled(shape, type ?? a.type, (i) => computed(op, a.type, x(i), y(i)));
    },
    (call) => isSimple(call) && call.opset >= 7,
  );
}
/** What symbolic integers can do. Undefined: this one is computed with the present values alone. */
const SYMBOLIC: Partial<Record<AluOp, (x: Sint, y: Sint) => Sint | undefined>> = {
  ADD: add,
  SUB: sub,
  MUL: mul,
  IDIV: (x, y) => (smin(x) >= 0 && smin(y) > 0 ? idiv(x, y) : undefined),
  MOD: (x, y) => (smin(x) >= 0 && smin(y) > 0 ? mod(x, y) : undefined),
  MAX: (x, y) => (decided(lt(x, y)) === 1 ? y : x),
  CMPLT: (x, y) => decided(lt(x, y)),
  CMPEQ: (x, y) => decided(eq(x, y)),
};
function computed(op: AluOp, type: ElementType, x: SizeElement, y: SizeElement): SizeElement {
  if (x instanceof Sym || y instanceof Sym) {
    const made = SYMBOLIC[op]?.(sintOf(x), sintOf(y));
    if (made instanceof Sym) return made;
    if (made !== undefined) return type.dtype.isBig && !op.startsWith("CMP") ? BigInt(made) : made;
  }
  return OPS[op].evaluate(type.dtype, plainElement(x, type), plainElement(y, type));
}
/** Types whose arithmetic is that of their dtype. */
const isSimple = (call: Call): boolean =>
  call.inputs.every((_, i) => !call.has(i) || call.type(i).stored === call.type(i).dtype);
const isWhole = (call: Call): boolean =>
  isSimple(call) && call.inputs.every((_, i) => call.type(i).dtype.isInt);

/** A list of any length, two by two. */
const folding = (op: AluOp, flip = false): Fold => ({
  accepts: (call) => isSimple(call) && call.opset >= 8 && (!flip || isWhole(call)),
  run: (call, inputs) => {
    const [first, ...rest] = inputs as SizeArray[];
    const one = binary(op);
    const minus = (h: SizeArray): SizeArray => ({
      ...h,
      data: Array.from(h.data, (x) => (x instanceof Sym ? x.neg() : (-x as Value))),
    });
    const list = rest.reduce((a, b) => {
      if (!flip) return one.run(call, [a, b])[0] as SizeArray;
      return minus(one.run(call, [minus(a), minus(b)])[0] as SizeArray);
    }, first as SizeArray);
    return [list];
  },
});
const unary = (run: (x: Value, type: ElementType) => Value): Fold =>
  fold((_, x) => ({ ...x, data: Array.from(x.data, (v) => run(plainElement(v, x.type), x.type)) }), isSimple);
const onFloats = (run: (x: number) => number): Fold => ({
  ...unary((x, { dtype }) => castValue(dtype, run(Number(x)), dtypes.float64)),
  accepts: (call) => isSimple(call) && call.type(0).dtype.isFloat,
});

/** Puts the elements elsewhere: `at` says where the element at these indices comes from. */
function moved(x: SizeArray, shape: readonly number[], at: (index: number[]) => number): SizeArray {
  const index = shape.map(() => 0);
  return filled(shape, x.type, () => {
    const value = x.data[at(index)] as SizeElement;
    for (let d = shape.length - 1; d >= 0; d--) {
      index[d] = (index[d] as number) + 1;
      if ((index[d] as number) < (shape[d] as number)) break;
      index[d] = 0;
    }
    return value;
  });
}
const stridesOf = (shape: readonly number[]): number[] => shape.map((_, d) => prod(shape.slice(d + 1)));

function gather(call: Call, x: SizeArray, indices: SizeArray): SizeArray {
  const axis = call.axis((call.attr as { axis: number }).axis, x.shape.length);
  const [before, size, after] = [x.shape.slice(0, axis), x.shape[axis] as number, x.shape.slice(axis + 1)];
  const shape = [...before, ...indices.shape, ...after];
  const [inner, count, places] = [prod(after), indices.data.length, ints(indices)];
  return filled(shape, x.type, (i) => {
    const index = places[Math.floor(i / inner) % count] as number;
    const at = index < 0 ? index + size : index;
    if (at < 0 || at >= size) call.fail(`index ${index} is not one of ${size} elements`);
    return x.data[(Math.floor(i / inner / count) * size + at) * inner + (i % inner)] as SizeElement;
  });
}

function concat(call: Call, ...list: SizeArray[]): SizeArray {
  const [first] = list as [SizeArray];
  const axis = call.axis((call.attr as { axis: number }).axis, first.shape.length);
  const shape = first.shape.with(
    axis,
    list.reduce((n, x) => n + (x.shape[axis] as number), 0),
  );
  const outer = prod(first.shape.slice(0, axis));
  const data: SizeElement[] = [];
  for (let o = 0; o < outer; o++)
    for (const x of list) {
      const n = x.data.length / outer;
      for (let i = 0; i < n; i++) data.push(x.data[o * n + i] as SizeElement);
    }
  return { type: first.type, shape, data };
}

function slice(call: Call, x: SizeArray, ...rest: (SizeArray | undefined)[]): SizeArray {
  const [starts, ends, axes, steps] = rest.map((h) => (h === undefined ? undefined : ints(h)));
  const cuts = sliceBounds(call, x.shape, starts ?? [], ends ?? [], axes, steps);
  const strides = stridesOf(x.shape);
  return moved(
    x,
    cuts.map((c) => c.count),
    (index) =>
      index.reduce(
        (at, i, d) => at + ((cuts[d]?.start ?? 0) + i * (cuts[d]?.step ?? 1)) * (strides[d] as number),
        0,
      ),
  );
}

const isNotZero = (x: SizeElement): boolean => (x instanceof Sym ? x.min > 0 : Number(x) !== 0);
/** What they say is the shape of the result, which is a plain one on the host. */
const hasPlainElements = (call: Call, i: number): boolean =>
  !call.has(i) || Array.from(call.value(i).sizes.data).every((x) => !(x instanceof Sym));

/** The shape of the result is all there is to know: the node's op computes it. */
function reduce(op: AluOp, start: Value): Fold {
  return fold(
    (_, x) => {
      const { dtype } = x.type;
      const total = Array.from(x.data).reduce<SizeElement>(
        (sum, v) => computed(op, x.type, sum, v),
        dtype.isBig ? BigInt(start) : start,
      );
      return { ...x, shape: [], data: [total] };
    },
    // all dims of a list: what products of shapes are
    (call) => {
      const attr = call.attr as { keepdims?: boolean; noop_with_empty_axes?: boolean };
      const isAll = attr.keepdims === false && attr.noop_with_empty_axes !== true;
      return isSimple(call) && call.shape(0).length === 1 && isAll;
    },
  );
}

const where = fold((_, c, a, b) => {
  const shape = broadcastShapes([c.shape, a.shape, b.shape]);
  const [p, x, y] = [broadcastTo(c, shape), broadcastTo(a, shape), broadcastTo(b, shape)];
  return filled(shape, a.type, (i) => (plainElement(p(i), c.type) ? x(i) : y(i)));
});

function rangeOf(call: Call, start: SizeArray, limit: SizeArray, delta: SizeArray): SizeArray {
  const [a, b, step] = [start, limit, delta].map((h) => ints(h)[0]) as [number, number, number];
  const n = Math.max(0, Math.ceil((b - a) / step));
  if (n > MAX_FOLDED * 64) call.fail(`a range of ${n} elements is too long to be computed on the host`);
  const { dtype } = start.type;
  return {
    type: start.type,
    shape: [n],
    data: range(n).map((i) => castValue(dtype, a + i * step, dtypes.float64)),
  };
}

const same = (
  shapeOf: (call: Call, x: SizeArray, rest: readonly (SizeArray | undefined)[]) => readonly number[],
): Fold => ({
  accepts: always,
  run: (call, [x, ...rest]) => [{ ...(x as SizeArray), shape: shapeOf(call, x as SizeArray, rest) }],
});

/** Axes were an attribute until version 13, and are an input since. */
const axesOf = (call: Call, axes: SizeArray | undefined): readonly number[] | undefined =>
  axes === undefined ? (call.attr as { axes?: readonly number[] }).axes : ints(axes);

export const FOLDS: Readonly<Record<string, Fold>> = {
  Add: binary("ADD"),
  Sub: binary("SUB"),
  Mul: binary("MUL"),
  Div: {
    ...binary("IDIV"),
    accepts: (call) =>
      isWhole(call) && call.opset >= 7 && Array.from(call.value(1).sizes.data).every(isNotZero),
  },
  Equal: binary("CMPEQ", TYPES.bool),
  Less: binary("CMPLT", TYPES.bool),
  Greater: {
    ...binary("CMPLT", TYPES.bool),
    run: (call, [a, b]) => binary("CMPLT", TYPES.bool).run(call, [b, a]),
  },
  And: binary("AND"),
  Or: binary("OR"),
  Not: unary((x) => (x ? 0 : 1)),
  Neg: fold((_, x) => {
    const negated = (v: SizeElement): SizeElement =>
      v instanceof Sym ? v.neg() : OPS.NEG.evaluate(x.type.dtype, v);
    return { ...x, data: Array.from(x.data, negated) };
  }, isSimple),
  Max: folding("MAX"),
  Min: folding("MAX", true),
  Floor: onFloats(Math.floor),
  Ceil: onFloats(Math.ceil),
  Sqrt: onFloats(Math.sqrt),
  Identity: fold((_, x) => x),
  Cast: fold(
    (call, x) => {
      const to = castTarget(call);
      return {
        type: to,
        shape: x.shape,
        data: Array.from(x.data, (v) =>
          v instanceof Sym && to.dtype.isInt && to.dtype.bits >= 32
            ? v
            : castValue(to.dtype, plainElement(v, x.type), x.type.dtype),
        ),
      };
    },
    (call) => isSimple(call) && castTarget(call).stored === castTarget(call).dtype,
  ),
  Gather: fold(gather, (call) => hasPlainElements(call, 1)),
  Concat: fold(concat),
  Slice: {
    accepts: (call) => call.opset >= 10 && call.inputs.every((_, i) => i === 0 || hasPlainElements(call, i)),
    run: (call, [x, ...rest]) => [slice(call, x as SizeArray, ...rest)],
  },
  Where: where,
  Range: fold(rangeOf, (call) => isSimple(call) && call.inputs.every((_, i) => hasPlainElements(call, i))),
  ReduceProd: reduce("MUL", 1),
  ReduceSum: reduce("ADD", 0),
  Expand: fold(
    (_, x, to) => {
      const shape = broadcastShapes([x.shape, ints(to)]);
      return filled(shape, x.type, broadcastTo(x, shape));
    },
    (call) => hasPlainElements(call, 1),
  ),
  Transpose: fold((call, x) => {
    const perm = (call.attr as { perm?: readonly number[] }).perm ?? range(x.shape.length).reverse();
    const strides = stridesOf(x.shape);
    return moved(
      x,
      perm.map((p) => x.shape[p] as number),
      (index) => index.reduce((at, i, d) => at + i * (strides[perm[d] as number] as number), 0),
    );
  }),
  Reshape: {
    accepts: (call) => call.opset >= 5,
    run: (call, [x, to]) => {
      const { shape, data } = x as SizeArray;
      const { allowzero } = call.attr as { allowzero: boolean };
      const wanted = ints(to as SizeArray).map((d, i) => (d === 0 && !allowzero ? (shape[i] ?? 0) : d));
      const rest = prod(wanted.filter((d) => d !== -1));
      const full = wanted.map((d) => (d === -1 ? data.length / rest : d));
      if (prod(full) !== data.length || full.some((d) => !(d >= 0 && Number.isInteger(d))))
        call.fail(`cannot reshape [${shape.join(", ")}] to [${wanted.join(", ")}]`);
      return [{ ...(x as SizeArray), shape: full }];
    },
  },
  Unsqueeze: same((call, x, [axes]) => {
    const list = axesOf(call, axes) ?? call.fail("it has no axes");
    const at = call.axes(list, x.shape.length + list.length);
    const rest = [...x.shape];
    return range(x.shape.length + list.length).map((d) => (at.includes(d) ? 1 : (rest.shift() as number)));
  }),
  Squeeze: same((call, x, [axes]) => {
    const list = axesOf(call, axes);
    const at = list === undefined ? undefined : call.axes(list, x.shape.length);
    return x.shape.filter((d, i) => (at === undefined ? d !== 1 : !at.includes(i)));
  }),
};

const castTarget = (call: Call): ElementType => {
  const { to } = call.attr as { to: number };
  return Object.values(TYPES).find((t) => t.code === to) ?? TYPES.string;
};
