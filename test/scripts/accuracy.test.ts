// docs/accuracy.md is true: at the points of the kept reference no function is further off than its
// bound, on any device that computes on the host.

import { readFileSync } from "node:fs";
import { Device, dtypes } from "gradloom";
import { expect, test } from "vitest";
import { measure, type Reference } from "../../scripts/accuracy/measure.ts";

const url = (path: string): URL => new URL(`../../${path}`, import.meta.url);
const reference = JSON.parse(readFileSync(url("scripts/accuracy/reference.json"), "utf8")) as Reference;
const page = readFileSync(url("docs/accuracy.md"), "utf8");
/** By function and type. */
const BOUNDS = new Map(
  [...page.matchAll(/^\| `(\w+)` *\| (float\d\d) *\| ([\d.]+) /gm)].map((m) => [
    `${m[1]} ${m[2]}`,
    Number(m[3]),
  ]),
);
/** What is promised, whatever was measured. */
const LIMITS: Readonly<Record<string, number>> = {
  "pow float32": 1,
  "pow float64": 2,
  "sinh float32": 4,
  "sinh float64": 4,
  "cosh float32": 4,
  "cosh float64": 4,
  "erfc float32": 4,
  "erfc float64": 4,
};

/** Every kernel of CLANG takes a compiler: those that call the C library, and some that are made of them. */
const ON_CLANG = new Set(["exp2", "log2", "sin", "cos", "erf", "pow", "sinh", "erfc", "lgamma"]);

test("the page has every function and type, within the limits", () => {
  const names = Object.keys(reference).flatMap((n) => [`${n} float32`, `${n} float64`]);
  expect([...BOUNDS.keys()]).toEqual(names);
  for (const [name, limit] of Object.entries(LIMITS))
    expect(BOUNDS.get(name), name).toBeLessThanOrEqual(limit);
});

test.for(["WASM", "CLANG", "JS"])("%s stays below the bounds", async (device, { skip }) => {
  const missing = await Device.open(device).then(
    () => undefined,
    (e: Error) => e.message,
  );
  if (missing !== undefined) return skip(missing);
  for (const [name, types] of Object.entries(reference)) {
    if (device === "CLANG" && !ON_CLANG.has(name)) continue;
    for (const type of ["float32", "float64"] as const) {
      const { ulp, at } = await measure(name, dtypes[type], types[type], device);
      expect(ulp, `${name} of ${type} at ${at}`).toBeLessThanOrEqual(BOUNDS.get(`${name} ${type}`) ?? 0);
    }
  }
});
