// A case is one node with its inputs. Generators throw dice for shapes, types and attributes. The node
// becomes a file; each input is given to the run or is a weight of the file: two paths here.

import { type OnnxAttribute, write } from "gradloom/onnx";
import { Dice } from "../../../scripts/fuzz/generate/dice.ts";
import { prod } from "../../../src/helpers.ts";
import { type ElementType, TYPES } from "../../../src/onnx/elements.ts";
import { MODEL, type ModelProto, type TensorProto } from "../../../src/onnx/model.ts";
import { decode } from "../../../src/onnx/protobuf.ts";
import { protoOf } from "../../../src/onnx/tensors.ts";

/** Elements in row-major order. */
export interface HostData {
  readonly type: string;
  readonly shape: readonly number[];
  readonly data: ArrayLike<number | bigint>;
}
export interface OpCase {
  readonly op: string;
  readonly opset: number;
  readonly inputs: readonly (HostData | undefined)[];
  /** how many outputs are asked for */
  readonly outputs: number;
  readonly attributes: Readonly<Record<string, OnnxAttribute>>;
  /** what is added to the tolerance: of the largest value, or steps of a quantised result */
  readonly slack?: number;
  /** an input that must be a weight */
  readonly weights?: readonly number[];
}
export type CaseMaker = (r: CaseDice) => OpCase;
type Rest = Partial<Pick<OpCase, "opset" | "outputs" | "slack" | "weights">>;

const DIGITS = 64;
export class CaseDice extends Dice {
  /** Mostly small, sometimes 0. */
  size(low = 1, high = 5): number {
    return this.int(low, high);
  }
  shape(low: number, high: number, max = 5): number[] {
    const zero = this.chance(4);
    const shape = Array.from({ length: this.int(low, high) }, () => this.int(1, max));
    return zero && shape.length > 0 ? shape.with(this.int(0, shape.length - 1), 0) : shape;
  }
  /** An axis, from the front or from the end. */
  axis(ndim: number): number {
    return ndim === 0 ? 0 : this.int(-ndim, ndim - 1);
  }
  /** Of the same dims or fewer, with ones here and there: it broadcasts. */
  broadcast(shape: readonly number[]): number[] {
    const part = this.chance(60) ? shape : shape.slice(this.int(0, shape.length));
    return part.map((n) => (this.chance(25) ? 1 : n));
  }
  /** Halves, which every type of float holds, or integers. */
  tensor(type: string, shape: readonly number[], low = -4, high = 4): HostData {
    const { dtype } = TYPES[type as keyof typeof TYPES];
    const from = dtype.kind === "uint" ? Math.max(0, low) : low;
    const data = Array.from({ length: prod(shape) }, () => {
      if (type === "bool") return this.int(0, 1);
      if (dtype.isFloat) return this.int(from * DIGITS, high * DIGITS) / DIGITS;
      const whole = this.int(from, high);
      return dtype.isBig ? BigInt(whole) : whole;
    });
    return { type, shape, data };
  }
  float(shape: readonly number[], low = -4, high = 4): HostData {
    return this.tensor(this.chance(85) ? "float" : "double", shape, low, high);
  }
  /** The attributes that chance leaves in; the op has a default for the others. */
  maybe(attributes: Readonly<Record<string, OnnxAttribute>>): Record<string, OnnxAttribute> {
    return Object.fromEntries(Object.entries(attributes).filter(() => this.chance(70)));
  }
}

export const ints = (list: readonly number[], type = "int64"): HostData => ({
  type,
  shape: [list.length],
  data: type === "int64" ? list.map(BigInt) : list,
});
export const scalar = (x: number, type = "int64"): HostData => ({ ...ints([x], type), shape: [] });
export const floats = (list: readonly number[]): HostData => ({
  type: "float",
  shape: [list.length],
  data: list,
});
export const makeCase = (
  op: string,
  inputs: OpCase["inputs"],
  attributes: OpCase["attributes"] = {},
  rest: Rest = {},
): OpCase => ({ op, opset: 21, outputs: 1, inputs, attributes, ...rest });

/** As many as `n`. */
export const list = <T>(n: number, f: (i: number) => T): T[] => Array.from({ length: n }, (_, i) => f(i));
/** The shape, with at least one element. */
export const full = (shape: readonly number[]): number[] => shape.map((n) => Math.max(n, 1));

const nameOf = (i: number): string => `x${i}`;

/** The file of a case; what is not a weight of it is fed. */
export async function fileOf(
  one: OpCase,
  isWeight: (i: number) => boolean,
): Promise<{ readonly bytes: Uint8Array; readonly feeds: Readonly<Record<string, HostData>> }> {
  const given = one.inputs.flatMap((x, i) => (x === undefined ? [] : [[i, x] as const]));
  const isFixed = (i: number): boolean => one.weights?.includes(i) === true || isWeight(i);
  const fed = given.filter(([i]) => !isFixed(i));
  const last = one.inputs.findLastIndex((x) => x !== undefined);
  const outputs = Array.from({ length: one.outputs }, (_, i) => `y${i}`);
  const bytes = await write(
    {
      inputs: Object.fromEntries(fed.map(([i, { type, shape }]) => [nameOf(i), { type, dims: shape }])),
      outputs: Object.fromEntries(outputs.map((name) => [name, { type: "float" }])),
      nodes: [
        {
          op: one.op,
          // an empty name at the end is legal, but onnxruntime crashes on some
          inputs: one.inputs.slice(0, last + 1).map((x, i) => (x === undefined ? "" : nameOf(i))),
          outputs,
          attributes: one.attributes,
        },
      ],
    },
    { opset: one.opset },
  );
  const model: ModelProto = decode(MODEL, bytes);
  const graph = model.graph as NonNullable<ModelProto["graph"]>;
  const patched = {
    ...model,
    graph: {
      ...graph,
      initializer: given.filter(([i]) => isFixed(i)).map(([i, x]) => weightOf(nameOf(i), x)),
      // the types of the outputs are for both to find out
      output: graph.output.map((o) => ({ ...o, type: undefined })),
    },
  };
  return {
    bytes: MODEL.write(patched),
    feeds: Object.fromEntries(fed.map(([i, x]) => [nameOf(i), x])),
  };
}
function weightOf(name: string, { type, shape, data }: HostData): TensorProto {
  const element: ElementType = TYPES[type as keyof typeof TYPES];
  return protoOf(name, { type: element, shape, data });
}
