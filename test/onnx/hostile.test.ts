// Files made to harm: a few thousand mutations of real models, and the tricks one by one. Each is loaded or
// refused with an OnnxError, at once, and nothing large is allocated. `npm run onnx-fuzz` runs as many as
// wanted.

import { load, OnnxError } from "gradloom/onnx";
import { expect, test } from "vitest";
import { TYPES } from "../../src/onnx/elements.ts";
import { MODEL, type TensorProto } from "../../src/onnx/model.ts";
import { decode } from "../../src/onnx/protobuf.ts";
import { protoOf } from "../../src/onnx/tensors.ts";
import { fuzz } from "./fuzz.ts";
import { branches, bytesOf, flattens, twoLayers } from "./models.ts";

test("4,000 mutated files load and run or are refused", async () => {
  const report = await fuzz(4000, 1);
  expect(report.loaded + report.refused).toBe(4000);
  expect(report.strange).toEqual([]);
  // both happen often, or the mutations were useless
  expect(report.loaded).toBeGreaterThan(100);
  expect(report.ran).toBeGreaterThan(50);
  expect(report.refused).toBeGreaterThan(1000);
});

const refused = async (bytes: Uint8Array, words: RegExp): Promise<void> => {
  const error = await load(bytes).catch((e: unknown) => e);
  expect(error).toBeInstanceOf(OnnxError);
  expect((error as Error).message).toMatch(words);
};
const withWeight = async (change: Partial<TensorProto>): Promise<Uint8Array> => {
  const model = decode(MODEL, await bytesOf(twoLayers));
  const graph = model.graph as NonNullable<typeof model.graph>;
  const initializer = graph.initializer.map((t) => (t.name === "w" ? { ...t, ...change } : t));
  return MODEL.write({ ...model, graph: { ...graph, initializer } });
};

test("not a model", async () => {
  await refused(new Uint8Array(0), /has no graph/);
  await refused(new TextEncoder().encode("<!doctype html><title>404</title>"), /not a valid model/);
  await refused((await bytesOf(twoLayers)).slice(0, -20), /not a valid model/);
});

test("lengths that lie allocate nothing", async () => {
  // a field of 2^60 bytes, and a varint that never ends
  await refused(Uint8Array.from([0x3a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f]), /claims \d+ bytes/);
  await refused(new Uint8Array(30).fill(0x8f), /not a valid model/);
  await refused(await withWeight({ dims: [1n << 20n, 1n << 19n] }), /weight "w" is float\[1048576, 524288\]/);
  await refused(await withWeight({ dims: [1n << 40n, 1n << 40n] }), /more than 2\^40 elements/);
  await refused(await withWeight({ dims: [-2n, 3n] }), /dim of -2/);
  await refused(await withWeight({ dims: new Array(100).fill(1n) }), /100 dims/);
  await refused(await withWeight({ data_type: 99 }), /element type 99/);
});

test("messages within messages are not followed without end", () => {
  // the first attribute of the first node of a graph is a graph, and so on
  let bytes = new Uint8Array(0);
  for (let i = 0; i < 601; i++) {
    const tag = i === 600 ? 0x3a : ([0x32, 0x2a, 0x0a][i % 3] as number);
    bytes = Uint8Array.from([tag, (bytes.length & 127) | 128, (bytes.length >> 7) & 127, ...bytes]);
  }
  expect(() => decode(MODEL, bytes)).toThrow(/nested more than 128 deep/);
});

test("data beside the file stays in its folder", async () => {
  const location = (value: string) =>
    withWeight({
      raw_data: undefined,
      data_location: 1,
      external_data: [{ key: "location", value }],
    });
  for (const path of ["../secret", "/etc/passwd", "a/../../b", "C:\\x", "http://host/x", "..\\x", ""])
    await refused(await location(path), /expected a file in the model's folder/);
  await refused(await location("weights.bin"), /give it: onnx\.load\(bytes, \{ files/);
  const short = load(await location("w"), { files: { w: new Uint8Array(4) } });
  await expect(short).rejects.toThrow(/weight "w" is at bytes 0 to 24 of "w", which has 4/);
  const offset = await withWeight({
    raw_data: undefined,
    data_location: 1,
    external_data: [
      { key: "location", value: "w" },
      { key: "offset", value: "-8" },
    ],
  });
  await expect(load(offset, { files: { w: new Uint8Array(64) } })).rejects.toThrow(/offset "-8"/);
});

test("external data is read from what is given", async () => {
  const weights = Float32Array.from([0, 0, 1, -1, 0.5, 0.5, 2, -1]);
  const bytes = await withWeight({
    raw_data: undefined,
    data_location: 1,
    external_data: [
      { key: "location", value: "data/w.bin" },
      { key: "offset", value: "8" },
      { key: "length", value: "24" },
    ],
  });
  const model = await load(bytes, { files: new Map([["data/w.bin", weights]]) });
  expect(await model.namedParameters().w?.tolist()).toEqual([
    [1, -1, 0.5],
    [0.5, 2, -1],
  ]);
});

test("functions that call each other are refused", async () => {
  const model = decode(MODEL, await bytesOf(flattens));
  const fn = (name: string, calls: string) => ({
    name,
    domain: "own",
    overload: "",
    input: ["x"],
    output: ["y"],
    attribute: [],
    attribute_proto: [],
    opset_import: [],
    node: [
      { input: ["x"], output: ["y"], name: "", op_type: calls, domain: "own", overload: "", attribute: [] },
    ],
  });
  const graph = model.graph as NonNullable<typeof model.graph>;
  const node = [...graph.node, { ...fn("", "").node[0], op_type: "a", output: ["z"], name: "call" }];
  const file = MODEL.write({
    ...model,
    functions: [fn("a", "b"), fn("b", "a")],
    graph: { ...graph, node } as never,
  });
  await refused(file, /call each other in a circle/);
});

test("every element type survives a file", () => {
  for (const type of Object.values(TYPES)) {
    if (type === TYPES.string) continue;
    const one = type === TYPES.bool || type === TYPES.float8e8m0 ? 1 : type.bits === 2 ? 1 : 3;
    const host = { type, shape: [3], data: type.dtype.isBig ? [0n, 1n, 3n] : [1, 1, one] };
    const proto = protoOf("t", host);
    expect(proto.raw_data?.byteLength).toBe(Math.ceil((3 * type.bits) / 8));
  }
});

test("the models of these tests load", async () => {
  for (const graph of [twoLayers, branches, flattens]) expect(await load(await bytesOf(graph))).toBeDefined();
});
