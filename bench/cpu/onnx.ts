// Writes ONNX models, as far as the bench needs them: a graph of nodes over float32 tensors as the bytes of a
// ModelProto. Weights are initializers, so that a runtime may rearrange them. Protobuf is written by hand:
// tags, lengths and varints.

type Attribute = number | readonly number[];
type Bytes = Uint8Array<ArrayBuffer>;

const utf8 = new TextEncoder();

class Message {
  readonly #parts: Bytes[] = [];

  varint(field: number, value: number): this {
    return this.#varints([field << 3, value]);
  }
  bytes(field: number, value: Bytes | Message | string): this {
    const body =
      typeof value === "string" ? utf8.encode(value) : value instanceof Message ? value.finish() : value;
    this.#varints([(field << 3) | 2, body.byteLength]);
    this.#parts.push(body as Bytes);
    return this;
  }
  float(field: number, value: number): this {
    this.#varints([(field << 3) | 5]);
    this.#parts.push(new Uint8Array(Float32Array.of(value).buffer));
    return this;
  }
  #varints(values: readonly number[]): this {
    const out: number[] = [];
    for (let x of values.map((v) => BigInt.asUintN(64, BigInt(v)))) {
      for (; x > 127n; x >>= 7n) out.push(Number(x & 127n) | 128);
      out.push(Number(x));
    }
    this.#parts.push(Uint8Array.from(out));
    return this;
  }
  finish(): Bytes {
    const out = new Uint8Array(this.#parts.reduce((n, p) => n + p.byteLength, 0));
    let at = 0;
    for (const p of this.#parts) {
      out.set(p, at);
      at += p.byteLength;
    }
    return out;
  }
}

// numbers of the fields in onnx.proto
const FLOAT = 1;
const INT64 = 7;

function attribute(name: string, value: Attribute): Message {
  const m = new Message().bytes(1, name);
  if (typeof value !== "number") {
    for (const v of value) m.varint(8, v);
    return m.varint(20, 7);
  }
  return Number.isInteger(value) ? m.varint(3, value).varint(20, 2) : m.float(2, value).varint(20, 1);
}
function valueInfo(name: string, shape: readonly number[]): Message {
  const dims = new Message();
  for (const d of shape) dims.bytes(1, new Message().varint(1, d));
  const type = new Message().bytes(1, new Message().varint(1, FLOAT).bytes(2, dims));
  return new Message().bytes(1, name).bytes(2, type);
}
function initializer(name: string, shape: readonly number[], type: number, data: Bytes): Message {
  const m = new Message();
  for (const d of shape) m.varint(1, d);
  return m.varint(2, type).bytes(8, name).bytes(9, data);
}

/** A graph under construction: every method returns the name of a value. */
export class Graph {
  readonly #graph = new Message();
  #count = 0;

  #fresh(): string {
    return `v${this.#count++}`;
  }
  op(name: string, inputs: readonly string[], attributes: Readonly<Record<string, Attribute>> = {}): string {
    return this.ops(name, inputs, 1, attributes)[0] as string;
  }
  ops(
    name: string,
    inputs: readonly string[],
    outputs: number,
    attributes: Readonly<Record<string, Attribute>> = {},
  ) {
    const node = new Message();
    for (const i of inputs) node.bytes(1, i);
    const names = Array.from({ length: outputs }, () => this.#fresh());
    for (const n of names) node.bytes(2, n);
    node.bytes(4, name);
    for (const [k, v] of Object.entries(attributes)) node.bytes(5, attribute(k, v));
    this.#graph.bytes(1, node);
    return names;
  }
  weight(data: Float32Array<ArrayBuffer>, ...shape: number[]): string {
    const name = this.#fresh();
    this.#graph.bytes(5, initializer(name, shape, FLOAT, new Uint8Array(data.buffer)));
    return name;
  }
  ints(...values: number[]): string {
    const name = this.#fresh();
    const data = new Uint8Array(BigInt64Array.from(values.map(BigInt)).buffer);
    this.#graph.bytes(5, initializer(name, [values.length], INT64, data));
    return name;
  }
  input(name: string, ...shape: number[]): string {
    this.#graph.bytes(11, valueInfo(name, shape));
    return name;
  }
  /** The model that computes this value, under the name `out`. */
  model(value: string, shape: readonly number[]): Bytes {
    this.#graph.bytes(1, new Message().bytes(1, value).bytes(2, "out").bytes(4, "Identity"));
    this.#graph.bytes(2, "bench").bytes(12, valueInfo("out", shape));
    const opset = new Message().bytes(1, "").varint(2, 20);
    return new Message().varint(1, 9).bytes(7, this.#graph).bytes(8, opset).finish();
  }
}
