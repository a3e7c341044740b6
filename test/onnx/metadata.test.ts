// The texts that a file has beside its graph.

import { onnx } from "gradloom/onnx";
import { expect, test } from "vitest";

const graph = {
  inputs: { x: { type: "float", dims: [2] } },
  outputs: { y: { type: "float", dims: [2] } },
  nodes: [{ op: "Neg", inputs: ["x"], outputs: ["y"] }],
};

test("metadata: what is written is read, whatever its names", async () => {
  const metadata = { names: "{0: 'cat'}", "": "nothing", ["__proto__"]: "a name like others", é: "✓" };
  const model = await onnx.load(await onnx.write(graph, { metadata }));
  expect(Object.entries(model.metadata)).toEqual(Object.entries(metadata));
  expect(Object.getPrototypeOf(model.metadata)).toBe(Object.prototype);
  expect((await onnx.load(await onnx.write(graph))).metadata).toEqual({});
});
