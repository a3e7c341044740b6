// A graph said in plain objects becomes a file. What an attribute is (a float, a list of integers) is known
// from the op. In: nodes, weights, inputs and outputs. Out: the bytes of an ONNX model.

import type { TensorData } from "../tensor/creation/hostdata.ts";
import { Tensor } from "../tensor/tensor.ts";
import { type ElementType, TYPES, typeOfDType } from "./elements.ts";
import { OnnxError, quoted } from "./errors.ts";
import {
  type AttributeProto,
  type GraphProto,
  MODEL,
  type ModelProto,
  type NodeProto,
  type TensorProto,
  type ValueInfoProto,
} from "./model.ts";
import { OPS_OF_ONNX } from "./ops/index.ts";
import { protoOf } from "./tensors.ts";

/** The type and sizes of an input or output; a text is the name of a size that is not fixed. */
export interface OnnxValueType {
  readonly type: string;
  readonly dims?: readonly (number | string | null)[];
}
/** The value of an attribute; a graph for the body of a loop or a branch. */
export type OnnxAttribute =
  | number
  | boolean
  | string
  | readonly number[]
  | readonly string[]
  | Tensor
  | OnnxGraph;
/** One op of a graph. */
export interface OnnxNode {
  /** "Conv"; ops of another domain have it in front: "com.microsoft.Gelu" */
  readonly op: string;
  /** the empty name leaves an input out */
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes?: Readonly<Record<string, OnnxAttribute>>;
  readonly name?: string;
}
/** What a file holds, in plain objects. */
export interface OnnxGraph {
  readonly name?: string;
  readonly inputs: Readonly<Record<string, OnnxValueType>>;
  readonly outputs: Readonly<Record<string, OnnxValueType>>;
  readonly weights?: Readonly<Record<string, Tensor | TensorData>>;
  readonly nodes: readonly OnnxNode[];
}
/** What else a file says. */
export interface OnnxWriteOptions {
  /** the version of the standard's ops; default: 21 */
  readonly opset?: number;
  /** texts beside the graph, by name: what `OnnxModel.metadata` gives back */
  readonly metadata?: Readonly<Record<string, string>>;
}

/**
 * The bytes of a model with this graph.
 * @example
 * const bytes = await onnx.write({
 *   inputs: { x: { type: "float", dims: ["n"] } },
 *   outputs: { y: { type: "float", dims: ["n"] } },
 *   nodes: [{ op: "Relu", inputs: ["x"], outputs: ["y"] }],
 * });
 * const { y } = await (await onnx.load(bytes)).run({ x: [-1, 2] });
 * await y.tolist() // => [0, 2]
 */
export async function write(graph: OnnxGraph, options: OnnxWriteOptions = {}): Promise<Uint8Array> {
  const { opset = 21, metadata = {} } = options;
  const domains = [...domainsOf(graph)].map((domain) => ({ domain, version: domain === "" ? opset : 1 }));
  const model: ModelProto = {
    ir_version: 10,
    producer_name: "gradloom",
    opset_import: domains,
    graph: await graphProto(graph),
    metadata_props: Object.entries(metadata).map(([key, value]) => ({ key, value })),
    functions: [],
  };
  return MODEL.write(model);
}

const splitOp = (op: string): readonly [domain: string, name: string] => {
  const at = op.lastIndexOf(".");
  return at < 0 ? ["", op] : [op.slice(0, at), op.slice(at + 1)];
};
const isGraph = (x: OnnxAttribute): x is OnnxGraph => typeof x === "object" && "nodes" in x;
function domainsOf(graph: OnnxGraph, all = new Set([""])): Set<string> {
  for (const node of graph.nodes) {
    all.add(splitOp(node.op)[0]);
    for (const a of Object.values(node.attributes ?? {})) if (isGraph(a)) domainsOf(a, all);
  }
  return all;
}

async function graphProto(graph: OnnxGraph): Promise<GraphProto> {
  const weights = Object.entries(graph.weights ?? {});
  return {
    name: graph.name ?? "graph",
    node: await Promise.all(graph.nodes.map(nodeProto)),
    initializer: await Promise.all(
      weights.map(([name, w]) => tensorProto(name, w instanceof Tensor ? w : new Tensor(w))),
    ),
    sparse_initializer: [],
    input: Object.entries(graph.inputs).map(infoOf),
    output: Object.entries(graph.outputs).map(infoOf),
  };
}
async function tensorProto(name: string, t: Tensor): Promise<TensorProto> {
  return protoOf(name, {
    type: typeOfDType(t.dtype),
    shape: t.shape as readonly number[],
    data: await t.data(),
  });
}
function infoOf([name, { type, dims }]: readonly [string, OnnxValueType]): ValueInfoProto {
  const element = (TYPES as Readonly<Record<string, ElementType>>)[type];
  if (element === undefined)
    throw new OnnxError(
      `write: ${quoted(name)} has type ${quoted(type)}; expected one of ${Object.keys(TYPES).join(", ")}`,
    );
  const dim = dims?.map((d) => ({
    dim_value: typeof d === "number" ? BigInt(d) : undefined,
    dim_param: typeof d === "string" ? d : undefined,
  }));
  const tensor_type = { elem_type: element.code, shape: dim === undefined ? undefined : { dim } };
  const none = {
    sequence_type: undefined,
    optional_type: undefined,
    map_type: undefined,
    sparse_tensor_type: undefined,
  };
  return { name, type: { tensor_type, ...none } };
}

async function nodeProto(node: OnnxNode): Promise<NodeProto> {
  const [domain, op_type] = splitOp(node.op);
  const attributes = Object.entries(node.attributes ?? {});
  return {
    input: node.inputs,
    output: node.outputs,
    name: node.name ?? "",
    op_type,
    domain,
    overload: "",
    attribute: await Promise.all(attributes.map(([name, value]) => attributeProto(node, name, value))),
  };
}
/** The type of an attribute in the newest version of the op that has it. */
function codeOf(node: OnnxNode, name: string): number {
  const versions = Object.hasOwn(OPS_OF_ONNX, node.op) ? OPS_OF_ONNX[node.op] : undefined;
  if (versions === undefined)
    throw new OnnxError(`write: there is no op ${quoted(node.op)}`, { op: node.op });
  const found = versions.findLast(([, op]) => Object.hasOwn(op.attributes, name))?.[1].attributes[name];
  if (found === undefined)
    throw new OnnxError(`write: ${node.op} has no attribute ${quoted(name)}`, { op: node.op });
  return found.code;
}
async function attributeProto(node: OnnxNode, name: string, value: OnnxAttribute): Promise<AttributeProto> {
  const code = codeOf(node, name);
  const utf8 = new TextEncoder();
  const refuse = (): never => {
    throw new OnnxError(
      `write: attribute ${name} of ${node.op} is ${typeof value}, which does not fit its type`,
      {
        op: node.op,
      },
    );
  };
  const number = (x: unknown): number =>
    typeof x === "number" || typeof x === "boolean" ? Number(x) : refuse();
  const list = <T>(item: (x: unknown) => T): T[] => (Array.isArray(value) ? value.map(item) : refuse());
  const text = (x: unknown): Uint8Array => (typeof x === "string" ? utf8.encode(x) : refuse());
  const whole = (x: unknown): bigint => (Number.isSafeInteger(number(x)) ? BigInt(number(x)) : refuse());
  const writers: Readonly<Record<number, () => Partial<AttributeProto> | Promise<Partial<AttributeProto>>>> =
    {
      1: () => ({ f: number(value) }),
      2: () => ({ i: whole(value) }),
      3: () => ({ s: text(value) }),
      4: async () => ({ t: value instanceof Tensor ? await tensorProto("", value) : refuse() }),
      5: async () => ({ g: isGraph(value) ? await graphProto(value) : refuse() }),
      6: () => ({ floats: list(number) }),
      7: () => ({ ints: list(whole) }),
      8: () => ({ strings: list(text) }),
    };
  return { ...EMPTY, name, type: code, ...(await (writers[code] ?? refuse)()) };
}
const EMPTY: AttributeProto = {
  name: "",
  ref_attr_name: "",
  type: 0,
  f: 0,
  i: 0n,
  s: undefined,
  t: undefined,
  g: undefined,
  tp: undefined,
  sparse_tensor: undefined,
  floats: [],
  ints: [],
  strings: [],
  tensors: [],
  graphs: [],
};
