// Tensor: what the user writes. Here: making tensors out of arrays, constants and files. The methods are in the
// layers below (reduce, math, movement, base); nothing runs until a value is asked for.

// `using` needs Symbol.dispose, which a consumer's own lib setting may not know
/// <reference lib="esnext.disposable" preserve="true" />

import {
  type DType,
  type DTypeLike,
  dtypeOfTyped,
  dtypes,
  encodeArray,
  promote,
  toDType,
  type Value,
} from "../dtype.ts";
import { realize, realizeSync } from "../engine/realize.ts";
import { ArgumentError, DeviceError, DTypeError, ShapeError } from "../errors.ts";
import { type CustomFn, LazyBuffer, nodesMade } from "../lazy/lazybuffer.ts";
import { copyTo, onEach } from "../lazy/multi.ts";
import { Buffer } from "../runtime/buffer.ts";
import { Device } from "../runtime/registry.ts";
import { sprod } from "../shape/symbolic.ts";
import type { Shape } from "../shape/view.ts";
import { abandon, gradients, leavesOf, withRecording } from "./autograd.ts";
import { type Element, type NestedArray, showShape, TensorBase } from "./base.ts";
import { checkShape, commonType, type TensorOptions } from "./creation.ts";
import { NameTensor } from "./names.ts";
import { operandValue } from "./promotion.ts";
import { state as randomState } from "./threefry.ts";

export type { TensorOptions };

/** A number, nested arrays of numbers, a typed array, or nested arrays of typed arrays. */
export type TensorData = Element | NestedArray | ArrayBufferView | readonly TensorRows[];
/** Rows that are typed arrays: `[new Float32Array([1, 2]), new Float32Array([3, 4])]`. */
type TensorRows = NestedArray | ArrayBufferView | readonly TensorRows[];

/** A function of tensors and how a gradient passes it back; see `Tensor.custom`. */
export interface CustomGradient<A extends readonly Tensor[]> {
  /** the value; nothing in it is recorded */
  forward(...inputs: A): Tensor;
  /**
   * The gradient of each input, undefined for none, given that of the output. Where it is to be differentiated again it
   * must be made of `gradient`, `inputs` and `output`.
   */
  backward(gradient: Tensor, inputs: A, output: Tensor): Tensor | readonly (Tensor | undefined)[];
}

/**
 * An array of numbers with a shape, a type and a place. Methods build a graph; `data()`, `tolist()`, `item()` and
 * `realize()` compute it.
 *
 * @example
 * const c = new Tensor([1, 2]).dot(new Tensor([3, 4]));
 * await c.item(); // 11
 */
export class Tensor extends NameTensor {
  constructor(data: TensorData | LazyBuffer, options: TensorOptions = {}) {
    super(data instanceof LazyBuffer ? data : fromData(data, options));
    this.requiresGrad = options.requiresGrad ?? false;
  }

  /**
   * A tensor on a file, read when it is moved to a device: `Tensor.fromFile("x.bin", [2, 3]).to("WASM")`.
   * @example
   * Tensor.fromFile("weights.bin", [2, 3], "float32").device // => "DISK:weights.bin"
   */
  static fromFile(path: string, shape: Shape, dtype: DTypeLike = dtypes.uint8): Tensor {
    return Tensor.empty(shape, { dtype, device: `DISK:${path}` });
  }
  /**
   * A tensor whose buffer `fn` fills: it gets an array of the output's buffer, then those of `inputs`.
   * @example
   * const twos = Tensor.customOp(([out]) => void out.copyin(new Uint8Array([2, 2])), [2], [], { dtype: "uint8" });
   * await twos.tolist() // => [2, 2]
   */
  static customOp(
    fn: CustomFn,
    shape: Shape,
    inputs: readonly Tensor[],
    options: TensorOptions = {},
  ): Tensor {
    const device = options.device ?? inputs[0]?.device ?? Device.DEFAULT;
    const dtype = toDType(options.dtype ?? inputs[0]?.dtype ?? dtypes.float32);
    if (device.includes(",")) {
      throw new DeviceError(
        `customOp: the function fills one buffer, and ${device} are several devices; gather the inputs with t.to(device)`,
      );
    }
    const srcs = inputs.map((t) => t.contiguous().lazydata);
    return new Tensor(LazyBuffer.loadop("CUSTOM", checkShape("customOp", shape), dtype, device, fn, srcs));
  }

  /**
   * Computes several tensors together, in one schedule: what is stored on the way serves all of them.
   * @example
   * const [a, b] = [new Tensor([1, 2]).add(1), new Tensor([3]).mul(2)];
   * await Tensor.realize(a, b) // => undefined
   */
  static async realize(...tensors: readonly Tensor[]): Promise<void> {
    await realize(tensors.map((t) => t.lazydata));
  }
  /**
   * `Tensor.realize` where the devices can be waited for.
   * @example
   * Tensor.realizeSync(new Tensor([1, 2]).add(1)) // => undefined
   */
  static realizeSync(...tensors: readonly Tensor[]): void {
    realizeSync(tensors.map((t) => t.lazydata));
  }

  /**
   * Runs `fn` without recording gradients.
   * @example
   * const w = new Tensor([1.5], { requiresGrad: true });
   * Tensor.noGrad(() => w.mul(2)).requiresGrad // => false
   */
  static noGrad<T>(fn: () => T): T {
    return withRecording(false, fn);
  }

  /**
   * A function of tensors whose gradient you write. `backward` gets the gradient of the result, the inputs and the
   * result, and returns a gradient for each input. Only inputs have gradients, not what `forward` reads besides.
   * @example
   * const [x, round] = [new Tensor([1.7, 2.2], { requiresGrad: true }), { forward: (x) => x.round(), backward: (g) => g }];
   * await (Tensor.custom(round)(x).sum().backward(), x.grad).tolist() // => [1, 1]
   */
  static custom<A extends readonly Tensor[]>(op: CustomGradient<A>): (...inputs: A) => Tensor {
    return (...inputs) => {
      requireInputs("custom", inputs);
      const made = Tensor.noGrad(() => op.forward(...inputs));
      requireResult("custom: forward", made);
      return made.wrap(made.lazydata, inputs, (g, out) => {
        const result = op.backward(g, inputs, out);
        const flows = result instanceof Tensor ? [result] : result;
        if (!Array.isArray(flows) || flows.length !== inputs.length) {
          const got = Array.isArray(flows) ? `${flows.length} gradients` : kindOf(flows);
          throw new ArgumentError(
            `custom: backward returned ${got} for ${inputs.length} inputs; return an array with a tensor or undefined for each`,
          );
        }
        return inputs.map((x, i) => (flows[i] as Tensor | undefined)?.cast(x.dtype));
      });
    };
  }

  /**
   * `fn(...inputs)`, whose steps are not kept for the gradient: `backward` computes them again. Saves memory for time.
   * `fn` may use other tensors too (parameters), and runs twice: random numbers and `Tensor.training` are then what they
   * were, other effects (the running statistics of a batch norm) happen twice.
   * @example
   * const x = new Tensor([1.5, 2], { requiresGrad: true });
   * await (Tensor.checkpoint((x) => x.square().sum(), x).backward(), x.grad).tolist() // => [3, 4]
   */
  static checkpoint<A extends readonly Tensor[]>(
    fn: (...inputs: NoInfer<A>) => Tensor,
    ...inputs: A
  ): Tensor {
    requireInputs("checkpoint", inputs);
    const { training } = Tensor;
    const random = { ...randomState };
    const made = fn(...inputs);
    requireResult("checkpoint: the function", made);
    if (made.context === undefined) return made;
    // the record of the steps served to find what they read; it goes, and with it what the steps store
    const stops = new Set<Tensor>(inputs);
    const parents = [...stops, ...leavesOf<Tensor>(made, stops)];
    return made.wrap(made.lazydata, parents, (g) => {
      const before = nodesMade();
      const again = withRandom(random, () =>
        withRecording(true, () => Tensor.train(() => fn(...inputs), training)),
      );
      const found = gradients<Tensor>(again, g, (a, b) => a.add(b), stops);
      const flows = parents.map((p) => found.get(p));
      abandon(again, flows, before); // its value is known already
      return flows;
    });
  }

  /**
   * Fills `.grad` of every leaf with `requiresGrad` that this tensor was made of. `gradient` is that of this tensor: 1 for
   * a scalar. With `createGraph` the gradients can be differentiated again.
   * @example
   * const x = new Tensor([1.5, 2.5], { requiresGrad: true });
   * x.square().sum().backward();
   * await x.grad.tolist() // => [3, 5]
   */
  backward(gradient?: Tensor, { createGraph = false } = {}): this {
    if (gradient === undefined && this.size !== 1) {
      throw new ShapeError(
        `backward: shape ${showShape(this.shape)} is no scalar; reduce it first (t.sum()), or pass its gradient`,
      );
    }
    if (!this.requiresGrad) {
      throw new ArgumentError(
        "backward: nothing below this tensor has requiresGrad; set it on the leaves, which must be floats, before building",
      );
    }
    if (gradient !== undefined && showShape(gradient.shape) !== showShape(this.shape)) {
      throw new ShapeError(
        `backward: the gradient has shape ${showShape(gradient.shape)}, the tensor ${showShape(this.shape)}; ` +
          "the shapes must be equal (expand or reshape it)",
      );
    }
    const seed = gradient?.cast(this.dtype) ?? new Tensor(this.lazydata.const(1));
    withRecording(createGraph, () => {
      for (const [t, g] of gradients<Tensor>(this, seed, (a, b) => a.add(b))) {
        if (t.context !== undefined || !t.requiresGrad) continue;
        const own = g.placedLike(t);
        t.grad = t.grad === undefined ? own : t.grad.add(own);
      }
    });
    return this;
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}

const kindOf = (x: unknown): string =>
  x instanceof Promise ? "a Promise" : Array.isArray(x) ? "an array" : x === null ? "null" : typeof x;
function requireInputs(method: string, inputs: readonly unknown[]): void {
  const bad = inputs.findIndex((x) => !(x instanceof Tensor));
  if (bad < 0) return;
  throw new ArgumentError(
    `${method}: input ${bad} is ${kindOf(inputs[bad])}, expected a Tensor; other values go in by the closure`,
  );
}
function requireResult(what: string, result: unknown): void {
  if (result instanceof Tensor) return;
  throw new ArgumentError(`${what} returned ${kindOf(result)}, expected one Tensor, not async`);
}

/** Runs `fn` with the stream of random numbers as it once was. */
function withRandom<R>(then: typeof randomState, fn: () => R): R {
  const now = { ...randomState };
  Object.assign(randomState, then);
  try {
    return fn();
  } finally {
    Object.assign(randomState, now);
  }
}

/** Host data becomes a buffer on EXT and a COPY of it to the device. */
function fromData(data: TensorData, options: TensorOptions): LazyBuffer {
  const device = options.device ?? Device.DEFAULT;
  const wanted = options.dtype === undefined ? undefined : toDType(options.dtype);
  if (typeof data === "number" || typeof data === "bigint" || typeof data === "boolean") {
    const dtype = wanted ?? commonType([data]);
    const x = operandValue("Tensor", data, dtype);
    return onEach(device, (d) => LazyBuffer.constant(d, [], dtype, x));
  }
  if (data instanceof TensorBase) {
    throw new ArgumentError(
      "Tensor: the data is a Tensor already; use t.detach() for another name of it, t.clone() for a copy, t.cast or t.to",
    );
  }
  const { shape, dtype, bytes } = ArrayBuffer.isView(data)
    ? fromTyped(data, wanted)
    : fromNested(data, wanted);
  const buffer = new Buffer("EXT", sprod(shape) as number, dtype).allocate(bytes);
  return copyTo(LazyBuffer.fromBuffer(buffer, shape), device);
}

interface HostData {
  readonly shape: readonly number[];
  readonly dtype: DType;
  readonly bytes: Uint8Array;
}

/** Copied, because the caller may change the array before the graph runs. */
function fromTyped(data: ArrayBufferView, wanted: DType | undefined): HostData {
  const own = dtypeOfTyped(data);
  if (own === undefined) {
    throw new DTypeError(
      `Tensor: ${data.constructor.name} is no array of numbers; give a typed array such as Float32Array`,
    );
  }
  const shape = [data.byteLength / own.itemsize];
  if (wanted === undefined || wanted === own) {
    return {
      shape,
      dtype: own,
      bytes: new Uint8Array(data.buffer, data.byteOffset, data.byteLength).slice(),
    };
  }
  return { shape, dtype: wanted, bytes: encodeArray(wanted, data as unknown as ArrayLike<Value>) };
}

type Row = ArrayLike<TensorRows>;
const rowType = (x: unknown): DType | undefined => (ArrayBuffer.isView(x) ? dtypeOfTyped(x) : undefined);
const isRow = (x: unknown): x is Row => Array.isArray(x) || rowType(x) !== undefined;
const isElement = (x: unknown): x is Element =>
  typeof x === "number" || typeof x === "bigint" || typeof x === "boolean";

function fromNested(data: TensorRows, wanted: DType | undefined): HostData {
  const shape: number[] = [];
  for (let x: TensorRows | undefined = data; isRow(x); x = x[0]) shape.push(x.length);
  const flat: Element[] = [];
  const typed = new Set<DType>();
  let plain = false;
  const at: number[] = [];
  const path = (depth: number): string => (depth === 0 ? "the data" : `[${at.slice(0, depth).join("][")}]`);
  const walk = (x: TensorRows, depth: number): void => {
    if (depth < shape.length) {
      if (!isRow(x) || x.length !== shape[depth]) {
        const got = isRow(x) ? `${x.length} elements` : typeof x;
        throw new ShapeError(
          `Tensor: the array is ragged: ${path(depth)} has ${got}, expected ${shape[depth]} as its neighbours have`,
        );
      }
      const type = rowType(x);
      if (type !== undefined) typed.add(type);
      else if (depth === shape.length - 1) plain = true;
      // not forEach, which would pass over a hole
      for (let i = 0; i < x.length; i++) {
        at[depth] = i;
        const next = x[i] as TensorRows;
        if (depth === shape.length - 1 && isElement(next)) flat.push(next);
        else walk(next, depth + 1);
      }
    } else if (isElement(x)) flat.push(x);
    else {
      const got = isRow(x) ? "an array" : x instanceof TensorBase ? "a Tensor (see Tensor.stack)" : typeof x;
      throw new ArgumentError(
        `Tensor: ${path(depth)} is ${got}, ` +
          "expected a number, bigint or boolean, a nested array of them, or a typed array",
      );
    }
  };
  walk(data, 0);
  // typed rows say their type themselves; plain ones between them are read as they would be alone
  const own = plain || typed.size === 0 ? [...typed, commonType(flat)] : [...typed];
  const dtype = wanted ?? own.reduce(promote);
  // typed rows may wrap as any cast; plain numbers were meant as they are written
  if (wanted?.isInt === true && plain) for (const x of flat) operandValue("Tensor", x, wanted);
  return { shape, dtype, bytes: encodeArray(dtype, flat) };
}
