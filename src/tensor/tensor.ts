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
  toDType,
  type Value,
} from "../dtype.ts";
import { realize, realizeSync } from "../engine/realize.ts";
import { ArgumentError, DTypeError, ShapeError } from "../errors.ts";
import { type CustomFn, LazyBuffer } from "../lazy/lazybuffer.ts";
import { Buffer } from "../runtime/buffer.ts";
import { Device } from "../runtime/registry.ts";
import { sprod } from "../shape/symbolic.ts";
import type { Shape } from "../shape/view.ts";
import { gradients, withRecording } from "./autograd.ts";
import { type Element, type NestedArray, showShape } from "./base.ts";
import { checkShape, commonType, type TensorOptions } from "./creation.ts";
import { NeuralTensor } from "./neural.ts";

export type { TensorOptions };

/** A number, nested arrays of numbers, or a typed array. */
export type TensorData = Element | NestedArray | ArrayBufferView;

/**
 * An array of numbers with a shape, a type and a place. Methods build a graph; `data()`, `tolist()`, `item()` and
 * `realize()` compute it.
 *
 * @example
 * const c = new Tensor([1, 2]).dot(new Tensor([3, 4]));
 * await c.item(); // 11
 */
export class Tensor extends NeuralTensor {
  constructor(data: TensorData | LazyBuffer, options: TensorOptions = {}) {
    super(data instanceof LazyBuffer ? data : fromData(data, options));
    this.requiresGrad = options.requiresGrad ?? false;
  }

  /** A tensor on a file, read when it is moved to a device: `Tensor.fromFile("x.bin", [2, 3]).to("WASM")`. */
  static fromFile(path: string, shape: Shape, dtype: DTypeLike = dtypes.uint8): Tensor {
    return Tensor.empty(shape, { dtype, device: `DISK:${path}` });
  }
  /** A tensor whose buffer `fn` fills: it gets the output buffer, then those of `inputs`. */
  static custom(fn: CustomFn, shape: Shape, inputs: readonly Tensor[], options: TensorOptions = {}): Tensor {
    const device = options.device ?? inputs[0]?.device ?? Device.DEFAULT;
    const dtype = toDType(options.dtype ?? inputs[0]?.dtype ?? dtypes.float32);
    const srcs = inputs.map((t) => t.contiguous().lazydata);
    return new Tensor(LazyBuffer.loadop("CUSTOM", checkShape("custom", shape), dtype, device, fn, srcs));
  }

  /** Computes several tensors together: what they share is computed once. */
  static async realize(...tensors: readonly Tensor[]): Promise<void> {
    await realize(tensors.map((t) => t.lazydata));
  }
  static realizeSync(...tensors: readonly Tensor[]): void {
    realizeSync(tensors.map((t) => t.lazydata));
  }

  /** Runs `fn` without recording gradients. */
  static noGrad<T>(fn: () => T): T {
    return withRecording(false, fn);
  }

  /**
   * Fills `.grad` of every leaf with `requiresGrad` that this tensor was made of. `gradient` is that of this tensor: 1 for
   * a scalar. With `createGraph` the gradients can be differentiated again.
   */
  backward(gradient?: Tensor, { createGraph = false } = {}): this {
    if (gradient === undefined && this.size !== 1) {
      throw new ShapeError(
        `backward: shape ${showShape(this.shape)} is no scalar; reduce it first (t.sum()), or pass its gradient`,
      );
    }
    if (!this.requiresGrad) {
      throw new ArgumentError(
        "backward: nothing below this tensor has requiresGrad; set it on the leaves before building",
      );
    }
    const seed = gradient ?? new Tensor(this.lazydata.const(1));
    withRecording(createGraph, () => {
      for (const [t, g] of gradients<Tensor>(this, seed, (a, b) => a.add(b))) {
        if (t.context === undefined && t.requiresGrad) t.grad = t.grad === undefined ? g : t.grad.add(g);
      }
    });
    return this;
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}

/** Host data becomes a buffer on EXT and a COPY of it to the device. */
function fromData(data: TensorData, options: TensorOptions): LazyBuffer {
  const device = options.device ?? Device.DEFAULT;
  const wanted = options.dtype === undefined ? undefined : toDType(options.dtype);
  if (typeof data === "number" || typeof data === "bigint" || typeof data === "boolean") {
    const x = typeof data === "boolean" ? Number(data) : data;
    return LazyBuffer.constant(device, [], wanted ?? commonType([data]), x);
  }
  const { shape, dtype, bytes } = ArrayBuffer.isView(data)
    ? fromTyped(data, wanted)
    : fromNested(data, wanted);
  const buffer = new Buffer("EXT", sprod(shape) as number, dtype).allocate(bytes);
  return LazyBuffer.fromBuffer(buffer, shape).copyToDevice(device);
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

function fromNested(data: NestedArray, wanted: DType | undefined): HostData {
  const shape: number[] = [];
  for (let x: NestedArray | undefined = data; Array.isArray(x); x = x[0]) shape.push(x.length);
  const flat: Element[] = [];
  const at: number[] = [];
  const path = (depth: number): string => (depth === 0 ? "the data" : `[${at.slice(0, depth).join("][")}]`);
  const walk = (x: NestedArray, depth: number): void => {
    if (depth < shape.length) {
      if (!Array.isArray(x) || x.length !== shape[depth]) {
        const got = Array.isArray(x) ? `${x.length} elements` : typeof x;
        throw new ShapeError(
          `Tensor: the array is ragged: ${path(depth)} has ${got}, expected ${shape[depth]} as its neighbours have`,
        );
      }
      // not forEach, which would pass over a hole
      for (let i = 0; i < x.length; i++) {
        at[depth] = i;
        walk(x[i] as NestedArray, depth + 1);
      }
    } else if (typeof x === "number" || typeof x === "bigint" || typeof x === "boolean") flat.push(x);
    else {
      throw new ArgumentError(
        `Tensor: ${path(depth)} is ${Array.isArray(x) ? "an array" : typeof x}, ` +
          "expected a number, bigint or boolean, a nested array of them, or a typed array",
      );
    }
  };
  walk(data, 0);
  const dtype = wanted ?? commonType(flat);
  return { shape, dtype, bytes: encodeArray(dtype, flat) };
}
