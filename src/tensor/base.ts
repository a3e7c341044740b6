// The core of Tensor: what it is made of, how a value is asked for. The methods come in layers, one file each
// (movement, math, reduce), every one a class on top of the one before; tensor.ts is the last and the public one.

import { type DType, type DTypeLike, decodeArray, type TypedArray, toDType, type Value } from "../dtype.ts";
import { CacheCollector } from "../engine/jit/collector.ts";
import { realize, realizeSync } from "../engine/realize.ts";
import { ArgumentError, DeviceError, DTypeError, ShapeError } from "../errors.ts";
import { inspect, runAsync, runSync } from "../helpers.ts";
import { LazyBuffer } from "../lazy/lazybuffer.ts";
import { copyLike, copyTo, MultiLazyBuffer, onEach } from "../lazy/multi.ts";
import { Device } from "../runtime/registry.ts";
import { boundValue, type Sint } from "../shape/symbolic.ts";
import type { Shape } from "../shape/view.ts";
import { type Backward, type Context, isRecording } from "./autograd.ts";

/** An element as JavaScript has it: bool is boolean, 64-bit integers are bigint. */
export type Element = number | bigint | boolean;
export type NestedArray = Element | readonly NestedArray[];

export const showShape = (shape: readonly Sint[]): string => `[${shape.join(", ")}]`;

export abstract class TensorBase {
  /** The node of the lazy graph that this tensor stands for. */
  lazydata: LazyBuffer;
  /** Whether `backward` should reach this tensor. Set it on leaves; results inherit it. */
  requiresGrad = false;
  /** The gradient that `backward` left here; calls add up until it is set to undefined. */
  grad: this | undefined;
  /** What this tensor was made of, where a gradient may flow. */
  context: Context | undefined;

  /** whether the value came by an assign: it is this tensor's own then, also where it looks like a view of another */
  #assigned = false;

  constructor(lazydata: LazyBuffer) {
    this.lazydata = lazydata;
  }

  /** A tensor like this one for another node; `backward` says how a gradient flows to the `parents`. */
  protected wrap(lazydata: LazyBuffer, parents: readonly this[] = [], backward?: Backward<this>): this {
    const made = new (this.constructor as new (lb: LazyBuffer) => this)(lazydata);
    if (
      backward !== undefined &&
      isRecording() &&
      made.dtype.isFloat &&
      parents.some((p) => p.requiresGrad)
    ) {
      made.requiresGrad = true;
      made.context = { parents, run: backward };
    }
    return made;
  }
  /** 0, 1, … n-1 as int32, on this tensor's device. */
  protected counting(n: Sint): this {
    return this.wrap(onEach(this.device, (d) => LazyBuffer.arange(d, n)));
  }
  /** One value in a shape, on this tensor's device. */
  protected constant(shape: Shape, dtype: DType, value: Value): this {
    return this.wrap(onEach(this.device, (d) => LazyBuffer.constant(d, shape, dtype, value)));
  }
  /**
   * The same values, cut off from what they were made of: no gradient passes.
   * @example
   * new Tensor([1.5], { requiresGrad: true }).detach().requiresGrad // => false
   */
  detach(): this {
    return this.wrap(this.lazydata);
  }

  /**
   * The sizes of the dims; a symbolic size shows the value it is bound to.
   * @example
   * new Tensor([[1, 2, 3]]).shape // => [1, 3]
   */
  get shape(): readonly number[] {
    return this.lazydata.shape.map((s) => (typeof s === "number" ? s : (boundValue(s) ?? NaN)));
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
   * The dim along which the elements are spread over several devices; undefined where each device has all of them.
   * @example
   * new Tensor([1, 2]).shard(["WASM:0", "WASM:1"], 0).shardDim // => 0
   */
  get shardDim(): number | undefined {
    return this.lazydata instanceof MultiLazyBuffer ? this.lazydata.sharding?.axis : undefined;
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
   * The same values on another device: `t.to("JS")`. What is sharded is put together there.
   * @example
   * await new Tensor([1, 2]).to("JS").tolist() // => [1, 2]
   */
  to(device: string): this {
    return this.wrap(copyTo(this.lazydata, device), [this], (g) => [g.placedLike(this)]);
  }
  /**
   * The same values where those of `like` are, cut in the same way.
   * @example
   * new Tensor([1, 2]).placedLike(new Tensor([3, 4], { device: "JS" })).device // => "JS"
   */
  placedLike(like: this): this {
    if (!(like instanceof TensorBase)) {
      throw new ArgumentError(`placedLike: got ${typeof like}, expected a Tensor whose place to take`);
    }
    const placed = copyLike(this.lazydata, like.lazydata);
    return placed === this.lazydata ? this : this.wrap(placed, [this], (g) => [g.placedLike(this)]);
  }
  /**
   * The same values as another type. Float to integer truncates; NaN becomes 0.
   * @example
   * await new Tensor([1.7, -1.7, NaN]).cast("int32").tolist() // => [1, -1, 0]
   */
  cast(dtype: DTypeLike): this {
    return this.wrap(this.lazydata.cast(toDType(dtype)), [this], (g) => [g.cast(this.dtype)]);
  }
  /**
   * The same bits read as another type of the same size.
   * @example
   * await new Tensor([1.5]).bitcast("int32").tolist() // => [1069547520]
   */
  bitcast(dtype: DTypeLike): this {
    return this.wrap(this.lazydata.bitcast(toDType(dtype)));
  }
  /**
   * The same values in memory, in row-major order; a tensor that is so already stays as it is.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).permute(1, 0).contiguous().tolist() // => [[1, 3], [2, 4]]
   */
  contiguous(): this {
    return this.wrap(this.lazydata.contiguous(), [this], (g) => [g]);
  }
  /**
   * A copy in memory of its own: what is written into it does not change this tensor. Gradients flow through.
   * @example
   * await new Tensor([1, 2]).clone().setitem([0], 9).tolist() // => [9, 2]
   */
  clone(): this {
    return this.wrap(this.lazydata.duplicate(), [this], (g) => [g]);
  }

  /**
   * Writes `x` into this tensor's memory once it is realised. What was built on the old value and waits is computed
   * first. Views of the old memory, and steps inside kernels that ran before, are not: reading them is a StaleError.
   * @example
   * await new Tensor([1, 2]).assign(new Tensor([3, 4])).tolist() // => [3, 4]
   */
  assign(x: this): this {
    this.#requireAssignable(x);
    const before = this.lazydata;
    this.lazydata = before.replacedBy(x.lazydata);
    CacheCollector.assign(this, before);
    this.#assigned = true;
    return this;
  }

  #requireAssignable(x: unknown): void {
    if (!(x instanceof TensorBase)) {
      const got = Array.isArray(x) ? "an array" : x === null ? "null" : typeof x;
      throw new ArgumentError(
        `assign: got ${got}, expected a Tensor; use t.assign(t.fullLike(5)) or new Tensor(…)`,
      );
    }
    const show = (t: TensorBase) => `${showShape(t.shape)} ${t.dtype.name} on ${t.device}`;
    const what = `assign: cannot put ${show(x)} into ${show(this)}`;
    if (showShape(x.shape) !== showShape(this.shape))
      throw new ShapeError(`${what}; the shapes must be equal (expand or reshape)`);
    if (x.dtype !== this.dtype)
      throw new DTypeError(`${what}; the dtypes must be equal: x.cast("${this.dtype.name}")`);
    if (x.device !== this.device)
      throw new DeviceError(`${what}; the devices must be equal: x.to("${this.device}")`);
    // the memory is that of the tensor this one was cut from, which would never hear of the new value
    const lb = this.lazydata;
    if (lb.isWhole || lb.isUnrealizedConst || this.#assigned) return;
    throw new ArgumentError(
      `assign: ${show(this)} is a part or another arrangement of a tensor of shape [${lb.parts[0]?.base.shape}], which would not ` +
        "change; assign to the whole tensor, write the part with its setitem, or take contiguous() first for a copy",
    );
  }

  /**
   * Computes the value now, so that later uses read it from memory.
   * @example
   * (await new Tensor([1, 2]).add(1).realize()).shape // => [2]
   */
  async realize(): Promise<this> {
    await realize([this.lazydata]);
    return this;
  }
  /**
   * `realize` at once, on devices that can be waited for; so are the other sync forms.
   * @example
   * new Tensor([1, 2]).add(1).realizeSync().shape // => [2]
   */
  realizeSync(): this {
    realizeSync([this.lazydata]);
    return this;
  }

  /**
   * A copy of the elements, row by row, as a typed array (int64: BigInt64Array; float16: Float32Array).
   * @example
   * await new Tensor([1, 2]).data() // => new Int32Array([1, 2])
   */
  async data(): Promise<TypedArray> {
    const host = this.#onHost();
    await realize([host]);
    return this.#decoded(host, await runAsync(host.buffer.read(true)));
  }
  /**
   * `data` where the device can be waited for.
   * @example
   * new Tensor([1, 2]).dataSync() // => new Int32Array([1, 2])
   */
  dataSync(): TypedArray {
    const host = this.#onHost();
    realizeSync([host]);
    return this.#decoded(host, runSync(host.buffer.read(true), "dataSync"));
  }
  #decoded(host: LazyBuffer, bytes: Uint8Array): TypedArray {
    const { dtype } = this;
    const decode = (b: Uint8Array, n: number): TypedArray => decodeArray(dtype, b, n);
    const { size } = this;
    const length = dtype.bytesFor(size);
    // a copy that was made for this call is nobody else's; what a jit captures, or the tensor's own array, is
    const isOwn = !this.lazydata.gathered.onlyHolds && !CacheCollector.collecting;
    const plain = decode(isOwn ? bytes.subarray(0, length) : bytes.slice(0, length), size);
    return CacheCollector.read("data", host.buffer, this.lazydata.size, decode, plain);
  }
  /**
   * Nested arrays in the shape of the tensor; a 0-d tensor gives one element.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).tolist() // => [[1, 2], [3, 4]]
   */
  async tolist(): Promise<NestedArray> {
    return nest(await this.data(), this.dtype, this.shape);
  }
  /**
   * `tolist` where the device can be waited for.
   * @example
   * new Tensor([[1, 2], [3, 4]]).tolistSync() // => [[1, 2], [3, 4]]
   */
  tolistSync(): NestedArray {
    return nest(this.dataSync(), this.dtype, this.shape);
  }
  /**
   * The one element of a tensor of one element: a number; `item<bigint>()` of int64, `item<boolean>()` of bool.
   * @example
   * await new Tensor([1, 2]).sum().item() // => 3
   */
  async item<T extends Element = number>(): Promise<T> {
    this.#requireOne();
    return element(this.dtype, (await this.data())[0] as Value) as T;
  }
  /**
   * `item` where the device can be waited for.
   * @example
   * new Tensor([1, 2]).sum().itemSync() // => 3
   */
  itemSync<T extends Element = number>(): T {
    this.#requireOne();
    return element(this.dtype, this.dataSync()[0] as Value) as T;
  }

  /**
   * Gives the memory back now instead of when the tensor is collected. Reading the tensor afterwards is an error.
   * @example
   * const t = await new Tensor([1, 2]).realize();
   * t.dispose() // => undefined
   */
  dispose(): void {
    for (const part of this.lazydata.parts) part.base.realized?.dispose();
  }

  #requireOne(): void {
    if (this.size === 1) return;
    throw new ShapeError(
      `item: shape ${showShape(this.shape)} has ${this.size} elements, item() reads exactly one; use data() or tolist()`,
    );
  }

  /** Reading is one COPY to the host. */
  #onHost(): LazyBuffer {
    const lb = this.lazydata.gathered;
    if (!lb.onlyHolds) return lb.contiguous().copyToDevice("EXT");
    const host = lb.copyToDevice("EXT");
    if (host.isWhole) return host.contiguous();
    // nothing can be put in order where nothing computes: that takes a trip to a device that does
    return host.copyToDevice(Device.DEFAULT).contiguous().copyToDevice("EXT");
  }

  /**
   * Shape, type and device; values are not computed.
   * @example
   * String(new Tensor([1, 2])) // => "<Tensor [2] int32 on WASM>"
   */
  toString(): string {
    return `<Tensor ${showShape(this.shape)} ${this.dtype.name} on ${this.device}>`;
  }
  [inspect](): string {
    return this.toString();
  }
}

const element = (dtype: DType, x: Value): Element => (dtype.kind === "bool" ? x !== 0 : x);

function nest(
  data: TypedArray,
  dtype: DType,
  shape: readonly number[],
  at = 0,
  stride = data.length,
): NestedArray {
  const [n, ...rest] = shape;
  if (n === undefined) return element(dtype, data[at] as Value);
  const step = n === 0 ? 0 : stride / n;
  return Array.from({ length: n }, (_, i) => nest(data, dtype, rest, at + i * step, step));
}
