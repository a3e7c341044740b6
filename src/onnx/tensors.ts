// The tensors of a file as values. Their elements stay in the bytes of the file, or in the file beside it,
// until somebody needs them; weights that are packed (int4, float8) go to the device packed. Counts and
// lengths of the file are checked against the bytes that are there before anything is allocated.

import type { DType, Value } from "../dtype.ts";
import { prod } from "../helpers.ts";
import { tensorOn } from "../nn/bytes.ts";
import { Buffer } from "../runtime/buffer.ts";
import { Device } from "../runtime/registry.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { type ElementType, encodeElements, TYPES, typeOfCode } from "./elements.ts";
import { OnnxError } from "./errors.ts";
import type { SparseTensorProto, TensorProto } from "./model.ts";
import { joined, type PackedNumbers, WireReader } from "./protobuf.ts";
import { type HostArray, rawHost, TensorValue, WEIGHT_SOURCES } from "./values.ts";

const MAX_DIMS = 64;
/** What typed arrays and kernels can count. */
const MAX_ELEMENTS = 2 ** 40;

/** The bytes of a tensor that are not in the model's file. */
export interface ExternalBytes {
  /** as the layout of raw data, on DISK or EXT */
  tensor(stored: ElementType, shape: readonly number[]): Tensor;
  /** the bytes, where they are in memory */
  readonly raw: Uint8Array | undefined;
}
export type FindExternal = (tensor: TensorProto, where: string) => ExternalBytes;
/** The same bytes of the model's file as a tensor that holds none of them in memory; undefined: it cannot. */
export type FindInFile = (raw: Uint8Array, stored: DType, shape: readonly number[]) => Tensor | undefined;

/** What a tensor of a file needs to become a value. */
export interface TensorPlace {
  readonly device: string | undefined;
  readonly external: FindExternal;
  readonly inFile: FindInFile;
}

/** The most bytes of a constant that the host keeps: it computes with shapes and scalars (fold.ts). */
export const SMALL = 1 << 14;

export function shapeOf(dims: readonly bigint[], where: string): number[] {
  if (dims.length > MAX_DIMS) throw new OnnxError(`${where} has ${dims.length} dims, at most ${MAX_DIMS}`);
  const shape = dims.map(Number);
  const odd = shape.find((d) => !Number.isSafeInteger(d) || d < 0);
  if (odd !== undefined) throw new OnnxError(`${where} has a dim of ${odd}`);
  // a dim of 0 must not hide that the others are absurd
  if (prod(shape.map((d) => Math.max(d, 1))) > MAX_ELEMENTS) {
    throw new OnnxError(`${where} has shape [${shape.join(", ")}], more than 2^40 elements`);
  }
  return shape;
}

export const bytesFor = (type: ElementType, n: number): number => Math.ceil((n * type.bits) / 8);

/** A tensor of the file as a value; `where` names it in messages. */
export function tensorValue(tensor: TensorProto, where: string, place: TensorPlace): TensorValue {
  return protoValue(tensor, where, place, inMemory);
}
/**
 * The same for a weight: a large one does not stay on the host, and what is computed from floats is not
 * computed there, because they may be trained.
 */
export function weightValue(tensor: TensorProto, where: string, place: TensorPlace): TensorValue {
  const value = protoValue(tensor, where, place, (type, shape, raw) =>
    raw.byteLength <= SMALL ? inMemory(type, shape, raw, place) : onDeviceOnly(type, shape, raw, place),
  );
  const { type } = value;
  return type.dtype.isFloat && type.stored === type.dtype ? value.withSources(WEIGHT_SOURCES) : value;
}
function protoValue(
  tensor: TensorProto,
  where: string,
  place: TensorPlace,
  make: typeof inMemory,
): TensorValue {
  const type = typeOfCode(tensor.data_type, where);
  const shape = shapeOf(tensor.dims, where);
  const n = prod(shape);
  if (type === TYPES.string) {
    requireCount(where, n, tensor.string_data.length);
    const utf8 = new TextDecoder();
    return TensorValue.ofTexts({ shape, data: tensor.string_data.map((s) => utf8.decode(s)) });
  }
  if (tensor.data_location === 1) return externalValue(type, shape, place.external(tensor, where), place);
  const { raw_data } = tensor;
  if (raw_data === undefined || (raw_data.byteLength === 0 && n > 0)) {
    const raw = typedBytes(tensor, type, n, where);
    return make(type, shape, raw, place);
  }
  const expected = bytesFor(type, n);
  if (raw_data.byteLength !== expected) {
    throw new OnnxError(
      `${where} is ${type.name}[${shape.join(", ")}] and takes ${expected} bytes, the file has ${raw_data.byteLength}`,
    );
  }
  return make(type, shape, raw_data, place);
}

function requireCount(where: string, expected: number, got: number): void {
  if (expected !== got)
    throw new OnnxError(`${where} has ${expected} elements by its shape, the file has ${got}`);
}

function inMemory(
  type: ElementType,
  shape: readonly number[],
  raw: Uint8Array,
  place: TensorPlace,
): TensorValue {
  const host = () => rawHost(type, shape, aligned(type, raw));
  const tensor = type.stored === undefined || prod(shape) === 0 ? undefined : heldBy(type, shape, raw, place);
  return new TensorValue(type, shape, {
    host,
    ...(tensor === undefined ? {} : { tensor }),
    device: place.device,
  });
}
/** Once it is on the device, nothing keeps its bytes on the host. */
function onDeviceOnly(
  type: ElementType,
  shape: readonly number[],
  raw: Uint8Array,
  place: TensorPlace,
): TensorValue {
  const { stored } = type;
  if (stored === undefined || prod(shape) === 0) return inMemory(type, shape, raw, place);
  const inFile = type === TYPES.bool ? undefined : place.inFile(raw, stored, shape);
  if (inFile !== undefined) return fileValue(type, shape, inFile, place);
  return new TensorValue(type, shape, { tensor: heldBy(type, shape, raw, place), device: place.device });
}
/** A function of its own, so that what it returns does not keep the bytes of the file in memory. */
const fileValue = (type: ElementType, shape: readonly number[], held: Tensor, place: TensorPlace) =>
  new TensorValue(type, shape, { tensor: () => onDevice(held, type, place), device: place.device });
const heldBy =
  (type: ElementType, shape: readonly number[], raw: Uint8Array, place: TensorPlace) => (): Tensor => {
    const { stored = type.dtype } = type;
    const buffer = new Buffer("EXT", prod(shape), stored).allocate(canonical(type, aligned(type, raw)));
    return onDevice(tensorOn(buffer, shape), type, place);
  };
/** Where a value starts in a file is by chance. */
function aligned({ stored }: ElementType, raw: Uint8Array): Uint8Array {
  const size = stored?.isPacked === false ? stored.storage.BYTES_PER_ELEMENT : 1;
  return raw.byteOffset % size === 0 ? raw : new Uint8Array(raw);
}
/** A bool of the file may be any byte. */
const canonical = (type: ElementType, raw: Uint8Array): Uint8Array =>
  type === TYPES.bool ? raw.map((x) => (x === 0 ? 0 : 1)) : raw;

function externalValue(
  type: ElementType,
  shape: readonly number[],
  external: ExternalBytes,
  place: TensorPlace,
): TensorValue {
  if (external.raw !== undefined) return inMemory(type, shape, external.raw, place);
  return fileValue(type, shape, external.tensor(type, shape), place);
}

/** Packed types stay packed on the device; whoever reads them widens them on the way. */
function onDevice(stored: Tensor, type: ElementType, place: TensorPlace): Tensor {
  const there = stored.to(place.device ?? Device.DEFAULT);
  return there.dtype === type.dtype ? there : there.cast(type.dtype);
}

/** The field that holds the elements of a type, if they are not raw data. */
function typedBytes(tensor: TensorProto, type: ElementType, n: number, where: string): Uint8Array {
  const perEntry = type.bits < 8 ? 8 / type.bits : 1;
  if (type === TYPES.float) return fixed(tensor.float_data, n, 4, where);
  if (type === TYPES.double) return fixed(tensor.double_data, n, 8, where);
  const isBig = type === TYPES.int64 || type === TYPES.uint64 || type === TYPES.uint32;
  const list = type === TYPES.int64 ? tensor.int64_data : isBig ? tensor.uint64_data : tensor.int32_data;
  const entries = varints(list, Math.ceil(n / perEntry), where);
  if (type.bits < 8) return Uint8Array.from(entries, (x) => Number(BigInt.asUintN(8, x)));
  if (type.dtype.isFloat) {
    const bits = entries.map((x) => Number(BigInt.asUintN(type.bits, x)));
    return type.bits === 16 ? new Uint8Array(Uint16Array.from(bits).buffer) : Uint8Array.from(bits);
  }
  return encodeElements(
    type,
    entries.map((x) => fitting(type, x)),
  );
}
const fitting = (type: ElementType, x: bigint): Value => {
  const value = type.isSigned ? BigInt.asIntN(type.bits, x) : BigInt.asUintN(type.bits, x);
  return type.dtype.isBig ? value : Number(value);
};

function fixed({ parts }: PackedNumbers, n: number, size: number, where: string): Uint8Array {
  const bytes = parts.reduce((sum, part) => sum + part.byteLength, 0);
  requireCount(where, n, bytes / size);
  return parts.length === 1 ? (parts[0] as Uint8Array) : joined(parts);
}
function varints({ parts }: PackedNumbers, n: number, where: string): bigint[] {
  const out: bigint[] = [];
  for (const part of parts) {
    const reader = new WireReader(part);
    while (!reader.isAtEnd && out.length <= n) out.push(reader.varint());
  }
  requireCount(where, n, out.length);
  return out;
}

/** A sparse tensor as an ordinary one. */
export function denseOf(sparse: SparseTensorProto, where: string, place: TensorPlace): TensorValue {
  const { values, indices } = sparse;
  if (values === undefined || indices === undefined) throw new OnnxError(`${where} lacks values or indices`);
  const shape = shapeOf(sparse.dims, where);
  const given = tensorValue(values, `${where}, its values`, place);
  const at = tensorValue(indices, `${where}, its indices`, place);
  const host = (): HostArray => {
    const size = prod(shape);
    if (size > Math.max(2 ** 24, 1024 * given.size)) {
      throw new OnnxError(
        `${where} has ${given.size} values in ${size} elements: too sparse to be filled up`,
      );
    }
    const zero = given.type.dtype.isBig ? 0n : 0;
    const data: Value[] = new Array(size).fill(zero);
    for (let i = 0; i < given.size; i++) {
      const flat = flatIndex(at.host, i, shape);
      if (!(flat >= 0 && flat < size)) throw new OnnxError(`${where} has a value outside of its shape`);
      data[flat] = given.host.data[i] as Value;
    }
    return { type: given.type, shape, data };
  };
  return new TensorValue(given.type, shape, { host, device: place.device });
}
/** Where value `i` lies: its indices are flat, or one for each dim. */
function flatIndex(at: HostArray, i: number, shape: readonly number[]): number {
  if (at.shape.length === 1) return Number(at.data[i]);
  return shape.reduce((sum, size, d) => sum * size + Number(at.data[i * shape.length + d]), 0);
}

/** A value as a tensor of a file. */
export function protoOf(name: string, { type, shape, data }: HostArray): TensorProto {
  return {
    ...EMPTY,
    name,
    dims: shape.map(BigInt),
    data_type: type.code,
    raw_data: encodeElements(type, data),
  };
}
export function textProto(name: string, shape: readonly number[], texts: readonly string[]): TensorProto {
  const utf8 = new TextEncoder();
  const string_data = texts.map((text) => utf8.encode(text));
  return { ...EMPTY, name, dims: shape.map(BigInt), data_type: TYPES.string.code, string_data };
}
const EMPTY: TensorProto = {
  dims: [],
  data_type: 0,
  float_data: { parts: [] },
  int32_data: { parts: [] },
  string_data: [],
  int64_data: { parts: [] },
  name: "",
  raw_data: undefined,
  double_data: { parts: [] },
  uint64_data: { parts: [] },
  external_data: [],
  data_location: 0,
};
