// Where tensors become values and values tensors: realize, reading to the host, assigning, giving memory
// back.

import type { DType, TypedArray, Value } from "../dtype.ts";
import { CacheCollector } from "../engine/jit/collector.ts";
import {
  readStored,
  realize as realizeBuffers,
  realizeSync as realizeBuffersSync,
} from "../engine/realize.ts";
import { ArgumentError, DeviceError, DTypeError, ShapeError } from "../errors.ts";
import { runAsync, runSync } from "../helpers.ts";
import { decodeArray } from "../hostarrays.ts";
import { asked, makeOwn } from "../lazy/copies.ts";
import type { LazyBuffer } from "../lazy/lazybuffer.ts";
import { Device } from "../runtime/registry.ts";
import type { Element, NestedArray } from "./core.ts";
import { showShape } from "./show.ts";
import type { Tensor } from "./tensor.ts";
import { requireOwn } from "./tracing.ts";

// ---- realize ----

export async function realize(self: Tensor): Promise<void> {
  await realizeBuffers([asked(self.lazydata)]);
}
export function realizeSync(self: Tensor): void {
  realizeBuffersSync([asked(self.lazydata)]);
}
export async function realizeAll(tensors: readonly Tensor[]): Promise<void> {
  await realizeBuffers(tensors.map((t) => asked(t.lazydata)));
}
export function realizeAllSync(tensors: readonly Tensor[]): void {
  realizeBuffersSync(tensors.map((t) => asked(t.lazydata)));
}
export function dispose(self: Tensor): void {
  // what a copy sees until it has memory of its own belongs to another tensor
  for (const part of self.lazydata.parts) if (part.copied === undefined) part.base.realized?.dispose();
}

// ---- read ----

/** `method`: what the user called. */
export async function data(self: Tensor, method = "data"): Promise<TypedArray> {
  const reading = readStored(asked(self.lazydata).gathered);
  const stored = reading === undefined ? undefined : await reading;
  if (stored !== undefined) return decodeArray(self.dtype, stored, self.size);
  const host = onHost(self);
  await realizeBuffers([host]);
  return decoded(method, self, host, await runAsync(host.buffer.read(true)));
}
export function dataSync(self: Tensor, method = "dataSync"): TypedArray {
  const host = onHost(self);
  realizeBuffersSync([host]);
  return decoded(method, self, host, runSync(host.buffer.read(true), method));
}
export async function tolist(self: Tensor): Promise<NestedArray> {
  requireNestable(self);
  return nest(await data(self, "tolist"), self.dtype, self.shape);
}
export function tolistSync(self: Tensor): NestedArray {
  requireNestable(self);
  return nest(dataSync(self, "tolistSync"), self.dtype, self.shape);
}
export async function item(self: Tensor): Promise<Element> {
  requireOne(self);
  return element(self.dtype, (await data(self, "item"))[0] as Value);
}
export function itemSync(self: Tensor): Element {
  requireOne(self);
  return element(self.dtype, dataSync(self, "itemSync")[0] as Value);
}
/** Reading is one COPY to the host. */
function onHost(self: Tensor): LazyBuffer {
  const lb = asked(self.lazydata).gathered;
  if (!lb.onlyHolds) return lb.contiguous().copyToDevice("EXT");
  const host = lb.copyToDevice("EXT");
  if (host.isWhole) return host.contiguous();
  // nothing can be put in order where nothing computes: that takes a trip to a device that does
  return host.copyToDevice(Device.DEFAULT).contiguous().copyToDevice("EXT");
}
function decoded(method: string, self: Tensor, host: LazyBuffer, bytes: Uint8Array): TypedArray {
  const { dtype } = self;
  const decode = (b: Uint8Array, n: number): TypedArray => decodeArray(dtype, b, n);
  const { size } = self;
  const length = dtype.bytesFor(size);
  // a copy that was made for this call belongs to the caller; what a jit captures, or
  // the tensor's own array, does not
  const isOwn = !self.lazydata.gathered.onlyHolds && !CacheCollector.collecting;
  const plain = decode(isOwn ? bytes.subarray(0, length) : bytes.slice(0, length), size);
  return CacheCollector.read(method, host.buffer, self.lazydata.size, decode, plain);
}
function requireOne(self: Tensor): void {
  if (self.size === 1) return;
  throw new ShapeError(
    `item: shape ${showShape(self.shape)} has ${self.size} elements, item() reads exactly one; use data() or tolist()`,
  );
}
/** A tensor without elements may still have any number of rows. */
function requireNestable(self: Tensor): void {
  if (self.size > 0) return;
  const rows = self.shape.slice(0, self.shape.indexOf(0)).reduce((n, s) => n * s, 1);
  if (rows <= MAX_EMPTY) return;
  throw new ShapeError(
    `tolist: shape ${showShape(self.shape)} has no elements, but ${rows} empty lists, at most ${MAX_EMPTY} are made; ` +
      "use data(), which is empty",
  );
}
const MAX_EMPTY = 1e6;
const element = (dtype: DType, x: Value): Element => (dtype.kind === "bool" ? x !== 0 : x);

function nest(
  values: TypedArray,
  dtype: DType,
  shape: readonly number[],
  at = 0,
  stride = values.length,
): NestedArray {
  const [n, ...rest] = shape;
  if (n === undefined) return element(dtype, values[at] as Value);
  const step = n === 0 ? 0 : stride / n;
  return Array.from({ length: n }, (_, i) => nest(values, dtype, rest, at + i * step, step));
}

// ---- assign ----

/**
 * Tensors whose value came by an assign: it is their own then, also where it looks like a view of another.
 */
const assigned = new WeakSet<Tensor>();

export function assign(self: Tensor, x: Tensor): void {
  makeOwn(self.lazydata);
  requireAssignable(self, x);
  requireOwn("assign", self);
  const before = self.lazydata;
  self.lazydata = before.replacedBy(x.lazydata);
  CacheCollector.assign(self, before);
  assigned.add(self);
}
function requireAssignable(self: Tensor, x: Tensor): void {
  const show = (t: Tensor) => `${showShape(t.shape)} ${t.dtype.name} on ${t.device}`;
  const what = `assign: cannot put ${show(x)} into ${show(self)}`;
  if (showShape(x.shape) !== showShape(self.shape))
    throw new ShapeError(`${what}; the shapes must be equal (expand or reshape)`);
  if (x.dtype !== self.dtype)
    throw new DTypeError(`${what}; the dtypes must be equal: x.cast("${self.dtype.name}")`);
  if (x.device !== self.device)
    throw new DeviceError(`${what}; the devices must be equal: x.to("${self.device}")`);
  // the memory is that of the tensor this one was cut from, which would never hear of the new value
  const lb = self.lazydata;
  if (lb.isWhole || lb.isUnrealizedConst || assigned.has(self)) return;
  throw new ArgumentError(
    `assign: ${show(self)} is a part or another arrangement of a tensor of shape [${lb.parts[0]?.base.shape}], which would not ` +
      "change; assign to the whole tensor, use its setitem, or take contiguous() first",
  );
}

/** What JavaScript's own operators get of a tensor; those that compute must not get text. */
export function toPrimitive(self: Tensor, hint: string): string | Element {
  if (hint === "string") return self.toString();
  if (self.size === 1 && self.lazydata.base.realized !== undefined) return itemSync(self);
  const [part, ...others] = self.lazydata.parts;
  if (
    self.size === 1 &&
    part?.isUnrealizedConst &&
    others.length === 0 &&
    !part.st.views.some((v) => v.mask)
  ) {
    return self.dtype.kind === "bool" ? part.base.arg !== 0 : (part.base.arg as Element);
  }
  throw new ArgumentError(
    `${self}: JavaScript's operators do not compute with tensors; write x.add(1), x.gt(1) or x.eq(1), ` +
      `await x.item() for the number, String(x) for text`,
  );
}
