// From a path, an address or bytes to an OnnxModel. The file is read whole, but large weights of a file on
// disk are read again when they move to the device, so that no copy of them stays in memory. What is stored
// beside it is held by DISK or fetched, and only what the model names. A name may not lead out of the model's
// folder.

import { hasFiles } from "#host";
import { prod } from "../helpers.ts";
import { type ByteSource, openSource, type Readable, tensorOn } from "../nn/bytes.ts";
import { Device } from "../runtime/registry.ts";
import { typeOfCode } from "./elements.ts";
import { OnnxError, quoted } from "./errors.ts";
import { decodeModel, type GraphProto, type ModelProto, type TensorProto } from "./model.ts";
import { OPS_OF_ONNX } from "./ops/index.ts";
import { planModel } from "./plan.ts";
import { OnnxModel } from "./session.ts";
import {
  bytesFor,
  type ExternalBytes,
  type FindExternal,
  type FindInFile,
  SMALL,
  shapeOf,
} from "./tensors.ts";

/** Where a model runs, and what belongs to it. */
export interface OnnxLoadOptions {
  /** the device of the weights and of the work; default: Device.DEFAULT */
  readonly device?: string;
  /** the files beside a model that is given as bytes, by the names that it uses */
  readonly files?: Readonly<Record<string, Readable>> | ReadonlyMap<string, Readable>;
}

/**
 * Reads an ONNX model: a path, an address, a Blob or bytes. Weights stay in the file until a run needs them.
 * @example
 * const bytes = await onnx.write({
 *   inputs: { x: { type: "float", dims: [2] } },
 *   outputs: { y: { type: "float", dims: [2] } },
 *   nodes: [{ op: "Neg", inputs: ["x"], outputs: ["y"] }],
 * });
 * (await onnx.load(bytes)).inputs // => [{ name: "x", type: "float", dims: [2] }]
 */
export async function load(source: Readable, options: OnnxLoadOptions = {}): Promise<OnnxModel> {
  const opened = await openSource(source, "the bytes");
  try {
    const file = await opened.read(0, opened.size ?? Number.MAX_SAFE_INTEGER);
    const proto = decodeModel(file);
    const external = await openExternal(proto, source, options.files);
    const inFile = await weightsOnDisk(opened, file);
    const plan = planModel(proto, OPS_OF_ONNX, { device: options.device, external, inFile });
    const metadata = Object.fromEntries(proto.metadata_props.map(({ key, value }) => [key, value]));
    return new OnnxModel(plan, options.device, metadata);
  } finally {
    await opened.close();
  }
}

/** The weights of a file on disk stay there until they are needed. */
async function weightsOnDisk(opened: ByteSource, file: Uint8Array): Promise<FindInFile> {
  if (Device.storageOf(opened.device) !== "file") return () => undefined;
  const held = await opened.hold([], file.byteLength);
  return (raw, stored, shape) => {
    // a part of the file, unless it was put together from several fields
    if (raw.buffer !== file.buffer) return undefined;
    return tensorOn(held(raw.byteOffset - file.byteOffset, prod(shape), stored), shape);
  };
}

// ---- data beside the file ----

interface ExternalPlace {
  readonly location: string;
  readonly offset: number;
  readonly length: number;
}

async function openExternal(
  proto: ModelProto,
  source: Readable,
  files: OnnxLoadOptions["files"],
): Promise<FindExternal> {
  const found = new Map<TensorProto, ExternalBytes>();
  const byFile = new Map<string, [TensorProto, ExternalPlace][]>();
  for (const tensor of externalTensors(proto)) {
    const place = placeOf(tensor);
    const list = byFile.get(place.location);
    if (list === undefined) byFile.set(place.location, [[tensor, place]]);
    else list.push([tensor, place]);
  }
  for (const [location, list] of byFile) {
    const data = await openSource(besides(source, location, files), location);
    try {
      for (const [tensor, { offset, length }] of list) {
        if (data.size !== undefined && offset + length > data.size) {
          throw new OnnxError(
            `weight ${quoted(tensor.name)} is at bytes ${offset} to ${offset + length} of ${quoted(location)}, ` +
              `which has ${data.size}`,
          );
        }
      }
      const last = Math.max(0, ...list.map(([, p]) => p.offset + p.length));
      const large = list.filter(([, p]) => p.length > SMALL);
      for (const [tensor, { offset, length }] of list)
        if (length <= SMALL) found.set(tensor, inMemory(await data.read(offset, offset + length)));
      if (large.length === 0) continue;
      const held = await data.hold(
        large.map(([, p]) => [p.offset, p.offset + p.length] as const),
        data.size ?? last,
      );
      for (const [tensor, { offset }] of large) {
        found.set(tensor, {
          raw: undefined,
          tensor: (type, shape) => tensorOn(held(offset, prod(shape), type.stored ?? type.dtype), shape),
        });
      }
    } finally {
      await data.close();
    }
  }
  return (tensor, where) => found.get(tensor) ?? absent(where);
}
const absent = (where: string): never => {
  throw new OnnxError(`${where} is stored outside of the model, where only weights of graphs may be`);
};
const inMemory = (raw: Uint8Array): ExternalBytes => ({ raw, tensor: () => absent("a small weight") });

/** All tensors of a model whose data is elsewhere. */
function externalTensors(proto: ModelProto): TensorProto[] {
  const out: TensorProto[] = [];
  const take = (t: TensorProto | undefined): void => {
    if (t?.data_location === 1) out.push(t);
  };
  const nodes = (list: GraphProto["node"]): void => {
    for (const node of list)
      for (const a of node.attribute) {
        take(a.t);
        a.tensors.forEach(take);
        for (const g of a.g === undefined ? a.graphs : [a.g, ...a.graphs]) graph(g);
      }
  };
  const graph = (g: GraphProto): void => {
    g.initializer.forEach(take);
    nodes(g.node);
  };
  if (proto.graph !== undefined) graph(proto.graph);
  for (const f of proto.functions) nodes(f.node);
  return out;
}

function placeOf(tensor: TensorProto): ExternalPlace {
  const where = `weight ${quoted(tensor.name)}`;
  const entries = new Map(tensor.external_data.map((e) => [e.key, e.value]));
  const location = entries.get("location") ?? "";
  if (!isInside(location)) {
    throw new OnnxError(
      `${where} is said to be in ${quoted(location)}: expected a file in the model's folder, named relative to it`,
    );
  }
  const type = typeOfCode(tensor.data_type, where);
  const expected = bytesFor(type, prod(shapeOf(tensor.dims, where)));
  if (type.stored === undefined && expected > SMALL)
    throw new OnnxError(`${where} of ${type.name} is stored outside of the model`, { isUnsupported: true });
  const number = (key: string, fallback: number): number => {
    const text = entries.get(key);
    if (text === undefined) return fallback;
    const n = Number(text);
    if (!/^\d+$/.test(text) || !Number.isSafeInteger(n))
      throw new OnnxError(`${where} has ${key} ${quoted(text)}`);
    return n;
  };
  const length = number("length", expected);
  if (length !== expected)
    throw new OnnxError(`${where} takes ${expected} bytes by its shape, its entry says ${length}`);
  return { location, offset: number("offset", 0), length };
}

/** A relative path that stays in its folder: no "..", no root, no drive, no scheme. */
const isInside = (location: string): boolean =>
  location !== "" &&
  !/[\\:\0%]/.test(location) &&
  !location.startsWith("/") &&
  location.split("/").every((part) => part !== ".." && part !== "");

function besides(source: Readable, location: string, files: OnnxLoadOptions["files"]): Readable {
  const given =
    files instanceof Map ? files.get(location) : ownFile(files as Record<string, Readable>, location);
  if (given !== undefined) return given;
  const address = typeof source === "string" ? source : source instanceof URL ? source.href : undefined;
  if (address === undefined) {
    throw new OnnxError(
      `weights are in the file ${quoted(location)}; give it: onnx.load(bytes, { files: { "${location}": … } })`,
    );
  }
  const isAddress = !hasFiles || /^(?:https?|data|blob|file):/.test(address);
  if (isAddress && /^\w+:/.test(address)) return new URL(location, address);
  const end = Math.max(address.lastIndexOf("/"), address.lastIndexOf("\\")) + 1;
  return address.slice(0, end) + location;
}
const ownFile = (files: Record<string, Readable> | undefined, name: string): Readable | undefined =>
  files !== undefined && Object.hasOwn(files, name) ? files[name] : undefined;
