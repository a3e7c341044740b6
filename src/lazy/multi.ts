// A tensor on several devices: a LazyBuffer that stands for one node per device, its `parts`. Each part is a
// shard along one axis, or the whole tensor (replicated). Every op is applied to the parts; an op that needs
// elements of another device copies them (a reduction along the sharded axis, operands with different
// shardings). A tensor holds it like any other node. Memory belongs to the parts, so schedule/ and engine/
// see only plain nodes and copies.

import type { DType, Value } from "../dtype.ts";
import { ArgumentError, DeviceError, DTypeError, InternalError, ShapeError } from "../errors.ts";
import { arraysEqual } from "../helpers.ts";
import type { AluOp, ReduceOp } from "../ops.ts";
import type { Buffer } from "../runtime/buffer.ts";
import { Device, devicesOf } from "../runtime/registry.ts";
import { ShapeTracker } from "../shape/shapetracker.ts";
import { sprod } from "../shape/symbolic.ts";
import type { Interval, Shape } from "../shape/view.ts";
import { allreduce, sender } from "./allreduce.ts";
import { concat } from "./concat.ts";
import { LazyBuffer } from "./lazybuffer.ts";
import { setMakeGroup } from "./placement.ts";
import {
  boundsFor,
  type DeviceSpan,
  overlap,
  reshaped,
  type Sharding,
  sameSharding,
  shardingOf,
  strided,
} from "./sharding.ts";

/** `shape` with the size of axis `axis` on one device. */
const share = (shape: Shape, axis: number, [lo, hi]: DeviceSpan): Shape => shape.with(axis, hi - lo);
const no = (what: string): InternalError =>
  new InternalError(`a tensor on several devices has no ${what} of its own; ask its parts`);

/** A node on several devices: a shard or a full replica on each. */
export class MultiLazyBuffer extends LazyBuffer {
  static override readonly name: string = "MultiLazyBuffer";
  readonly #parts: readonly LazyBuffer[];
  /** the interval of each device; undefined if replicated */
  readonly sharding: Sharding | undefined;

  /** `parts` are on different devices; with a sharding their shapes match its intervals. */
  constructor(parts: readonly LazyBuffer[], sharding: Sharding | undefined) {
    const [first] = parts as readonly [LazyBuffer];
    const size = sharding === undefined ? 0 : Math.max(...sharding.spans.map(([, hi]) => hi));
    const shape = sharding === undefined ? first.shape : first.shape.with(sharding.axis, size);
    super(parts.map((p) => p.device).join(","), ShapeTracker.fromShape(shape), first.dtype);
    this.#parts = parts;
    this.sharding = sharding;
  }

  override get parts(): readonly LazyBuffer[] {
    return this.#parts;
  }
  override get assembler(): (parts: readonly LazyBuffer[]) => LazyBuffer {
    const { sharding } = this;
    return (parts) => new MultiLazyBuffer(parts, sharding);
  }
  override get shardAxis(): number | undefined {
    return this.sharding?.axis;
  }
  get devices(): readonly string[] {
    return this.#parts.map((p) => p.device);
  }
  override get base(): LazyBuffer {
    throw no("base");
  }
  override get buffer(): Buffer {
    throw no("buffer");
  }
  override get realized(): Buffer | undefined {
    throw no("buffer");
  }
  override get gathered(): LazyBuffer {
    return this.copyToDevice((this.#parts[0] as LazyBuffer).device);
  }
  override get isUnrealizedConst(): boolean {
    return this.#parts.every((p) => p.isUnrealizedConst);
  }
  override get hasMemory(): boolean {
    return this.#parts.every((p) => p.hasMemory);
  }
  override get isWhole(): boolean {
    return this.#parts.every((p) => p.isWhole);
  }
  override get onlyHolds(): boolean {
    return false;
  }

  /** Applies `f` to each part; the sharding stays the same unless given. */
  #each(make: (part: LazyBuffer, i: number) => LazyBuffer, sharding = this.sharding): MultiLazyBuffer {
    return new MultiLazyBuffer(this.#parts.map(make), sharding);
  }
  #span(i: number): DeviceSpan {
    return this.sharding?.spans[i] as DeviceSpan;
  }

  // ---- ops ----

  override const(value: Value, dtype: DType = this.dtype): LazyBuffer {
    return this.#each((p) => p.const(value, dtype));
  }
  override e(op: AluOp, ...others: readonly LazyBuffer[]): LazyBuffer {
    const all = [this, ...others].map((x) => {
      if (x instanceof MultiLazyBuffer && x.device === this.device) return x;
      throw new DeviceError(
        `${op}: the operands are on ${this.device} and ${x.device}; put both on the same devices, in the same order: ` +
          `t.shard([${this.devices.map((d) => `"${d}"`).join(", ")}]) for a copy on each, or gather with t.to("${this.devices[0]}")`,
      );
    });
    const odd = all.find((x) => !arraysEqual(x.shape, this.shape));
    if (odd !== undefined) {
      throw new ShapeError(`${op}: shapes [${this.shape}] and [${odd.shape}] differ; broadcast them first`);
    }
    const sharding = all.find((x) => x.sharding !== undefined)?.sharding;
    const [first, ...rest] = all.map((x) => x.resharded(sharding)) as [MultiLazyBuffer, ...MultiLazyBuffer[]];
    return first.#each((p, i) => p.e(op, ...rest.map((x) => x.parts[i] as LazyBuffer)));
  }
  /** A reduction along the sharded axis combines the devices' results: every device gets the total. */
  override r(op: ReduceOp, axes: readonly number[]): LazyBuffer {
    const made = this.#parts.map((p) => p.r(op, axes));
    if (this.sharding === undefined || !axes.includes(this.sharding.axis)) {
      return new MultiLazyBuffer(made, this.sharding);
    }
    return new MultiLazyBuffer(allreduce(op, made), undefined);
  }
  override cast(dtype: DType): LazyBuffer {
    return dtype === this.dtype ? this : this.#each((p) => p.cast(dtype));
  }
  override bitcast(dtype: DType): LazyBuffer {
    if (dtype.bits !== this.dtype.bits && this.sharding?.axis === this.shape.length - 1) {
      throw new DTypeError(
        `bitcast: ${this.dtype.name} to ${dtype.name} along dim ${this.sharding.axis}, which is sharded; shard another dim`,
      );
    }
    return dtype === this.dtype ? this : this.#each((p) => p.bitcast(dtype));
  }
  override contiguous(): LazyBuffer {
    return this.#each((p) => p.contiguous());
  }
  override duplicate(): LazyBuffer {
    return this.#each((p) => p.duplicate());
  }
  override assign(value: LazyBuffer): LazyBuffer {
    const parts = this.#likewise(value);
    return this.#each((p, i) => p.assign(parts[i] as LazyBuffer));
  }
  override replacedBy(value: LazyBuffer): LazyBuffer {
    const parts = this.#likewise(value);
    return this.#each((p, i) => p.replacedBy(parts[i] as LazyBuffer));
  }
  #likewise(value: LazyBuffer): readonly LazyBuffer[] {
    if (!(value instanceof MultiLazyBuffer)) throw new InternalError(`${value} is not on ${this.device}`);
    return value.resharded(this.sharding).parts;
  }

  // ---- between devices ----

  /** The whole tensor on one device. EXT and DISK get it from a device that can make it contiguous. */
  override copyToDevice(device: string): LazyBuffer {
    const [to] = devicesOf(device) as readonly [string];
    const own = this.#parts.find((p) => p.device === to);
    if (this.sharding === undefined) return own ?? (this.#parts[0] as LazyBuffer).copyToDevice(to);
    if (Device.computes(to)) return this.#gatherer(this.shape.map((d) => [0, d]))(to);
    return this.gathered.copyToDevice(to);
  }

  override copyHere(node: LazyBuffer): LazyBuffer {
    return distribute(node, this.devices, this.sharding);
  }
  /** The same values with another sharding; copies nothing if this one is replicated. */
  resharded(sharding: Sharding | undefined): MultiLazyBuffer {
    if (sameSharding(sharding, this.sharding)) return this;
    const { shape } = this;
    if (this.sharding === undefined && sharding !== undefined) {
      const { axis, spans } = sharding;
      return this.#each((p, i) => p.shrink(boundsFor(shape, axis, spans[i] as DeviceSpan)), sharding);
    }
    if (sharding === undefined) return this.#everywhere(shape.map((d) => [0, d]));
    const { axis, spans } = sharding;
    return this.#each(
      (p, i) => this.#gatherer(boundsFor(shape, axis, spans[i] as DeviceSpan))(p.device),
      sharding,
    );
  }
  /** The region `bounds` of a sharded tensor, replicated on every device. */
  #everywhere(bounds: readonly Interval[]): MultiLazyBuffer {
    const gather = this.#gatherer(bounds);
    return new MultiLazyBuffer(this.devices.map(gather), undefined);
  }
  /** Gathers the region `bounds` of a sharded tensor on a given device. */
  #gatherer(bounds: readonly Interval[]): (device: string) => LazyBuffer {
    const { axis } = this.sharding as Sharding;
    const found = this.#parts.flatMap((part, i) => {
      const [lo] = this.#span(i);
      const both = overlap(this.#span(i), bounds[axis] as DeviceSpan);
      if (both === undefined) return [];
      const piece = part.shrink(bounds.with(axis, [both[0] - lo, both[1] - lo]));
      return [{ at: both[0], send: sender(piece) }];
    });
    found.sort((a, b) => a.at - b.at);
    return (device) =>
      concat(
        found.map(({ send }) => send(device)),
        axis,
      );
  }

  // ---- movement ----

  /** A tensor without elements cannot be sharded. */
  #nothing(shape: Shape): LazyBuffer {
    return new MultiLazyBuffer(
      this.devices.map((d) => LazyBuffer.constant(d, shape, this.dtype, 0)),
      undefined,
    );
  }

  override reshape(shape: Shape): LazyBuffer {
    const { sharding } = this;
    this.st.reshape(shape); // complains of a shape that does not fit
    if (sharding === undefined) return this.#each((p) => p.reshape(shape));
    if (sprod(shape) === 0) return this.#nothing(shape);
    const made = reshaped(this.shape, sharding, shape);
    if (made !== undefined) {
      return this.#each((p, i) => p.reshape(share(shape, made.axis, made.spans[i] as DeviceSpan)), made);
    }
    throw new ShapeError(
      `reshape: [${this.shape}] is sharded along dim ${sharding.axis} over ${this.device}, and no dim of [${shape}] can ` +
        `be split at the same elements; keep that dim, or undo the sharding first: t.shard([${this.devices.map((d) => `"${d}"`).join(", ")}])`,
    );
  }
  override permute(axes: readonly number[]): LazyBuffer {
    this.st.permute(axes);
    const { sharding } = this;
    const moved = sharding && { ...sharding, axis: axes.indexOf(sharding.axis) };
    return this.#each((p) => p.permute(axes), moved);
  }
  override expand(shape: Shape): LazyBuffer {
    this.st.expand(shape);
    const { sharding } = this;
    if (sharding === undefined) return this.#each((p) => p.expand(shape));
    return this.#each((p, i) => p.expand(share(shape, sharding.axis, this.#span(i))));
  }
  /** Along the sharded axis, the first and the last interval grow by the padding. */
  override pad(amounts: readonly Interval[]): LazyBuffer {
    this.st.pad(amounts);
    const { sharding } = this;
    if (sharding === undefined) return this.#each((p) => p.pad(amounts));
    const { axis } = sharding;
    const [before, after] = amounts[axis] as Interval;
    if (typeof before !== "number" || typeof after !== "number")
      return this.resharded(undefined).pad(amounts);
    const size = this.shape[axis] as number;
    const added = ([lo, hi]: DeviceSpan): DeviceSpan => [lo === 0 ? before : 0, hi === size ? after : 0];
    const spans = sharding.spans.map(([lo, hi]): DeviceSpan => {
      const [front, back] = added([lo, hi]);
      return [lo + before - front, hi + before + back];
    });
    return this.#each((p, i) => p.pad(amounts.with(axis, added(this.#span(i)))), { axis, spans });
  }
  /**
   * Along the sharded axis, each device keeps its part of the region. If one would have none, all get the
   * whole region.
   */
  override shrink(bounds: readonly Interval[]): LazyBuffer {
    this.st.shrink(bounds);
    const { sharding } = this;
    if (sharding === undefined) return this.#each((p) => p.shrink(bounds));
    const { axis } = sharding;
    const [from, to] = bounds[axis] as Interval;
    if (typeof from !== "number" || typeof to !== "number") return this.resharded(undefined).shrink(bounds);
    if (from === to) return this.#nothing(this.st.shrink(bounds).shape);
    const kept = sharding.spans.map((span) => overlap(span, [from, to]));
    if (kept.some((span) => span === undefined)) return this.#everywhere(bounds);
    const spans = (kept as DeviceSpan[]).map(([lo, hi]): DeviceSpan => [lo - from, hi - from]);
    const local = (i: number): DeviceSpan => {
      const [lo, hi] = kept[i] as DeviceSpan;
      return [lo - this.#span(i)[0], hi - this.#span(i)[0]];
    };
    return this.#each((p, i) => p.shrink(bounds.with(axis, local(i))), { axis, spans });
  }
  /** A flip along the sharded axis reverses the order of the devices. */
  override stride(steps: readonly number[]): LazyBuffer {
    this.st.stride(steps);
    const { sharding } = this;
    if (sharding === undefined) return this.#each((p) => p.stride(steps));
    const { axis } = sharding;
    const step = steps[axis] as number;
    if (step < 0) {
      const size = this.shape[axis] as number;
      const spans = sharding.spans.map(([lo, hi]): DeviceSpan => [size - hi, size - lo]);
      const turned = this.#each((p) => p.stride(p.shape.map((_, d) => (d === axis ? -1 : 1))), {
        axis,
        spans,
      });
      return turned.stride(steps.with(axis, -step));
    }
    const left = sharding.spans.map((span) => strided(span, step));
    if (left.some(({ span: [lo, hi] }) => lo === hi)) return this.resharded(undefined).stride(steps);
    return this.#each(
      (p, i) =>
        p.shrink(boundsFor(p.shape, axis, [left[i]?.start as number, p.shape[axis] as number])).stride(steps),
      { axis, spans: left.map(({ span }) => span) },
    );
  }

  override toString(): string {
    const how = this.sharding === undefined ? "replicated" : `sharded along ${this.sharding.axis}`;
    return `<MLB ${this.device} [${this.shape}] ${this.dtype.name} ${how}>`;
  }
}

// ---- how tensors get there ----

setMakeGroup((devices, make) => new MultiLazyBuffer(requireDistinct(devices).map(make), undefined));

/** Distributes the values over devices: shards along `axis`, or a replica on each. */
export function shard(node: LazyBuffer, names: readonly string[], axis: number | undefined): LazyBuffer {
  if (!Array.isArray(names) || names.length === 0) {
    throw new ArgumentError('shard: got no devices; expected an array of names: ["WASM:0", "WASM:1"]');
  }
  const devices = requireDistinct(names.map((name) => Device.computing(name)));
  if (devices.length === 1) return node.copyToDevice(devices[0] as string);
  return distribute(
    node,
    devices,
    axis === undefined ? undefined : shardingOf(node.shape, axis, devices.length),
  );
}

function requireDistinct(devices: readonly string[]): readonly string[] {
  const twice = devices.find((d, i) => devices.indexOf(d) < i);
  if (twice === undefined) return devices;
  throw new DeviceError(`shard: device ${twice} is named twice in ${devices.join(", ")}; name each once`);
}

function distribute(
  node: LazyBuffer,
  devices: readonly string[],
  sharding: Sharding | undefined,
): LazyBuffer {
  if (node instanceof MultiLazyBuffer) {
    if (node.device === devices.join(",")) return node.resharded(sharding);
    return distribute(node.gathered, devices, sharding);
  }
  const source = onHost(node);
  if (sharding === undefined) {
    const send = sender(source);
    const parts = devices.map((d) => (d === node.device ? node : send(d)));
    return new MultiLazyBuffer(parts, undefined);
  }
  const parts = sharding.spans.map((span, i) => {
    const piece = source
      .shrink(boundsFor(node.shape, sharding.axis, span))
      .copyToDevice(devices[i] as string);
    // a view would keep the whole memory alive
    return piece.isUnrealizedConst ? piece : piece.contiguous();
  });
  return new MultiLazyBuffer(parts, sharding);
}

/** Host data on its way to one device is copied directly to all of them instead. */
function onHost(node: LazyBuffer): LazyBuffer {
  const [source] = node.base.op === "COPY" ? (node.base.srcs ?? []) : [];
  return node.isWhole && source?.onlyHolds ? source.reshape(node.shape) : node;
}
