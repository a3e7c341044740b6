// The arguments of one call of a jitted function: the tensors in them in order, the sizes that are bound to a
// value, and the rest, which has to stay the same. This file takes them apart and compares them with those of
// another call.

import type { DType } from "../../dtype.ts";
import { JitError, StaleError } from "../../errors.ts";
import { arraysEqual, isPromise } from "../../helpers.ts";
import { LazyBuffer } from "../../lazy/lazybuffer.ts";
import type { ShapeTracker } from "../../shape/shapetracker.ts";
import { keyOf, type Sint, Sym, unbind, type Variable, vars } from "../../shape/symbolic.ts";
import type { Shape } from "../../shape/view.ts";
import { CacheCollector, type TensorLike } from "./collector.ts";
import { difference, flatten, type Leaf, type LeafOf, type TreeDef, unflatten } from "./pytree.ts";

export const isTensor = (x: unknown): x is TensorLike =>
  typeof x === "object" && x !== null && (x as Partial<TensorLike>).lazydata instanceof LazyBuffer;

const leafOf: LeafOf<TensorLike | Sym> = (x, path) => {
  if (x instanceof Sym) return { what: "a bound Variable", leaf: x };
  if (isPromise(x))
    throw new JitError(`TinyJit: ${path} is a promise; await it, and write step(await x.realize())`);
  if (!isTensor(x)) return undefined;
  if (x.context !== undefined) {
    throw new JitError(
      `TinyJit: ${path} was computed with its gradient recorded, and no gradient passes from a replay to what is ` +
        "outside of it; compute it inside the function, or pass x.detach()",
    );
  }
  return { what: "a tensor", leaf: x };
};

export class Arguments {
  readonly tree: TreeDef;
  readonly #leaves: Leaf<TensorLike | Sym>[] = [];
  /** when the call was made, in assigns */
  readonly #made = CacheCollector.assigns;
  readonly tensors: readonly TensorLike[];
  /** what to call each of the tensors in a message */
  readonly paths: readonly string[];
  readonly sizes: readonly Leaf<Sym>[];
  /** the values of all variables, in sizes and in shapes */
  readonly bound = new Map<Variable, number>();

  constructor(args: readonly unknown[]) {
    const parts = args.map((x, i) => flatten(x, `input ${i}`, leafOf, this.#leaves));
    this.tree = { kind: "list", path: "the arguments", parts };
    const tensors = this.#leaves.filter((x): x is Leaf<TensorLike> => !(x.leaf instanceof Sym));
    this.tensors = tensors.map((x) => x.leaf);
    this.paths = tensors.map((x) => x.path);
    this.sizes = this.#leaves.filter((x): x is Leaf<Sym> => x.leaf instanceof Sym);
    for (const { path, leaf: size } of this.sizes) {
      const [, values] = unbind(size);
      this.#bind(path, values);
      for (const v of vars(size)) {
        if (values.has(v)) continue;
        throw new JitError(`TinyJit: ${path} is ${size}, and ${v.name} has no value; pass ${v.name}.bind(n)`);
      }
    }
    this.tensors.forEach((t, i) => {
      // a constant has no memory that could be swapped: it gets some
      if (t.lazydata.isUnrealizedConst) t.lazydata = t.lazydata.contiguous();
      const { lazydata } = t;
      for (const { st } of lazydata.parts)
        if (isSymbolic(st)) this.#bind(this.paths[i] as string, st.unbind()[1]);
    });
  }

  #bind(path: string, values: ReadonlyMap<Variable, number>): void {
    for (const [v, n] of values) {
      const before = this.bound.get(v);
      if (before !== undefined && before !== n) {
        throw new JitError(
          `TinyJit: ${path} has ${v.name} bound to ${n}, an argument before it to ${before}; a variable has one value a call`,
        );
      }
      this.bound.set(v, n);
    }
  }

  /** The arguments as they came. */
  get values(): readonly unknown[] {
    return unflatten(this.tree, (i) => this.#leaves[i]?.leaf) as unknown[];
  }
  /** The arguments with other tensors in the places of these. */
  with(tensors: readonly TensorLike[]): readonly unknown[] {
    let next = 0;
    return unflatten(this.tree, (i) => {
      const { leaf } = this.#leaves[i] as Leaf<TensorLike | Sym>;
      return leaf instanceof Sym ? leaf : tensors[next++];
    }) as unknown[];
  }

  /** A call sees what there was when it was made, not what was assigned while it waited. */
  requireUnchanged(others: () => readonly object[] = () => []): void {
    if (CacheCollector.assigns === this.#made) return;
    const changed = (x: object): boolean => CacheCollector.changedSince(this.#made, x);
    const i = this.tensors.findIndex(
      (t) => changed(t) || t.lazydata.parts.some((p) => changed(p.base.buffer)),
    );
    if (i < 0 && !others().some(changed)) return;
    const what = i < 0 ? "a tensor that the function uses" : this.paths[i];
    throw new JitError(
      `TinyJit: ${what} was assigned to after this call was made and before it ran; await the call first`,
    );
  }

  /** The nodes that have no value yet. */
  unrealized(): LazyBuffer[] {
    const found: LazyBuffer[] = [];
    for (const t of this.tensors) {
      for (const { base } of t.lazydata.parts) {
        if (base.stale !== undefined) throw new StaleError(base.stale);
        if (base.realized === undefined) found.push(base);
      }
    }
    return found;
  }
}

const bare = (st: ShapeTracker): ShapeTracker => (isSymbolic(st) ? st.unbind()[0] : st);
const isSymbolic = (st: ShapeTracker): boolean =>
  st.views.some((v) => v.parts().some((x) => typeof x !== "number"));

/** What the arguments of a call have to be. */
export interface Expected {
  readonly tree: TreeDef;
  readonly tensors: readonly TensorFacts[];
  readonly sizes: readonly string[];
}
interface TensorFacts {
  readonly dtype: DType;
  readonly device: string;
  readonly requiresGrad: boolean;
  readonly shape: Shape;
  /** without the values of variables; one a part, as is what follows */
  readonly sts: readonly ShapeTracker[];
  /** elements of the memory that it is a view of */
  readonly memory: readonly Sint[];
}

const factsOf = ({ lazydata, requiresGrad }: TensorLike): TensorFacts => ({
  dtype: lazydata.dtype,
  device: lazydata.device,
  requiresGrad,
  shape: bare(lazydata.st).shape,
  sts: lazydata.parts.map((p) => bare(p.st)),
  memory: lazydata.parts.map((p) => unbind(p.base.size)[0]),
});

export const expectedOf = (given: Arguments): Expected => ({
  tree: given.tree,
  tensors: given.tensors.map(factsOf),
  sizes: given.sizes.map(({ leaf }) => keyOf(unbind(leaf)[0])),
});

/**
 * What differs from what was expected, in words. `anySize`: whether the memory of a tensor may have any size.
 */
export function mismatch(
  expected: Expected,
  given: Arguments,
  anySize: (i: number) => boolean,
): string | undefined {
  const other = difference(expected.tree, given.tree);
  if (other !== undefined) {
    return (
      `${other.path}: expected ${other.expected}, got ${other.got}; whatever is not a tensor is fixed by the capture: ` +
      "pass a tensor or a bound Variable, or use another jit"
    );
  }
  for (let i = 0; i < given.tensors.length; i++) {
    const want = expected.tensors[i] as TensorFacts;
    const got = factsOf(given.tensors[i] as TensorLike);
    const differs = ASPECTS.find((a) => !(a === MEMORY && anySize(i)) && !a.same(want, got));
    if (differs === undefined) continue;
    const { show, advice } = differs;
    return `${given.paths[i]}: expected ${show(want)}, got ${show(got)}${advice}`;
  }
  for (let i = 0; i < given.sizes.length; i++) {
    const { path, leaf } = given.sizes[i] as Leaf<Sym>;
    const bare = unbind(leaf)[0];
    if (keyOf(bare) !== expected.sizes[i])
      return `${path}: expected ${expected.sizes[i]}, got ${keyOf(bare)}`;
  }
  return undefined;
}

interface Aspect {
  readonly same: (a: TensorFacts, b: TensorFacts) => boolean;
  readonly show: (f: TensorFacts) => string;
  readonly advice: string;
}
const shapeOf = (f: TensorFacts): string => `shape [${f.shape.join(", ")}]`;
const MEMORY: Aspect = {
  same: (a, b) => arraysEqual(a.memory, b.memory),
  show: (f) => `${shapeOf(f)} in memory of ${f.memory.join(" and ")} elements`,
  advice: ", and the function copies it or assigns to it; pass x.clone() in every call",
};
const ASPECTS: readonly Aspect[] = [
  {
    same: (a, b) => arraysEqual(a.shape, b.shape),
    show: shapeOf,
    advice: "; leave a smaller last batch out (dropLast), fill it up, or use a jit for each shape",
  },
  { same: (a, b) => a.dtype === b.dtype, show: (f) => `dtype ${f.dtype.name}`, advice: "; cast it" },
  { same: (a, b) => a.device === b.device, show: (f) => `device ${f.device}`, advice: "; move it with to()" },
  {
    same: (a, b) => a.sts.every((st, i) => st === b.sts[i] || st.key === b.sts[i]?.key),
    show: (f) => `${shapeOf(f)} laid out as ${f.sts.join(", ")}`,
    advice: "; pass x.contiguous()",
  },
  MEMORY,
  {
    same: (a, b) => a.requiresGrad === b.requiresGrad,
    show: (f) => `a tensor with${f.requiresGrad ? "" : "out"} requiresGrad`,
    advice: "",
  },
];
