// Lists of OptOps out of a cache: what another version or another target stored is not a list, and is
// searched again. And what a search adds to a list.

import { expect, test } from "vitest";
import { extended, requireValid } from "../../../src/codegen/opt/list.ts";
import type { OptOp } from "../../../src/codegen/opt/opts.ts";
import { parseOpts } from "../../../src/codegen/opt/stored.ts";
import { WASMRenderer } from "../../../src/render/wasm/renderer.ts";
import { gpuTarget, opt } from "../kernels.ts";

const parse = (list: unknown): OptOp[] | undefined => parseOpts(JSON.stringify(list), WASMRenderer);

test("a list comes back as it was stored", () => {
  const list = [opt("UPCAST", 0, 4), opt("PACK", 1), opt("INTERCHANGE", 0, 2), opt("NOLOCALS")];
  expect(parse(list)).toEqual(list);
  expect(parse([])).toEqual([]);
});
test.each([
  ["an op of another version", [{ op: "STAGE", axis: 0, amount: 1 }]],
  ["the parameters of another version", [{ op: "UPCAST", axis: 0, amount: 4 }]],
  ["a parameter too many", [{ op: "PACK", axis: 0, elements: 4 }]],
  ["a parameter that is gone", [{ op: "THREAD", axis: 0, least: 1 }]],
  ["a parameter too few", [{ op: "UPCAST", axis: 0 }]],
  ["a parameter that is not a number", [{ op: "UPCAST", axis: 0, lanes: "4" }]],
  ["a property of all objects", [{ op: "toString" }]],
  ["what is not an op", ["UPCAST", null, 3]],
  ["what is not a list", { op: "UPCAST", axis: 0, lanes: 4 }],
])("%s is not a list", (_, list) => {
  expect(parse(list)).toBeUndefined();
});
test("text that is not JSON is not a list, nor are ops that the target does not have", () => {
  expect(parseOpts("[", WASMRenderer)).toBeUndefined();
  const shared = JSON.stringify([opt("SHARED", 2, 2)]);
  expect(parseOpts(shared, WASMRenderer)).toBeUndefined();
  expect(parseOpts(shared, gpuTarget(32))).toEqual([opt("SHARED", 2, 2)]);
});

test("a list has one THREAD at most; a search that tries another takes the first one out", () => {
  const list = [opt("THREAD", 0), opt("UPCAST", 1, 4)];
  expect(() => requireValid([...list, opt("THREAD", 1)], WASMRenderer)).toThrow(
    "THREAD(0) THREAD(1): expected one THREAD in a list",
  );
  expect(extended(list, opt("THREAD", 1), WASMRenderer)).toEqual([opt("UPCAST", 1, 4), opt("THREAD", 1)]);
  expect(extended(list, opt("UPCAST", 1, 2), WASMRenderer)).toEqual([...list, opt("UPCAST", 1, 2)]);
});
