// The messages of an ONNX file as typed records, and the tables that read and write them. The names are those
// of the standard. What a run does not need (documentation, sharding) is not read.

import {
  bytes,
  decode,
  float,
  int64,
  integer,
  later,
  many,
  message,
  one,
  type PackedNumbers,
  packed,
  text,
  type WireKind,
} from "./protobuf.ts";

interface KeyValue {
  readonly key: string;
  readonly value: string;
}
const ENTRY = message<KeyValue>({ key: one(1, text, ""), value: one(2, text, "") });

export interface TensorProto {
  readonly dims: readonly bigint[];
  readonly data_type: number;
  readonly float_data: PackedNumbers;
  readonly int32_data: PackedNumbers;
  readonly string_data: readonly Uint8Array[];
  readonly int64_data: PackedNumbers;
  readonly name: string;
  readonly raw_data: Uint8Array | undefined;
  readonly double_data: PackedNumbers;
  readonly uint64_data: PackedNumbers;
  readonly external_data: readonly KeyValue[];
  /** 1: the data is beside the file */
  readonly data_location: number;
}
export const TENSOR: WireKind<TensorProto> = message<TensorProto>({
  dims: many(1, int64),
  data_type: one(2, integer, 0),
  float_data: packed(4, float),
  int32_data: packed(5, integer),
  string_data: many(6, bytes),
  int64_data: packed(7, int64),
  name: one(8, text, ""),
  raw_data: one(9, bytes),
  double_data: packed(10, "double"),
  uint64_data: packed(11, int64),
  external_data: many(13, ENTRY),
  data_location: one(14, integer, 0),
});

export interface SparseTensorProto {
  readonly values: TensorProto | undefined;
  readonly indices: TensorProto | undefined;
  readonly dims: readonly bigint[];
}
const SPARSE: WireKind<SparseTensorProto> = message<SparseTensorProto>({
  values: one(1, TENSOR),
  indices: one(2, TENSOR),
  dims: many(3, int64),
});

export interface Dimension {
  readonly dim_value: bigint | undefined;
  readonly dim_param: string | undefined;
}
interface TensorShapeProto {
  readonly dim: readonly Dimension[];
}
interface TensorTypeProto {
  readonly elem_type: number;
  readonly shape: TensorShapeProto | undefined;
}
export interface TypeProto {
  readonly tensor_type: TensorTypeProto | undefined;
  readonly sequence_type: { readonly elem_type: TypeProto | undefined } | undefined;
  readonly optional_type: { readonly elem_type: TypeProto | undefined } | undefined;
  readonly map_type: { readonly key_type: number; readonly value_type: TypeProto | undefined } | undefined;
  readonly sparse_tensor_type: TensorTypeProto | undefined;
}
const SHAPE = message<TensorShapeProto>({
  dim: many(1, message<Dimension>({ dim_value: one(1, int64), dim_param: one(2, text) })),
});
const TENSOR_TYPE = message<TensorTypeProto>({ elem_type: one(1, integer, 0), shape: one(2, SHAPE) });
const inner = later<TypeProto>(() => TYPE);
export const TYPE: WireKind<TypeProto> = message<TypeProto>({
  tensor_type: one(1, TENSOR_TYPE),
  sequence_type: one(4, message({ elem_type: one(1, inner) })),
  map_type: one(5, message({ key_type: one(1, integer, 0), value_type: one(2, inner) })),
  sparse_tensor_type: one(8, TENSOR_TYPE),
  optional_type: one(9, message({ elem_type: one(1, inner) })),
});

export interface ValueInfoProto {
  readonly name: string;
  readonly type: TypeProto | undefined;
}
const VALUE_INFO = message<ValueInfoProto>({ name: one(1, text, ""), type: one(2, TYPE) });

export interface AttributeProto {
  readonly name: string;
  readonly ref_attr_name: string;
  readonly type: number;
  readonly f: number;
  readonly i: bigint;
  readonly s: Uint8Array | undefined;
  readonly t: TensorProto | undefined;
  readonly g: GraphProto | undefined;
  readonly tp: TypeProto | undefined;
  readonly sparse_tensor: SparseTensorProto | undefined;
  readonly floats: readonly number[];
  readonly ints: readonly bigint[];
  readonly strings: readonly Uint8Array[];
  readonly tensors: readonly TensorProto[];
  readonly graphs: readonly GraphProto[];
}
const graph = later<GraphProto>(() => GRAPH);
const ATTRIBUTE = message<AttributeProto>({
  name: one(1, text, ""),
  f: one(2, float, 0),
  i: one(3, int64, 0n),
  s: one(4, bytes),
  t: one(5, TENSOR),
  g: one(6, graph),
  floats: many(7, float),
  ints: many(8, int64),
  strings: many(9, bytes),
  tensors: many(10, TENSOR),
  graphs: many(11, graph),
  tp: one(14, TYPE),
  type: one(20, integer, 0),
  ref_attr_name: one(21, text, ""),
  sparse_tensor: one(22, SPARSE),
});

export interface NodeProto {
  readonly input: readonly string[];
  readonly output: readonly string[];
  readonly name: string;
  readonly op_type: string;
  readonly domain: string;
  readonly overload: string;
  readonly attribute: readonly AttributeProto[];
}
const NODE = message<NodeProto>({
  input: many(1, text),
  output: many(2, text),
  name: one(3, text, ""),
  op_type: one(4, text, ""),
  attribute: many(5, ATTRIBUTE),
  domain: one(7, text, ""),
  overload: one(8, text, ""),
});

export interface GraphProto {
  readonly node: readonly NodeProto[];
  readonly name: string;
  readonly initializer: readonly TensorProto[];
  readonly sparse_initializer: readonly SparseTensorProto[];
  readonly input: readonly ValueInfoProto[];
  readonly output: readonly ValueInfoProto[];
}
const GRAPH: WireKind<GraphProto> = message<GraphProto>({
  node: many(1, NODE),
  name: one(2, text, ""),
  initializer: many(5, TENSOR),
  sparse_initializer: many(15, SPARSE),
  input: many(11, VALUE_INFO),
  output: many(12, VALUE_INFO),
});

interface OperatorSetIdProto {
  readonly domain: string;
  readonly version: number;
}
const OPSET = message<OperatorSetIdProto>({ domain: one(1, text, ""), version: one(2, integer, 0) });

export interface FunctionProto {
  readonly name: string;
  readonly domain: string;
  readonly overload: string;
  readonly input: readonly string[];
  readonly output: readonly string[];
  readonly attribute: readonly string[];
  readonly attribute_proto: readonly AttributeProto[];
  readonly node: readonly NodeProto[];
  readonly opset_import: readonly OperatorSetIdProto[];
}
const FUNCTION = message<FunctionProto>({
  name: one(1, text, ""),
  input: many(4, text),
  output: many(5, text),
  attribute: many(6, text),
  node: many(7, NODE),
  opset_import: many(9, OPSET),
  domain: one(10, text, ""),
  attribute_proto: many(11, ATTRIBUTE),
  overload: one(13, text, ""),
});

export interface ModelProto {
  readonly ir_version: number;
  readonly opset_import: readonly OperatorSetIdProto[];
  readonly producer_name: string;
  readonly graph: GraphProto | undefined;
  readonly metadata_props: readonly KeyValue[];
  readonly functions: readonly FunctionProto[];
}
export const MODEL = message<ModelProto>({
  ir_version: one(1, integer, 0),
  producer_name: one(2, text, ""),
  graph: one(7, graph),
  opset_import: many(8, OPSET),
  metadata_props: many(14, ENTRY),
  functions: many(25, FUNCTION),
});

/** What a file of the conformance suite holds, beside single tensors. */
export interface SequenceProto {
  readonly name: string;
  /** 1 tensors, 2 sparse tensors, 3 sequences, 4 maps, 5 optionals */
  readonly elem_type: number;
  readonly tensor_values: readonly TensorProto[];
  readonly sequence_values: readonly SequenceProto[];
  readonly optional_values: readonly OptionalProto[];
}
export interface OptionalProto {
  readonly name: string;
  readonly elem_type: number;
  readonly tensor_value: TensorProto | undefined;
  readonly sequence_value: SequenceProto | undefined;
  readonly optional_value: OptionalProto | undefined;
}
export const SEQUENCE: WireKind<SequenceProto> = message<SequenceProto>({
  name: one(1, text, ""),
  elem_type: one(2, integer, 0),
  tensor_values: many(3, TENSOR),
  sequence_values: many(
    5,
    later(() => SEQUENCE),
  ),
  optional_values: many(
    7,
    later(() => OPTIONAL),
  ),
});
export const OPTIONAL: WireKind<OptionalProto> = message<OptionalProto>({
  name: one(1, text, ""),
  elem_type: one(2, integer, 0),
  tensor_value: one(3, TENSOR),
  sequence_value: one(
    5,
    later(() => SEQUENCE),
  ),
  optional_value: one(
    7,
    later(() => OPTIONAL),
  ),
});

export const decodeModel = (file: Uint8Array): ModelProto => decode(MODEL, file);
