// Lists that are written by hand: what UOpGraph.add refuses, by name. What it takes is in list.test.ts.

import { ArgumentError, dtypes, PtrDType, UOpGraph } from "gradloom";
import { describe, expect, test } from "vitest";
import type { UOpName } from "../../src/uop/node.ts";

const { int32, float32 } = dtypes;

describe("UOpGraph.add refuses what no list can hold", () => {
  const g = new UOpGraph();
  const [i, f] = [g.add("CONST", int32, [], 1), g.add("CONST", float32, [], 1)];
  const buf = g.add("DEFINE_GLOBAL", PtrDType(float32), [], [0, "data0", true]);
  test.each<[string, () => unknown, RegExp]>([
    [
      "an unknown op",
      () => g.add("NOPE" as UOpName, int32),
      /^UOpGraph\.add: there is no op NOPE; expected one of/,
    ],
    ["an unknown computation", () => g.add("ALU", int32, [i, i], "PLUS" as "ADD"), /ALU computes PLUS/],
    ["no computation", () => g.add("ALU", int32, [i, i]), /ALU computes undefined/],
    ["no sources", () => g.add("ALU", int32, [], "ADD"), /ADD has 0 sources, expected 2/],
    ["a source too many", () => g.add("ALU", int32, [i, i], "NEG"), /NEG has 2 sources, expected 1/],
    [
      "mixed dtypes",
      () => g.add("ALU", int32, [i, f], "ADD"),
      /ADD of dtypes\.int and dtypes\.float; .*one dtype/,
    ],
    ["one source", () => g.add("ALU", int32, [i], "ADD"), /ADD has 1 sources, expected 2/],
    ["a STORE of nothing", () => g.add("STORE", undefined), /STORE has 0 sources, expected 3: a buffer, an/],
    ["a STORE without a value", () => g.add("STORE", undefined, [buf, i]), /STORE has 2 sources, expected 3/],
    ["a LOAD of nothing", () => g.add("LOAD", int32), /LOAD has 0 sources, expected 2: a buffer, an index$/],
    [
      "a source that is not a node",
      () => g.add("CAST", int32, [1] as never),
      /the sources of CAST are 1; expected/,
    ],
    [
      "no list of sources",
      () => g.add("CAST", int32, i as never),
      /the sources of CAST are .*expected an array/,
    ],
    ["a CONST without a value", () => g.add("CONST", int32), /argument of CONST is undefined; .*199/],
    ["a CONST of a text", () => g.add("CONST", int32, [], "1" as never), /argument of CONST is 1;/],
    [
      "a CONST without a type",
      () => g.add("CONST", undefined, [], 1),
      /CONST is of type undefined, expected a dtype/,
    ],
    [
      "a buffer without its place",
      () => g.add("DEFINE_GLOBAL", PtrDType(int32)),
      /DEFINE_GLOBAL.* "data0", true\]/,
    ],
    [
      "a buffer of values",
      () => g.add("DEFINE_GLOBAL", int32, [], [1, "data1", true]),
      /DEFINE_GLOBAL is of type dtypes\.int, expected a pointer, as PtrDType/,
    ],
    [
      "a CONST that is not an integer",
      () => g.add("CONST", int32, [], 1.5),
      /argument of CONST is 1\.5; .*199/,
    ],
    ["a CONST beyond its type", () => g.add("CONST", dtypes.uint8, [], 300), /argument of CONST is 300;/],
    ["an accumulator beyond its type", () => g.add("DEFINE_ACC", int32, [], 2 ** 31), /DEFINE_ACC is 21474/],
    [
      "a thread without its name",
      () => g.add("SPECIAL", int32, [], 5 as never),
      /argument of SPECIAL is 5; write, for example, \[0, "gidx0", 16\]/,
    ],
    [
      "an op of graphs",
      () => g.add("RANGE", int32),
      /RANGE is of the graph .*; a list has LOOP and ENDLOOP$/,
    ],
    [
      "a node of another list",
      () => g.add("CAST", float32, [new UOpGraph().add("CONST", int32, [], 7)]),
      /a source of CAST is CONST of another list; add it to this one/,
    ],
    [
      "an index that is a float",
      () => g.add("STORE", undefined, [buf, f, f]),
      /source 1 of STORE is CONST of type dtypes\.float, expected an integer/,
    ],
    ["a LOAD from a number", () => g.add("LOAD", int32, [i, i]), /source 0 of LOAD is CONST .*a buffer/],
    ["an ENDLOOP of a number", () => g.add("ENDLOOP", undefined, [i]), /source 0 of ENDLOOP .* a LOOP/],
    ["a PHI of a number", () => g.add("PHI", int32, [i, i]), /source 0 of PHI is CONST .* a DEFINE_ACC/],
    ["a pointer", () => g.add("ALU", float32, [buf, buf], "ADD"), /ADD of ptr\.dtypes\.float and .*LOAD/],
  ])("%s", (_, make, text) => {
    const before = g.uops.length;
    expect(make).toThrow(ArgumentError);
    expect(make).toThrow(text);
    expect(g.uops.length).toBe(before);
  });
});
