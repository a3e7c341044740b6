// What a tensor is, below its methods: a node of the lazy graph and the record of how gradients flow back
// from it. The functions of the areas (movement/, math/, …) take and return tensors. They build nodes of
// LazyBuffers and hand them to `wrap`, which makes the result and keeps its record; a plain LazyBuffer would
// have nowhere to keep one. The areas know the class Tensor by type only: tensor.ts imports them, and says
// here what results are made of.

import { type DType, type DTypeLike, toDType, type Value } from "../dtype.ts";
import { ArgumentError, DTypeError, ShapeError } from "../errors.ts";
import { inspect } from "../helpers.ts";
import { asCopy } from "../lazy/copies.ts";
import { LazyBuffer } from "../lazy/lazybuffer.ts";
import { copyTo, onEach } from "../lazy/placement.ts";
import { plainSize } from "../shape/guards.ts";
import { type Sint, smin, sprod } from "../shape/symbolic.ts";
import type { Shape } from "../shape/view.ts";
import { type Backward, type Context, isRecording } from "./autograd.ts";
import { knownValues, showValues } from "./known.ts";
import { showShape } from "./show.ts";
import type { Tensor } from "./tensor.ts";

/** An element as JavaScript has it: bool is boolean, 64-bit integers are bigint. */
export type Element = number | bigint | boolean;
export type NestedArray = Element | readonly NestedArray[];

export abstract class TensorHandle {
  /** The node of the lazy graph that this tensor stands for. */
  lazydata: LazyBuffer;
  #requiresGrad = false;
  #grad: Tensor | undefined;
  /** What this tensor was made of, where a gradient may flow. */
  context: Context | undefined;

  constructor(lazydata: LazyBuffer) {
    this.lazydata = lazydata;
  }

  /**
   * Whether `backward` should reach this tensor. Set it on leaves, which must be floats; results inherit it.
   * @example
   * new Tensor([1, 2], { dtype: "float32", requiresGrad: true }).requiresGrad // => true
   */
  get requiresGrad(): boolean {
    return this.#requiresGrad;
  }
  set requiresGrad(on: boolean) {
    if (typeof on !== "boolean") throw new ArgumentError("requiresGrad: expected true or false");
    if (on && !this.dtype.isFloat) {
      throw new DTypeError(
        `requiresGrad: ${this} has no gradients; give { dtype: "float32", requiresGrad: true }, or cast("float32")`,
      );
    }
    this.#requiresGrad = on;
  }
  /**
   * The gradient that `backward` left here; calls add up until it is set to undefined or null.
   * @example
   * const w = new Tensor([1.5], { requiresGrad: true });
   * w.square().sum().backward();
   * await w.grad.tolist() // => [3]
   */
  get grad(): Tensor | undefined {
    return this.#grad;
  }
  set grad(g: Tensor | undefined | null) {
    if (g != null && !(g instanceof TensorHandle)) {
      throw new ArgumentError("grad: expected a Tensor");
    }
    const [got, expected] = [g ?? this, this].map((t) => showShape(t.shape));
    if (got !== expected) throw new ShapeError(`grad: got shape ${got}, expected the tensor's, ${expected}`);
    this.#grad = g ?? undefined;
  }

  /**
   * The sizes of the dims; a symbolic size shows the value it is bound to.
   * @example
   * new Tensor([[1, 2, 3]]).shape // => [1, 3]
   */
  get shape(): readonly number[] {
    return this.lazydata.shape.map(plainSize);
  }
  /**
   * How many dims.
   * @example
   * new Tensor([[1, 2, 3]]).ndim // => 2
   */
  get ndim(): number {
    return this.lazydata.shape.length;
  }
  /**
   * The type of the elements; it prints as its name.
   * @example
   * new Tensor([1, 2]).dtype.name // => "int32"
   */
  get dtype(): DType {
    return this.lazydata.dtype;
  }
  /**
   * Where the values are: `WASM`, or `WASM,WASM:1` for a tensor on both (see `shard`).
   * @example
   * new Tensor([1, 2], { device: "JS" }).device // => "JS"
   */
  get device(): string {
    return this.lazydata.device;
  }
  /**
   * The devices that have the values: one, unless the tensor was sharded.
   * @example
   * new Tensor([1, 2]).devices // => ["WASM"]
   */
  get devices(): readonly string[] {
    return this.lazydata.parts.map((p) => p.device);
  }
  /**
   * The dim along which the elements are spread over several devices; undefined
   * where each device has all of them.
   * @example
   * new Tensor([1, 2]).shard(["WASM:0", "WASM:1"], 0).shardDim // => 0
   */
  get shardDim(): number | undefined {
    return this.lazydata.shardAxis;
  }
  /**
   * How many elements.
   * @example
   * new Tensor([[1, 2, 3]]).size // => 3
   */
  get size(): number {
    return this.shape.reduce((a, b) => a * b, 1);
  }

  /**
   * Shape, type and device; values are not computed.
   * @example
   * String(new Tensor([1, 2])) // => "<Tensor [2] int32 on WASM>"
   */
  toString(): string {
    return `<Tensor ${showShape(this.shape)} ${this.dtype.name} on ${this.device}>`;
  }
  /** What console.log and the REPL show: the values too, where they are known and few. */
  [inspect](): string {
    const shown = showValues(this);
    return shown === undefined ? this.toString() : `${this.toString().slice(0, -1)}: ${shown}>`;
  }
  /**
   * What JSON.stringify writes: shape, type, device, and the values where they are known, as a flat list.
   * @example
   * JSON.stringify(new Tensor([1, 2])) // => '{"shape":[2],"dtype":"int32","device":"WASM","values":[1,2]}'
   */
  toJSON(): object {
    const { shape, dtype, device } = this;
    const values = knownValues(this);
    const list =
      values &&
      Array.from<Value, unknown>(values as ArrayLike<Value>, (x) => (typeof x === "bigint" ? String(x) : x));
    return { shape, dtype: dtype.name, device, ...(list && { values: list }) };
  }
}

/** torch's spelling would be a new property, which nobody reads. */
Object.defineProperty(TensorHandle.prototype, "requires_grad", {
  get(this: TensorHandle) {
    return this.requiresGrad;
  },
  set(this: TensorHandle, on: boolean) {
    this.requiresGrad = on;
  },
});

// ---- results ----

type Maker = new (lazydata: LazyBuffer, options?: { readonly requiresGrad?: boolean }) => Tensor;
let maker: Maker | undefined;

/** Says which class tensors have. */
export function setMaker(type: Maker): void {
  maker = type;
}
/** A tensor for a node; only `requiresGrad` of the options counts here. */
export function make(lazydata: LazyBuffer, options?: { readonly requiresGrad?: boolean }): Tensor {
  if (maker === undefined) throw new Error("internal: the class Tensor has not been loaded");
  return new maker(lazydata, options);
}
/** Whether a gradient may flow to one of these. */
export function isTracked(parents: readonly Tensor[]): boolean {
  for (const p of parents) if (p.requiresGrad) return isRecording();
  return false;
}
/** The result of an op; `backward` says how a gradient flows to the `parents`. */
export function wrap(
  lazydata: LazyBuffer,
  parents: readonly Tensor[] = [],
  backward?: Backward<Tensor>,
): Tensor {
  const made = make(lazydata);
  if (backward !== undefined && made.dtype.isFloat && isTracked(parents)) {
    made.requiresGrad = true;
    made.context = { parents, run: backward };
  }
  return made;
}
/** The size of one dim as a number; the others may stay symbolic. */
export const sizeAt = (self: Tensor, dim: number): number => plainSize(self.lazydata.shape.at(dim) ?? 0);

/** Whether there are no elements; a size that is at least 1 need not be known. */
export const isEmpty = (self: Tensor): boolean =>
  smin(sprod(self.lazydata.shape)) === 0 && self.shape.includes(0);
/** The same for all dims from one on. */
export const sizesFrom = (self: Tensor, first: number): number[] =>
  self.lazydata.shape.slice(first).map(plainSize);

/** 0, 1, … n-1 as int32, on the device of `self`. */
export function counting(self: Tensor, n: Sint): Tensor {
  return wrap(onEach(self.device, (d) => LazyBuffer.arange(d, n)));
}
/** One value in a shape, on the device of `self`. */
export function constant(self: Tensor, shape: Shape, dtype: DType, value: Value): Tensor {
  return wrap(onEach(self.device, (d) => LazyBuffer.constant(d, shape, dtype, value)));
}

/**
 * The result of an op that copies. Where nothing had to be computed it is a view of an operand, or the
 * operand itself; then it becomes a tensor that a later assign to the operand does not change.
 */
export function apart(result: Tensor, ...operands: readonly Tensor[]): Tensor {
  const { lazydata } = result;
  // most results are computed: a node of their own
  const isOf = ({ lazydata: of }: Tensor): boolean => of === lazydata || of._base === lazydata;
  if (lazydata.op !== undefined && !operands.some(isOf)) return result;
  const bases = new Set(operands.flatMap((t) => t.lazydata.parts.map((p) => p.base)));
  if (!lazydata.parts.some((p) => bases.has(p.base))) return result;
  return wrap(asCopy(lazydata), [result], (g) => [g]);
}
export function bothApart([a, b]: readonly [Tensor, Tensor], operand: Tensor): [Tensor, Tensor] {
  return [apart(a, operand), apart(b, operand)];
}

// ---- the same values in another form ----

export function detach(self: Tensor): Tensor {
  return wrap(self.lazydata);
}
export function to(self: Tensor, device: string): Tensor {
  return wrap(copyTo(self.lazydata, device), [self], (g) => [placedLike(g, self)]);
}
export function placedLike(self: Tensor, like: Tensor): Tensor {
  const placed = like.lazydata.copyHere(self.lazydata);
  return placed === self.lazydata ? self : wrap(placed, [self], (g) => [placedLike(g, self)]);
}
export function cast(self: Tensor, dtype: DTypeLike): Tensor {
  return wrap(self.lazydata.cast(toDType(dtype)), [self], (g) => [cast(g, self.dtype)]);
}
/** The same for an operand: the tensor itself if neither its value nor its record would change. */
export function typed(self: Tensor, dtype: DType): Tensor {
  return self.dtype === dtype && !isTracked([self]) ? self : cast(self, dtype);
}
export function bitcast(self: Tensor, dtype: DTypeLike): Tensor {
  return wrap(self.lazydata.bitcast(toDType(dtype)));
}
export function contiguous(self: Tensor): Tensor {
  return wrap(self.lazydata.contiguous(), [self], (g) => [g]);
}
export function clone(self: Tensor): Tensor {
  return wrap(self.lazydata.duplicate(), [self], (g) => [g]);
}
