// One case: loads the model, runs it, compares. Floats agree within the standard's own tolerance (1e-3 of
// the value and 1e-7), integers, booleans and strings exactly. What a random op gives is compared by type
// and shape.

import { Tensor } from "gradloom";
import { load, OnnxError, type OnnxInput, type OnnxModel, type OnnxOutput } from "gradloom/onnx";
import {
  OPTIONAL,
  type OptionalProto,
  SEQUENCE,
  type SequenceProto,
  TENSOR,
} from "../../../src/onnx/model.ts";
import { decode } from "../../../src/onnx/protobuf.ts";
import { tensorValue } from "../../../src/onnx/tensors.ts";
import { type Any, OptionalValue, SequenceValue, type TensorValue } from "../../../src/onnx/values.ts";
import type { Case, DataSet } from "./cases.ts";

export interface CaseVerdict {
  readonly outcome: "passed" | "failed" | "unsupported";
  readonly why?: string;
  readonly op?: string;
}

/** Ops whose values are drawn: another generator draws other ones. */
const RANDOM = /^test_(?:bernoulli|random|multinomial|training_dropout)/;
const RELATIVE = 1e-3;
const ABSOLUTE = 1e-7;
/** bfloat16 has 8 bits: what is rounded twice differs by more. */
const COARSE: Readonly<Record<string, readonly [number, number]>> = {
  bfloat16: [1e-2, 1e-2],
  float16: [2e-3, 1e-3],
};

const place = {
  device: undefined,
  external: (): never => {
    throw new Error("no external data here");
  },
  inFile: () => undefined,
};

/** What a data file holds is said by the type of the port. */
function read(bytes: Uint8Array, type: string): Any {
  const tensor = (t: Parameters<typeof tensorValue>[0]): Any => tensorValue(t, "a value", place);
  const sequence = (s: SequenceProto): Any =>
    new SequenceValue([...s.tensor_values.map(tensor), ...s.sequence_values.map(sequence)]);
  const optional = (o: OptionalProto): Any => {
    if (o.tensor_value !== undefined) return new OptionalValue(tensor(o.tensor_value));
    return new OptionalValue(o.sequence_value === undefined ? undefined : sequence(o.sequence_value));
  };
  if (type.startsWith("sequence")) return sequence(decode(SEQUENCE, bytes));
  if (type.startsWith("optional")) return optional(decode(OPTIONAL, bytes));
  return tensor(decode(TENSOR, bytes));
}
const asInput = (value: Any): OnnxInput => {
  if (value instanceof SequenceValue) return value.items.map(asInput);
  if (value instanceof OptionalValue) return value.value === undefined ? null : asInput(value.value);
  if (value.isText) return { shape: value.shape, data: value.texts };
  return value.tensor;
};

/** `runs` are made with each set: the third replays what the second captured. */
export async function checkCase(one: Case, runs = 1): Promise<CaseVerdict> {
  try {
    const model = await load(one.model);
    for (const set of one.sets) {
      for (let run = 0; run < runs; run++) {
        const why = await checkSet(model, set, RANDOM.test(one.name));
        if (why !== undefined) return { outcome: "failed", why: run === 0 ? why : `run ${run}: ${why}` };
      }
    }
    return { outcome: "passed" };
  } catch (e) {
    if (!(e instanceof Error)) throw e;
    const op = e instanceof OnnxError && e.op !== undefined ? { op: e.op } : {};
    const isUnsupported = e instanceof OnnxError && e.isUnsupported === true;
    return { outcome: isUnsupported ? "unsupported" : "failed", why: e.message, ...op };
  }
}

async function checkSet(model: OnnxModel, set: DataSet, isRandom: boolean): Promise<string | undefined> {
  const inputs = model.inputs
    .slice(0, set.inputs.length)
    .map(({ name, type }, i) => [name, asInput(read(set.inputs[i] as Uint8Array, type))] as const);
  const results = await model.run(Object.fromEntries(inputs));
  for (const [i, bytes] of set.outputs.entries()) {
    const port = model.outputs[i];
    if (port === undefined) return `output ${i} is not there`;
    const why = await differs(results[port.name] as OnnxOutput, read(bytes, port.type), isRandom);
    if (why !== undefined) return `output ${port.name}: ${why}`;
  }
  return undefined;
}

async function differs(got: OnnxOutput, expected: Any, isRandom: boolean): Promise<string | undefined> {
  if (expected instanceof OptionalValue) {
    if (expected.value === undefined) return got === null ? undefined : "there is a value, expected none";
    return differs(got, expected.value, isRandom);
  }
  if (expected instanceof SequenceValue) {
    if (!Array.isArray(got)) return "it is not a sequence";
    if (got.length !== expected.items.length) return `${got.length} items, expected ${expected.items.length}`;
    for (const [i, item] of expected.items.entries()) {
      const why = await differs(got[i] as OnnxOutput, item, isRandom);
      if (why !== undefined) return `item ${i}: ${why}`;
    }
    return undefined;
  }
  const shape = got instanceof Tensor ? got.shape : (got as { shape?: readonly number[] } | null)?.shape;
  if (shape?.join() !== expected.shape.join()) return `shape [${shape}], expected [${expected.shape}]`;
  if (expected.isText) {
    const { data } = got as { data: readonly string[] };
    return data.join("\0") === expected.texts.join("\0") ? undefined : `${data}, expected ${expected.texts}`;
  }
  if (!(got instanceof Tensor)) return "it is not a tensor";
  if (got.dtype !== expected.type.dtype) return `${got.dtype.name}, expected ${expected.type.name}`;
  return isRandom || expected.size === 0 ? undefined : compare(await got.data(), expected);
}

function compare(got: ArrayLike<number | bigint>, expected: TensorValue): string | undefined {
  const { data } = expected.host;
  const [relative, absolute] = COARSE[expected.type.name] ?? [RELATIVE, ABSOLUTE];
  const isFloat = expected.type.dtype.isFloat;
  for (let i = 0; i < data.length; i++) {
    const [a, b] = [got[i], data[i]];
    if (a === b) continue;
    const [x, y] = [Number(a), Number(b)];
    if (isFloat && (Object.is(x, y) || (Number.isNaN(x) && Number.isNaN(y)))) continue;
    if (isFloat && Math.abs(x - y) <= absolute + relative * Math.abs(y)) continue;
    return `element ${i} of ${data.length} is ${a}, expected ${b}`;
  }
  return undefined;
}
