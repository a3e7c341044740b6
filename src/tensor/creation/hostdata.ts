// Data from outside: arrays of the host, files, and buffers that a function fills.

import { type DType, type DTypeLike, dtypes, promote, toDType, type Value } from "../../dtype.ts";
import { ArgumentError, DeviceError, DTypeError, ShapeError } from "../../errors.ts";
import { dtypeOfTyped, encodeArray } from "../../hostarrays.ts";
import { type CustomFn, LazyBuffer } from "../../lazy/lazybuffer.ts";
import { copyTo, onEach } from "../../lazy/placement.ts";
import { Buffer } from "../../runtime/buffer.ts";
import { Device } from "../../runtime/registry.ts";
import { sprod } from "../../shape/symbolic.ts";
import type { Shape } from "../../shape/view.ts";
import { type Element, make, type NestedArray, TensorHandle } from "../core.ts";
import type { TensorSource } from "../image/pixels.ts";
import { operandValue } from "../math/promotion.ts";
import type { Tensor } from "../tensor.ts";
import { noteWholes } from "../wholes.ts";
import { checkShape, commonType, empty, type TensorOptions } from "./creation.ts";

/**
 * A number, nested arrays of numbers, a typed array, nested arrays of typed arrays, an ArrayBuffer,
 * ImageData.
 */
export type TensorData =
  | Element
  | NestedArray
  | ArrayBufferView
  | readonly TensorRows[]
  | ArrayBufferLike
  | ImagePixels;
/** Rows of pixels of four values: ImageData. */
export interface ImagePixels {
  readonly width: number;
  readonly height: number;
  readonly data: ArrayBufferView;
}
/** Rows that are typed arrays: `[new Float32Array([1, 2]), new Float32Array([3, 4])]`. */
type TensorRows = NestedArray | ArrayBufferView | readonly TensorRows[];

export function fromFile(path: string, shape: Shape, dtype: DTypeLike = dtypes.uint8): Tensor {
  return empty(shape, { dtype, device: `DISK:${path}` });
}
export function customOp(
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
  const srcs = inputs.map((t) => t.lazydata);
  return make(LazyBuffer.loadop("CUSTOM", checkShape("customOp", shape), dtype, device, fn, srcs));
}

/** Host data becomes a buffer on EXT and a COPY of it to the device. */
export function fromData(data: TensorData, options: TensorOptions): LazyBuffer {
  const device = options.device ?? Device.DEFAULT;
  const wanted = options.dtype === undefined ? undefined : toDType(options.dtype);
  if (typeof data === "number" || typeof data === "bigint" || typeof data === "boolean") {
    const dtype = wanted ?? commonType([data]);
    const x = operandValue("Tensor", data, dtype);
    return onEach(device, (d) => LazyBuffer.constant(d, [], dtype, x));
  }
  if (data instanceof TensorHandle) {
    throw new ArgumentError(
      "Tensor: the data is a Tensor already; use t.detach(), t.clone(), t.cast or t.to",
    );
  }
  const { shape, dtype, bytes } = hostData(data, wanted);
  const buffer = new Buffer("EXT", sprod(shape) as number, dtype).allocate(bytes);
  const made = copyTo(LazyBuffer.fromBuffer(buffer, shape), device);
  noteWholes(made, dtype, bytes);
  return made;
}

interface HostData {
  readonly shape: readonly number[];
  readonly dtype: DType;
  readonly bytes: Uint8Array;
}

function hostData(data: Exclude<TensorData, Element>, wanted: DType | undefined): HostData {
  if (ArrayBuffer.isView(data)) return fromTyped(data, wanted);
  if (isImage(data)) return { ...fromTyped(data.data, wanted), shape: [data.height, data.width, 4] };
  return isBytes(data) ? fromBytes(data, wanted ?? dtypes.uint8) : fromNested(data as TensorRows, wanted);
}
const isImage = (x: unknown): x is ImagePixels => ArrayBuffer.isView((x as Partial<ImagePixels>)?.data);
const isBytes = (x: unknown): x is ArrayBufferLike =>
  /ArrayBuffer\]$/.test(Object.prototype.toString.call(x));

/** Bytes are elements of the type already: nothing is converted. */
function fromBytes(buffer: ArrayBufferLike, dtype: DType): HostData {
  const count = Math.floor((buffer.byteLength * 8) / dtype.bits);
  if (dtype.bytesFor(count) === buffer.byteLength) {
    return { shape: [count], dtype, bytes: new Uint8Array(buffer).slice() };
  }
  throw new ShapeError(
    `Tensor: ${buffer.byteLength} bytes are not a whole number of ${dtype.name}; give another dtype, or a part: slice()`,
  );
}

/** Data as it is. Pictures, Blobs and Files are read first, by code that loads with the first of them. */
export async function fromSource(
  source: TensorData | TensorSource,
  options: TensorOptions,
): Promise<LazyBuffer> {
  const isData = typeof source !== "object" || Array.isArray(source) || ArrayBuffer.isView(source);
  if (isData || isImage(source) || isBytes(source)) return fromData(source as TensorData, options);
  const { fromSource: read } = await import("../image/image.ts");
  return read(source as TensorSource, options);
}

/** Copied, because the caller may change the array before the graph runs. */
function fromTyped(data: ArrayBufferView, wanted: DType | undefined): HostData {
  const own = dtypeOfTyped(data);
  if (own === undefined) {
    throw new DTypeError(
      `Tensor: ${data.constructor.name} is not an array of numbers; give a typed array such as Float32Array`,
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

type NestedRow = ArrayLike<TensorRows>;
const rowType = (x: unknown): DType | undefined => (ArrayBuffer.isView(x) ? dtypeOfTyped(x) : undefined);
const isRow = (x: unknown): x is NestedRow => Array.isArray(x) || rowType(x) !== undefined;
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
      const got = isRow(x)
        ? "an array"
        : x instanceof TensorHandle
          ? "a Tensor (see Tensor.stack)"
          : typeof x;
      throw new ArgumentError(
        `Tensor: ${path(depth)} is ${got}, ` +
          "expected a number, bigint or boolean, a nested array of them, or a typed array; " +
          "await Tensor.from(…) takes pictures and Blobs",
      );
    }
  };
  walk(data, 0);
  // typed rows say their type themselves; plain ones between them are read as they would be alone
  const own = () => (plain || typed.size === 0 ? [...typed, commonType(flat)] : [...typed]);
  const dtype = wanted ?? own().reduce(promote);
  // typed rows may wrap as any cast; plain numbers were meant as they are written
  const asMeant = (x: Element): Element =>
    wanted?.isInt === true && plain ? operandValue("Tensor", x, wanted) : x;
  return { shape, dtype, bytes: encodeArray(dtype, flat.map(asMeant)) };
}
