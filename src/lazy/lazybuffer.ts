// The lazy graph. A LazyBuffer is concrete (it has an `op` and `srcs`; once realised a `buffer` and no srcs)
// or a view (`_base` and a ShapeTracker). Nodes are immutable except for realisation. Tensors build them,
// schedule/ turns them into kernels, nobody else looks inside. A node on several devices is a MultiLazyBuffer
// (multi.ts).

import { castValue, type DType, dtypes, type Value, wrap } from "../dtype.ts";
import { env } from "../env.ts";
import { DeviceError, DTypeError, InternalError, ShapeError } from "../errors.ts";
import { arraysEqual, inspect, type MaybePromise } from "../helpers.ts";
import {
  type AluOp,
  isLoadOp,
  isReduceOp,
  type LoadOp,
  opRecord,
  REDUCE,
  type ReduceOp,
  resultDType,
} from "../ops.ts";
import { Buffer } from "../runtime/buffer.ts";
import { canonicalize, Device } from "../runtime/registry.ts";
import { ShapeTracker } from "../shape/shapetracker.ts";
import { roomOf, type Sint, smax, sprod } from "../shape/symbolic.ts";
import type { Interval, Shape } from "../shape/view.ts";
import { type AxisSplit, axisSplitFor } from "./axissplit.ts";
import { type CopyState, copyOf, keepCopies, markRead } from "./copies.ts";
import { heldAs, heldPart } from "./held.ts";
import { rebits } from "./rebits.ts";

export type LazyOpName = AluOp | ReduceOp | LoadOp | "CAST" | "BITCAST";
export type CustomFn = (buffers: readonly Buffer[]) => MaybePromise<void>;
/** What computes several nodes together: each of them is a result. */
export interface Together {
  readonly results: readonly LazyBuffer[];
}
/**
 * CONST: its value; CAST: the dtype; a reduction: its axes; CUSTOM: the function; SCAN: the loop; otherwise
 * undefined.
 */
type LazyArg = Value | DType | readonly number[] | CustomFn | Together | undefined;

let nextId = 0;
/** How many nodes exist so far: a lower id means an older node. */
export const nodesMade = (): number => nextId;

/** Where this many views cannot be merged, the elements are stored: an index is a formula of all of them. */
const MAX_VIEWS = 16;

/** A node of the lazy graph: an op on its sources, or a view of such a node. */
export class LazyBuffer {
  static readonly name: string = "LazyBuffer";
  id = nextId++;
  readonly device: string;
  st: ShapeTracker;
  readonly dtype: DType;
  _base: LazyBuffer | undefined;
  readonly op: LazyOpName | undefined;
  readonly arg: LazyArg;
  readonly isReduce: boolean;
  readonly isLoad: boolean;
  /** undefined once realised */
  srcs: readonly LazyBuffer[] | undefined;
  /** set by `contiguous()`: this node is stored even if it could be fused */
  forcedRealize = false;
  /** set when an assign overwrote this node's memory, or an input of this unrealised node */
  stale: string | undefined;
  /** set when a kernel has computed this node without storing it: probably nobody will ask for it */
  consumed = false;
  /** the last run whose kernels computed this consumed node, and how many did so after the first */
  lastRun = 0;
  repeats = 0;
  /** set when a tensor on this memory was assigned a value with other memory */
  left = false;
  /** set when a realize that stores this node has been asked for: an assign may count on its memory */
  promised = false;
  /** set on a view that is a copy to its user, and on the base of such views */
  copied: CopyState | undefined;
  copies: Set<WeakRef<LazyBuffer>> | undefined;
  /** the assign to this node, if any, which owns the memory from then on */
  successor: LazyBuffer | undefined;
  #buffer: Buffer | undefined;
  #weak: WeakRef<LazyBuffer> | undefined;
  /** a single reader, which is what most nodes have, needs no set */
  #readers: Set<WeakRef<LazyBuffer>> | WeakRef<LazyBuffer> | undefined;
  #sweepAt = 32;

  protected constructor(
    device: string,
    st: ShapeTracker,
    dtype: DType,
    base?: LazyBuffer,
    op?: LazyOpName,
    arg?: LazyArg,
    srcs?: readonly LazyBuffer[],
  ) {
    this.device = device;
    this.st = st;
    this.dtype = dtype;
    this._base = base;
    this.op = op;
    this.arg = arg;
    this.isReduce = op !== undefined && isReduceOp(op);
    this.isLoad = op !== undefined && isLoadOp(op);
    this.srcs = srcs;
    for (const s of srcs ?? []) {
      s.base.#addReader(this);
      markRead(s);
    }
  }

  // ---- making nodes ----

  static make(
    device: string,
    shape: Shape,
    dtype: DType,
    op: LazyOpName,
    arg: LazyArg,
    srcs: readonly LazyBuffer[],
  ): LazyBuffer {
    return new LazyBuffer(
      canonicalize(device),
      ShapeTracker.fromShape(shape),
      dtype,
      undefined,
      op,
      arg,
      srcs,
    );
  }
  static loadop(
    op: LoadOp,
    shape: Shape,
    dtype: DType,
    device: string,
    arg?: LazyArg,
    srcs: readonly LazyBuffer[] = [],
  ) {
    // a user's function gets buffers, each with all of a source in row-major order
    const whole = op === "CUSTOM" ? srcs.map((s) => s.contiguous()) : srcs;
    return LazyBuffer.make(device, shape, dtype, op, arg, whole);
  }
  /** A node whose memory exists already: host arrays, files. */
  static fromBuffer(buffer: Buffer, shape: Shape): LazyBuffer {
    const lb = LazyBuffer.loadop("EMPTY", shape, buffer.dtype, buffer.device);
    lb.#buffer = buffer;
    lb.srcs = undefined;
    return lb;
  }
  /** The same, with the layout of an earlier node of this memory or of memory like it. */
  static onMemory(buffer: Buffer, st: ShapeTracker): LazyBuffer {
    const lb = new LazyBuffer(buffer.device, st, buffer.dtype, undefined, "EMPTY");
    lb.#buffer = buffer;
    return lb;
  }
  /** One value at every index of `shape`. */
  static constant(device: string, shape: Shape, dtype: DType, value: Value): LazyBuffer {
    // a float keeps the digits it was given; the kernel that uses it rounds
    const exact = typeof value === "bigint" ? dtypes.int64 : dtypes.float64;
    const cast = dtype.isFloat ? Number(value) : castValue(dtype, value, exact);
    const scalar = LazyBuffer.loadop("CONST", [], dtype, device, cast);
    return shape.length === 0 ? scalar : scalar.viewed(ShapeTracker.repeating(shape));
  }

  /** 0, 1, … n-1, as int32, or as int64 where that is too short. */
  static arange(device: string, n: Sint): LazyBuffer {
    const dtype = smax(n) > 2 ** 31 ? dtypes.int64 : dtypes.int32;
    return LazyBuffer.loadop("ARANGE", [n], dtype, device);
  }

  /** This node's elements, seen through `st`. */
  seen(st: ShapeTracker): LazyBuffer {
    return this.base.#view(st);
  }

  /** The same, always as a node of its own. */
  viewed(st: ShapeTracker): LazyBuffer {
    return new LazyBuffer(this.device, st, this.dtype, this.base);
  }
  get base(): LazyBuffer {
    return this._base ?? this;
  }
  /** All elements as a node on one device. */
  get gathered(): LazyBuffer {
    return this;
  }
  /** The nodes to compute for this one: itself, or one per device of a MultiLazyBuffer. */
  get parts(): readonly LazyBuffer[] {
    return [this];
  }
  /** The axis along which elements are spread over devices; undefined where each device has all of them. */
  get shardAxis(): number | undefined {
    return undefined;
  }
  /** A node like this one, made of other parts. */
  get assembler(): (parts: readonly LazyBuffer[]) => LazyBuffer {
    return ([part]) => part as LazyBuffer;
  }
  get shape(): Shape {
    return this.st.shape;
  }
  get size(): Sint {
    return sprod(this.shape);
  }
  /** The memory that this node has or will have; described on first use, allocated when it is computed. */
  get buffer(): Buffer {
    if (this._base !== undefined) return this._base.buffer;
    this.#buffer ??= new Buffer(this.device, roomOf(this.shape), this.dtype);
    return this.#buffer;
  }
  /** The buffer of a realised node. An assign that has not run yet counts as not realised. */
  get realized(): Buffer | undefined {
    return this._base === undefined && this.srcs === undefined ? this.#buffer : undefined;
  }
  /** The sources of a node that must not be realised. */
  get sources(): readonly LazyBuffer[] {
    if (this.srcs === undefined) throw new InternalError(`${this} is realised, so it has no sources`);
    return this.srcs;
  }
  /** The node that an ASSIGN overwrites. */
  get assigned(): LazyBuffer {
    const target = this.op === "ASSIGN" ? this.sources[1] : undefined;
    if (target === undefined) throw new InternalError(`${this} assigns nothing`);
    return target.base;
  }
  get overwritten(): boolean {
    return this.successor !== undefined;
  }
  /** The node whose value is, or will be, in this node's memory. */
  get newest(): LazyBuffer {
    let lb = this.base;
    while (lb.successor !== undefined) lb = lb.successor;
    return lb;
  }
  get isUnrealizedConst(): boolean {
    return this.base.op === "CONST" && this.base.realized === undefined;
  }
  /** Whether there is memory that an assign would write to. */
  get hasMemory(): boolean {
    return this.base.realized !== undefined || this.base.op === "ASSIGN" || this.base.promised;
  }

  /** Called by the engine once the node's value is in its buffer, or is certain to get there. */
  markRealized(): void {
    if (this._base !== undefined) throw new InternalError("a view has no value of its own to realise");
    void this.buffer;
    this.srcs = undefined;
  }

  /** The unrealised nodes that read this one directly and are still referenced. */
  pendingReaders(): LazyBuffer[] {
    const readers = this.#readers;
    const live: LazyBuffer[] = [];
    for (const r of readers instanceof Set ? readers : readers === undefined ? [] : [readers]) {
      const lb = r.deref();
      if (lb?.srcs !== undefined) live.push(lb);
    }
    return live;
  }
  /** The number of recorded readers, including those that were collected but not removed yet. */
  get readersKept(): number {
    const readers = this.#readers;
    return readers instanceof Set ? readers.size : readers === undefined ? 0 : 1;
  }
  #addReader(reader: LazyBuffer): void {
    reader.#weak ??= new WeakRef(reader);
    const [mine, readers] = [reader.#weak, this.#readers];
    if (readers === undefined) this.#readers = mine;
    else if (readers instanceof Set) {
      // a long-lived weight gains readers at every step: remove the collected ones from time to time
      if (readers.size >= this.#sweepAt) {
        for (const r of readers) if (r.deref()?.srcs === undefined) readers.delete(r);
        this.#sweepAt = Math.max(32, readers.size * 2);
      }
      readers.add(mine);
    } else if (readers !== mine) this.#readers = new Set([readers, mine]);
  }

  // ---- ops ----

  /** A constant with this node's shape and device. */
  const(value: Value, dtype: DType = this.dtype): LazyBuffer {
    return LazyBuffer.constant(this.device, this.shape, dtype, value);
  }

  /** Elementwise; every source has this node's shape and device. */
  e(op: AluOp, ...others: readonly LazyBuffer[]): LazyBuffer {
    const srcs = [this, ...others];
    if (srcs.length !== opRecord(op).arity) {
      throw new InternalError(`${op} takes ${opRecord(op).arity} sources, got ${srcs.length}`);
    }
    const values = op === "WHERE" ? others : srcs;
    for (const s of srcs) {
      if (s.device !== this.device) {
        throw new DeviceError(
          `${op}: the operands are on ${this.device} and ${s.device}; move one of them: t.to("${this.device}")`,
        );
      }
      if (s.st !== this.st && !arraysEqual(s.shape, this.shape)) {
        throw new ShapeError(`${op}: shapes [${this.shape}] and [${s.shape}] differ; broadcast them first`);
      }
    }
    const first = (values[0] as LazyBuffer).dtype;
    for (const v of values) {
      if (v.dtype !== first) {
        throw new DTypeError(
          `${op}: dtypes ${first.name} and ${v.dtype.name} differ; cast them to one first`,
        );
      }
    }
    const st = srcs.find((s) => s.st.contiguous)?.st ?? ShapeTracker.fromShape(this.shape);
    return new LazyBuffer(this.device, st, resultDType(op, first), undefined, op, undefined, srcs);
  }

  /** Reduces over `axes`, which stay as dims of size 1. */
  r(op: ReduceOp, axes: readonly number[]): LazyBuffer {
    const sorted = [...new Set(axes)].sort((a, b) => a - b);
    const bad = sorted.find((a) => !Number.isInteger(a) || a < 0 || a >= this.shape.length);
    if (bad !== undefined) {
      throw new ShapeError(
        `${op}: axis ${bad} is not one of the ${this.shape.length} axes of [${this.shape}]`,
      );
    }
    const shape = this.shape.map((d, i) => (sorted.includes(i) ? 1 : d));
    const real = sorted.filter((a) => this.shape[a] !== 1);
    if (real.length === 0) return this.reshape(shape);
    if (sprod(this.shape) === 0) {
      return LazyBuffer.constant(this.device, shape, this.dtype, REDUCE[op].identity(this.dtype));
    }
    const axisSplit = this.#axisSplitFor(real);
    if (axisSplit === undefined) return LazyBuffer.make(this.device, shape, this.dtype, op, real, [this]);
    const { axis, count } = axisSplit;
    const split = this.shape.flatMap((d, i) => (i === axis ? [count, (d as number) / count] : [d]));
    const inner = real.map((a) => (a >= axis ? a + 1 : a));
    // the partial results are computed in the order in which they are stored
    const order = [axis, ...split.keys()].filter((d, i, all) => all.indexOf(d) === i);
    const first = this.reshape(split).permute(order);
    const kept = first.shape.map((d, i) => (inner.includes(order[i] as number) ? 1 : d));
    const from = inner.map((a) => order.indexOf(a)).sort((a, b) => a - b);
    const partial = LazyBuffer.make(this.device, kept, this.dtype, op, from, [first]);
    return partial.r(op, [0]).reshape(shape);
  }
  /** Not if an ARANGE is involved: a one-hot sum becomes a load, but only if it is not split. */
  #axisSplitFor(axes: readonly number[]): AxisSplit | undefined {
    const split = env.FUSE ? axisSplitFor(this.shape, axes) : undefined;
    return split === undefined || this.#hasArange(8) ? undefined : split;
  }
  /** Whether an ARANGE is among the unrealised nodes at most `depth` levels below. */
  #hasArange(depth: number): boolean {
    const { base } = this;
    if (base.realized !== undefined || depth === 0) return false;
    return base.op === "ARANGE" || base.sources.some((s) => s.#hasArange(depth - 1));
  }

  cast(dtype: DType): LazyBuffer {
    if (dtype === this.dtype) return this;
    if (this.isUnrealizedConst && !this.st.views.some((v) => v.mask)) {
      return LazyBuffer.constant(
        this.device,
        this.shape,
        dtype,
        castValue(dtype, wrap(this.dtype, this.base.arg as Value), this.dtype),
      );
    }
    const st = this.st.contiguous ? this.st : ShapeTracker.fromShape(this.shape);
    return new LazyBuffer(this.device, st, dtype, undefined, "CAST", dtype, [this]);
  }
  /**
   * The same bits as another type. Packed types may have another number of elements, along the last dim, and
   * so may all types in a file or a host array.
   */
  bitcast(dtype: DType): LazyBuffer {
    if (dtype === this.dtype) return this;
    if (this.onlyHolds) return heldAs(this, dtype, LazyBuffer.fromBuffer);
    if (dtype.bits !== this.dtype.bits) return rebits(this, dtype, LazyBuffer.arange);
    return LazyBuffer.make(this.device, this.shape, dtype, "BITCAST", dtype, [this]);
  }

  /** Whether this is its whole base, in memory order. */
  get isWhole(): boolean {
    return this.st.contiguous && this.size === this.base.size;
  }
  /** EXT and DISK hold bytes and compute nothing. */
  get onlyHolds(): boolean {
    return !Device.computes(this.device);
  }

  /** The same values in row-major order in memory of their own. */
  contiguous(): LazyBuffer {
    if (this.isWhole && !this.isUnrealizedConst) {
      // a concrete node is contiguous by definition; it only has to be stored
      if (this.base.realized === undefined) this.base.forcedRealize = true;
      return this;
    }
    return this.duplicate();
  }

  /** The same values in new memory, even if this node is contiguous already. */
  duplicate(): LazyBuffer {
    return LazyBuffer.loadop("CONTIGUOUS", this.shape, this.dtype, this.device, undefined, [this]);
  }

  /** The same values on another device. */
  copyToDevice(device: string): LazyBuffer {
    const to = canonicalize(device);
    if (to === this.device) return this;
    const constant = this.isUnrealizedConst;
    // a constant is created on the target device, unless that is a file or a host array: these need bytes
    if (constant && Device.computes(to) && !this.st.views.some((v) => v.mask)) {
      return LazyBuffer.constant(to, this.shape, this.dtype, this.base.arg as Value);
    }
    const src = constant ? this.contiguous() : this.isWhole ? this : heldPart(this, LazyBuffer.fromBuffer);
    // a device that cannot compute sends its whole buffer; the view is applied on the other side
    if (src === undefined && this.onlyHolds) return this.base.copyToDevice(to).#view(this.st);
    return LazyBuffer.loadop("COPY", this.shape, this.dtype, to, undefined, [src ?? this.contiguous()]);
  }

  /** `node`, of the same shape, where this one is: on its devices, with its sharding. */
  copyHere(node: LazyBuffer): LazyBuffer {
    return node.copyToDevice(this.device);
  }

  /** A node that writes `value` into this node's memory. */
  assign(value: LazyBuffer): LazyBuffer {
    keepCopies(this.base);
    const made = LazyBuffer.loadop("ASSIGN", this.shape, this.dtype, this.device, undefined, [value, this]);
    this.base.successor = made;
    return made.#sharing(this);
  }
  /**
   * A tensor's node after an assign: a node that writes here, or `value` itself if there is no memory yet.
   */
  replacedBy(value: LazyBuffer): LazyBuffer {
    // nothing is overwritten either if the memory now belongs to another tensor
    if (!this.isWhole || this.base.overwritten || !this.hasMemory) {
      this.base.left = true;
      return value;
    }
    return this.assign(value.base === this.base && !value.st.contiguous ? value.contiguous() : value);
  }
  #sharing(target: LazyBuffer): this {
    this.#buffer = target.base.buffer;
    return this;
  }

  // ---- movement: a new view, no work ----

  #view(st: ShapeTracker): LazyBuffer {
    if (st === this.st) return this;
    // a view that undoes all views before it is the base itself
    const { base, copied } = this;
    const isAll = st.contiguous && st.shape.length === base.shape.length;
    if (copied === undefined && isAll && st.shape.every((d, i) => d === base.shape[i])) return base;
    const seen = st.views.length < MAX_VIEWS ? st : st.simplify();
    const made = copied === undefined ? this.viewed(seen) : copyOf(this, seen);
    return seen.views.length < MAX_VIEWS || made.onlyHolds ? made : made.duplicate();
  }
  reshape(shape: Shape): LazyBuffer {
    return this.#view(this.st.reshape(shape));
  }
  permute(axes: readonly number[]): LazyBuffer {
    return this.#view(this.st.permute(axes));
  }
  expand(shape: Shape): LazyBuffer {
    return this.#view(this.st.expand(shape));
  }
  pad(amounts: readonly Interval[]): LazyBuffer {
    return this.#view(this.st.pad(amounts));
  }
  shrink(bounds: readonly Interval[]): LazyBuffer {
    return this.#view(this.st.shrink(bounds));
  }
  stride(steps: readonly number[]): LazyBuffer {
    return this.#view(this.st.stride(steps));
  }

  toString(): string {
    const what = this._base !== undefined ? `view of ${this._base.op}` : `${this.op}`;
    return `<LB ${this.device} [${this.shape}] ${this.dtype.name} ${what}${this.base.realized ? " realized" : ""}>`;
  }
  [inspect](): string {
    return this.toString();
  }
}
