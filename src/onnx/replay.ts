// A signature of a model that is replayed: inputs of known shapes, and the values of those that decide what
// the graph is. Data of the host goes into tensors that the replay keeps, so that a call builds no graph.
// What does not fit is left to the long way in session.ts.

import { runSync } from "../helpers.ts";
import { dtypeOfTyped } from "../hostarrays.ts";
import { TinyJit } from "../index.ts";
import { LazyBuffer } from "../lazy/lazybuffer.ts";
import { Buffer } from "../runtime/buffer.ts";
import { Device } from "../runtime/registry.ts";
import type { TensorData } from "../tensor/creation/hostdata.ts";
import { knownValues } from "../tensor/known.ts";
import { Tensor } from "../tensor/tensor.ts";
import type { OnnxInput, OnnxOutput, OnnxPort } from "./session.ts";
import type { HostArray, TensorValue } from "./values.ts";

type ReplayOutputs = Record<string, OnnxOutput>;
/** Larger tensors of the host are computed with once they are on the device: they may come again. */
const MAX_COPIED = 1 << 16;

/** What an input of a replay is, and the tensor that data of the host is put into. */
class PortFeed {
  readonly name: string;
  readonly #like: TensorValue;
  /** its device, as tensors name it */
  readonly #device: string;
  /** a flat array has the right shape if it has the right length */
  readonly #takesFlat: boolean;
  /** what the elements must be */
  readonly #decided: HostArray["data"] | undefined;
  #kept: Tensor | undefined;
  /** each call needs other memory: an output is this input, or several devices have it */
  needsOwn: boolean;

  constructor(port: OnnxPort, value: TensorValue, decided: HostArray["data"] | undefined) {
    const { dims } = port;
    this.name = port.name;
    this.#like = value;
    this.#device = value.tensor.device;
    const open = dims?.filter((d) => typeof d !== "number").length ?? 2;
    this.#takesFlat = value.shape.length === 1 || (dims !== undefined && open <= 1);
    this.#decided = decided;
    this.needsOwn = this.#device.includes(",");
  }

  accepts(given: OnnxInput | undefined): boolean {
    if (given instanceof Tensor)
      return this.#acceptsTensor(given) && this.#isDecided(() => knownValues(given));
    if (!ArrayBuffer.isView(given)) return false;
    const { dtype } = this.#like.type;
    if (!this.#takesFlat || dtypeOfTyped(given) !== dtype || given.byteLength !== this.#bytes) return false;
    return this.#isDecided(() => given as unknown as HostArray["data"]);
  }
  get #bytes(): number {
    return this.#like.type.dtype.bytesFor(this.#like.size);
  }
  #acceptsTensor(given: Tensor): boolean {
    const { shape, type } = this.#like;
    const own = given.lazydata.shape;
    if (given.dtype !== type.dtype || own.length !== shape.length || given.requiresGrad) return false;
    return own.every((d, i) => d === shape[i]) && given.lazydata.device === this.#device;
  }
  #isDecided(read: () => HostArray["data"] | undefined): boolean {
    const wanted = this.#decided;
    if (wanted === undefined) return true;
    const now = read();
    if (now?.length !== wanted.length) return false;
    for (let i = 0; i < now.length; i++) if (now[i] !== wanted[i]) return false;
    return true;
  }

  /** The tensor for this call. Data of the host is written first; `waits` gets what that takes. */
  give(given: OnnxInput, waits: PromiseLike<void>[]): Tensor {
    const { shape, type } = this.#like;
    if (this.needsOwn) {
      if (given instanceof Tensor) return given;
      const options = { dtype: type.dtype, device: this.#device };
      return new Tensor(given as TensorData, options).reshape([...shape]);
    }
    const data = given instanceof Tensor ? hostBytes(given) : (given as ArrayBufferView);
    if (data === undefined) return given as Tensor;
    this.#kept ??= this.#memory();
    const written = this.#kept.lazydata.base.buffer.fill(data);
    if (written !== undefined) waits.push(written);
    return this.#kept;
  }
  #memory(): Tensor {
    const { shape, size, type } = this.#like;
    const buffer = new Buffer(this.#device, size, type.dtype).ensureAllocated();
    return new Tensor(LazyBuffer.fromBuffer(buffer, shape));
  }
}

/** The bytes of a small tensor that is still on its way from the host. */
function hostBytes({ lazydata }: Tensor): Uint8Array | undefined {
  const { base } = lazydata;
  const source = base.op === "COPY" && lazydata.isWhole ? base.srcs?.[0]?.base.realized : undefined;
  const isArray = source !== undefined && Device.storageOf(source.device) === "array";
  if (!isArray || source.nbytes > MAX_COPIED) return undefined;
  return runSync(source.read(true), "run");
}

export class ModelReplay {
  readonly #jit: (...inputs: Tensor[]) => Promise<ReplayOutputs>;
  readonly #feeds: readonly PortFeed[];
  /** the inputs whose elements are computed with: others only have shapes that count */
  readonly #used: readonly PortFeed[];
  /** calls that have not ended: the kept tensors may still be read */
  #pending = 0;

  constructor(
    ports: readonly OnnxPort[],
    values: ReadonlyMap<string, TensorValue>,
    used: readonly string[],
    decided: ReadonlyMap<string, HostArray["data"]>,
    fn: (inputs: ReadonlyMap<string, Tensor>) => Promise<ReplayOutputs>,
  ) {
    this.#feeds = ports.map((p) => new PortFeed(p, values.get(p.name) as TensorValue, decided.get(p.name)));
    this.#used = used.map((name) => this.#feeds.find((f) => f.name === name) as PortFeed);
    const named = (inputs: readonly Tensor[]) => new Map(used.map((name, i) => [name, inputs[i] as Tensor]));
    this.#jit = new TinyJit((...inputs: Tensor[]) => fn(named(inputs))) as unknown as (
      ...inputs: Tensor[]
    ) => Promise<ReplayOutputs>;
  }

  /** Whether these inputs are of this signature, and can be given as they are. */
  accepts(inputs: Readonly<Record<string, OnnxInput>>): boolean {
    const feeds = this.#feeds;
    if (this.#pending > 0 || Object.keys(inputs).length !== feeds.length) return false;
    return feeds.every((f) => Object.hasOwn(inputs, f.name) && f.accepts(inputs[f.name]));
  }
  /** Only what it `accepts`. */
  async replay(inputs: Readonly<Record<string, OnnxInput>>): Promise<ReplayOutputs> {
    this.#pending++;
    try {
      const waits: PromiseLike<void>[] = [];
      const tensors = this.#used.map((f) => f.give(inputs[f.name] as OnnxInput, waits));
      if (waits.length > 0) await Promise.all(waits);
      return await this.#jit(...tensors);
    } finally {
      this.#pending--;
    }
  }
  /** The same with values that the long way has made. */
  async run(values: ReadonlyMap<string, TensorValue>): Promise<ReplayOutputs> {
    const tensors = this.#used.map((f) => (values.get(f.name) as TensorValue).tensor);
    const outputs = await this.#jit(...tensors);
    const bases = new Set(
      Object.values(outputs).flatMap((t) => (t instanceof Tensor ? t.lazydata.parts.map((p) => p.base) : [])),
    );
    this.#used.forEach((f, i) => {
      if (tensors[i]?.lazydata.parts.some((p) => bases.has(p.base))) f.needsOwn = true;
    });
    return outputs;
  }
}
