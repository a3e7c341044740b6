// Sizes of inputs that differ from run to run. The first runs with some sizes have kernels for these alone,
// which are the fastest. When the same inputs come with other sizes, what differs becomes Variables, and one
// capture serves all later sizes. In: the shapes of each run. Out: a template that fits them, and the capture
// that belongs to it. Whatever is decided for present sizes alone is told as a guard (shape/guards.ts): a
// capture is used for other sizes only while the decisions are the same, and what cannot do without plain
// numbers has no such capture.

import { toposort } from "../helpers.ts";
import { LazyBuffer } from "../lazy/lazybuffer.ts";
import { isReduceOp } from "../ops.ts";
import { type Guard, isMet, watchSizes } from "../shape/guards.ts";
import { ShapeTracker } from "../shape/shapetracker.ts";
import {
  evaluate,
  markExact,
  ownVariable,
  type Sint,
  unbind,
  type Variable,
  vars,
} from "../shape/symbolic.ts";
import { Tensor } from "../tensor/tensor.ts";
import { TensorValue } from "./values.ts";

/** The shapes of all inputs, one after the other: their sizes as numbers, or as Variables. */
export type Shapes = readonly (readonly number[])[];
type DimSize = number | Variable;

/** Sizes below this are values of their own: 0 and 1 mean something else than the others. */
const LEAST = 2;
/** Tiles of this size fit all sizes from it on; a size below has kernels without them. */
const TILE = 16;
/** How far beyond the sizes that came kernels are made for, as a power of two. */
const MOST_AHEAD = 64;
/** Sizes whose products are no larger have indexes of 32 bits. */
const MAX_ELEMENTS = 2 ** 30;

/** Inputs with shapes of one form: places that are the same in all, and Variables. */
export class SizeTemplate {
  readonly shapes: readonly (readonly DimSize[])[];
  readonly variables: readonly Variable[];

  constructor(shapes: readonly (readonly DimSize[])[]) {
    this.shapes = shapes;
    this.variables = [...new Set(shapes.flat().filter((s): s is Variable => typeof s !== "number"))];
  }

  /** What its variables are for these shapes; undefined: they have another form. */
  match(shapes: Shapes): Map<Variable, number> | undefined {
    const values = new Map<Variable, number>();
    const fits = this.shapes.every((own, i) => {
      const given = shapes[i] ?? [];
      if (own.length !== given.length) return false;
      return own.every((place, d) => {
        const n = given[d] as number;
        if (typeof place === "number") return place === n;
        const before = values.get(place) ?? n;
        values.set(place, n);
        return before === n && n >= place.min && n <= place.max;
      });
    });
    return fits && shapes.length === this.shapes.length ? values : undefined;
  }

  /**
   * The template of these shapes and its own: variables where they differ. Sizes that are the same in both
   * stay the same. Undefined: they have nothing to do with each other.
   */
  joined(shapes: Shapes): SizeTemplate | undefined {
    const made = new Map<string, Variable>();
    if (shapes.length !== this.shapes.length) return undefined;
    const all: DimSize[][] = [];
    for (const [i, own] of this.shapes.entries()) {
      const given = shapes[i] as readonly number[];
      if (own.length !== given.length) return undefined;
      const places: DimSize[] = [];
      for (const [d, place] of own.entries()) {
        const n = given[d] as number;
        if (place === n) places.push(n);
        else if (n < LEAST || (typeof place === "number" && place < LEAST)) return undefined;
        else {
          const key = `${typeof place === "number" ? place : place.name}=${n}`;
          const v = made.get(key) ?? variableFor(made.size, place, n);
          made.set(key, v);
          places.push(v);
        }
      }
      all.push(places);
    }
    return new SizeTemplate(all);
  }

  /** The same with smaller bounds, so that all sizes that are computed with have few elements. */
  bounded(shapes: Shapes, sizes: readonly Sint[]): SizeTemplate {
    const now = this.match(shapes) ?? new Map<Variable, number>();
    const most = new Map(this.variables.map((v) => [v, v.max]));
    const largest = (): number => sizes.reduce<number>((n, s) => Math.max(n, evaluate(s, most)), 0);
    const ahead = (v: Variable): number => (most.get(v) as number) / (now.get(v) as number);
    while (largest() > MAX_ELEMENTS) {
      const far = this.variables.reduce((a, b) => (ahead(b) > ahead(a) ? b : a));
      if (ahead(far) < 2) break;
      most.set(far, (most.get(far) as number) / 2);
    }
    const smaller = new Map(this.variables.map((v, i) => [v, sized(i, v.min, most.get(v) as number)]));
    const place = (p: DimSize): DimSize => (typeof p === "number" ? p : (smaller.get(p) as Variable));
    return new SizeTemplate(this.shapes.map((s) => s.map(place)));
  }

  /** Equal for templates with the same variables, whatever their bounds. */
  get key(): string {
    const name = (p: DimSize): string => (typeof p === "number" ? `${p}` : `${p.name}:${p.min}`);
    return this.shapes.map((s) => s.map(name).join()).join(";");
  }
}

function variableFor(index: number, before: DimSize, n: number): Variable {
  const [low, high] = typeof before === "number" ? [before, before] : [before.min, before.max];
  const least = Math.min(low, n) >= TILE ? TILE : LEAST;
  return sized(index, least, 2 ** Math.ceil(Math.log2(Math.max(high, n))) * MOST_AHEAD);
}
/** The names are those of their order, so that models share kernels. */
function sized(index: number, min: number, max: number): Variable {
  const v = ownVariable(`size${index}`, min, max);
  markExact(v);
  return v;
}

/** The inputs as a capture takes them: of symbolic shape, each element in its place. */
export function seenAs(
  value: TensorValue,
  shape: readonly DimSize[],
  sizes: ReadonlyMap<Variable, number>,
): TensorValue {
  if (shape.every((p) => typeof p === "number")) return value;
  const bound = shape.map((p) => (typeof p === "number" ? p : p.bind(sizes.get(p) as number)));
  const { tensor } = value;
  const isWhole = tensor.lazydata.parts.every((p) => p.st.contiguous);
  return TensorValue.of((isWhole ? tensor : tensor.contiguous()).reshape(bound), value.type, value.sources);
}

/** A result with a plain shape, in the same memory; a view where that is the memory of an input. */
export function plain(t: Tensor, inputs: readonly Tensor[]): Tensor {
  const { lazydata } = t;
  if (lazydata.shape.every((s) => typeof s === "number")) return t;
  const [part, another] = lazydata.parts;
  const { base } = part as LazyBuffer;
  const isInput = inputs.some((x) => x.lazydata.parts.some((p) => p.base.buffer === base.buffer));
  if (
    isInput ||
    part === undefined ||
    another !== undefined ||
    base.realized === undefined ||
    !part.st.contiguous
  )
    return t.reshape([...t.shape]);
  return new Tensor(LazyBuffer.onMemory(base.realized, ShapeTracker.fromShape(t.shape)));
}

/** What runs with symbolic sizes decide for the present ones. */
export class Decisions {
  readonly #guards = new Map<string, Guard>();
  #needsNumbers = false;

  /** Runs something, and takes down what it decides about these variables. */
  async during<T>(variables: readonly Variable[], run: () => Promise<T>): Promise<T> {
    const stop = watchSizes((guard) => {
      const own = [...vars(guard.x)];
      if (!own.some((v) => variables.includes(v))) return;
      const [x] = unbind(guard.x);
      if (guard.isNumber || !own.every((v) => variables.includes(v))) this.#needsNumbers = true;
      this.#guards.set(`${x}=${guard.value}`, { ...guard, x });
    });
    try {
      return await run();
    } finally {
      stop();
    }
  }
  /** A size was read as a number: only the present sizes have these kernels. */
  get needsNumbers(): boolean {
    return this.#needsNumbers;
  }
  allow(values: ReadonlyMap<Variable, number>): boolean {
    return [...this.#guards.values()].every((g) => isMet(g, values));
  }
}

/** All nodes that these tensors are computed from. */
const nodesIn = (tensors: readonly Tensor[]): LazyBuffer[] =>
  toposort(
    tensors.flatMap((t) => t.lazydata.parts.map((p) => p.base)),
    (node) => (node.srcs ?? []).map((s) => s.base),
  );
/** Whether what is computed depends on symbolic sizes. */
export const isSized = (tensor: Tensor): boolean =>
  nodesIn([tensor]).some(({ size }) => typeof size !== "number");

/**
 * The sizes, in variables, of what the graph of these tensors may store. What is reduced is not stored: a
 * gather is a sum over all places, of which none but one counts.
 */
export function storedSizes(tensors: readonly Tensor[]): Sint[] {
  const roots = new Set(tensors.flatMap((t) => t.lazydata.parts.map((p) => p.base)));
  const sizes = new Set<Sint>();
  for (const node of nodesIn(tensors)) {
    const isStored = roots.has(node) || (node.op !== undefined && isReduceOp(node.op));
    if (isStored && typeof node.size !== "number") sizes.add(unbind(node.size)[0]);
  }
  return [...sizes];
}
