// The class Tensor: every method with its signature and its documentation, and a body of one line that calls
// the function of its area. To add a method: the function in its area, the method here, `npm run reference`.
// Nothing runs until a value is asked for.

// `using` needs Symbol.dispose, which a consumer's own lib setting may not know
/// <reference lib="esnext.disposable" preserve="true" />

import { prepareAreas } from "#tensor/ondemand";
import { checker, setTensorType } from "../arguments.ts";
import { type DTypeLike, dtypes, type NumberArray, type TypedArray } from "../dtype.ts";
import { scopes, type Within } from "../engine/scope.ts";
import { ArgumentError, InternalError } from "../errors.ts";
import { type CustomFn, LazyBuffer } from "../lazy/lazybuffer.ts";
import type { Sint } from "../shape/symbolic.ts";
import type { Interval, Shape } from "../shape/view.ts";
import { area, guardTensor } from "./areas.ts";
import type { ConvOptions, ConvTransposeOptions, PerDim } from "./conv/conv.ts";
import type { LpPoolOptions, UnpoolOptions, WindowOptions } from "./conv/image.ts";
import type { AvgPoolOptions, MaxPoolOptions, OutputSize } from "./conv/pool.ts";
import type { InterpolateOptions } from "./conv/resample.ts";
import * as core from "./core.ts";
import { apart, bothApart, type Element, type NestedArray, setMaker, TensorHandle } from "./core.ts";
import type { SizeArgs, TensorOptions } from "./creation/creation.ts";
import { fromData, type TensorData } from "./creation/hostdata.ts";
import * as creation from "./creation/index.ts";
import type { BackwardOptions, CustomGradient } from "./gradients.ts";
import * as gradients from "./gradients.ts";
import type { CanvasLike, CanvasOptions } from "./image/canvas.ts";
import type { ImageFile, ImageFileOptions, ImageOptions, ImageSource } from "./image/image.ts";
import type { TensorSource } from "./image/pixels.ts";
import type { EmbeddingOptions, Index, SearchOptions } from "./indexing/getitem.ts";
import * as indexing from "./indexing/index.ts";
import type { ScatterReduce, ScatterReduceOptions } from "./indexing/scatter.ts";
import type { PutOptions } from "./indexing/select.ts";
import * as linalg from "./linalg/index.ts";
import type { Cutoff, LeastSquares, MatrixOrd } from "./linalg/linalg.ts";
import type { Scales } from "./linalg/products.ts";
import type { CholeskyOptions, SolveOptions, TriangularOptions } from "./linalg/solve.ts";
import type { NormalizeOptions, PairwiseOptions } from "./losses/distance.ts";
import type { GaussianOptions, KlDivOptions, PoissonOptions } from "./losses/likelihood.ts";
import type {
  BceOptions,
  ClassLossOptions,
  CrossEntropyOptions,
  LossOptions,
  MarginOptions,
  TripletOptions,
  WeightedLossOptions,
} from "./losses/loss.ts";
import type { MultiMarginOptions } from "./losses/margin.ts";
import type { Rounded, Scaled } from "./math/arithmetic.ts";
import * as math from "./math/index.ts";
import type { Closeness } from "./math/rounding.ts";
import type { PadAmounts, PadMode } from "./movement/arrange.ts";
import * as movement from "./movement/index.ts";
import type { ShapeArgs } from "./movement/views.ts";
import * as neural from "./neural/index.ts";
import type {
  AffineOptions,
  AttentionOptions,
  BatchNormOptions,
  InstanceNormOptions,
  RmsNormOptions,
} from "./neural/layers.ts";
import * as random from "./random/index.ts";
import type { InitOptions } from "./random/random.ts";
import * as reduce from "./reduce/index.ts";
import type { QuantileOptions } from "./reduce/order.ts";
import type { Axes, Typed } from "./reduce/reduce.ts";
import type { DiffOptions } from "./reduce/totals.ts";
import * as values from "./values.ts";

export type { CustomGradient, TensorData, TensorOptions };

const checkNew = checker<[TensorData, TensorOptions?]>("Tensor", "data:z {requiresGrad:b,dtype:d,device:s}?");

/**
 * An array of numbers with a shape, a type and a device. Methods build a graph; `data()`, `tolist()`,
 * `item()` and `realize()` compute it.
 *
 * @example
 * const c = new Tensor([1, 2]).dot(new Tensor([3, 4]));
 * await c.item(); // 11
 */
export class Tensor extends TensorHandle {
  static override readonly name: string = "Tensor";
  constructor(data: TensorData | LazyBuffer, options?: TensorOptions);
  constructor(...args: [TensorData | LazyBuffer, TensorOptions?]) {
    const [data, options = {}] = args[0] instanceof LazyBuffer ? args : checkNew(args);
    super(data instanceof LazyBuffer ? data : fromData(data, options));
    this.requiresGrad = options.requiresGrad ?? false;
  }

  // ==== tensor: values, devices and gradients ====

  /** Text is `toString()`; `x + 1` and `x > 1` need a number: that of one element that is computed. */
  [Symbol.toPrimitive](hint: string): string | Element {
    return values.toPrimitive(this, hint);
  }

  /**
   * The same values, cut off from what they were made of: no gradient passes.
   * @example
   * new Tensor([1.5], { requiresGrad: true }).detach().requiresGrad // => false
   */
  detach(): Tensor {
    return core.detach(this);
  }
  /**
   * The same values on another device: `t.to("JS")`. What is sharded is put together there.
   * @example
   * await new Tensor([1, 2]).to("JS").tolist() // => [1, 2]
   */
  to(device: string): Tensor {
    return core.to(this, device);
  }
  /**
   * The same values where those of `like` are, cut in the same way.
   * @example
   * new Tensor([1, 2]).placedLike(new Tensor([3, 4], { device: "JS" })).device // => "JS"
   */
  placedLike(like: Tensor): Tensor {
    return core.placedLike(this, like);
  }
  /**
   * The same values as another type. Float to integer truncates; NaN becomes 0.
   * @example
   * await new Tensor([1.7, -1.7, NaN]).cast("int32").tolist() // => [1, -1, 0]
   */
  cast(dtype: DTypeLike): Tensor {
    return core.cast(this, dtype);
  }
  /**
   * The same bits read as another type of the same size. In a file or a host array it may be of any size:
   * the last dim grows or shrinks.
   * @example
   * await new Tensor([1.5]).bitcast("int32").tolist() // => [1069547520]
   */
  bitcast(dtype: DTypeLike): Tensor {
    return core.bitcast(this, dtype);
  }
  /**
   * The same values in memory, in row-major order; a tensor that is so already stays as it is.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).permute(1, 0).contiguous().tolist() // => [[1, 3], [2, 4]]
   */
  contiguous(): Tensor {
    return core.contiguous(this);
  }
  /**
   * A copy in memory of its own: what is written into it does not change this tensor. Gradients flow through.
   * @example
   * await new Tensor([1, 2]).clone().setitem([0], 9).tolist() // => [9, 2]
   */
  clone(): Tensor {
    return core.clone(this);
  }
  /**
   * Writes `x` into this tensor's memory once it is realised. What was built on the old value and waits is
   * computed first. Views of the old memory, and steps inside kernels that ran before, are not: reading them
   * is a StaleError.
   * @example
   * await new Tensor([1, 2]).assign(new Tensor([3, 4])).tolist() // => [3, 4]
   */
  assign(x: Tensor): this {
    values.assign(this, x);
    return this;
  }
  /**
   * Computes the value now, so that later uses read it from memory.
   * @example
   * (await new Tensor([1, 2]).add(1).realize()).shape // => [2]
   */
  async realize(): Promise<this> {
    await values.realize(this);
    return this;
  }
  /**
   * `realize` at once, on devices that can be waited for; so are the other sync forms. They hold this thread
   * until all is computed: no timer or request is served meanwhile.
   * @example
   * new Tensor([1, 2]).add(1).realizeSync().shape // => [2]
   */
  realizeSync(): this {
    values.realizeSync(this);
    return this;
  }
  /**
   * A copy of the elements, row by row, as a typed array of numbers; `data<BigInt64Array>()` for int64,
   * `data<Float32Array>()` where that is known (float16 comes as Float32Array, too).
   * @example
   * await new Tensor([1, 2]).data() // => new Int32Array([1, 2])
   */
  data<T extends TypedArray = NumberArray>(): Promise<T> {
    return values.data(this) as Promise<T>;
  }
  /**
   * `data` where the device can be waited for; it holds this thread until all is computed.
   * @example
   * new Tensor([1, 2]).dataSync() // => new Int32Array([1, 2])
   */
  dataSync<T extends TypedArray = NumberArray>(): T {
    return values.dataSync(this) as T;
  }
  /**
   * Nested arrays in the shape of the tensor; a 0-d tensor gives one element.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).tolist() // => [[1, 2], [3, 4]]
   */
  async tolist<T extends NestedArray = NestedArray>(): Promise<T> {
    return (await values.tolist(this)) as T;
  }
  /**
   * `tolist` where the device can be waited for; it holds this thread until all is computed.
   * @example
   * new Tensor([[1, 2], [3, 4]]).tolistSync() // => [[1, 2], [3, 4]]
   */
  tolistSync<T extends NestedArray = NestedArray>(): T {
    return values.tolistSync(this) as T;
  }
  /**
   * The one element of a tensor of one element: a number; `item<bigint>()` of int64, `item<boolean>()` of
   * bool.
   * @example
   * await new Tensor([1, 2]).sum().item() // => 3
   */
  async item<T extends Element = number>(): Promise<T> {
    return (await values.item(this)) as T;
  }
  /**
   * `item` where the device can be waited for; it holds this thread until all is computed.
   * @example
   * new Tensor([1, 2]).sum().itemSync() // => 3
   */
  itemSync<T extends Element = number>(): T {
    return values.itemSync(this) as T;
  }
  /**
   * Gives the memory back now instead of when the tensor is collected. Reading the tensor afterwards is an
   * error.
   * @example
   * const t = await new Tensor([1, 2]).realize();
   * t.dispose() // => undefined
   */
  dispose(): void {
    values.dispose(this);
  }
  [Symbol.dispose](): void {
    values.dispose(this);
  }
  /**
   * A tensor on a file, read when it is moved to a device: `Tensor.fromFile("x.bin", [2, 3]).to("WASM")`.
   * @example
   * Tensor.fromFile("weights.bin", [2, 3], "float32").device // => "DISK:weights.bin"
   */
  static fromFile(path: string, shape: Shape, dtype: DTypeLike = dtypes.uint8): Tensor {
    return creation.fromFile(path, shape, dtype);
  }
  /**
   * A tensor of anything that holds values, also what has to be read or decoded first. A canvas, an
   * ImageBitmap, an element with an image or a video, a VideoFrame and a Blob or File of a picture
   * (`image/png` or the like) give their pixels: uint8 of shape [height, width, 4]. Any other Blob, File or
   * Response is bytes: elements of `dtype`, uint8 by default.
   * @example
   * const blob = new Blob([new Float32Array([1.5, 2])]);
   * await (await Tensor.from(blob, { dtype: "float32" })).tolist() // => [1.5, 2]
   */
  static async from(source: TensorData | TensorSource, options: TensorOptions = {}): Promise<Tensor> {
    return new Tensor(await creation.fromSource(source, options), options);
  }
  /**
   * A tensor whose buffer `fn` fills: it gets an array of the output's buffer, then those of `inputs`.
   * @example
   * const fill = ([out]) => void out.copyin(new Uint8Array([2, 2]));
   * const twos = Tensor.customOp(fill, [2], [], { dtype: "uint8" });
   * await twos.tolist() // => [2, 2]
   */
  static customOp(
    fn: CustomFn,
    shape: Shape,
    inputs: readonly Tensor[],
    options: TensorOptions = {},
  ): Tensor {
    return creation.customOp(fn, shape, inputs, options);
  }
  /**
   * Computes several tensors together, in one schedule: what is stored on the way serves all of them.
   * @example
   * const [a, b] = [new Tensor([1, 2]).add(1), new Tensor([3]).mul(2)];
   * await Tensor.realize(a, b) // => undefined
   */
  static realize(...tensors: readonly Tensor[]): Promise<void> {
    return values.realizeAll(tensors);
  }
  /**
   * `Tensor.realize` where the devices can be waited for; it holds this thread until all is computed.
   * @example
   * Tensor.realizeSync(new Tensor([1, 2]).add(1)) // => undefined
   */
  static realizeSync(...tensors: readonly Tensor[]): void {
    values.realizeAllSync(tensors);
  }
  /**
   * Runs `fn` without recording gradients; layers evaluate inside of it (see `training`). It holds for what
   * `fn` does and for nothing that runs meanwhile. An async `fn` keeps it until its promise settles; in a
   * page, which cannot tell tasks apart, run what follows an await by the function that `fn` is given:
   * `noGrad(async (within) => { …; await …; within(() => …); })`.
   * @example
   * const w = new Tensor([1.5], { requiresGrad: true });
   * Tensor.noGrad(() => w.mul(2)).requiresGrad // => false
   */
  static noGrad<T>(fn: (within: Within) => T): T {
    return scopes.run({ recording: false }, fn);
  }
  /**
   * Runs `fn` with gradients recorded, also inside of `noGrad`; it holds as long as `noGrad` does.
   * @example
   * const w = new Tensor([1.5], { requiresGrad: true });
   * Tensor.noGrad(() => Tensor.enableGrad(() => w.mul(2))).requiresGrad // => true
   */
  static enableGrad<T>(fn: (within: Within) => T): T {
    return scopes.run({ recording: true }, fn);
  }
  /**
   * Runs `fn` in mixed precision. Products (`matmul`, `linear`, convolutions, attention …) take float32 as
   * `dtype`, "bfloat16" or "float16", and sum in float32; what is delicate (`exp`, `softmax`, sums, losses,
   * norms …) takes these types as float32; all else computes as outside. A weight is cast once as long as it
   * does not change, and its gradient is float32. `false` switches it off inside. It holds as long as
   * `noGrad` does.
   * @example
   * const w = Tensor.ones(2, 2);
   * const made = Tensor.autocast("bfloat16", () => [w.matmul(w), w.matmul(w).sum()]);
   * made.map((t) => t.dtype.name) // => ["bfloat16", "float32"]
   */
  static autocast<T>(dtype: DTypeLike | false, fn: (within: Within) => T): T {
    return area("autocast").autocast(dtype, fn);
  }
  /**
   * A function of tensors whose gradient you write. `backward` gets the gradient of the result, the inputs
   * and the result, and returns a gradient for each input. Only inputs have gradients, not what `forward`
   * reads besides.
   * @example
   * const x = new Tensor([1.7, 2.2], { requiresGrad: true });
   * const round = { forward: (x) => x.round(), backward: (g) => g };
   * await (Tensor.custom(round)(x).sum().backward(), x.grad).tolist() // => [1, 1]
   */
  static custom<A extends readonly Tensor[]>(op: CustomGradient<A>): (...inputs: A) => Tensor {
    return gradients.custom(op);
  }
  /**
   * `fn(...inputs)`, whose steps are not kept for the gradient: `backward` computes them again. Saves memory
   * for time. `fn` may use other tensors too (parameters), and runs twice: random numbers and
   * `Tensor.training` are then what they were, other effects (the running statistics of a batch norm) happen
   * twice.
   * @example
   * const x = new Tensor([1.5, 2], { requiresGrad: true });
   * await (Tensor.checkpoint((x) => x.square().sum(), x).backward(), x.grad).tolist() // => [3, 4]
   */
  static checkpoint<A extends readonly Tensor[]>(
    fn: (...inputs: NoInfer<A>) => Tensor,
    ...inputs: A
  ): Tensor {
    return gradients.checkpoint(fn, inputs);
  }
  /**
   * Fills `.grad` of every leaf with `requiresGrad` that this tensor was made of. `gradient` is that of this
   * tensor: 1 for a scalar. With `createGraph` the gradients can be differentiated again.
   * @example
   * const x = new Tensor([1.5, 2.5], { requiresGrad: true });
   * x.square().sum().backward();
   * await x.grad.tolist() // => [3, 5]
   */
  backward(gradient?: Tensor, options: BackwardOptions = {}): this {
    gradients.backward(this, gradient, options);
    return this;
  }

  // ==== creation: tensors out of nothing, and like another one ====

  /**
   * One value everywhere.
   * @example
   * await Tensor.full([2, 2], 7).tolist() // => [[7, 7], [7, 7]]
   */
  static full(shape: Shape | number, value: Element, options: TensorOptions = {}): Tensor {
    return creation.full(shape, value, options);
  }
  /**
   * Zeros of float32, or of the dtype in the options: `Tensor.zeros(2, 3)`,
   * `Tensor.zeros([2, 3], { dtype: "int32" })`.
   * @example
   * await Tensor.zeros(2, 3).tolist() // => [[0, 0, 0], [0, 0, 0]]
   */
  static zeros(...args: SizeArgs): Tensor {
    return creation.zeros(...args);
  }
  /**
   * Ones of float32, or of the dtype in the options.
   * @example
   * await Tensor.ones([2], { dtype: "bool" }).tolist() // => [true, true]
   */
  static ones(...args: SizeArgs): Tensor {
    return creation.ones(...args);
  }
  /**
   * Memory with whatever is in it. On DISK:path it is the file.
   * @example
   * Tensor.empty(2, 3).shape // => [2, 3]
   */
  static empty(...args: SizeArgs): Tensor {
    return creation.empty(...args);
  }
  /**
   * `start`, `start + step`, … as long as it is before `end`: int32 when all are integers, float32 otherwise.
   * @example
   * await Tensor.arange(1, 10, 3).tolist() // => [1, 4, 7]
   */
  static arange(end: number, options?: TensorOptions): Tensor;
  static arange(start: number, end: number, options?: TensorOptions): Tensor;
  static arange(start: number, end: number, step: number, options?: TensorOptions): Tensor;
  static arange(...args: (number | TensorOptions | undefined)[]): Tensor {
    return creation.arange(args);
  }
  /**
   * `steps` values from `start` to `end`, both included, evenly apart; the ends may be 0-d tensors.
   * @example
   * await Tensor.linspace(0, 1, 5).tolist() // => [0, 0.25, 0.5, 0.75, 1]
   */
  static linspace(
    start: number | Tensor,
    end: number | Tensor,
    steps: number,
    options: TensorOptions = {},
  ): Tensor {
    return creation.linspace(start, end, steps, options);
  }
  /**
   * `base` to the power of `linspace(start, end, steps)`.
   * @example
   * await Tensor.logspace(0, 4, 3, 2).tolist() // => [1, 4, 16]
   */
  static logspace(
    start: number | Tensor,
    end: number | Tensor,
    steps: number,
    base = 10,
    options: TensorOptions = {},
  ): Tensor {
    return creation.logspace(start, end, steps, base, options);
  }
  /**
   * The identity matrix, `n` by `n` or `n` by `m`.
   * @example
   * await Tensor.eye(2, 3).tolist() // => [[1, 0, 0], [0, 1, 0]]
   */
  static eye(n: number, m: number | TensorOptions = n, options?: TensorOptions): Tensor {
    return creation.eye(n, m, options);
  }
  /**
   * Ones on and below a diagonal, zeros above.
   * @example
   * await Tensor.tri(2, 3, 1).tolist() // => [[1, 1, 0], [1, 1, 1]]
   */
  static tri(n: number, m: number = n, diagonal = 0, options: TensorOptions = {}): Tensor {
    return creation.tri(n, m, diagonal, options);
  }
  /**
   * One value in the shape, type and device of this tensor.
   * @example
   * await new Tensor([1, 2]).fullLike(7).tolist() // => [7, 7]
   */
  fullLike(value: Element, options: TensorOptions = {}): Tensor {
    return creation.fullLike(this, value, options);
  }
  /**
   * Zeros in the shape, type and device of this tensor.
   * @example
   * await new Tensor([1, 2]).zerosLike().tolist() // => [0, 0]
   */
  zerosLike(options: TensorOptions = {}): Tensor {
    return creation.zerosLike(this, options);
  }
  /**
   * Ones in the shape, type and device of this tensor.
   * @example
   * await new Tensor([3, 4]).onesLike().tolist() // => [1, 1]
   */
  onesLike(options: TensorOptions = {}): Tensor {
    return creation.onesLike(this, options);
  }
  /**
   * Memory with whatever is in it, in the shape, type and device of this tensor.
   * @example
   * new Tensor([3, 4]).emptyLike().shape // => [2]
   */
  emptyLike(options: TensorOptions = {}): Tensor {
    return creation.emptyLike(this, options);
  }
  /**
   * torch's form of `t.fullLike(value)`.
   * @example
   * await Tensor.fullLike(new Tensor([1, 2]), 7).tolist() // => [7, 7]
   */
  static fullLike(t: Tensor, value: Element, options?: TensorOptions): Tensor {
    return creation.fullLike(t, value, options);
  }
  /**
   * torch's form of `t.zerosLike()`.
   * @example
   * await Tensor.zerosLike(new Tensor([1, 2])).tolist() // => [0, 0]
   */
  static zerosLike(t: Tensor, options?: TensorOptions): Tensor {
    return creation.zerosLike(t, options);
  }
  /**
   * torch's form of `t.onesLike()`.
   * @example
   * await Tensor.onesLike(new Tensor([3, 4])).tolist() // => [1, 1]
   */
  static onesLike(t: Tensor, options?: TensorOptions): Tensor {
    return creation.onesLike(t, options);
  }
  /**
   * torch's form of `t.emptyLike()`.
   * @example
   * Tensor.emptyLike(new Tensor([3, 4])).shape // => [2]
   */
  static emptyLike(t: Tensor, options?: TensorOptions): Tensor {
    return creation.emptyLike(t, options);
  }

  // ==== random: random numbers ====

  /**
   * Starts the stream of random numbers anew; the same seed gives the same numbers, on every device. Without
   * a call the seed is 0.
   * @example
   * await (Tensor.manualSeed(1), Tensor.randint(0, 10, [4])).tolist() // => [0, 0, 4, 1]
   */
  static manualSeed(seed: number | bigint): void {
    random.manualSeed(seed);
  }
  /**
   * Whether dropout drops and batch norm learns here: as `train` around it says, otherwise wherever gradients
   * are recorded, so not inside of `noGrad`. Layers of a model that `nn.train` or `nn.evaluate` has set do as
   * these say. Setting it sets what holds outside of `train`; it starts as undefined.
   * @example
   * Tensor.noGrad(() => Tensor.training) // => false
   */
  static get training(): boolean {
    return random.isTraining();
  }
  static set training(on: boolean | undefined) {
    if (on !== undefined && typeof on !== "boolean")
      throw new ArgumentError("training: expected true or false; Tensor.train(fn) sets it for a function");
    scopes.initial = { ...scopes.initial, training: on };
  }
  /**
   * Runs `fn` with `Tensor.training` on (or off), also inside of `noGrad`; it holds as long as `noGrad` does.
   * @example
   * Tensor.noGrad(() => Tensor.train(() => Tensor.training)) // => true
   */
  static train<R>(fn: (within: Within) => R, on = true): R {
    return scopes.run({ training: on }, fn);
  }
  /**
   * Evenly distributed in [0, 1).
   * @example
   * Tensor.rand(2, 3).shape // => [2, 3]
   */
  static rand(...args: SizeArgs): Tensor {
    return random.rand(...args);
  }
  /**
   * Normally distributed with mean 0 and variance 1.
   * @example
   * Tensor.randn([2, 3], { dtype: "float64" }).shape // => [2, 3]
   */
  static randn(...args: SizeArgs): Tensor {
    return random.randn(...args);
  }
  /**
   * Integers from `low` (0 when left out) up to below `high`.
   * @example
   * await Tensor.randint(3, 4, [2]).tolist() // => [3, 3]
   */
  static randint(high: number, shape: Shape, options?: TensorOptions): Tensor;
  static randint(low: number, high: number, shape: Shape, options?: TensorOptions): Tensor;
  static randint(...args: readonly (number | Shape | TensorOptions | undefined)[]): Tensor {
    return random.randint(args);
  }
  /**
   * Evenly distributed in [low, high).
   * @example
   * await Tensor.uniform([2], 3, 3).tolist() // => [3, 3]
   */
  static uniform(shape: Shape, low = 0, high = 1, options: TensorOptions = {}): Tensor {
    return random.uniform(shape, low, high, options);
  }
  /**
   * Normally distributed; mean and standard deviation are numbers, then `shape` says how many, or tensors.
   * @example
   * await Tensor.normal(5, 0, [2]).tolist() // => [5, 5]
   */
  static normal(
    mean: number | Tensor = 0,
    std: number | Tensor = 1,
    shape?: Shape,
    options: TensorOptions = {},
  ): Tensor {
    return random.normal(mean, std, shape, options);
  }
  /**
   * The numbers from 0 to n - 1 in random order.
   * @example
   * await Tensor.randperm(5).sum().item() // => 10
   */
  static randperm(n: number, options: TensorOptions = {}): Tensor {
    return area("random").randperm(n, options);
  }
  /**
   * Evenly distributed in [0, 1), in the shape, type and device of this tensor.
   * @example
   * Tensor.zeros(2, 3).randLike().shape // => [2, 3]
   */
  randLike(options: TensorOptions = {}): Tensor {
    return random.randLike(this, options);
  }
  /**
   * Normally distributed, in the shape, type and device of this tensor.
   * @example
   * Tensor.zeros(2, 3).randnLike().shape // => [2, 3]
   */
  randnLike(options: TensorOptions = {}): Tensor {
    return random.randnLike(this, options);
  }
  /**
   * Integers from `low` up to below `high`, in the shape, type and device of this tensor.
   * @example
   * await new Tensor([1, 2]).randintLike(3, 4).tolist() // => [3, 3]
   */
  randintLike(low: number, high: number, options: TensorOptions = {}): Tensor {
    return area("random").randintLike(this, low, high, options);
  }
  /**
   * torch's form of `t.randLike()`.
   * @example
   * Tensor.randLike(Tensor.zeros(2, 3)).shape // => [2, 3]
   */
  static randLike(t: Tensor, options?: TensorOptions): Tensor {
    return random.randLike(t, options);
  }
  /**
   * torch's form of `t.randnLike()`.
   * @example
   * Tensor.randnLike(Tensor.zeros(2, 3)).shape // => [2, 3]
   */
  static randnLike(t: Tensor, options?: TensorOptions): Tensor {
    return random.randnLike(t, options);
  }
  /**
   * He's bounds: even in ±sqrt(6 / (1 + a²) / fan), so that a relu network keeps its variance.
   * @example
   * Tensor.kaimingUniform([8, 4]).shape // => [8, 4]
   */
  static kaimingUniform(shape: Shape, options: InitOptions = {}): Tensor {
    return random.kaimingUniform(shape, options);
  }
  /**
   * He's deviation: normal with std sqrt(2 / (1 + a²) / fan).
   * @example
   * Tensor.kaimingNormal([8, 4]).shape // => [8, 4]
   */
  static kaimingNormal(shape: Shape, options: InitOptions = {}): Tensor {
    return area("random").kaimingNormal(shape, options);
  }
  /**
   * Glorot's (Xavier's) bounds: even in ±sqrt(6 / (inputs + outputs)).
   * @example
   * Tensor.glorotUniform([8, 4]).shape // => [8, 4]
   */
  static glorotUniform(shape: Shape, options: TensorOptions = {}): Tensor {
    return area("random").glorotUniform(shape, options);
  }
  /**
   * Even in ±1 / sqrt(number of elements).
   * @example
   * Tensor.scaledUniform([8, 4]).shape // => [8, 4]
   */
  static scaledUniform(shape: Shape, options: TensorOptions = {}): Tensor {
    return random.scaledUniform(shape, options);
  }
  /**
   * 1 with the probability that the element says, 0 otherwise; or with probability `p` everywhere.
   * @example
   * await new Tensor([0, 1, 0]).bernoulli().tolist() // => [0, 1, 0]
   */
  bernoulli(p?: number): Tensor {
    return area("random").bernoulli(this, p);
  }
  /**
   * Indices drawn with the probabilities in this vector, or in each row of this matrix; they need not sum to
   * 1. Without `replacement` no index comes twice, as long as enough are above 0.
   * @example
   * await new Tensor([0, 3, 0]).multinomial(2, true).tolist() // => [1, 1]
   */
  multinomial(numSamples = 1, replacement = false): Tensor {
    return area("random").multinomial(this, numSamples, replacement);
  }
  /**
   * In training (see `Tensor.training`) sets elements to zero with probability `p` and scales the others by 1
   * / (1 - p), so that the mean stays; otherwise changes nothing.
   * @example
   * await Tensor.noGrad(() => new Tensor([1, 2]).dropout(0.5)).tolist() // => [1, 2]
   */
  dropout(p = 0.5, training?: boolean): Tensor {
    return random.dropout(this, p, training);
  }

  // ==== movement: shapes, joins and parts; views cost no kernel ====

  /**
   * The same values spread over devices: each gets a share along `dim`, or, without one, a copy of
   * everything. Ops then run on every device with what it has. A sum along `dim` is added up between the
   * devices, operands that are spread differently are copied as needed, and what is replicated meets what is
   * sharded for free. `t.to("WASM")` and reading put the shares together again. Shares differ by at most one
   * where the size does not come out even.
   * @example
   * const x = new Tensor([1, 2, 3, 4]).shard(["WASM:0", "WASM:1"], 0);
   * await x.mul(10).tolist() // => [10, 20, 30, 40]
   * @example
   * new Tensor([[1, 2], [3, 4]]).shard(["WASM:0", "WASM:1"], 1).sum(0).shardDim // => 0
   */
  shard(devices: readonly string[], dim?: number | null): Tensor {
    return area("shard").shard(this, devices, dim);
  }
  /**
   * `shard` in place, for the weights of a model:
   * `for (const p of nn.getParameters(model)) p.shard_(devices)`. Make the optimizer afterwards: its state
   * lies where the parameters lie.
   * @example
   * new Tensor([1, 2]).shard_(["WASM:0", "WASM:1"]).device // => "WASM,WASM:1"
   */
  shard_(devices: readonly string[], dim?: number | null): Tensor {
    return area("shard").shard_(this, devices, dim);
  }
  /**
   * The same elements in another shape; one size may be -1.
   * @example
   * await new Tensor([1, 2, 3, 4]).reshape(2, -1).tolist() // => [[1, 2], [3, 4]]
   */
  reshape(...args: ShapeArgs): Tensor {
    return movement.reshape(this, ...args);
  }
  /**
   * torch's name for reshape.
   * @example
   * await new Tensor([1, 2, 3, 4]).view(2, 2).tolist() // => [[1, 2], [3, 4]]
   */
  view(...args: ShapeArgs): Tensor {
    return movement.view(this, ...args);
  }
  /**
   * Joins the dims from `start` to `end` into one.
   * @example
   * new Tensor([[[1, 2]], [[3, 4]]]).flatten(1).shape // => [2, 2]
   */
  flatten(start = 0, end = -1): Tensor {
    return movement.flatten(this, start, end);
  }
  /**
   * Adds a dim of size 1 at `dim`.
   * @example
   * new Tensor([1, 2]).unsqueeze(-1).shape // => [2, 1]
   */
  unsqueeze(dim: number): Tensor {
    return movement.unsqueeze(this, dim);
  }
  /**
   * Dims in another order: `permute(1, 0)` transposes.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).permute(1, 0).tolist() // => [[1, 3], [2, 4]]
   */
  permute(...order: readonly number[] | readonly [readonly number[]]): Tensor {
    return movement.permute(this, ...order);
  }
  /**
   * Exchanges two dims.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).transpose(0, 1).tolist() // => [[1, 3], [2, 4]]
   */
  transpose(a = -2, b = -1): Tensor {
    return movement.transpose(this, a, b);
  }
  /**
   * The transpose of a matrix.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).T.tolist() // => [[1, 3], [2, 4]]
   */
  get T(): Tensor {
    return movement.matrixTransposed(this);
  }
  /**
   * Repeats dims of size 1 without copying; -1 keeps a size; new dims come in front.
   * @example
   * await new Tensor([[1], [2]]).expand(-1, 2).tolist() // => [[1, 1], [2, 2]]
   */
  expand(...args: ShapeArgs): Tensor {
    return movement.expand(this, ...args);
  }
  /**
   * Keeps `[start, end)` of each dim; null keeps it whole.
   * @example
   * await new Tensor([[1, 2, 3], [4, 5, 6]]).shrink([null, [1, 3]]).tolist() // => [[2, 3], [5, 6]]
   */
  shrink(cuts: readonly (Interval | null)[]): Tensor {
    return movement.shrink(this, cuts);
  }
  /**
   * Turns dims around.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).flip(1).tolist() // => [[2, 1], [4, 3]]
   */
  flip(dims: number | readonly number[]): Tensor {
    return apart(movement.flip(this, dims), this);
  }
  /**
   * Every n-th element of each dim; a negative step counts from the end.
   * @example
   * await new Tensor([1, 2, 3, 4, 5]).stride([2]).tolist() // => [1, 3, 5]
   */
  stride(...steps: readonly number[] | readonly [readonly number[]]): Tensor {
    return movement.stride(this, ...steps);
  }
  /**
   * Without the dims of size 1: all of them, or those among the ones named.
   * @example
   * new Tensor([[[1], [2]]]).squeeze([0, 1]).shape // => [2, 1]
   */
  squeeze(dim?: number | readonly number[]): Tensor {
    return movement.squeeze(this, dim);
  }
  /**
   * Dims moved from the positions `source` to the positions `destination`; the others keep their order.
   * @example
   * new Tensor([[[1, 2]]]).movedim(2, 0).shape // => [2, 1, 1]
   */
  movedim(source: number | readonly number[], destination: number | readonly number[]): Tensor {
    return movement.movedim(this, source, destination);
  }
  /**
   * Another name for `movedim`.
   * @example
   * new Tensor([[[1, 2]]]).moveaxis(2, 0).shape // => [2, 1, 1]
   */
  moveaxis(source: number | readonly number[], destination: number | readonly number[]): Tensor {
    return movement.moveaxis(this, source, destination);
  }
  /**
   * Two dims change places.
   * @example
   * await new Tensor([[1, 2]]).swapaxes(0, 1).tolist() // => [[1], [2]]
   */
  swapaxes(a: number, b: number): Tensor {
    return movement.swapaxes(this, a, b);
  }
  /**
   * Another name for `swapaxes`.
   * @example
   * await new Tensor([[1, 2]]).swapdims(0, 1).tolist() // => [[1], [2]]
   */
  swapdims(a: number, b: number): Tensor {
    return movement.swapdims(this, a, b);
  }
  /**
   * The transpose of a matrix; vectors and scalars stay.
   * @example
   * await new Tensor([[1, 2]]).t().tolist() // => [[1], [2]]
   */
  t(): Tensor {
    return movement.t(this);
  }
  /**
   * With at least one dim: a 0-d tensor becomes a vector of one.
   * @example
   * new Tensor(5).atleast1d().shape // => [1]
   */
  atleast1d(): Tensor {
    return area("movement").atleast1d(this);
  }
  /**
   * With at least two dims: a vector becomes a row.
   * @example
   * new Tensor([1, 2]).atleast2d().shape // => [1, 2]
   */
  atleast2d(): Tensor {
    return area("movement").atleast2d(this);
  }
  /**
   * With at least three dims: a vector lies along the middle one, a matrix gets a last one of size 1.
   * @example
   * new Tensor([1, 2]).atleast3d().shape // => [1, 2, 1]
   */
  atleast3d(): Tensor {
    return area("movement").atleast3d(this);
  }
  /**
   * One dim split into several; one size may be -1.
   * @example
   * new Tensor([1, 2, 3, 4]).unflatten(0, [2, -1]).shape // => [2, 2]
   */
  unflatten(dim: number, sizes: readonly number[]): Tensor {
    return movement.unflatten(this, dim, sizes);
  }
  /**
   * Expanded to the shape of another tensor.
   * @example
   * await new Tensor([1]).expandAs(new Tensor([3, 4])).tolist() // => [1, 1]
   */
  expandAs(other: Tensor): Tensor {
    return movement.expandAs(this, other);
  }
  /**
   * The same elements in the shape of another tensor.
   * @example
   * await new Tensor([1, 2]).reshapeAs(new Tensor([[3], [4]])).tolist() // => [[1], [2]]
   */
  reshapeAs(other: Tensor): Tensor {
    return movement.reshapeAs(this, other);
  }
  /**
   * Another name for `reshapeAs`.
   * @example
   * await new Tensor([1, 2]).viewAs(new Tensor([[3], [4]])).tolist() // => [[1], [2]]
   */
  viewAs(other: Tensor): Tensor {
    return movement.viewAs(this, other);
  }
  /**
   * All elements in one dim.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).ravel().tolist() // => [1, 2, 3, 4]
   */
  ravel(): Tensor {
    return movement.ravel(this);
  }
  /**
   * The tensor side by side with itself, so many times along each dim; more counts than dims add dims in
   * front.
   * @example
   * await new Tensor([1, 2]).repeat(2, 2).tolist() // => [[1, 2, 1, 2], [1, 2, 1, 2]]
   */
  repeat(...repeats: ShapeArgs): Tensor {
    return apart(movement.repeat(this, ...repeats), this);
  }
  /**
   * `repeat` where missing counts are 1.
   * @example
   * await new Tensor([[1], [2]]).tile(2).tolist() // => [[1, 1], [2, 2]]
   */
  tile(...dims: ShapeArgs): Tensor {
    return apart(movement.tile(this, ...dims), this);
  }
  /**
   * Shifts elements along dims; what leaves one end enters at the other. Without dims it shifts the flat
   * tensor.
   * @example
   * await new Tensor([1, 2, 3]).roll(1).tolist() // => [3, 1, 2]
   */
  roll(shifts: number | readonly number[], dims?: number | readonly number[]): Tensor {
    return apart(area("movement").roll(this, shifts, dims), this);
  }
  /**
   * Columns in reverse order.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).fliplr().tolist() // => [[2, 1], [4, 3]]
   */
  fliplr(): Tensor {
    return apart(area("movement").fliplr(this), this);
  }
  /**
   * Rows in reverse order.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).flipud().tolist() // => [[3, 4], [1, 2]]
   */
  flipud(): Tensor {
    return apart(area("movement").flipud(this), this);
  }
  /**
   * Turned by 90 degrees `k` times, in the plane of two dims, from the first towards the second.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).rot90().tolist() // => [[2, 4], [1, 3]]
   */
  rot90(k = 1, dims: readonly [number, number] = [0, 1]): Tensor {
    return apart(area("movement").rot90(this, k, dims), this);
  }
  /**
   * All windows of `size` elements along `dim`, `step` apart; the elements of a window are in a new last dim.
   * @example
   * await new Tensor([1, 2, 3, 4]).unfold(0, 2, 1).tolist() // => [[1, 2], [2, 3], [3, 4]]
   */
  unfold(dim: number, size: number, step: number): Tensor {
    return area("movement").unfold(this, dim, size, step);
  }
  /**
   * The elements with equal indices in two dims, as the last dim; `offset` picks a diagonal above (or below:
   * negative).
   * @example
   * await new Tensor([[1, 2], [3, 4]]).diagonal().tolist() // => [1, 4]
   */
  diagonal(offset = 0, dim1 = 0, dim2 = 1): Tensor {
    return area("movement").diagonal(this, offset, dim1, dim2);
  }
  /**
   * The last dim as a diagonal of zero matrices, which lie in the dims `dim1` and `dim2` of the result.
   * @example
   * await new Tensor([1, 2]).diagEmbed().tolist() // => [[1, 0], [0, 2]]
   */
  diagEmbed(offset = 0, dim1 = -2, dim2 = -1): Tensor {
    return apart(area("movement").diagEmbed(this, offset, dim1, dim2), this);
  }
  /**
   * A matrix with this vector on its diagonal, or the diagonal of this matrix.
   * @example
   * await new Tensor([1, 2]).diag().tolist() // => [[1, 0], [0, 2]]
   */
  diag(diagonal = 0): Tensor {
    return apart(area("movement").diag(this, diagonal), this);
  }
  /**
   * The lower triangle of each matrix, zeros above; `diagonal` moves the border up.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).tril().tolist() // => [[1, 0], [3, 4]]
   */
  tril(diagonal = 0): Tensor {
    return movement.tril(this, diagonal);
  }
  /**
   * The upper triangle of each matrix, zeros below; `diagonal` moves the border up.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).triu().tolist() // => [[1, 2], [0, 4]]
   */
  triu(diagonal = 0): Tensor {
    return movement.triu(this, diagonal);
  }
  /**
   * Elements before and after each dim: `value`, or by `mode` the mirror image, the edge, or the other end.
   * Amounts are a pair (or null) for each dim, or flat as in torch, last dim first; negative ones cut off.
   * @example
   * await new Tensor([1, 2, 3]).pad([1, 1], "reflect").tolist() // => [2, 1, 2, 3, 2]
   */
  pad(amounts: PadAmounts, mode: PadMode | number = "constant", value = 0): Tensor {
    return apart(movement.pad(this, amounts, mode, value), this);
  }
  /**
   * This tensor and others, one after the other along `dim`; the other dims must agree.
   * @example
   * await new Tensor([1, 2]).cat(new Tensor([3])).tolist() // => [1, 2, 3]
   */
  cat(others: Tensor | readonly Tensor[], dim = 0): Tensor {
    return apart(movement.cat(this, others, dim), this, ...[others].flat());
  }
  /**
   * Tensors one after the other along `dim`.
   * @example
   * await Tensor.cat([new Tensor([[1], [2]]), new Tensor([[3], [4]])], 1).tolist() // => [[1, 3], [2, 4]]
   */
  static cat(tensors: readonly Tensor[], dim = 0): Tensor {
    return apart(movement.catAll(tensors, dim), ...tensors);
  }
  /**
   * This tensor and others of its shape along a new dim.
   * @example
   * await new Tensor([1, 2]).stack(new Tensor([3, 4])).tolist() // => [[1, 2], [3, 4]]
   */
  stack(others: Tensor | readonly Tensor[], dim = 0): Tensor {
    return apart(movement.stack(this, others, dim), this, ...[others].flat());
  }
  /**
   * Tensors of one shape along a new dim.
   * @example
   * await Tensor.stack([new Tensor([1, 2]), new Tensor([3, 4])], 1).tolist() // => [[1, 3], [2, 4]]
   */
  static stack(tensors: readonly Tensor[], dim = 0): Tensor {
    return apart(movement.stackAll(tensors, dim), ...tensors);
  }
  /**
   * Side by side: vectors end to end, anything else along dim 1.
   * @example
   * await Tensor.hstack([new Tensor([1, 2]), new Tensor([3])]).tolist() // => [1, 2, 3]
   */
  static hstack(tensors: readonly Tensor[]): Tensor {
    return apart(area("movement").hstack(tensors), ...tensors);
  }
  /**
   * On top of each other: vectors become rows.
   * @example
   * await Tensor.vstack([new Tensor([1, 2]), new Tensor([3, 4])]).tolist() // => [[1, 2], [3, 4]]
   */
  static vstack(tensors: readonly Tensor[]): Tensor {
    return apart(area("movement").vstack(tensors), ...tensors);
  }
  /**
   * Behind each other, along dim 2.
   * @example
   * await Tensor.dstack([new Tensor([1, 2]), new Tensor([3, 4])]).tolist() // => [[[1, 3], [2, 4]]]
   */
  static dstack(tensors: readonly Tensor[]): Tensor {
    return apart(area("movement").dstack(tensors), ...tensors);
  }
  /**
   * Vectors as the columns of a matrix; matrices side by side.
   * @example
   * await Tensor.columnStack([new Tensor([1, 2]), new Tensor([3, 4])]).tolist() // => [[1, 3], [2, 4]]
   */
  static columnStack(tensors: readonly Tensor[]): Tensor {
    return apart(area("movement").columnStack(tensors), ...tensors);
  }
  /**
   * The tensors as blocks along the diagonal of a matrix of zeros; vectors are rows.
   * @example
   * await Tensor.blockDiag([new Tensor([[1, 2]]), new Tensor([[3]])]).tolist() // => [[1, 2, 0], [0, 0, 3]]
   */
  static blockDiag(tensors: readonly Tensor[]): Tensor {
    return apart(area("movement").blockDiag(tensors), ...tensors);
  }
  /**
   * A matrix of tensors as one: rows of `blocks` are joined along the last dim, then on top of each other.
   * @example
   * await Tensor.block([[Tensor.ones(1, 1), Tensor.zeros(1, 2)]]).tolist() // => [[1, 0, 0]]
   */
  static block(blocks: readonly (readonly Tensor[])[]): Tensor {
    return area("movement").block(blocks);
  }
  /**
   * One tensor a vector, spread over the grid that they span; `indexing` "xy" swaps the first two dims.
   * @example
   * await Tensor.meshgrid([new Tensor([1, 2]), new Tensor([3, 4])])[0].tolist() // => [[1, 1], [2, 2]]
   */
  static meshgrid(tensors: readonly Tensor[], indexing: "ij" | "xy" = "ij"): Tensor[] {
    return area("movement").meshgrid(tensors, indexing);
  }
  /**
   * All combinations of one element of each vector, one a row.
   * @example
   * await Tensor.cartesianProd([new Tensor([1, 2]), new Tensor([3, 4])]).tolist() // => [[1, 3], [1, 4], [2, 3], [2, 4]]
   */
  static cartesianProd(tensors: readonly Tensor[]): Tensor {
    return apart(area("movement").cartesianProd(tensors), ...tensors);
  }
  /**
   * Parts of `size` elements along `dim` (the last may be smaller), or of the sizes in a list.
   * @example
   * (await Promise.all(new Tensor([1, 2, 3]).split(2).map((t) => t.tolist()))) // => [[1, 2], [3]]
   */
  split(size: number | readonly number[], dim = 0): Tensor[] {
    return movement.split(this, size, dim);
  }
  /**
   * Parts of the given sizes along `dim`; they add up to its size.
   * @example
   * (await Promise.all(new Tensor([1, 2, 3]).splitWithSizes([1, 2]).map((t) => t.tolist()))) // => [[1], [2, 3]]
   */
  splitWithSizes(sizes: readonly number[], dim = 0): Tensor[] {
    return movement.splitWithSizes(this, sizes, dim);
  }
  /**
   * At most `chunks` parts of equal size along `dim`; the last may be smaller.
   * @example
   * (await Promise.all(new Tensor([1, 2, 3]).chunk(2).map((t) => t.tolist()))) // => [[1, 2], [3]]
   */
  chunk(chunks: number, dim = 0): Tensor[] {
    return movement.chunk(this, chunks, dim);
  }
  /**
   * Exactly so many parts along `dim`, sizes differing by at most one; or cuts before the given indices.
   * @example
   * (await Promise.all(new Tensor([1, 2, 3]).tensorSplit([1]).map((t) => t.tolist()))) // => [[1], [2, 3]]
   */
  tensorSplit(indicesOrSections: number | readonly number[], dim = 0): Tensor[] {
    return area("movement").tensorSplit(this, indicesOrSections, dim);
  }
  /**
   * The slices along `dim`, without it.
   * @example
   * (await Promise.all(new Tensor([[1, 2], [3, 4]]).unbind(1).map((t) => t.tolist()))) // => [[1, 3], [2, 4]]
   */
  unbind(dim = 0): Tensor[] {
    return movement.unbind(this, dim);
  }
  /**
   * `length` elements from `start` along `dim`.
   * @example
   * await new Tensor([1, 2, 3, 4]).narrow(0, 1, 2).tolist() // => [2, 3]
   */
  narrow(dim: number, start: Sint, length: Sint): Tensor {
    return movement.narrow(this, dim, start, length);
  }
  /**
   * The slice number `index` along `dim`, without it; a negative one counts from the end.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).select(1, -1).tolist() // => [2, 4]
   */
  select(dim: number, index: Sint): Tensor {
    return movement.select(this, dim, index);
  }

  // ==== indexing: reading and writing by index ====

  /**
   * `out[i][j] = this[index[i][j]][j]` for dim 0, and so on: one element for each of the index.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).gather(1, new Tensor([[1], [0]])).tolist() // => [[2], [3]]
   */
  gather(dim: number, index: Tensor): Tensor {
    return indexing.gather(this, dim, index);
  }
  /**
   * `gather` where the index and this tensor broadcast and negative indices count from the end; without a dim
   * both are flat.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).takeAlongDim(new Tensor([[1]]), 1).tolist() // => [[2], [4]]
   */
  takeAlongDim(index: Tensor, dim?: number): Tensor {
    return area("scatter").takeAlongDim(this, index, dim);
  }
  /**
   * The slices along `dim` that a vector of indices names.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).indexSelect(0, new Tensor([1, 1])).tolist() // => [[3, 4], [3, 4]]
   */
  indexSelect(dim: number, index: Tensor): Tensor {
    return indexing.indexSelect(this, dim, index);
  }
  /**
   * The elements that an index names in the flat tensor, in the shape of the index; negative ones count from
   * the end.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).take(new Tensor([0, -1])).tolist() // => [1, 4]
   */
  take(index: Tensor): Tensor {
    return area("scatter").take(this, index);
  }
  /**
   * The rows of `weight` that these integers name.
   * @example
   * await new Tensor([1, 0]).embedding(new Tensor([[1, 2], [3, 4]])).tolist() // => [[3, 4], [1, 2]]
   */
  embedding(weight: Tensor, options: EmbeddingOptions = {}): Tensor {
    return indexing.embedding(this, weight, options);
  }
  /**
   * `value` where the mask is true, this tensor elsewhere.
   * @example
   * await new Tensor([1, 2]).maskedFill(new Tensor([true, false]), 9).tolist() // => [9, 2]
   */
  maskedFill(mask: Tensor, value: Tensor | number | bigint | boolean): Tensor {
    return indexing.maskedFill(this, mask, value);
  }
  /**
   * The elements where the mask is true, in a row. How many there are is known only when the mask has been
   * computed, so this one is async.
   * @example
   * await (await new Tensor([1, 2, 3]).maskedSelect(new Tensor([true, false, true]))).tolist() // => [1, 3]
   */
  maskedSelect(mask: Tensor): Promise<Tensor> {
    return indexing.maskedSelect(this, mask);
  }
  /**
   * The indices of the elements that are not zero, one a row. Async, because the shape depends on the values.
   * @example
   * await (await new Tensor([[0, 1], [2, 0]]).nonzero()).tolist() // => [[0, 1], [1, 0]]
   */
  nonzero(): Promise<Tensor> {
    return indexing.nonzero(this);
  }
  /**
   * `x[...]` of Python: numbers, `[start, end, step]`, null for a new dim, "..." for the dims in between, and
   * integer tensors, which broadcast. Without tensors it is a view and costs nothing. Masks have to be
   * counted: `getAsync`.
   * @example
   * await new Tensor([[1, 2, 3], [4, 5, 6]]).get("...", [null, null, -2]).tolist() // => [[3, 1], [6, 4]]
   */
  get(...index: readonly Index<Tensor>[]): Tensor {
    return indexing.get(this, ...index);
  }
  /**
   * `get` that takes bool tensors too: they pick the elements where they are true.
   * @example
   * await (await new Tensor([1, 2, 3]).getAsync(new Tensor([true, false, true]))).tolist() // => [1, 3]
   */
  getAsync(...index: readonly Index<Tensor>[]): Promise<Tensor> {
    return indexing.getAsync(this, ...index);
  }
  /**
   * A new last dim with 1 at the index that each integer names and 0 elsewhere.
   * @example
   * await new Tensor([1, 0]).oneHot(3).tolist() // => [[0, 1, 0], [1, 0, 0]]
   */
  oneHot(numClasses: number): Tensor {
    return indexing.oneHot(this, numClasses);
  }
  /**
   * Where each value would be inserted to keep this sorted tensor (along its last dim) sorted: before equal
   * elements, or after them with `right`.
   * @example
   * await new Tensor([1, 3, 5]).searchsorted(new Tensor([3, 4])).tolist() // => [1, 2]
   */
  searchsorted(values: Tensor | number, options: SearchOptions<Tensor> = {}): Tensor {
    return area("scatter").searchsorted(this, values, options);
  }
  /**
   * The number of the bucket that each element falls into, given their sorted borders.
   * @example
   * await new Tensor([1, 4]).bucketize(new Tensor([1, 3, 5])).tolist() // => [0, 2]
   */
  bucketize(boundaries: Tensor, options: { readonly right?: boolean } = {}): Tensor {
    return area("scatter").bucketize(this, boundaries, options);
  }
  /**
   * A copy in which `src[i][j]` (or one value) stands at `[index[i][j]][j]` for dim 0, and so on; where
   * several go to one element the last one stays. `reduce` "add" or "multiply" combines them with what is
   * there.
   * @example
   * await new Tensor([0, 0, 0]).scatter(0, new Tensor([2, 0]), new Tensor([5, 6])).tolist() // => [6, 0, 5]
   */
  scatter(
    dim: number,
    index: Tensor,
    src: Tensor | Element,
    options: { reduce?: "add" | "multiply" } = {},
  ): Tensor {
    return apart(area("scatter").scatter(this, dim, index, src, options), this);
  }
  /**
   * A copy with `src[i][j]` added at `[index[i][j]][j]` for dim 0, and so on.
   * @example
   * await new Tensor([1, 1]).scatterAdd(0, new Tensor([0, 0]), new Tensor([2, 3])).tolist() // => [6, 1]
   */
  scatterAdd(dim: number, index: Tensor, src: Tensor): Tensor {
    return apart(area("scatter").scatterAdd(this, dim, index, src), this);
  }
  /**
   * A copy in which each element holds the sum, prod, mean, amax or amin of the sources that go there, and of
   * what was there before unless `includeSelf` is false.
   * @example
   * await new Tensor([1, 1]).scatterReduce(0, new Tensor([0, 0]), new Tensor([2, 3]), "prod").tolist() // => [6, 1]
   */
  scatterReduce(
    dim: number,
    index: Tensor,
    src: Tensor,
    reduce: ScatterReduce,
    options: ScatterReduceOptions = {},
  ): Tensor {
    return apart(area("scatter").scatterReduce(this, dim, index, src, reduce, options), this);
  }
  /**
   * A copy with the slices of `source`, times `alpha`, added to those that a vector of indices names along
   * `dim`.
   * @example
   * await new Tensor([1, 1, 1]).indexAdd(0, new Tensor([2, 2]), new Tensor([5, 6])).tolist() // => [1, 1, 12]
   */
  indexAdd(dim: number, index: Tensor, source: Tensor, options: { alpha?: number | boolean } = {}): Tensor {
    return apart(area("scatter").indexAdd(this, dim, index, source, options), this);
  }
  /**
   * A copy with the slices of `source` at the indices that a vector names along `dim`.
   * @example
   * await new Tensor([1, 1, 1]).indexCopy(0, new Tensor([2]), new Tensor([5])).tolist() // => [1, 1, 5]
   */
  indexCopy(dim: number, index: Tensor, source: Tensor): Tensor {
    return apart(area("scatter").indexCopy(this, dim, index, source), this);
  }
  /**
   * A copy with `value` in the slices that a vector of indices names along `dim`.
   * @example
   * await new Tensor([1, 1, 1]).indexFill(0, new Tensor([0, -1]), 7).tolist() // => [7, 1, 7]
   */
  indexFill(dim: number, index: Tensor, value: Tensor | Element): Tensor {
    return apart(area("scatter").indexFill(this, dim, index, value), this);
  }
  /**
   * A copy with `values` at the elements that index tensors name, one tensor a dim (null takes a dim whole),
   * as in `x[i, j] = values`; with `accumulate` they are added. A bool mask may stand alone.
   * @example
   * await new Tensor([1, 1, 1]).indexPut([new Tensor([0, 0])], new Tensor([5, 6]), { accumulate: true }).tolist() // => [12, 1, 1]
   */
  indexPut(indices: readonly (Tensor | null)[], values: Tensor | Element, options: PutOptions = {}): Tensor {
    return apart(area("scatter").indexPut(this, indices, values, options), this);
  }
  /**
   * A copy with `source` at the elements that an index names in the flat tensor; `accumulate` adds it.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).put(new Tensor([0, -1]), new Tensor([8, 9])).tolist() // => [[8, 2], [3, 9]]
   */
  put(index: Tensor, source: Tensor, options: PutOptions = {}): Tensor {
    return apart(area("scatter").put(this, index, source, options), this);
  }
  /**
   * A copy in which the elements where the mask is true are those of `source`, in order.
   * @example
   * await new Tensor([1, 2, 3]).maskedScatter(new Tensor([true, false, true]), new Tensor([8, 9])).tolist() // => [8, 2, 9]
   */
  maskedScatter(mask: Tensor, source: Tensor): Tensor {
    return apart(area("scatter").maskedScatter(this, mask, source), this);
  }
  /**
   * Writes into this tensor: `x.setitem([0, [1, 3]], value)` is `x[0, 1:3] = value` of Python, with the
   * indices that `get` takes, and a bool mask where it stands alone. The value broadcasts.
   * @example
   * await new Tensor([1, 2, 3]).setitem([[1, null]], 0).tolist() // => [1, 0, 0]
   */
  setitem(index: readonly Index<Tensor>[], value: Tensor | Element): Tensor {
    return area("scatter").setitem(this, index, value);
  }
  /**
   * Each element several times in a row, along `dim` or in the flat tensor. With a tensor of counts the size
   * of the result must be given, since it is not known before they are computed.
   * @example
   * await new Tensor([1, 2]).repeatInterleave([1, 3]).tolist() // => [1, 2, 2, 2]
   */
  repeatInterleave(
    repeats: number | readonly number[] | Tensor,
    dim?: number,
    options: { outputSize?: number | undefined } = {},
  ): Tensor {
    return apart(area("scatter").repeatInterleave(this, repeats, dim, options), this);
  }

  // ==== math: elementwise, with broadcasting and promotion as in torch ====

  /**
   * This tensor in a larger shape, dims of size 1 repeated; what has the shape already stays as it is.
   * @example
   * await new Tensor([1, 2]).broadcastTo([2, 2]).tolist() // => [[1, 2], [1, 2]]
   */
  broadcastTo(shape: readonly Sint[]): Tensor {
    return math.broadcastTo(this, shape);
  }
  /**
   * `this + alpha * x`, elementwise, with broadcasting.
   * @example
   * await new Tensor([1, 2]).add(new Tensor([10, 20]), { alpha: 2 }).tolist() // => [21, 42]
   */
  add(x: Tensor | Element, options: Scaled = {}): Tensor {
    return math.add(this, x, options);
  }
  /**
   * `this - alpha * x`
   * @example
   * await new Tensor([5, 7]).sub(2).tolist() // => [3, 5]
   */
  sub(x: Tensor | Element, options: Scaled = {}): Tensor {
    return math.sub(this, x, options);
  }
  /**
   * `this * x`
   * @example
   * await new Tensor([1, 2]).mul(3).tolist() // => [3, 6]
   */
  mul(x: Tensor | Element): Tensor {
    return math.mul(this, x);
  }
  /**
   * `this / x`; integers give floats. With `roundingMode` the quotient is cut towards zero ("trunc") or down
   * ("floor"), and integers stay integers; an integer divided by 0 gives 0.
   * @example
   * await new Tensor([7, -7]).div(2, { roundingMode: "floor" }).tolist() // => [3, -4]
   */
  div(x: Tensor | Element, options: Rounded = {}): Tensor {
    return math.div(this, x, options);
  }
  /**
   * The quotient rounded down. An integer divided by 0 gives 0.
   * @example
   * await new Tensor([7, -7]).floorDivide(2).tolist() // => [3, -4]
   */
  floorDivide(x: Tensor | Element): Tensor {
    return math.floorDivide(this, x);
  }
  /**
   * Integer division towards zero; by zero gives 0.
   * @example
   * await new Tensor([7, -7]).idiv(2).tolist() // => [3, -3]
   */
  idiv(x: Tensor | Element): Tensor {
    return math.idiv(this, x);
  }
  /**
   * The remainder with the sign of the dividend, as in C; an integer modulo 0 is 0.
   * @example
   * await new Tensor([7, -7]).fmod(3).tolist() // => [1, -1]
   */
  fmod(x: Tensor | Element): Tensor {
    return math.fmod(this, x);
  }
  /**
   * The remainder with the sign of the divisor, as in Python; an integer modulo 0 is 0.
   * @example
   * await new Tensor([7, -7]).remainder(3).tolist() // => [1, 2]
   */
  remainder(x: Tensor | Element): Tensor {
    return math.remainder(this, x);
  }
  /**
   * `-this`
   * @example
   * await new Tensor([1, -2]).neg().tolist() // => [-1, 2]
   */
  neg(): Tensor {
    return math.neg(this);
  }
  /**
   * `this * x + y`
   * @example
   * await new Tensor([1, 2]).mulacc(10, 3).tolist() // => [13, 23]
   */
  mulacc(x: Tensor | Element, y: Tensor | Element): Tensor {
    return math.mulacc(this, x, y);
  }
  /**
   * The larger of two; NaN wins, equal ones share the gradient.
   * @example
   * await new Tensor([1, 5]).maximum(3).tolist() // => [3, 5]
   */
  maximum(x: Tensor | Element): Tensor {
    return math.maximum(this, x);
  }
  /**
   * The smaller of two; NaN wins, equal ones share the gradient.
   * @example
   * await new Tensor([1, 5]).minimum(3).tolist() // => [1, 3]
   */
  minimum(x: Tensor | Element): Tensor {
    return math.minimum(this, x);
  }
  /**
   * `this * this`
   * @example
   * await new Tensor([3, -4]).square().tolist() // => [9, 16]
   */
  square(): Tensor {
    return math.square(this);
  }
  /**
   * `this < x`
   * @example
   * await new Tensor([1, 3]).lt(2).tolist() // => [true, false]
   */
  lt(x: Tensor | Element): Tensor {
    return math.lt(this, x);
  }
  /**
   * `this > x`
   * @example
   * await new Tensor([1, 3]).gt(2).tolist() // => [false, true]
   */
  gt(x: Tensor | Element): Tensor {
    return math.gt(this, x);
  }
  /**
   * `this <= x`
   * @example
   * await new Tensor([1, 2, 3]).le(2).tolist() // => [true, true, false]
   */
  le(x: Tensor | Element): Tensor {
    return math.le(this, x);
  }
  /**
   * `this >= x`
   * @example
   * await new Tensor([1, 2, 3]).ge(2).tolist() // => [false, true, true]
   */
  ge(x: Tensor | Element): Tensor {
    return math.ge(this, x);
  }
  /**
   * `this == x`
   * @example
   * await new Tensor([1, 2]).eq(2).tolist() // => [false, true]
   */
  eq(x: Tensor | Element): Tensor {
    return math.eq(this, x);
  }
  /**
   * `this != x`
   * @example
   * await new Tensor([1, 2]).ne(2).tolist() // => [true, false]
   */
  ne(x: Tensor | Element): Tensor {
    return math.ne(this, x);
  }
  /**
   * True where the element is 0 or false.
   * @example
   * await new Tensor([0, 2]).logicalNot().tolist() // => [true, false]
   */
  logicalNot(): Tensor {
    return math.logicalNot(this);
  }
  /**
   * `this ? x : y`; this must be bool.
   * @example
   * await new Tensor([true, false]).where(1, new Tensor([7, 8])).tolist() // => [1, 8]
   */
  where(x: Tensor | Element, y: Tensor | Element): Tensor {
    return math.where(this, x, y);
  }
  /**
   * `this & x`, of integers or bools.
   * @example
   * await new Tensor([6, 5]).bitwiseAnd(3).tolist() // => [2, 1]
   */
  bitwiseAnd(x: Tensor | Element): Tensor {
    return math.bitwiseAnd(this, x);
  }
  /**
   * `this | x`, of integers or bools.
   * @example
   * await new Tensor([6, 5]).bitwiseOr(3).tolist() // => [7, 7]
   */
  bitwiseOr(x: Tensor | Element): Tensor {
    return math.bitwiseOr(this, x);
  }
  /**
   * `this ^ x`, of integers or bools.
   * @example
   * await new Tensor([6, 5]).bitwiseXor(3).tolist() // => [5, 6]
   */
  bitwiseXor(x: Tensor | Element): Tensor {
    return math.bitwiseXor(this, x);
  }
  /**
   * `this << x`, by x modulo the width of the type; bitwiseLeftShift is torch's.
   * @example
   * await new Tensor([1, 3]).lshift(2).tolist() // => [4, 12]
   */
  lshift(x: Tensor | Element): Tensor {
    return math.lshift(this, x);
  }
  /**
   * `this >> x`, by x modulo the width of the type; bitwiseRightShift is torch's.
   * @example
   * await new Tensor([8, -8]).rshift(2).tolist() // => [2, -2]
   */
  rshift(x: Tensor | Element): Tensor {
    return math.rshift(this, x);
  }
  /**
   * 2 to the power of each element.
   * @example
   * await new Tensor([3, -1]).exp2().tolist() // => [8, 0.5]
   */
  exp2(): Tensor {
    return math.exp2(this);
  }
  /**
   * e to the power of each element.
   * @example
   * await new Tensor([0, -Infinity]).exp().tolist() // => [1, 0]
   */
  exp(): Tensor {
    return math.exp(this);
  }
  /**
   * The logarithm to base 2.
   * @example
   * await new Tensor([8, 0.5]).log2().tolist() // => [3, -1]
   */
  log2(): Tensor {
    return math.log2(this);
  }
  /**
   * The natural logarithm.
   * @example
   * await new Tensor([1, 0]).log().tolist() // => [0, -Infinity]
   */
  log(): Tensor {
    return math.log(this);
  }
  /**
   * The square root.
   * @example
   * await new Tensor([1, 4]).sqrt().tolist() // => [1, 2]
   */
  sqrt(): Tensor {
    return math.sqrt(this);
  }
  /**
   * `1 / this`
   * @example
   * await new Tensor([2, 4]).reciprocal().tolist() // => [0.5, 0.25]
   */
  reciprocal(): Tensor {
    return math.reciprocal(this);
  }
  /**
   * The part before the point. Integers stay as they are.
   * @example
   * await new Tensor([1.7, -1.7]).trunc().tolist() // => [1, -1]
   */
  trunc(): Tensor {
    return apart(math.trunc(this), this);
  }
  /**
   * The largest integer that is not above. Integers stay as they are.
   * @example
   * await new Tensor([1.7, -1.7]).floor().tolist() // => [1, -2]
   */
  floor(): Tensor {
    return apart(math.floor(this), this);
  }
  /**
   * The smallest integer that is not below. Integers stay as they are.
   * @example
   * await new Tensor([1.2, -1.7]).ceil().tolist() // => [2, -1]
   */
  ceil(): Tensor {
    return apart(math.ceil(this), this);
  }
  /**
   * The absolute value.
   * @example
   * await new Tensor([-2, 3]).abs().tolist() // => [2, 3]
   */
  abs(): Tensor {
    return apart(math.abs(this), this);
  }
  /**
   * -1, 0 or 1; NaN gives 0.
   * @example
   * await new Tensor([-2, 0, 3]).sign().tolist() // => [-1, 0, 1]
   */
  sign(): Tensor {
    return apart(math.sign(this), this);
  }
  /**
   * `sign` by its name for complex numbers.
   * @example
   * await new Tensor([-2, 0, 3]).sgn().tolist() // => [-1, 0, 1]
   */
  sgn(): Tensor {
    return apart(area("special").sgn(this), this);
  }
  /**
   * The tensor itself; bools are refused, as by `neg`.
   * @example
   * await new Tensor([-2, 3]).positive().tolist() // => [-2, 3]
   */
  positive(): Tensor {
    return math.positive(this);
  }
  /**
   * The angle of a real number in the complex plane: pi below zero, 0 otherwise, NaN for NaN.
   * @example
   * await new Tensor([-2, 3]).angle().tolist() // => [3.1415927410125732, 0]
   */
  angle(): Tensor {
    return area("special").angle(this);
  }
  /**
   * Whether the sign bit is set: true for -0 as well.
   * @example
   * await new Tensor([-1.5, -0, 2]).signbit().tolist() // => [true, true, false]
   */
  signbit(): Tensor {
    return math.signbit(this);
  }
  /**
   * The size of this with the sign of `x`; integers give floats.
   * @example
   * await new Tensor([1, -2]).copysign(-3).tolist() // => [-1, -2]
   */
  copysign(x: Tensor | Element): Tensor {
    return math.copysign(this, x);
  }
  /**
   * `x - alpha * this`: subtraction with the operands swapped.
   * @example
   * await new Tensor([1, 2]).rsub(10).tolist() // => [9, 8]
   */
  rsub(x: Tensor | Element, options: Scaled = {}): Tensor {
    return math.rsub(this, x, options);
  }
  /**
   * The nearest integer, halves to the even one; `decimals` digits after the point stay (negative: before
   * it).
   * @example
   * await new Tensor([0.5, 1.5, -2.7]).round().tolist() // => [0, 2, -3]
   */
  round(decimals = 0): Tensor {
    return apart(math.round(this, decimals), this);
  }
  /**
   * The part after the point, with the sign of the whole.
   * @example
   * await new Tensor([1.5, -1.5]).frac().tolist() // => [0.5, -0.5]
   */
  frac(): Tensor {
    return area("special").frac(this);
  }
  /**
   * Not below `min` and not above `max`; either may be left out. NaN stays NaN.
   * @example
   * await new Tensor([1, 5, 9]).clamp(2, 6).tolist() // => [2, 5, 6]
   */
  clamp(min?: Tensor | Element | null, max?: Tensor | Element | null): Tensor {
    return math.clamp(this, min, max);
  }
  /**
   * Not below `min`.
   * @example
   * await new Tensor([1, 5]).clampMin(3).tolist() // => [3, 5]
   */
  clampMin(min: Tensor | Element): Tensor {
    return math.clampMin(this, min);
  }
  /**
   * Not above `max`.
   * @example
   * await new Tensor([1, 5]).clampMax(3).tolist() // => [1, 3]
   */
  clampMax(max: Tensor | Element): Tensor {
    return math.clampMax(this, max);
  }
  /**
   * The larger of two; a number wins over NaN.
   * @example
   * await new Tensor([1, NaN]).fmax(0).tolist() // => [1, 0]
   */
  fmax(x: Tensor | Element): Tensor {
    return area("special").fmax(this, x);
  }
  /**
   * The smaller of two; a number wins over NaN.
   * @example
   * await new Tensor([1, NaN]).fmin(0).tolist() // => [0, 0]
   */
  fmin(x: Tensor | Element): Tensor {
    return area("special").fmin(this, x);
  }
  /**
   * From this to `end` by `weight`: 0 stays here, 1 arrives.
   * @example
   * await new Tensor([0, 10]).lerp(new Tensor([4, 20]), 0.25).tolist() // => [1, 12.5]
   */
  lerp(end: Tensor | Element, weight: Tensor | Element): Tensor {
    return area("special").lerp(this, end, weight);
  }
  /**
   * NaN and infinities replaced: by `nan`, and by the largest and smallest finite number unless told
   * otherwise.
   * @example
   * await new Tensor([NaN, Infinity, 1.5]).nanToNum(0, 9).tolist() // => [0, 9, 1.5]
   */
  nanToNum(nan = 0, posinf?: number | null, neginf?: number | null): Tensor {
    return apart(math.nanToNum(this, nan, posinf, neginf), this);
  }
  /**
   * Whether the element is NaN.
   * @example
   * await new Tensor([1, NaN]).isnan().tolist() // => [false, true]
   */
  isnan(): Tensor {
    return math.isnan(this);
  }
  /**
   * Whether the element is infinite.
   * @example
   * await new Tensor([1, -Infinity]).isinf().tolist() // => [false, true]
   */
  isinf(): Tensor {
    return math.isinf(this);
  }
  /**
   * Whether the element is infinity.
   * @example
   * await new Tensor([Infinity, -Infinity]).isposinf().tolist() // => [true, false]
   */
  isposinf(): Tensor {
    return area("special").isposinf(this);
  }
  /**
   * Whether the element is minus infinity.
   * @example
   * await new Tensor([Infinity, -Infinity]).isneginf().tolist() // => [false, true]
   */
  isneginf(): Tensor {
    return area("special").isneginf(this);
  }
  /**
   * Whether the element is a real number: always, since there are no others here.
   * @example
   * await new Tensor([1, NaN]).isreal().tolist() // => [true, true]
   */
  isreal(): Tensor {
    return area("special").isreal(this);
  }
  /**
   * Whether the element is neither infinite nor NaN.
   * @example
   * await new Tensor([1, NaN, Infinity]).isfinite().tolist() // => [true, false, false]
   */
  isfinite(): Tensor {
    return math.isfinite(this);
  }
  /**
   * Whether the elements are near each other: |this - x| <= atol + rtol * |x|.
   * @example
   * await new Tensor([1, 2]).isclose(new Tensor([1.000001, 2.1])).tolist() // => [true, false]
   */
  isclose(x: Tensor, options: Closeness = {}): Tensor {
    return area("special").isclose(this, x, options);
  }
  /**
   * Whether all elements are near each other, as a 0-d bool tensor: lazy as everything else, `item()` reads
   * it.
   * @example
   * await new Tensor([1, 2]).allclose(new Tensor([1.000001, 2])).item() // => true
   */
  allclose(x: Tensor, closeness: Closeness = {}): Tensor {
    return area("special").allclose(this, x, closeness);
  }
  /**
   * Whether shapes and all elements are equal, as a 0-d bool tensor: lazy as everything else, `item()` reads
   * it.
   * @example
   * await new Tensor([1, 2]).equal(new Tensor([1, 2])).item() // => true
   */
  equal(x: Tensor): Tensor {
    return area("special").equal(this, x);
  }
  /**
   * Whether both are true (not 0).
   * @example
   * await new Tensor([0, 2]).logicalAnd(new Tensor([1, 1])).tolist() // => [false, true]
   */
  logicalAnd(x: Tensor | Element): Tensor {
    return math.logicalAnd(this, x);
  }
  /**
   * Whether one is true (not 0), or both.
   * @example
   * await new Tensor([0, 2]).logicalOr(new Tensor([0, 0])).tolist() // => [false, true]
   */
  logicalOr(x: Tensor | Element): Tensor {
    return math.logicalOr(this, x);
  }
  /**
   * Whether exactly one is true (not 0).
   * @example
   * await new Tensor([0, 2]).logicalXor(new Tensor([1, 1])).tolist() // => [true, false]
   */
  logicalXor(x: Tensor | Element): Tensor {
    return math.logicalXor(this, x);
  }
  /**
   * Every bit turned; bools are negated.
   * @example
   * await new Tensor([0, 5]).bitwiseNot().tolist() // => [-1, -6]
   */
  bitwiseNot(): Tensor {
    return math.bitwiseNot(this);
  }
  /**
   * `this << x`; a shift by the width or more, or by less than 0, gives 0.
   * @example
   * await new Tensor([1, 3]).bitwiseLeftShift(2).tolist() // => [4, 12]
   */
  bitwiseLeftShift(x: Tensor | Element): Tensor {
    return area("special").bitwiseLeftShift(this, x);
  }
  /**
   * `this >> x`; a shift by the width or more, or by less than 0, leaves only the sign.
   * @example
   * await new Tensor([8, -8]).bitwiseRightShift(2).tolist() // => [2, -2]
   */
  bitwiseRightShift(x: Tensor | Element): Tensor {
    return area("special").bitwiseRightShift(this, x);
  }
  /**
   * Every element replaced by `value`, a number or a 0-d tensor. A new tensor: nothing is overwritten.
   * @example
   * await new Tensor([1, 2]).fill(3).tolist() // => [3, 3]
   */
  fill(value: Tensor | Element): Tensor {
    return math.fill(this, value);
  }
  /**
   * This to the power of `x`. Integers stay integers (and wrap); an integer to a negative power is 0 unless
   * it is ±1.
   * @example
   * await new Tensor([2, 3]).pow(3).tolist() // => [8, 27]
   */
  pow(x: Tensor | Element): Tensor {
    return apart(math.pow(this, x), this);
  }
  /**
   * The power in float64, whatever the operands are.
   * @example
   * await new Tensor([2, 3]).floatPower(-1).tolist() // => [0.5, 0.3333333333333333]
   */
  floatPower(x: Tensor | Element): Tensor {
    return area("special").floatPower(this, x);
  }
  /**
   * `1 / sqrt(this)`
   * @example
   * await new Tensor([4, 16]).rsqrt().tolist() // => [0.5, 0.25]
   */
  rsqrt(): Tensor {
    return math.rsqrt(this);
  }
  /**
   * sqrt(this² + x²), without overflow on the way.
   * @example
   * await new Tensor([3]).hypot(new Tensor([4])).tolist() // => [5]
   */
  hypot(x: Tensor | Element): Tensor {
    return area("special").hypot(this, x);
  }
  /**
   * exp(x) - 1, exact for small x.
   * @example
   * await new Tensor([0, 1e-10]).expm1().tolist() // => [0, 1.000000013351432e-10]
   */
  expm1(): Tensor {
    return math.expm1(this);
  }
  /**
   * log(1 + x), exact for small x.
   * @example
   * await new Tensor([0, 1e-10]).log1p().tolist() // => [0, 1.000000013351432e-10]
   */
  log1p(): Tensor {
    return math.log1p(this);
  }
  /**
   * The logarithm to base 10.
   * @example
   * await new Tensor([1, 100]).log10().tolist() // => [0, 2]
   */
  log10(): Tensor {
    return math.log10(this);
  }
  /**
   * log(exp(this) + exp(x)), safe for large values.
   * @example
   * await new Tensor([1000]).logaddexp(0).tolist() // => [1000]
   */
  logaddexp(x: Tensor | Element): Tensor {
    return area("special").logaddexp(this, x);
  }
  /**
   * log2(2^this + 2^x), safe for large values.
   * @example
   * await new Tensor([1000]).logaddexp2(1000).tolist() // => [1001]
   */
  logaddexp2(x: Tensor | Element): Tensor {
    return area("special").logaddexp2(this, x);
  }
  /**
   * this * log(x), and 0 where this is 0, whatever x is (but NaN).
   * @example
   * await new Tensor([0, 2]).xlogy(new Tensor([0, 1])).tolist() // => [0, 0]
   */
  xlogy(x: Tensor | Element): Tensor {
    return area("special").xlogy(this, x);
  }
  /**
   * 1 / (1 + exp(-x))
   * @example
   * await new Tensor([0, Infinity]).sigmoid().tolist() // => [0.5, 1]
   */
  sigmoid(): Tensor {
    return math.sigmoid(this);
  }
  /**
   * The sine, of radians.
   * @example
   * await new Tensor([0, 0.5]).sin().tolist() // => [0, 0.4794255495071411]
   */
  sin(): Tensor {
    return math.sin(this);
  }
  /**
   * The cosine, of radians.
   * @example
   * await new Tensor([0]).cos().tolist() // => [1]
   */
  cos(): Tensor {
    return math.cos(this);
  }
  /**
   * The tangent, of radians.
   * @example
   * await new Tensor([0, 1]).tan().tolist() // => [0, 1.5574077367782593]
   */
  tan(): Tensor {
    return math.tan(this);
  }
  /**
   * sin(pi x) / (pi x), and 1 at 0.
   * @example
   * await new Tensor([0, 0.5]).sinc().tolist() // => [1, 0.6366197466850281]
   */
  sinc(): Tensor {
    return area("special").sinc(this);
  }
  /**
   * (exp(x) - exp(-x)) / 2
   * @example
   * await new Tensor([0, 1]).sinh().tolist() // => [0, 1.175201177597046]
   */
  sinh(): Tensor {
    return area("special").sinh(this);
  }
  /**
   * (exp(x) + exp(-x)) / 2
   * @example
   * await new Tensor([0]).cosh().tolist() // => [1]
   */
  cosh(): Tensor {
    return area("special").cosh(this);
  }
  /**
   * The hyperbolic tangent.
   * @example
   * await new Tensor([0, Infinity]).tanh().tolist() // => [0, 1]
   */
  tanh(): Tensor {
    return math.tanh(this);
  }
  /**
   * Degrees to radians.
   * @example
   * await new Tensor([180]).deg2rad().tolist() // => [3.1415927410125732]
   */
  deg2rad(): Tensor {
    return area("special").deg2rad(this);
  }
  /**
   * Radians to degrees.
   * @example
   * await new Tensor([Math.PI]).rad2deg().tolist() // => [180]
   */
  rad2deg(): Tensor {
    return area("special").rad2deg(this);
  }
  /**
   * The angle whose tangent this is, from -pi/2 to pi/2.
   * @example
   * await new Tensor([0, 1]).atan().tolist() // => [0, 0.7853981852531433]
   */
  atan(): Tensor {
    return area("special").atan(this);
  }
  /**
   * The angle of the point (x, this), from -pi to pi.
   * @example
   * await new Tensor([1, -1]).atan2(new Tensor([0, 0])).tolist() // => [1.5707963705062866, -1.5707963705062866]
   */
  atan2(x: Tensor | Element): Tensor {
    return area("special").atan2(this, x);
  }
  /**
   * The angle whose sine this is, from -pi/2 to pi/2.
   * @example
   * await new Tensor([0, 1]).asin().tolist() // => [0, 1.5707963705062866]
   */
  asin(): Tensor {
    return area("special").asin(this);
  }
  /**
   * The angle whose cosine this is, from 0 to pi.
   * @example
   * await new Tensor([1, 0]).acos().tolist() // => [0, 1.5707963705062866]
   */
  acos(): Tensor {
    return area("special").acos(this);
  }
  /**
   * The number whose sinh this is.
   * @example
   * await new Tensor([0, 1]).asinh().tolist() // => [0, 0.8813735842704773]
   */
  asinh(): Tensor {
    return area("special").asinh(this);
  }
  /**
   * The number, not negative, whose cosh this is.
   * @example
   * await new Tensor([1, 2]).acosh().tolist() // => [0, 1.316957950592041]
   */
  acosh(): Tensor {
    return area("special").acosh(this);
  }
  /**
   * The number whose tanh this is.
   * @example
   * await new Tensor([0, 0.5]).atanh().tolist() // => [0, 0.5493061542510986]
   */
  atanh(): Tensor {
    return area("special").atanh(this);
  }
  /**
   * The error function.
   * @example
   * await new Tensor([0, 10]).erf().tolist() // => [0, 1]
   */
  erf(): Tensor {
    return area("special").erf(this);
  }
  /**
   * 1 - erf, exact where erf is nearly 1.
   * @example
   * await new Tensor([0, -Infinity]).erfc().tolist() // => [1, 2]
   */
  erfc(): Tensor {
    return area("special").erfc(this);
  }
  /**
   * The number whose erf this is.
   * @example
   * await new Tensor([0, 1]).erfinv().tolist() // => [0, Infinity]
   */
  erfinv(): Tensor {
    return area("special").erfinv(this);
  }
  /**
   * The logarithm of |gamma(x)|.
   * @example
   * await new Tensor([3, 5]).lgamma().exp().round().tolist() // => [2, 24]
   */
  lgamma(): Tensor {
    return area("special").lgamma(this);
  }
  /**
   * The derivative of lgamma.
   * @example
   * await new Tensor([-3]).digamma().isnan().tolist() // => [true]
   */
  digamma(): Tensor {
    return area("special").digamma(this);
  }
  /**
   * The derivative of order `n` of digamma; polygamma(0) is digamma.
   * @example
   * await new Tensor([1]).polygamma(1).tolist() // => [1.6449340581893921]
   */
  polygamma(n: number): Tensor {
    return area("special").polygamma(this, n);
  }
  /**
   * The greatest common divisor, never negative; that of 0 and 0 is 0.
   * @example
   * await new Tensor([12, -18]).gcd(new Tensor([8, 27])).tolist() // => [4, 9]
   */
  gcd(x: Tensor | Element): Tensor {
    return area("special").gcd(this, x);
  }
  /**
   * The least common multiple, never negative; 0 where one of the two is 0.
   * @example
   * await new Tensor([4, 6]).lcm(new Tensor([6, 0])).tolist() // => [12, 0]
   */
  lcm(x: Tensor | Element): Tensor {
    return area("special").lcm(this, x);
  }
  /**
   * this * 2^x
   * @example
   * await new Tensor([1, 3]).ldexp(new Tensor([4, -1])).tolist() // => [16, 1.5]
   */
  ldexp(x: Tensor | Element): Tensor {
    return area("special").ldexp(this, x);
  }
  /**
   * `[mantissa, exponent]`: this is mantissa * 2^exponent, and the mantissa is 0 or from 0.5 up to 1 in size.
   * @example
   * await Promise.all(new Tensor([8, -3]).frexp().map((t) => t.tolist())) // => [[0.5, -0.75], [4, 2]]
   */
  frexp(): [Tensor, Tensor] {
    return area("special").frexp(this);
  }
  /**
   * The next number that the type has, on the way to `x`.
   * @example
   * await new Tensor([0.5]).nextafter(1).sub(0.5).mul(2).tolist() // => [1.1920928955078125e-7]
   */
  nextafter(x: Tensor | Element): Tensor {
    return area("special").nextafter(this, x);
  }
  /**
   * The logarithm of the gamma function of dimension `p`, without its sign.
   * @example
   * await new Tensor([2.5]).mvlgamma(1).sub(new Tensor([2.5]).lgamma()).tolist() // => [0]
   */
  mvlgamma(p: number): Tensor {
    return area("special").mvlgamma(this, p);
  }
  /**
   * The modified Bessel function of the first kind, of order 0.
   * @example
   * await new Tensor([0, 1]).i0().tolist() // => [1, 1.2660658359527588]
   */
  i0(): Tensor {
    return area("special").i0(this);
  }
  /**
   * The modified Bessel function of the first kind, of order 1: the derivative of `i0`.
   * @example
   * await new Tensor([0, 1]).i1().tolist() // => [0, 0.5651590824127197]
   */
  i1(): Tensor {
    return area("special").i1(this);
  }

  // ==== reduce: sums, extremes, running reductions, order ====

  /**
   * The sum over `dim` (all of them by default). Small integers and bools add up in 32 bits.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).sum(0).tolist() // => [4, 6]
   */
  sum(dim?: Axes, keepdim = false, options: Typed = {}): Tensor {
    return apart(reduce.sum(this, dim, keepdim, options), this);
  }
  /**
   * The largest element along `dim` (argmax tells where, maxWithIndices gives both); NaN wins. Of equal ones
   * along one dim the first gets the gradient; over all or several dims they share it, as in amax.
   * @example
   * await new Tensor([[1, 5], [7, 3]]).max(1).tolist() // => [5, 7]
   */
  max(dim?: Axes, keepdim = false): Tensor {
    return apart(reduce.max(this, dim, keepdim), this);
  }
  /**
   * The smallest element along `dim` (argmin tells where, minWithIndices gives both); NaN wins. Of equal ones
   * along one dim the first gets the gradient; over all or several dims they share it, as in amin.
   * @example
   * await new Tensor([[1, 5], [7, 3]]).min(1).tolist() // => [1, 3]
   */
  min(dim?: Axes, keepdim = false): Tensor {
    return reduce.min(this, dim, keepdim);
  }
  /**
   * The mean over `dim`; integers give float32.
   * @example
   * await new Tensor([1, 2, 6]).mean().item() // => 3
   */
  mean(dim?: Axes, keepdim = false, options: Typed = {}): Tensor {
    return reduce.mean(this, dim, keepdim, options);
  }
  /**
   * The variance; `correction` 1 (the default) divides by n - 1.
   * @example
   * await new Tensor([1, 2, 3]).var().item() // => 1
   */
  var(dim?: Axes, keepdim = false, correction = 1): Tensor {
    return reduce.variance(this, dim, keepdim, correction);
  }
  /**
   * The standard deviation; `correction` 1 (the default) divides by n - 1.
   * @example
   * await new Tensor([1, 2, 3]).std().item() // => 1
   */
  std(dim?: Axes, keepdim = false, correction = 1): Tensor {
    return reduce.std(this, dim, keepdim, correction);
  }
  /**
   * The product over `dim` (all of them by default). Integers multiply in 64 bits: 13 factors overflow 32.
   * @example
   * await new Tensor([2, 3, 0.5]).prod().item() // => 3
   */
  prod(dim?: Axes, keepdim = false, options: Typed = {}): Tensor {
    return apart(reduce.prod(this, dim, keepdim, options), this);
  }
  /**
   * Whether an element along `dim` is true (not 0); false where there is none.
   * @example
   * await new Tensor([[0, 0], [0, 2]]).any(1).tolist() // => [false, true]
   */
  any(dim?: Axes, keepdim = false): Tensor {
    return reduce.any(this, dim, keepdim);
  }
  /**
   * Whether all elements along `dim` are true (not 0); true where there are none.
   * @example
   * await new Tensor([[1, 0], [3, 2]]).all(1).tolist() // => [false, true]
   */
  all(dim?: Axes, keepdim = false): Tensor {
    return reduce.all(this, dim, keepdim);
  }
  /**
   * How many elements are not 0.
   * @example
   * await new Tensor([0, 5, 7]).countNonzero().item() // => 2
   */
  countNonzero(dim?: Axes): Tensor {
    return area("order").countNonzero(this, dim);
  }
  /**
   * Where the largest element along `dim` is: the first of equal ones, NaN before all. Without `dim` the
   * index in the flattened tensor.
   * @example
   * await new Tensor([[1, 5], [7, 3]]).argmax(1).tolist() // => [1, 0]
   */
  argmax(dim?: number | null, keepdim = false): Tensor {
    return reduce.argmax(this, dim, keepdim);
  }
  /**
   * Where the smallest element along `dim` is: the first of equal ones, NaN before all.
   * @example
   * await new Tensor([[1, 5], [7, 3]]).argmin(1).tolist() // => [0, 1]
   */
  argmin(dim?: number | null, keepdim = false): Tensor {
    return reduce.argmin(this, dim, keepdim);
  }
  /**
   * The largest element over one or more dims; equal ones share the gradient.
   * @example
   * await new Tensor([[1, 5], [7, 3]]).amax([0, 1]).item() // => 7
   */
  amax(dim?: Axes, keepdim = false): Tensor {
    return apart(reduce.amax(this, dim, keepdim), this);
  }
  /**
   * The smallest element over one or more dims; equal ones share the gradient.
   * @example
   * await new Tensor([[1, 5], [7, 3]]).amin([0, 1]).item() // => 1
   */
  amin(dim?: Axes, keepdim = false): Tensor {
    return reduce.amin(this, dim, keepdim);
  }
  /**
   * The smallest and the largest element: `[min, max]`.
   * @example
   * await new Tensor([3, 1, 2]).aminmax()[1].item() // => 3
   */
  aminmax(dim?: number, keepdim = false): [Tensor, Tensor] {
    return bothApart(area("order").aminmax(this, dim, keepdim), this);
  }
  /**
   * `[values, indices]` of the largest elements along `dim`: torch's max with a dim. The first of equal ones
   * is named, and gets the gradient.
   * @example
   * await Promise.all(new Tensor([[1, 5], [7, 3]]).maxWithIndices(1).map((t) => t.tolist())) // => [[5, 7], [1, 0]]
   */
  maxWithIndices(dim: number, keepdim = false): [Tensor, Tensor] {
    return bothApart(reduce.maxWithIndices(this, dim, keepdim), this);
  }
  /**
   * `[values, indices]` of the smallest elements along `dim`: torch's min with a dim. The first of equal ones
   * is named, and gets the gradient.
   * @example
   * await Promise.all(new Tensor([[1, 5], [7, 3]]).minWithIndices(1).map((t) => t.tolist())) // => [[1, 3], [0, 1]]
   */
  minWithIndices(dim: number, keepdim = false): [Tensor, Tensor] {
    return reduce.minWithIndices(this, dim, keepdim);
  }
  /**
   * log(sum(exp(x))) over `dim`, safe for large values.
   * @example
   * await new Tensor([1000, 0]).logsumexp(0).item() // => 1000
   */
  logsumexp(dim?: Axes, keepdim = false): Tensor {
    return reduce.logsumexp(this, dim, keepdim);
  }
  /**
   * The sum of what is not NaN.
   * @example
   * await new Tensor([1, NaN, 2]).nansum().item() // => 3
   */
  nansum(dim?: Axes, keepdim = false, typed: Typed = {}): Tensor {
    return area("order").nansum(this, dim, keepdim, typed);
  }
  /**
   * The mean of what is not NaN.
   * @example
   * await new Tensor([1, NaN, 2]).nanmean().item() // => 1.5
   */
  nanmean(dim?: Axes, keepdim = false, typed: Typed = {}): Tensor {
    return area("order").nanmean(this, dim, keepdim, typed);
  }
  /**
   * `[variance, mean]`
   * @example
   * await new Tensor([1, 2, 3]).varMean()[0].item() // => 1
   */
  varMean(dim?: Axes, keepdim = false, correction = 1): [Tensor, Tensor] {
    return area("order").varMean(this, dim, keepdim, correction);
  }
  /**
   * `[standard deviation, mean]`
   * @example
   * await new Tensor([1, 2, 3]).stdMean()[1].item() // => 2
   */
  stdMean(dim?: Axes, keepdim = false, correction = 1): [Tensor, Tensor] {
    return area("order").stdMean(this, dim, keepdim, correction);
  }
  /**
   * (sum of |x|^ord)^(1/ord) over `dim`; 0 counts what is not 0, ±Infinity takes the largest or smallest
   * size.
   * @example
   * await new Tensor([3, -4]).vectorNorm().item() // => 5
   */
  vectorNorm(ord = 2, dim?: Axes, keepdim = false, options: { readonly dtype?: DTypeLike } = {}): Tensor {
    return reduce.vectorNorm(this, ord, dim, keepdim, options);
  }
  /**
   * The norm of the difference.
   * @example
   * await new Tensor([1, 1]).dist(new Tensor([4, 5])).item() // => 5
   */
  dist(x: Tensor, p = 2): Tensor {
    return area("order").dist(this, x, p);
  }
  /**
   * The differences between neighbours along `dim`, `n` times over; `prepend` and `append` are put at the
   * ends first.
   * @example
   * await new Tensor([1, 4, 9]).diff().tolist() // => [3, 5]
   */
  diff(n = 1, dim = -1, options: DiffOptions<Tensor> = {}): Tensor {
    return apart(area("order").diff(this, n, dim, options), this);
  }
  /**
   * The area below the samples along `dim`, `dx` apart or at `x`.
   * @example
   * await new Tensor([1, 2, 3]).trapezoid().item() // => 4
   */
  trapezoid(options: { readonly x?: Tensor; readonly dx?: number; readonly dim?: number } = {}): Tensor {
    return area("order").trapezoid(this, options);
  }
  /**
   * The running sum along `dim`.
   * @example
   * await new Tensor([1, 2, 3]).cumsum(0).tolist() // => [1, 3, 6]
   */
  cumsum(dim: number, options: Typed = {}): Tensor {
    return apart(area("order").cumsum(this, dim, options), this);
  }
  /**
   * The running product along `dim`. Integers multiply in 64 bits.
   * @example
   * await new Tensor([0.5, 2, 3]).cumprod(0).tolist() // => [0.5, 1, 3]
   */
  cumprod(dim: number, options: Typed = {}): Tensor {
    return apart(area("order").cumprod(this, dim, options), this);
  }
  /**
   * `[values, indices]` of the largest element so far along `dim`; of equal ones the last. NaN stays.
   * @example
   * await new Tensor([1, 3, 2]).cummax(0)[0].tolist() // => [1, 3, 3]
   */
  cummax(dim: number): [Tensor, Tensor] {
    return bothApart(area("order").cummax(this, dim), this);
  }
  /**
   * `[values, indices]` of the smallest element so far along `dim`; of equal ones the last. NaN stays.
   * @example
   * await new Tensor([2, 3, 1]).cummin(0)[0].tolist() // => [2, 2, 1]
   */
  cummin(dim: number): [Tensor, Tensor] {
    return area("order").cummin(this, dim);
  }
  /**
   * log(cumsum(exp(x))) along `dim`, safe for large values.
   * @example
   * await new Tensor([0, 0]).logcumsumexp(0).tolist() // => [0, 0.6931471824645996]
   */
  logcumsumexp(dim: number): Tensor {
    return apart(area("order").logcumsumexp(this, dim), this);
  }
  /**
   * `[values, indices]` in order along `dim`. Always stable; NaN counts as the largest.
   * @example
   * await new Tensor([3, 1, 2]).sort()[0].tolist() // => [1, 2, 3]
   */
  sort(dim = -1, descending = false, _stable = true): [Tensor, Tensor] {
    return area("order").sort(this, dim, descending, _stable);
  }
  /**
   * The values in order along dim 0.
   * @example
   * await new Tensor([3, 1, 2]).msort().tolist() // => [1, 2, 3]
   */
  msort(): Tensor {
    return area("order").msort(this);
  }
  /**
   * `[values, indices]` of the most frequent element along `dim`: the smallest of several, at the last index
   * it has.
   * @example
   * await new Tensor([3, 1, 3, 1, 2]).mode()[0].item() // => 1
   */
  mode(dim = -1, keepdim = false): [Tensor, Tensor] {
    return area("order").mode(this, dim, keepdim);
  }
  /**
   * The indices that put `dim` in order. Always stable; NaN counts as the largest.
   * @example
   * await new Tensor([3, 1, 2]).argsort().tolist() // => [1, 2, 0]
   */
  argsort(dim = -1, descending = false, _stable = true): Tensor {
    return area("order").argsort(this, dim, descending, _stable);
  }
  /**
   * `[values, indices]` of the `k` largest (or smallest) along `dim`, in order.
   * @example
   * await new Tensor([3, 1, 2]).topk(2)[0].tolist() // => [3, 2]
   */
  topk(k: number, dim = -1, largest = true, _sorted = true): [Tensor, Tensor] {
    return bothApart(area("order").topk(this, k, dim, largest, _sorted), this);
  }
  /**
   * `[values, indices]` of the k-th smallest element along `dim`, counted from 1.
   * @example
   * await new Tensor([3, 1, 2]).kthvalue(2)[0].item() // => 2
   */
  kthvalue(k: number, dim = -1, keepdim = false): [Tensor, Tensor] {
    return area("order").kthvalue(this, k, dim, keepdim);
  }
  /**
   * The median: the lower one of two. NaN where there is a NaN. Without `dim` that of all elements; with
   * `dim` `[values, indices]`.
   * @example
   * await new Tensor([3, 1, 2, 4]).median().item() // => 2
   */
  median(): Tensor;
  median(dim: number, keepdim?: boolean): [Tensor, Tensor];
  median(dim?: number, keepdim = false): Tensor | [Tensor, Tensor] {
    return area("order").median(this, dim, keepdim);
  }
  /**
   * The median of what is not NaN.
   * @example
   * await new Tensor([3, NaN, 2]).nanmedian().item() // => 2
   */
  nanmedian(): Tensor;
  nanmedian(dim: number, keepdim?: boolean): [Tensor, Tensor];
  nanmedian(dim?: number, keepdim = false): Tensor | [Tensor, Tensor] {
    return area("order").nanmedian(this, dim, keepdim);
  }
  /**
   * The value below which the share `q` (0 to 1) of the elements along `dim` lies, between neighbours by
   * `interpolation`. Several shares (an array or a vector) come as the first dim. NaN where there is a NaN.
   * @example
   * await new Tensor([4, 1, 3, 2]).quantile(0.5).item() // => 2.5
   */
  quantile(
    q: number | readonly number[] | Tensor,
    dim?: number,
    keepdim = false,
    options: QuantileOptions = {},
  ): Tensor {
    return area("order").quantile(this, q, dim, keepdim, options);
  }
  /**
   * `quantile` of what is not NaN.
   * @example
   * await new Tensor([4, NaN, 2]).nanquantile(0.5).item() // => 3
   */
  nanquantile(
    q: number | readonly number[] | Tensor,
    dim?: number,
    keepdim = false,
    options: QuantileOptions = {},
  ): Tensor {
    return area("order").nanquantile(this, q, dim, keepdim, options);
  }

  // ==== linalg: products, solving, factorizations ====

  /**
   * The matrix product; vectors are rows on the left and columns on the right, batches broadcast.
   * @example
   * await new Tensor([1, 2]).dot(new Tensor([3, 4])).item() // => 11
   */
  dot(w: Tensor): Tensor {
    return linalg.dot(this, w);
  }
  /**
   * The matrix product: torch's name for dot with batches.
   * @example
   * await new Tensor([[1, 2]]).matmul(new Tensor([[3], [4]])).tolist() // => [[11]]
   */
  matmul(w: Tensor): Tensor {
    return linalg.matmul(this, w);
  }
  /**
   * The product of two matrices; nothing broadcasts.
   * @example
   * await new Tensor([[1, 2]]).mm(new Tensor([[3], [4]])).tolist() // => [[11]]
   */
  mm(mat2: Tensor): Tensor {
    return linalg.mm(this, mat2);
  }
  /**
   * The products of two batches of matrices of one size.
   * @example
   * await Tensor.ones(2, 1, 3).bmm(Tensor.ones(2, 3, 1)).tolist() // => [[[3]], [[3]]]
   */
  bmm(mat2: Tensor): Tensor {
    return linalg.bmm(this, mat2);
  }
  /**
   * Matrix times vector.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).mv(new Tensor([1, 1])).tolist() // => [3, 7]
   */
  mv(vec: Tensor): Tensor {
    return linalg.mv(this, vec);
  }
  /**
   * The dot product of two vectors.
   * @example
   * await new Tensor([1, 2]).vdot(new Tensor([3, 4])).item() // => 11
   */
  vdot(other: Tensor): Tensor {
    return area("linalg").vdot(this, other);
  }
  /**
   * Products summed over the last dims of both; a number multiplies.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).inner(new Tensor([1, 1])).tolist() // => [3, 7]
   */
  inner(other: Tensor): Tensor {
    return area("linalg").inner(this, other);
  }
  /**
   * Every element of one vector times every element of the other.
   * @example
   * await new Tensor([1, 2]).outer(new Tensor([3, 4])).tolist() // => [[3, 4], [6, 8]]
   */
  outer(vec2: Tensor): Tensor {
    return linalg.outer(this, vec2);
  }
  /**
   * The BLAS name of `outer`.
   * @example
   * await new Tensor([1, 2]).ger(new Tensor([3, 4])).tolist() // => [[3, 4], [6, 8]]
   */
  ger(vec2: Tensor): Tensor {
    return area("linalg").ger(this, vec2);
  }
  /**
   * `beta * this + alpha * mat1 @ mat2`
   * @example
   * await new Tensor([1]).addmm(new Tensor([[1, 2]]), new Tensor([[3], [4]]), { alpha: 2 }).tolist() // => [[23]]
   */
  addmm(mat1: Tensor, mat2: Tensor, scales: Scales = {}): Tensor {
    return area("linalg").addmm(this, mat1, mat2, scales);
  }
  /**
   * `beta * this + alpha * mat @ vec`
   * @example
   * await new Tensor([1, 1]).addmv(new Tensor([[1, 2], [3, 4]]), new Tensor([1, 1])).tolist() // => [4, 8]
   */
  addmv(mat: Tensor, vec: Tensor, scales: Scales = {}): Tensor {
    return area("linalg").addmv(this, mat, vec, scales);
  }
  /**
   * `beta * this + alpha * (the sum of the products of two batches)`
   * @example
   * await new Tensor([[1]]).addbmm(Tensor.ones(2, 1, 3), Tensor.ones(2, 3, 1)).tolist() // => [[7]]
   */
  addbmm(batch1: Tensor, batch2: Tensor, scales: Scales = {}): Tensor {
    return area("linalg").addbmm(this, batch1, batch2, scales);
  }
  /**
   * `beta * this + alpha * (the products of two batches)`
   * @example
   * await new Tensor([1]).baddbmm(Tensor.ones(2, 1, 3), Tensor.ones(2, 3, 1)).tolist() // => [[[4]], [[4]]]
   */
  baddbmm(batch1: Tensor, batch2: Tensor, scales: Scales = {}): Tensor {
    return area("linalg").baddbmm(this, batch1, batch2, scales);
  }
  /**
   * `beta * this + alpha * vec1 ⊗ vec2`
   * @example
   * await new Tensor([1]).addr(new Tensor([1, 2]), new Tensor([3, 4])).tolist() // => [[4, 5], [7, 9]]
   */
  addr(vec1: Tensor, vec2: Tensor, scales: Scales = {}): Tensor {
    return area("linalg").addr(this, vec1, vec2, scales);
  }
  /**
   * Products summed over pairs of dims: the last `dims` of this with the first of the other, or
   * `[dimsOfThis, dimsOfOther]`.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).tensordot(new Tensor([[1, 0], [0, 1]]), 2).item() // => 5
   */
  tensordot(other: Tensor, dims: number | readonly [readonly number[], readonly number[]] = 2): Tensor {
    return area("linalg").tensordot(this, other, dims);
  }
  /**
   * The Kronecker product: every element of this times the whole of the other.
   * @example
   * await new Tensor([[1, 2]]).kron(new Tensor([[1, 1]])).tolist() // => [[1, 1, 2, 2]]
   */
  kron(other: Tensor): Tensor {
    return area("linalg").kron(this, other);
  }
  /**
   * The cross product of vectors of three along `dim`.
   * @example
   * await new Tensor([1, 0, 0]).cross(new Tensor([0, 1, 0])).tolist() // => [0, 0, 1]
   */
  cross(other: Tensor, dim = -1): Tensor {
    return area("linalg").cross(this, other, dim);
  }
  /**
   * The sum of the diagonal of a matrix.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).trace().item() // => 5
   */
  trace(): Tensor {
    return apart(area("linalg").trace(this), this);
  }
  /**
   * This matrix and others multiplied in the order that takes the fewest steps; the first and last may be
   * vectors.
   * @example
   * await new Tensor([[1, 2]]).chainMatmul(new Tensor([[1], [1]]), new Tensor([[5]])).tolist() // => [[15]]
   */
  chainMatmul(...others: readonly Tensor[]): Tensor {
    return area("linalg").chainMatmul(this, ...others);
  }
  /**
   * torch's name for `chainMatmul`, with the tensors in a list.
   * @example
   * await Tensor.multiDot([new Tensor([1, 2]), new Tensor([[1], [1]]), new Tensor([5])]).item() // => 15
   */
  static multiDot(tensors: readonly Tensor[]): Tensor {
    return area("linalg").multiDot(tensors);
  }
  /**
   * Sums of products by Einstein's rule: letters name dims, equal letters go together, what is not behind
   * `->` is summed; `...` stands for dims without a name, which broadcast.
   * @example
   * await Tensor.einsum("ij,j->i", new Tensor([[1, 2], [3, 4]]), new Tensor([1, 1])).tolist() // => [3, 7]
   */
  static einsum(formula: string, ...operands: readonly Tensor[] | readonly [readonly Tensor[]]): Tensor {
    return area("linalg").einsum(formula, ...operands);
  }
  /**
   * X with `this @ X = b` (or `X @ this = b`, with `left: false`); `b` is a vector or a matrix, or a batch of
   * either. A singular matrix gives infinities and NaN.
   * @example
   * await new Tensor([[2, 0], [0, 4]]).solve(new Tensor([2, 8])).tolist() // => [1, 2]
   */
  solve(b: Tensor, options: SolveOptions = {}): Tensor {
    return area("linalg").solve(this, b, options);
  }
  /**
   * The inverse of each matrix; that of a singular one holds infinities and NaN.
   * @example
   * await new Tensor([[2, 0], [0, 4]]).inverse().tolist() // => [[0.5, 0], [0, 0.25]]
   */
  inverse(): Tensor {
    return area("linalg").inverse(this);
  }
  /**
   * torch.linalg's name for `inverse`.
   * @example
   * await new Tensor([[2, 0], [0, 4]]).inv().tolist() // => [[0.5, 0], [0, 0.25]]
   */
  inv(): Tensor {
    return area("linalg").inv(this);
  }
  /**
   * The matrix multiplied with itself `n` times; a negative power is one of the inverse.
   * @example
   * await new Tensor([[1, 1], [0, 1]]).matrixPower(5).tolist() // => [[1, 5], [0, 1]]
   */
  matrixPower(n: number): Tensor {
    return apart(area("linalg").matrixPower(this, n), this);
  }
  /**
   * The determinant of each matrix.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).det().item() // => -2
   */
  det(): Tensor {
    return area("linalg").det(this);
  }
  /**
   * The sign of the determinant of each matrix, and the logarithm of its absolute value: for determinants
   * that a float cannot hold. That of a singular matrix is 0 and -Infinity.
   * @example
   * await new Tensor([[-1, 0], [0, 1]]).slogdet()[0].item() // => -1
   */
  slogdet(): [sign: Tensor, logabsdet: Tensor] {
    return area("linalg").slogdet(this);
  }
  /**
   * The logarithm of the determinant of each matrix; NaN where it is negative.
   * @example
   * await new Tensor([[1, 0], [0, 1]]).logdet().item() // => 0
   */
  logdet(): Tensor {
    return area("linalg").logdet(this);
  }
  /**
   * X with `this @ X = b` (or `X @ this = b`, with `left: false`), where only the upper (or lower) triangle
   * of this matrix is looked at; with `unitriangular` its diagonal counts as ones.
   * @example
   * await new Tensor([[1, 0], [1, 2]]).solveTriangular(new Tensor([[1], [5]]), { upper: false }).tolist() // => [[1], [2]]
   */
  solveTriangular(b: Tensor, options: TriangularOptions = {}): Tensor {
    return area("linalg").solveTriangular(this, b, options);
  }
  /**
   * The lower triangle L with L @ Lᵀ = this, or with `upper` its transpose; the matrix must be symmetric and
   * positive definite, and only one triangle of it is looked at. If it is not positive definite there are NaN
   * in the result.
   * @example
   * await new Tensor([[4, 2], [2, 5]]).cholesky().tolist() // => [[2, 0], [1, 2]]
   */
  cholesky(options: CholeskyOptions = {}): Tensor {
    return area("linalg").cholesky(this, options);
  }
  /**
   * Orthogonal Q and upper triangular R with Q @ R = this. "reduced" gives min(m, n) columns of Q, "complete"
   * all m (without a gradient where m > n), "r" an empty Q. The signs are LAPACK's.
   * @example
   * await new Tensor([[0, 2], [1, 0]]).qr()[1].tolist() // => [[-1, 0], [0, -2]]
   */
  qr(mode: "reduced" | "complete" | "r" = "reduced"): [Q: Tensor, R: Tensor] {
    return area("linalg").qr(this, mode);
  }
  /**
   * U, S and Vᵀ with U @ diag(S) @ Vᵀ = this: orthogonal factors and singular values, largest first. With
   * `fullMatrices` U and V are square; their gradient is that of the first min(m, n) columns. Columns of U
   * and V are unique up to a common sign only.
   * @example
   * await new Tensor([[3, 0], [0, -4]]).svd()[1].tolist() // => [4, 3]
   */
  svd(fullMatrices = true): [U: Tensor, S: Tensor, Vh: Tensor] {
    return area("linalg").svd(this, fullMatrices);
  }
  /**
   * The singular values, largest first; their gradient is stable where that of the vectors is not.
   * @example
   * await new Tensor([[3, 0], [0, -4]]).svdvals().tolist() // => [4, 3]
   */
  svdvals(): Tensor {
    return area("linalg").svdvals(this);
  }
  /**
   * Eigenvalues, smallest first, and eigenvectors (as columns) of symmetric matrices, of which only one
   * triangle is looked at. Vectors are unique up to a sign only.
   * @example
   * await new Tensor([[2, 0], [0, 1]]).eigh()[0].tolist() // => [1, 2]
   */
  eigh(UPLO: "L" | "U" = "L"): [eigenvalues: Tensor, eigenvectors: Tensor] {
    return area("linalg").eigh(this, UPLO);
  }
  /**
   * The eigenvalues of symmetric matrices, smallest first.
   * @example
   * await new Tensor([[2, 0], [0, 1]]).eigvalsh().tolist() // => [1, 2]
   */
  eigvalsh(UPLO: "L" | "U" = "L"): Tensor {
    return area("linalg").eigvalsh(this, UPLO);
  }
  /**
   * The norm of the matrices in two dims: "fro" (all elements as a vector), "nuc" (the sum of the singular
   * values), ±2 (the largest or smallest of them), ±1 and ±Infinity (the largest or smallest sum of a column
   * or row).
   * @example
   * await new Tensor([[1, 2], [3, 4]]).matrixNorm(1).item() // => 6
   */
  matrixNorm(ord: MatrixOrd = "fro", dim: readonly [number, number] = [-2, -1], keepdim = false): Tensor {
    return area("linalg").matrixNorm(this, ord, dim, keepdim);
  }
  /**
   * torch.linalg.norm: without `ord` the 2-norm of all elements (or along `dim`), with `ord` that of a vector
   * or of a matrix, by the number of dims. `norm` is the older one, which takes a matrix for a vector.
   * @example
   * await new Tensor([[1, 2], [3, 4]]).linalgNorm(Infinity).item() // => 7
   */
  linalgNorm(
    ord?: MatrixOrd | null,
    dim?: number | readonly number[] | null,
    keepdim = false,
    options: { readonly dtype?: DTypeLike } = {},
  ): Tensor {
    return area("linalg").linalgNorm(this, ord, dim, keepdim, options);
  }
  /**
   * torch.norm: the vector norm of order `p` of all elements or along `dim`; "fro" is 2, "nuc" the sum of the
   * singular values of matrices.
   * @example
   * await new Tensor([[3, 0], [0, 4]]).norm("nuc").item() // => 7
   */
  norm(
    p: number | "fro" | "nuc" = 2,
    dim?: Axes,
    keepdim = false,
    typed: { readonly dtype?: DTypeLike } = {},
  ): Tensor {
    return area("linalg").norm(this, p, dim, keepdim, typed);
  }
  /**
   * How many singular values are above the cutoff: `atol`, or `rtol` times the largest (the default is the
   * rounding error of the type).
   * @example
   * await new Tensor([[1, 2], [2, 4]]).matrixRank().item() // => 1
   */
  matrixRank(cutoff: Cutoff = {}): Tensor {
    return area("linalg").matrixRank(this, cutoff);
  }
  /**
   * The pseudo-inverse of Moore and Penrose; singular values below the cutoff count as zero.
   * @example
   * await new Tensor([[2, 0], [0, 0]]).pinv().tolist() // => [[0.5, 0], [0, 0]]
   */
  pinv(cutoff: Cutoff = {}): Tensor {
    return area("linalg").pinv(this, cutoff);
  }
  /**
   * The X for which `this @ X` is as near to `b` as it gets, the smallest if there are several; with the
   * squares that are left (empty unless there are more rows than columns), the rank and the singular values.
   * @example
   * await new Tensor([[1, 0], [0, 2], [0, 0]]).lstsq(new Tensor([[1], [2], [3]])).solution.tolist() // => [[1], [1]]
   */
  lstsq(b: Tensor, cutoff: Cutoff = {}): LeastSquares<Tensor> {
    return area("linalg").lstsq(this, b, cutoff);
  }

  // ==== image: pictures as tensors, tensors as pictures ====

  /**
   * A picture as a tensor [channels, height, width] of uint8, as `read_image` of torchvision gives it, or of
   * floats from 0 to 1. PNG and JPEG everywhere (JPEG in Node by the package jpeg-js), in a page whatever the
   * browser decodes, and canvases, videos and ImageData.
   * @example
   * const png = await new Tensor([[0, 0.5, 1]]).toImage("png");
   * const picture = await Tensor.fromImage(png, { mode: "grey" });
   * await picture.tolist() // => [[[0, 128, 255]]]
   */
  static fromImage(source: ImageSource, options: ImageOptions = {}): Promise<Tensor> {
    return area("image").fromImage(source, options);
  }
  /**
   * The picture of a tensor [channels, height, width] or [height, width] as a file: "png" or "jpeg" gives its
   * bytes, a path that ends with .png, .jpg or .jpeg also writes it, "imagedata" gives ImageData for a
   * canvas. uint8 goes from 0 to 255; floats go from 0 to 1 and are clamped.
   * @example
   * const file = await Tensor.rand(3, 8, 8).toImage("png");
   * [...file.slice(1, 4)].map((b) => String.fromCharCode(b)).join("") // => "PNG"
   */
  toImage<F extends string = "png">(target?: F, options: ImageFileOptions = {}): Promise<ImageFile<F>> {
    return area("image").toImage(this, target, options);
  }
  /**
   * Draws a tensor [channels, height, width] or [height, width] on a canvas, which gets its size, as
   * `toImage` would: uint8 from 0 to 255, floats from 0 to 1. A tensor on WEBGPU goes there without a round
   * trip through the host, unless the canvas has a context "2d" already.
   * @example
   * await Tensor.zeros([8, 8]).toCanvas({}).catch((e) => e.message.slice(0, 27)) // => "toCanvas: expected a canvas"
   */
  toCanvas(canvas: CanvasLike, options: CanvasOptions = {}): Promise<void> {
    return area("image").toCanvas(this, canvas, options);
  }

  // ==== conv: windows over the last dims: convolution, pooling, images ====

  /**
   * The convolution over the last dim. `weight` is [out, in / groups, kernel].
   *
   * @example
   * await new Tensor([[1, 2, 3, 4]]).conv1d(new Tensor([[[1, 10]]])).tolist() // => [[21, 32, 43]]
   */
  conv1d(weight: Tensor, bias?: Tensor | null, options: ConvOptions = {}): Tensor {
    return area("conv").conv1d(this, weight, bias, options);
  }
  /**
   * The convolution over the last two dims. `weight` is [out, in / groups, height, width].
   *
   * @example
   * await new Tensor([[[1, 2], [3, 4]]]).conv2d(new Tensor([[[[1, 1], [1, 1]]]])).tolist() // => [[[10]]]
   */
  conv2d(weight: Tensor, bias?: Tensor | null, options: ConvOptions = {}): Tensor {
    return area("conv").conv2d(this, weight, bias, options);
  }
  /**
   * The convolution over the last three dims. `weight` is [out, in / groups, depth, height, width].
   *
   * @example
   * await new Tensor([[[[1, 2]]]]).conv3d(new Tensor([[[[[3]]]]]), new Tensor([1])).tolist() // => [[[[4, 7]]]]
   */
  conv3d(weight: Tensor, bias?: Tensor | null, options: ConvOptions = {}): Tensor {
    return area("conv").conv3d(this, weight, bias, options);
  }
  /**
   * The transposed convolution: what a convolution does to gradients. `weight` is [in, out / groups, kernel].
   *
   * @example
   * await new Tensor([[1, 2]]).convTranspose1d(new Tensor([[[1, 10]]]), null, { stride: 2 }).tolist() // => [[1, 10, 2, 20]]
   */
  convTranspose1d(weight: Tensor, bias?: Tensor | null, options: ConvTransposeOptions = {}): Tensor {
    return area("conv").convTranspose1d(this, weight, bias, options);
  }
  /**
   * The transposed convolution over two dims. `weight` is [in, out / groups, height, width].
   *
   * @example
   * await new Tensor([[[2]]]).convTranspose2d(new Tensor([[[[1, 2], [3, 4]]]])).tolist() // => [[[2, 4], [6, 8]]]
   */
  convTranspose2d(weight: Tensor, bias?: Tensor | null, options: ConvTransposeOptions = {}): Tensor {
    return area("conv").convTranspose2d(this, weight, bias, options);
  }
  /**
   * The transposed convolution over three dims. `weight` is [in, out / groups, depth, height, width].
   *
   * @example
   * await new Tensor([[[[2]]]]).convTranspose3d(new Tensor([[[[[1, 3]]]]])).tolist() // => [[[[2, 6]]]]
   */
  convTranspose3d(weight: Tensor, bias?: Tensor | null, options: ConvTransposeOptions = {}): Tensor {
    return area("conv").convTranspose3d(this, weight, bias, options);
  }
  /**
   * Means of windows along the last dim.
   *
   * @example
   * await new Tensor([[1, 3, 5, 7]]).avgPool1d(2).tolist() // => [[2, 6]]
   */
  avgPool1d(kernelSize: PerDim, options: AvgPoolOptions = {}): Tensor {
    return area("conv").avgPool1d(this, kernelSize, options);
  }
  /**
   * Means of windows over the last two dims.
   *
   * @example
   * await new Tensor([[[1, 2], [3, 6]]]).avgPool2d(2).tolist() // => [[[3]]]
   */
  avgPool2d(kernelSize: PerDim, options: AvgPoolOptions = {}): Tensor {
    return area("conv").avgPool2d(this, kernelSize, options);
  }
  /**
   * Means of windows over the last three dims.
   *
   * @example
   * await new Tensor([[[[1, 2], [3, 6]]]]).avgPool3d([1, 2, 2]).tolist() // => [[[[3]]]]
   */
  avgPool3d(kernelSize: PerDim, options: AvgPoolOptions = {}): Tensor {
    return area("conv").avgPool3d(this, kernelSize, options);
  }
  /**
   * Maxima of windows along the last dim.
   *
   * @example
   * await new Tensor([[1, 3, 7, 5]]).maxPool1d(2).tolist() // => [[3, 7]]
   */
  maxPool1d(kernelSize: PerDim, options: MaxPoolOptions = {}): Tensor {
    return apart(area("conv").maxPool1d(this, kernelSize, options), this);
  }
  /**
   * Maxima of windows over the last two dims.
   *
   * @example
   * await new Tensor([[[1, 2], [3, 6]]]).maxPool2d(2).tolist() // => [[[6]]]
   */
  maxPool2d(kernelSize: PerDim, options: MaxPoolOptions = {}): Tensor {
    return apart(area("conv").maxPool2d(this, kernelSize, options), this);
  }
  /**
   * Maxima of windows over the last three dims.
   *
   * @example
   * await new Tensor([[[[1, 2], [3, 6]]]]).maxPool3d([1, 2, 1]).tolist() // => [[[[3, 6]]]]
   */
  maxPool3d(kernelSize: PerDim, options: MaxPoolOptions = {}): Tensor {
    return apart(area("conv").maxPool3d(this, kernelSize, options), this);
  }
  /**
   * The maxima and their numbers in the flattened spatial dims.
   *
   * @example
   * await new Tensor([[1, 3, 7, 5]]).maxPool1dWithIndices(2)[1].tolist() // => [[1, 2]]
   */
  maxPool1dWithIndices(kernelSize: PerDim, options: MaxPoolOptions = {}): [Tensor, Tensor] {
    return bothApart(area("conv").maxPool1dWithIndices(this, kernelSize, options), this);
  }
  /**
   * The maxima and their numbers in the flattened spatial dims.
   *
   * @example
   * await new Tensor([[[1, 2], [3, 6]]]).maxPool2dWithIndices(2)[1].tolist() // => [[[3]]]
   */
  maxPool2dWithIndices(kernelSize: PerDim, options: MaxPoolOptions = {}): [Tensor, Tensor] {
    return bothApart(area("conv").maxPool2dWithIndices(this, kernelSize, options), this);
  }
  /**
   * The maxima and their numbers in the flattened spatial dims.
   *
   * @example
   * await new Tensor([[[[1, 2], [3, 6]]]]).maxPool3dWithIndices([1, 2, 1])[1].tolist() // => [[[[2, 3]]]]
   */
  maxPool3dWithIndices(kernelSize: PerDim, options: MaxPoolOptions = {}): [Tensor, Tensor] {
    return bothApart(area("conv").maxPool3dWithIndices(this, kernelSize, options), this);
  }
  /**
   * Means over as many windows as asked for; they may overlap by an element.
   *
   * @example
   * await new Tensor([[1, 2, 3]]).adaptiveAvgPool1d(2).tolist() // => [[1.5, 2.5]]
   */
  adaptiveAvgPool1d(outputSize: OutputSize): Tensor {
    return apart(area("conv").adaptiveAvgPool1d(this, outputSize), this);
  }
  /**
   * Means over as many windows as asked for; null keeps a size.
   *
   * @example
   * await new Tensor([[[1, 2], [3, 6]]]).adaptiveAvgPool2d([1, null]).tolist() // => [[[2, 4]]]
   */
  adaptiveAvgPool2d(outputSize: OutputSize): Tensor {
    return apart(area("conv").adaptiveAvgPool2d(this, outputSize), this);
  }
  /**
   * Means over as many windows as asked for; null keeps a size.
   *
   * @example
   * await new Tensor([[[[1, 2], [3, 6]]]]).adaptiveAvgPool3d(1).tolist() // => [[[[3]]]]
   */
  adaptiveAvgPool3d(outputSize: OutputSize): Tensor {
    return apart(area("conv").adaptiveAvgPool3d(this, outputSize), this);
  }
  /**
   * Maxima over as many windows as asked for.
   *
   * @example
   * await new Tensor([[1, 3, 2]]).adaptiveMaxPool1d(2).tolist() // => [[3, 3]]
   */
  adaptiveMaxPool1d(outputSize: OutputSize): Tensor {
    return apart(area("conv").adaptiveMaxPool1d(this, outputSize), this);
  }
  /**
   * Maxima over as many windows as asked for; null keeps a size.
   *
   * @example
   * await new Tensor([[[1, 2], [3, 6]]]).adaptiveMaxPool2d([1, null]).tolist() // => [[[3, 6]]]
   */
  adaptiveMaxPool2d(outputSize: OutputSize): Tensor {
    return apart(area("conv").adaptiveMaxPool2d(this, outputSize), this);
  }
  /**
   * Maxima over as many windows as asked for; null keeps a size.
   *
   * @example
   * await new Tensor([[[[1, 2], [3, 6]]]]).adaptiveMaxPool3d(1).tolist() // => [[[[6]]]]
   */
  adaptiveMaxPool3d(outputSize: OutputSize): Tensor {
    return apart(area("conv").adaptiveMaxPool3d(this, outputSize), this);
  }
  /**
   * The maxima and their numbers in the last dim.
   *
   * @example
   * await new Tensor([[1, 3, 2]]).adaptiveMaxPool1dWithIndices(2)[1].tolist() // => [[1, 1]]
   */
  adaptiveMaxPool1dWithIndices(outputSize: OutputSize): [Tensor, Tensor] {
    return bothApart(area("conv").adaptiveMaxPool1dWithIndices(this, outputSize), this);
  }
  /**
   * The maxima and their numbers in the flattened spatial dims.
   *
   * @example
   * await new Tensor([[[1, 2], [3, 6]]]).adaptiveMaxPool2dWithIndices(1)[1].tolist() // => [[[3]]]
   */
  adaptiveMaxPool2dWithIndices(outputSize: OutputSize): [Tensor, Tensor] {
    return bothApart(area("conv").adaptiveMaxPool2dWithIndices(this, outputSize), this);
  }
  /**
   * The maxima and their numbers in the flattened spatial dims.
   *
   * @example
   * await new Tensor([[[[1, 2], [3, 6]]]]).adaptiveMaxPool3dWithIndices(1)[1].tolist() // => [[[[3]]]]
   */
  adaptiveMaxPool3dWithIndices(outputSize: OutputSize): [Tensor, Tensor] {
    return bothApart(area("conv").adaptiveMaxPool3dWithIndices(this, outputSize), this);
  }
  /**
   * The last dims (all but batch and channels) in another size: `size`, or `scaleFactor` times the old one.
   *
   * @example
   * await new Tensor([[[1, 2]]]).interpolate({ scaleFactor: 2 }).tolist() // => [[[1, 1, 2, 2]]]
   */
  interpolate(options: InterpolateOptions = {}): Tensor {
    return apart(area("conv").interpolate(this, options), this);
  }
  /**
   * `interpolate` under torch's older name.
   *
   * @example
   * await new Tensor([[[1, 3]]]).upsample({ size: 3, mode: "linear", alignCorners: true }).tolist() // => [[[1, 2, 3]]]
   */
  upsample(options: InterpolateOptions = {}): Tensor {
    return apart(area("conv").upsample(this, options), this);
  }
  /**
   * Repeats elements to reach `size` or `scaleFactor` times the size.
   *
   * @example
   * await new Tensor([[[1, 2]]]).upsampleNearest({ size: 4 }).tolist() // => [[[1, 1, 2, 2]]]
   */
  upsampleNearest(options: InterpolateOptions = {}): Tensor {
    return apart(area("conv").upsampleNearest(this, options), this);
  }
  /**
   * Bilinear interpolation of images with their corners aligned.
   *
   * @example
   * await new Tensor([[[[1, 3]]]]).upsampleBilinear({ size: [1, 3] }).tolist() // => [[[[1, 2, 3]]]]
   */
  upsampleBilinear(options: InterpolateOptions = {}): Tensor {
    return apart(area("conv").upsampleBilinear(this, options), this);
  }
  /**
   * The windows of images as columns: [n, c, h, w] becomes [n, c * kernel, positions].
   * torch.nn.functional.unfold; the method `unfold` is torch.Tensor's.
   *
   * @example
   * await new Tensor([[[[1, 2], [3, 4]]]]).imUnfold([1, 2]).tolist() // => [[[1, 3], [2, 4]]]
   */
  imUnfold(kernelSize: PerDim, options: WindowOptions = {}): Tensor {
    return apart(area("conv").imUnfold(this, kernelSize, options), this);
  }
  /**
   * The sum of the windows in columns, each at its position: [n, c * kernel, positions] becomes
   * [n, c, ...outputSize].
   *
   * @example
   * await new Tensor([[[1, 3], [2, 4]]]).imFold([2, 2], [1, 2]).tolist() // => [[[[1, 2], [3, 4]]]]
   */
  imFold(outputSize: PerDim, kernelSize: PerDim, options: WindowOptions = {}): Tensor {
    return apart(area("conv").imFold(this, outputSize, kernelSize, options), this);
  }
  /**
   * The root of the sum of powers of windows along the last dim.
   *
   * @example
   * await new Tensor([[3, 4, 0, 2]]).lpPool1d(2, 2).tolist() // => [[5, 2]]
   */
  lpPool1d(normType: number, kernelSize: PerDim, options: LpPoolOptions = {}): Tensor {
    return area("conv").lpPool1d(this, normType, kernelSize, options);
  }
  /**
   * The root of the sum of powers of windows over the last two dims.
   *
   * @example
   * await new Tensor([[[3, 0], [0, 4]]]).lpPool2d(2, 2).tolist() // => [[[5]]]
   */
  lpPool2d(normType: number, kernelSize: PerDim, options: LpPoolOptions = {}): Tensor {
    return area("conv").lpPool2d(this, normType, kernelSize, options);
  }
  /**
   * The root of the sum of powers of windows over the last three dims.
   *
   * @example
   * await new Tensor([[[[3, 0], [0, 4]]]]).lpPool3d(2, [1, 2, 2]).tolist() // => [[[[5]]]]
   */
  lpPool3d(normType: number, kernelSize: PerDim, options: LpPoolOptions = {}): Tensor {
    return area("conv").lpPool3d(this, normType, kernelSize, options);
  }
  /**
   * Channels become pixels: [..., c * r * r, h, w] becomes [..., c, h * r, w * r].
   *
   * @example
   * await new Tensor([[[1]], [[2]], [[3]], [[4]]]).pixelShuffle(2).tolist() // => [[[1, 2], [3, 4]]]
   */
  pixelShuffle(upscaleFactor: number): Tensor {
    return apart(area("conv").pixelShuffle(this, upscaleFactor), this);
  }
  /**
   * Pixels become channels: [..., c, h * r, w * r] becomes [..., c * r * r, h, w].
   *
   * @example
   * await new Tensor([[[1, 2], [3, 4]]]).pixelUnshuffle(2).tolist() // => [[[1]], [[2]], [[3]], [[4]]]
   */
  pixelUnshuffle(downscaleFactor: number): Tensor {
    return apart(area("conv").pixelUnshuffle(this, downscaleFactor), this);
  }
  /**
   * Channels (dim 1) in `groups` parts, dealt out in turn.
   *
   * @example
   * await new Tensor([[[1], [2], [3], [4]]]).channelShuffle(2).tolist() // => [[[1], [3], [2], [4]]]
   */
  channelShuffle(groups: number): Tensor {
    return apart(area("conv").channelShuffle(this, groups), this);
  }
  /**
   * The maxima of `maxPool1dWithIndices` at the elements they came from, zeros elsewhere.
   *
   * @example
   * await new Tensor([[3, 7]]).maxUnpool1d(new Tensor([[1, 2]]), 2).tolist() // => [[0, 3, 7, 0]]
   */
  maxUnpool1d(indices: Tensor, kernelSize: PerDim, options: UnpoolOptions = {}): Tensor {
    return area("conv").maxUnpool1d(this, indices, kernelSize, options);
  }
  /**
   * The maxima of `maxPool2dWithIndices` at the elements they came from, zeros elsewhere.
   *
   * @example
   * await new Tensor([[[6]]]).maxUnpool2d(new Tensor([[[3]]]), 2).tolist() // => [[[0, 0], [0, 6]]]
   */
  maxUnpool2d(indices: Tensor, kernelSize: PerDim, options: UnpoolOptions = {}): Tensor {
    return area("conv").maxUnpool2d(this, indices, kernelSize, options);
  }
  /**
   * The maxima of `maxPool3dWithIndices` at the elements they came from, zeros elsewhere.
   *
   * @example
   * await new Tensor([[[[6]]]]).maxUnpool3d(new Tensor([[[[1]]]]), [1, 1, 2]).tolist() // => [[[[0, 6]]]]
   */
  maxUnpool3d(indices: Tensor, kernelSize: PerDim, options: UnpoolOptions = {}): Tensor {
    return area("conv").maxUnpool3d(this, indices, kernelSize, options);
  }

  // ==== losses: how far a prediction is from its target ====

  /**
   * Vectors along `dim` divided by their p-norm; shorter ones than `eps` are divided by `eps`.
   *
   * @example
   * await new Tensor([[3, 4]]).normalize({ p: 1 }).mul(7).tolist() // => [[3, 4]]
   */
  normalize(options: NormalizeOptions = {}): Tensor {
    return area("distances").normalize(this, options);
  }
  /**
   * The cosine of the angle between vectors along `dim`.
   *
   * @example
   * await new Tensor([[3, 4]]).cosineSimilarity(new Tensor([[4, 3]])).mul(25).round().tolist() // => [24]
   */
  cosineSimilarity(x2: Tensor, options: { dim?: number; eps?: number } = {}): Tensor {
    return area("distances").cosineSimilarity(this, x2, options);
  }
  /**
   * The p-norm of the differences of vectors along the last dim, each difference moved by `eps`.
   *
   * @example
   * await new Tensor([[1, 1]]).pairwiseDistance(new Tensor([[4, 5]]), { eps: 0 }).tolist() // => [5]
   */
  pairwiseDistance(x2: Tensor, options: PairwiseOptions = {}): Tensor {
    return area("distances").pairwiseDistance(this, x2, options);
  }
  /**
   * The p-norm of the difference of each row here and each row of `x2`: [..., m, k] and [..., n, k] give
   * [..., m, n].
   *
   * @example
   * await new Tensor([[0, 0], [3, 4]]).cdist(new Tensor([[0, 0]])).tolist() // => [[0], [5]]
   */
  cdist(x2: Tensor, p = 2): Tensor {
    return area("distances").cdist(this, x2, p);
  }
  /**
   * The cross entropy between logits (classes along dim 1) and class numbers, or a probability for each
   * class.
   *
   * @example
   * await new Tensor([[0, 0]]).crossEntropy(new Tensor([1])).exp().item() // => 2
   */
  crossEntropy(target: Tensor, options: CrossEntropyOptions<Tensor> = {}): Tensor {
    return area("losses").crossEntropy(this, target, options);
  }
  /**
   * The negative log-likelihood: this tensor holds log-probabilities, classes along dim 1.
   *
   * @example
   * await new Tensor([[-1, -2]]).nllLoss(new Tensor([1])).item() // => 2
   */
  nllLoss(target: Tensor, options: ClassLossOptions<Tensor> = {}): Tensor {
    return area("losses").nllLoss(this, target, options);
  }
  /**
   * tinygrad's cross entropy: logits with the classes along the last dim, and class numbers; -1 is ignored.
   *
   * @example
   * await new Tensor([[0, 0]]).sparseCategoricalCrossentropy(new Tensor([1])).exp().item() // => 2
   */
  sparseCategoricalCrossentropy(target: Tensor, options: CrossEntropyOptions<Tensor> = {}): Tensor {
    return area("losses").sparseCategoricalCrossentropy(this, target, options);
  }
  /**
   * The binary cross entropy of probabilities; their logarithms are cut at -100.
   *
   * @example
   * await new Tensor([0.5]).binaryCrossEntropy(new Tensor([1], { dtype: "float32" })).exp().item() // => 2
   */
  binaryCrossEntropy(target: Tensor, options: WeightedLossOptions<Tensor> = {}): Tensor {
    return area("losses").binaryCrossEntropy(this, target, options);
  }
  /**
   * The binary cross entropy of logits.
   *
   * @example
   * await new Tensor([0]).bceWithLogits(new Tensor([1])).exp().item() // => 2
   */
  bceWithLogits(target: Tensor, options: BceOptions<Tensor> = {}): Tensor {
    return area("losses").bceWithLogits(this, target, options);
  }
  /**
   * `bceWithLogits` under torch's long name.
   *
   * @example
   * await new Tensor([0]).binaryCrossEntropyWithLogits(new Tensor([1])).exp().item() // => 2
   */
  binaryCrossEntropyWithLogits(target: Tensor, options: BceOptions<Tensor> = {}): Tensor {
    return area("losses").binaryCrossEntropyWithLogits(this, target, options);
  }
  /**
   * The Kullback-Leibler divergence of log-probabilities from a target of probabilities (or of their
   * logarithms).
   *
   * @example
   * await new Tensor([-1, -2]).klDiv(new Tensor([0, 1]), { reduction: "sum" }).item() // => 2
   */
  klDiv(target: Tensor, options: KlDivOptions = {}): Tensor {
    return area("distances").klDiv(this, target, options);
  }
  /**
   * The mean of the squares of the differences.
   *
   * @example
   * await new Tensor([1, 2]).mseLoss(new Tensor([1, 4])).item() // => 2
   */
  mseLoss(target: Tensor, options: WeightedLossOptions<Tensor> = {}): Tensor {
    return area("losses").mseLoss(this, target, options);
  }
  /**
   * The mean of the magnitudes of the differences.
   *
   * @example
   * await new Tensor([1, 2]).l1Loss(new Tensor([1, 4])).item() // => 1
   */
  l1Loss(target: Tensor, options: WeightedLossOptions<Tensor> = {}): Tensor {
    return area("losses").l1Loss(this, target, options);
  }
  /**
   * Squares of differences below `beta`, magnitudes beyond.
   *
   * @example
   * await new Tensor([1, 2]).smoothL1Loss(new Tensor([2, 4]), { reduction: "none" }).tolist() // => [0.5, 1.5]
   */
  smoothL1Loss(target: Tensor, options: LossOptions & { beta?: number } = {}): Tensor {
    return area("distances").smoothL1Loss(this, target, options);
  }
  /**
   * Half the squares of differences up to `delta`, `delta` times their magnitudes beyond.
   *
   * @example
   * await new Tensor([1, 2]).huberLoss(new Tensor([2, 4]), { reduction: "none" }).tolist() // => [0.5, 1.5]
   */
  huberLoss(target: Tensor, options: LossOptions & { delta?: number } = {}): Tensor {
    return area("distances").huberLoss(this, target, options);
  }
  /**
   * The distance itself where the target is 1, what is missing to `margin` where it is -1.
   *
   * @example
   * await new Tensor([0.5, 0.25]).hingeEmbeddingLoss(new Tensor([1, -1]), { reduction: "none" }).tolist() // => [0.5, 0.75]
   */
  hingeEmbeddingLoss(target: Tensor, options: MarginOptions = {}): Tensor {
    return area("distances").hingeEmbeddingLoss(this, target, options);
  }
  /**
   * How far this tensor fails to be above `other` (target 1) or below it (target -1) by `margin`.
   *
   * @example
   * await new Tensor([1, 3]).marginRankingLoss(new Tensor([2, 2]), new Tensor([1, 1])).item() // => 0.5
   */
  marginRankingLoss(other: Tensor, target: Tensor, options: MarginOptions = {}): Tensor {
    return area("distances").marginRankingLoss(this, other, target, options);
  }
  /**
   * How far `positive` fails to be nearer than `negative` by `margin`.
   *
   * @example
   * await new Tensor([[0, 0]]).tripletMarginLoss(new Tensor([[0, 0]]), new Tensor([[3, 4]])).item() // => 0
   */
  tripletMarginLoss(positive: Tensor, negative: Tensor, options: TripletOptions = {}): Tensor {
    return area("distances").tripletMarginLoss(this, positive, negative, options);
  }
  /**
   * 1 - the cosine where the target is 1, the cosine above `margin` where it is -1.
   *
   * @example
   * await new Tensor([[1, 0]]).cosineEmbeddingLoss(new Tensor([[0, 1]]), new Tensor([1])).item() // => 1
   */
  cosineEmbeddingLoss(other: Tensor, target: Tensor, options: MarginOptions = {}): Tensor {
    return area("distances").cosineEmbeddingLoss(this, other, target, options);
  }
  /**
   * log(1 + exp(-target * x)), for targets 1 and -1.
   *
   * @example
   * await new Tensor([0]).softMarginLoss(new Tensor([1])).exp().item() // => 2
   */
  softMarginLoss(target: Tensor, options: LossOptions = {}): Tensor {
    return area("distances").softMarginLoss(this, target, options);
  }
  /**
   * The negative log-likelihood of counts under a Poisson distribution; this tensor is (the logarithm of) its
   * mean.
   *
   * @example
   * await new Tensor([0]).poissonNllLoss(new Tensor([3])).item() // => 1
   */
  poissonNllLoss(target: Tensor, options: PoissonOptions = {}): Tensor {
    return area("distances").poissonNllLoss(this, target, options);
  }
  /**
   * The negative log-likelihood of the target under normal distributions with this mean and the given
   * variance.
   *
   * @example
   * await new Tensor([1]).gaussianNllLoss(new Tensor([3]), new Tensor([1])).item() // => 2
   */
  gaussianNllLoss(target: Tensor, variance: Tensor, options: GaussianOptions = {}): Tensor {
    return area("distances").gaussianNllLoss(this, target, variance, options);
  }
  /**
   * How far the other classes come within `margin` of the right one, to the power of `p`, over the number of
   * classes.
   *
   * @example
   * await new Tensor([[1, 2, 0]]).multiMarginLoss(new Tensor([1])).item() // => 0
   */
  multiMarginLoss(target: Tensor, options: MultiMarginOptions<Tensor> = {}): Tensor {
    return area("distances").multiMarginLoss(this, target, options);
  }
  /**
   * How far each class that is not a target comes within 1 of each that is. The targets of a row are class
   * numbers up to the first -1.
   *
   * @example
   * await new Tensor([[1, 2, 0.5]]).multilabelMarginLoss(new Tensor([[1, -1, 0]])).item() // => 0
   */
  multilabelMarginLoss(target: Tensor, options: MarginOptions = {}): Tensor {
    return area("distances").multilabelMarginLoss(this, target, options);
  }
  /**
   * The binary cross entropy of the logits of each class, averaged over the classes.
   *
   * @example
   * await new Tensor([[0, 0]]).multilabelSoftMarginLoss(new Tensor([[1, 0]])).exp().item() // => 2
   */
  multilabelSoftMarginLoss(target: Tensor, options: WeightedLossOptions<Tensor> = {}): Tensor {
    return area("distances").multilabelSoftMarginLoss(this, target, options);
  }

  // ==== neural: activations, normalisation, attention ====

  /**
   * What is negative becomes 0.
   * @example
   * await new Tensor([-1, 2]).relu().tolist() // => [0, 2]
   */
  relu(): Tensor {
    return neural.relu(this);
  }
  /**
   * relu, not above 6.
   * @example
   * await new Tensor([-1, 2, 9]).relu6().tolist() // => [0, 2, 6]
   */
  relu6(): Tensor {
    return area("neural").relu6(this);
  }
  /**
   * relu with a slope for what is negative.
   * @example
   * await new Tensor([-100, 2]).leakyRelu(0.5).tolist() // => [-50, 2]
   */
  leakyRelu(negativeSlope = 0.01): Tensor {
    return neural.leakyRelu(this, negativeSlope);
  }
  /**
   * leakyRelu with a learned slope: one for all, or one for each channel (dim 1).
   * @example
   * await new Tensor([-4.0, 2.5]).prelu(new Tensor([0.25])).tolist() // => [-1, 2.5]
   */
  prelu(weight: Tensor): Tensor {
    return area("neural").prelu(this, weight);
  }
  /**
   * x below 0 becomes alpha (exp(x) - 1), the rest stays.
   * @example
   * await new Tensor([-Infinity, 2]).elu().tolist() // => [-1, 2]
   */
  elu(alpha = 1): Tensor {
    return neural.elu(this, alpha);
  }
  /**
   * elu whose slope is continuous for every alpha.
   * @example
   * await new Tensor([-Infinity, 2]).celu(2).tolist() // => [-2, 2]
   */
  celu(alpha = 1): Tensor {
    return area("neural").celu(this, alpha);
  }
  /**
   * The elu that keeps mean 0 and variance 1 from layer to layer.
   * @example
   * await new Tensor([0, 1]).selu().tolist() // => [0, 1.0507010221481323]
   */
  selu(): Tensor {
    return area("neural").selu(this);
  }
  /**
   * x sigmoid(x), also called swish.
   * @example
   * await new Tensor([0, 20]).silu().tolist() // => [0, 20]
   */
  silu(): Tensor {
    return neural.silu(this);
  }
  /**
   * x tanh(softplus(x))
   * @example
   * await new Tensor([0, 20]).mish().tolist() // => [0, 20]
   */
  mish(): Tensor {
    return area("neural").mish(this);
  }
  /**
   * x times the share of the normal distribution below it; "tanh" is the approximation of the first
   * transformers.
   * @example
   * await new Tensor([0, 10]).gelu().tolist() // => [0, 10]
   */
  gelu(approximate: "none" | "tanh" = "none"): Tensor {
    return neural.gelu(this, approximate);
  }
  /**
   * log(1 + exp(beta x)) / beta, a smooth relu; x itself where beta x is above `threshold`.
   * @example
   * await new Tensor([0, 30]).softplus().tolist() // => [0.6931471824645996, 30]
   */
  softplus(beta = 1, threshold = 20): Tensor {
    return neural.softplus(this, beta, threshold);
  }
  /**
   * The logarithm of sigmoid.
   * @example
   * await new Tensor([0, -100]).logsigmoid().tolist() // => [-0.6931471824645996, -100]
   */
  logsigmoid(): Tensor {
    return neural.logsigmoid(this);
  }
  /**
   * The logarithm of x / (1 - x), the inverse of sigmoid; with `eps`, x is kept that far from 0 and 1.
   * @example
   * await new Tensor([0.5, 1.0]).logit().tolist() // => [0, Infinity]
   */
  logit(eps?: number | null): Tensor {
    return area("neural").logit(this, eps);
  }
  /**
   * x / (1 + |x|)
   * @example
   * await new Tensor([1, -3]).softsign().tolist() // => [0.5, -0.75]
   */
  softsign(): Tensor {
    return area("neural").softsign(this);
  }
  /**
   * x - tanh(x)
   * @example
   * await new Tensor([0, 20]).tanhshrink().tolist() // => [0, 19]
   */
  tanhshrink(): Tensor {
    return area("neural").tanhshrink(this);
  }
  /**
   * What is within [-lambd, lambd] becomes 0.
   * @example
   * await new Tensor([0.25, -2.5]).hardshrink().tolist() // => [0, -2.5]
   */
  hardshrink(lambd = 0.5): Tensor {
    return area("neural").hardshrink(this, lambd);
  }
  /**
   * Everything moves towards 0 by `lambd`, and no further.
   * @example
   * await new Tensor([0.25, -2.5]).softshrink().tolist() // => [0, -2]
   */
  softshrink(lambd = 0.5): Tensor {
    return area("neural").softshrink(this, lambd);
  }
  /**
   * Not below `minVal` and not above `maxVal`; no gradient flows at the bounds.
   * @example
   * await new Tensor([-3, 0.5, 3]).hardtanh().tolist() // => [-1, 0.5, 1]
   */
  hardtanh(minVal = -1, maxVal = 1): Tensor {
    return neural.hardtanh(this, minVal, maxVal);
  }
  /**
   * A straight line from (-3, 0) to (3, 1) in place of sigmoid.
   * @example
   * await new Tensor([-4, 0, 4]).hardsigmoid().tolist() // => [0, 0.5, 1]
   */
  hardsigmoid(): Tensor {
    return area("neural").hardsigmoid(this);
  }
  /**
   * x hardsigmoid(x)
   * @example
   * await new Tensor([-4, 0, 4]).hardswish().tolist() // => [0, 0, 4]
   */
  hardswish(): Tensor {
    return area("neural").hardswish(this);
  }
  /**
   * What is not above `threshold` becomes `value`.
   * @example
   * await new Tensor([1, 5]).threshold(3, -1).tolist() // => [-1, 5]
   */
  threshold(threshold: number, value: number): Tensor {
    return area("neural").threshold(this, threshold, value);
  }
  /**
   * Half of `dim`, times the sigmoid of the other half.
   * @example
   * await new Tensor([3.0, 0.0]).glu().tolist() // => [1.5]
   */
  glu(dim = -1): Tensor {
    return area("neural").glu(this, dim);
  }
  /**
   * softmax of -x
   * @example
   * await new Tensor([3, 3]).softmin().tolist() // => [0.5, 0.5]
   */
  softmin(dim = -1, options: Typed = {}): Tensor {
    return area("neural").softmin(this, dim, options);
  }
  /**
   * 0 below zero, 1 above it, and `values` at zero.
   * @example
   * await new Tensor([-1.5, 0, 2]).heaviside(0.5).tolist() // => [0, 0.5, 1]
   */
  heaviside(values: Tensor | Element): Tensor {
    return area("neural").heaviside(this, values);
  }
  /**
   * this + value * a * b
   * @example
   * await new Tensor([1, 1]).addcmul(new Tensor([2, 3]), new Tensor([4, 5]), { value: 2 }).tolist() // => [17, 31]
   */
  addcmul(a: Tensor, b: Tensor, options: { readonly value?: Element } = {}): Tensor {
    return area("neural").addcmul(this, a, b, options);
  }
  /**
   * this + value * a / b
   * @example
   * await new Tensor([1, 1]).addcdiv(new Tensor([8, 9]), new Tensor([4, 3])).tolist() // => [3, 4]
   */
  addcdiv(a: Tensor, b: Tensor, options: { readonly value?: Element } = {}): Tensor {
    return area("neural").addcdiv(this, a, b, options);
  }
  /**
   * exp(x) / sum(exp(x)) along `dim`, safe for large values.
   * @example
   * await new Tensor([3, 3]).softmax().tolist() // => [0.5, 0.5]
   */
  softmax(dim = -1, options: Typed = {}): Tensor {
    return neural.softmax(this, dim, options);
  }
  /**
   * The logarithm of softmax, without the detour.
   * @example
   * await new Tensor([3, 3]).logSoftmax().exp().sum().item() // => 1
   */
  logSoftmax(dim = -1, options: Typed = {}): Tensor {
    return neural.logSoftmax(this, dim, options);
  }
  /**
   * x W^T + b: `weight` is [out, in].
   *
   * @example
   * await new Tensor([1, 2]).linear(new Tensor([[3, 4], [5, 6]]), new Tensor([10, 20])).tolist() // => [21, 37]
   */
  linear(weight: Tensor, bias?: Tensor | null): Tensor {
    return area("neural").linear(this, weight, bias);
  }
  /**
   * Normalises each channel (dim 1): in training by its mean and variance in this batch, otherwise by the
   * running ones. Training also assigns the moved running statistics, which are computed when those are
   * realised: realise them with the step that made them.
   *
   * @example
   * await new Tensor([[3], [5]]).batchNorm(new Tensor([1]), new Tensor([4]), { eps: 0 }).tolist() // => [[1], [2]]
   */
  batchNorm(
    runningMean?: Tensor | null,
    runningVar?: Tensor | null,
    options: BatchNormOptions<Tensor> = {},
  ): Tensor {
    return area("neural").batchNorm(this, runningMean, runningVar, options);
  }
  /**
   * Normalises over the last dims, whose sizes are given.
   *
   * @example
   * await new Tensor([[1, 3]]).layerNorm([2], { eps: 0 }).tolist() // => [[-1, 1]]
   */
  layerNorm(normalizedShape: number | readonly number[], options: AffineOptions<Tensor> = {}): Tensor {
    return area("neural").layerNorm(this, normalizedShape, options);
  }
  /**
   * Divides by the root of the mean square over the last dims, whose sizes are given.
   *
   * @example
   * await new Tensor([[3, 3]]).rmsNorm([2], { eps: 0 }).tolist() // => [[1, 1]]
   */
  rmsNorm(normalizedShape: number | readonly number[], options: RmsNormOptions<Tensor> = {}): Tensor {
    return area("neural").rmsNorm(this, normalizedShape, options);
  }
  /**
   * Normalises each of `numGroups` groups of channels of each sample.
   *
   * @example
   * await new Tensor([[1, 3, 5, 7]]).groupNorm(2, { eps: 0 }).tolist() // => [[-1, 1, -1, 1]]
   */
  groupNorm(numGroups: number, options: AffineOptions<Tensor> = {}): Tensor {
    return area("neural").groupNorm(this, numGroups, options);
  }
  /**
   * Normalises each channel of each sample over its spatial dims.
   *
   * @example
   * await new Tensor([[[1, 3], [5, 5]]]).instanceNorm({ eps: 1 }).mul(Math.SQRT2).round().tolist() // => [[[-1, 1], [0, 0]]]
   */
  instanceNorm(options: InstanceNormOptions<Tensor> = {}): Tensor {
    return area("neural").instanceNorm(this, options);
  }
  /**
   * softmax(q k^T scale + mask) v, this tensor being the queries: [..., L, E], keys [..., S, E] and values
   * [..., S, V] give [..., L, V]. A query that may see no key gives 0.
   *
   * @example
   * await new Tensor([[0]]).scaledDotProductAttention(new Tensor([[1], [1]]), new Tensor([[2], [4]])).tolist() // => [[3]]
   */
  scaledDotProductAttention(key: Tensor, value: Tensor, options: AttentionOptions<Tensor> = {}): Tensor {
    return area("neural").scaledDotProductAttention(this, key, value, options);
  }

  // ==== names: torch's other names for methods above ====

  /**
   * The values as float32.
   * @example
   * new Tensor([1, 2]).float().dtype.name // => "float32"
   */
  float(): Tensor {
    return this.cast("float32");
  }
  /**
   * The values as float64.
   * @example
   * new Tensor([1, 2]).double().dtype.name // => "float64"
   */
  double(): Tensor {
    return this.cast("float64");
  }
  /**
   * The values as float16.
   * @example
   * new Tensor([1, 2]).half().dtype.name // => "float16"
   */
  half(): Tensor {
    return this.cast("float16");
  }
  /**
   * The values as bfloat16.
   * @example
   * new Tensor([1, 2]).bfloat16().dtype.name // => "bfloat16"
   */
  bfloat16(): Tensor {
    return this.cast("bfloat16");
  }
  /**
   * The values as int32, cut towards zero.
   * @example
   * await new Tensor([1.7, -1.7]).int().tolist() // => [1, -1]
   */
  int(): Tensor {
    return this.cast("int32");
  }
  /**
   * The values as int64, cut towards zero; read as bigints.
   * @example
   * await new Tensor([1.7, -1.7]).long().tolist() // => [1n, -1n]
   */
  long(): Tensor {
    return this.cast("int64");
  }
  /**
   * Whether each element is not 0.
   * @example
   * await new Tensor([0, 2]).bool().tolist() // => [false, true]
   */
  bool(): Tensor {
    return this.cast("bool");
  }
  /**
   * How many elements: `size` as a method.
   * @example
   * new Tensor([[1, 2, 3]]).numel() // => 3
   */
  numel(): number {
    return this.size;
  }
  /**
   * How many dims: `ndim` as a method.
   * @example
   * new Tensor([[1, 2, 3]]).dim() // => 2
   */
  dim(): number {
    return this.ndim;
  }
  /**
   * Another name for `clamp`.
   * @example
   * await new Tensor([1, 5, 9]).clip(2, 6).tolist() // => [2, 5, 6]
   */
  clip(min?: Tensor | Element | null, max?: Tensor | Element | null): Tensor {
    return this.clamp(min, max);
  }
  /**
   * Another name for `abs`.
   * @example
   * await new Tensor([-1, 5]).absolute().tolist() // => [1, 5]
   */
  absolute(): Tensor {
    return this.abs();
  }
  /**
   * Another name for `neg`.
   * @example
   * await new Tensor([-1, 5]).negative().tolist() // => [1, -5]
   */
  negative(): Tensor {
    return this.neg();
  }
  /**
   * Another name for `sub`.
   * @example
   * await new Tensor([5, 7]).subtract(2).tolist() // => [3, 5]
   */
  subtract(x: Tensor | Element, scaled: Scaled = {}): Tensor {
    return this.sub(x, scaled);
  }
  /**
   * Another name for `mul`.
   * @example
   * await new Tensor([1, 2]).multiply(3).tolist() // => [3, 6]
   */
  multiply(x: Tensor | Element): Tensor {
    return this.mul(x);
  }
  /**
   * Another name for `div`.
   * @example
   * await new Tensor([3, 6]).divide(2).tolist() // => [1.5, 3]
   */
  divide(x: Tensor | Element, rounded: Rounded = {}): Tensor {
    return this.div(x, rounded);
  }
  /**
   * Another name for `div`.
   * @example
   * await new Tensor([3, 6]).trueDivide(2).tolist() // => [1.5, 3]
   */
  trueDivide(x: Tensor | Element): Tensor {
    return this.div(x);
  }
  /**
   * Another name for `gt`.
   * @example
   * await new Tensor([1, 3]).greater(2).tolist() // => [false, true]
   */
  greater(x: Tensor | Element): Tensor {
    return this.gt(x);
  }
  /**
   * Another name for `ge`.
   * @example
   * await new Tensor([1, 3]).greaterEqual(3).tolist() // => [false, true]
   */
  greaterEqual(x: Tensor | Element): Tensor {
    return this.ge(x);
  }
  /**
   * Another name for `lt`.
   * @example
   * await new Tensor([1, 3]).less(2).tolist() // => [true, false]
   */
  less(x: Tensor | Element): Tensor {
    return this.lt(x);
  }
  /**
   * Another name for `le`.
   * @example
   * await new Tensor([1, 3]).lessEqual(1).tolist() // => [true, false]
   */
  lessEqual(x: Tensor | Element): Tensor {
    return this.le(x);
  }
  /**
   * Another name for `ne`.
   * @example
   * await new Tensor([1, 3]).notEqual(1).tolist() // => [false, true]
   */
  notEqual(x: Tensor | Element): Tensor {
    return this.ne(x);
  }
  /**
   * torch.nn.functional.fold: another name for `imFold`. Its unfold is `imUnfold`.
   * @example
   * await Tensor.ones(1, 4, 4).fold([3, 3], 2).tolist() // => [[[[1, 2, 1], [2, 4, 2], [1, 2, 1]]]]
   */
  fold(outputSize: PerDim, kernelSize: PerDim, options: WindowOptions = {}): Tensor {
    return this.imFold(outputSize, kernelSize, options);
  }
  /**
   * torch's form of `condition.where(x, y)`.
   * @example
   * await Tensor.where(new Tensor([true, false]), 1, new Tensor([7, 8])).tolist() // => [1, 8]
   */
  static where(condition: Tensor, x: Tensor | Element, y: Tensor | Element): Tensor {
    return condition.where(x, y);
  }
  /**
   * torch's other name for `Tensor.cat`.
   * @example
   * await Tensor.concat([new Tensor([1, 2]), new Tensor([3])]).tolist() // => [1, 2, 3]
   */
  static concat(tensors: readonly Tensor[], dim = 0): Tensor {
    return Tensor.cat(movement.some("concat", tensors), dim);
  }
}

setMaker(Tensor);
setTensorType({
  type: TensorHandle,
  make: (data, device) => new Tensor(data as TensorData, device === undefined ? {} : { device }),
});
if (!guardTensor(Tensor)) throw new InternalError("Tensor has other methods; run npm run signatures");
prepareAreas();
