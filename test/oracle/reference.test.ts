// The reference interpreter of the fuzzer and numpy, which know nothing of each other, agree on the oracle's
// programs; and what is expected is narrow enough for a wrong element to be seen.

import { expect, test } from "vitest";
import { type Got, wrong } from "../../scripts/fuzz/execute.ts";
import { ref } from "../../scripts/fuzz/generate/builder.ts";
import { CLASSES, type Input, type Program } from "../../scripts/fuzz/language.ts";
import type { Arr } from "../../scripts/fuzz/reference/array.ts";
import { expected, interpret } from "../../scripts/fuzz/reference/interpreter.ts";
import { load } from "./oracle.ts";

const cases = load();

test("the oracle has 5,000 programs of 12 classes", () => {
  expect(cases.length).toBeGreaterThanOrEqual(5000);
  for (const c of CLASSES) expect(cases.filter(({ program }) => program.c === c).length).toBeGreaterThan(400);
});

test("the reference gives what numpy gives", () => {
  const bad: string[] = [];
  // gradients are differences, which take a run of the program for each element
  const some = cases.filter(({ program }, i) => program.c !== "gradient" || i % 10 === 0);
  for (const { program, want } of some) {
    const nodes = interpret(program);
    const what = wrong(
      program,
      program.out.map((i): Got => nodes[i] as Arr),
      want,
    );
    if (what !== undefined) bad.push(`${what}: ${JSON.stringify(program)}`);
  }
  expect(bad.slice(0, 3)).toEqual([]);
});

test("an element that is off by a 400th of the largest is found", () => {
  const float = (d: string): boolean => d === "float32" || d === "float64";
  let [seen, found] = [0, 0];
  for (const { program, want } of cases) {
    const at = want.findIndex((w) => float(w.d) && w.v.length > 0 && w.v.every((x) => Number.isFinite(x)));
    if (at < 0) continue;
    const w = want[at] as (typeof want)[number];
    const largest = Math.max(...w.v.map((x) => Math.abs(Number(x))));
    if (largest === 0) continue;
    const moved = w.v.with(w.v.length - 1, Number(w.v.at(-1)) + largest / 400);
    seen++;
    if (
      wrong(
        program,
        want.map((x, i): Got => (i === at ? { ...w, v: moved } : x)),
        want,
      ) !== undefined
    )
      found++;
  }
  expect(seen).toBeGreaterThan(1500);
  expect(found).toBe(seen);
});

const program = (inputs: Program["in"], ops: Program["ops"], out: readonly number[]): Program => ({
  c: "graph",
  in: inputs,
  ops,
  out,
});
test("what is assigned shows under all names of a tensor", () => {
  const inputs: Program["in"] = [0, 1, 2].map((x) => ["int32", [1], [x]]);
  const twice: Program["ops"] = [
    ["assign", 0, ref(1)],
    ["contiguous", 0],
    ["assign", 3, ref(2)],
    ["add", 3, ref(0)],
  ];
  const nodes = interpret(program(inputs, twice, [6]));
  expect(nodes.map((n) => n.v)).toEqual([[2], [1], [2], [2], [1], [2], [4]]);
});
test("a product of small floats is stored as such, an average of zeros is 0, corners are refused", () => {
  const halves: Input = ["float16", [3], [1.9375, 0.9375, -1.3125]];
  const [cumprod] = expected(program([halves], [["cumprod", 0, 0]], [1]));
  expect(Math.abs(-2.384765625 - Number(cumprod?.v[2]))).toBeLessThanOrEqual(cumprod?.bound[2] ?? 0);
  const nine: Input = ["float64", [1, 3, 3], [0, 2, -2, 4, 3, -3, 3, -3, -4]];
  const pool: Program["ops"] = [
    ["avgPool2d", 0, [3, 3]],
    ["cast", 1, "bool"],
  ];
  expect(expected(program([nine], pool, [2]))[0]?.v).toEqual([0]);
  const corner = (x: number): Program =>
    program(
      [["float32", [], [x]]],
      [
        ["relu", 0],
        ["mul", 1, 0.0625],
        ["backward", 2, [0]],
      ],
      [3],
    );
  expect(expected(corner(1))[0]?.v).toEqual([0.0625]);
  expect(() => expected(corner(0))).toThrow(/not differentiable/);
});
