// `mapped` is `map`, and its arrays are of one kind before and after its caller is optimised. `chain` does
// what follows a wait once.

import { setFlagsFromString } from "node:v8";
import { expect, test } from "vitest";
import { chain, mapped, type Waitable, waitable } from "../src/helpers.ts";

test("what follows a wait happens once, whoever waits for it", async () => {
  for (const fails of [false, true]) {
    let times = 0;
    const after = chain(
      waitable(new Promise<number>((next) => setTimeout(next, 1, 5)), () => 5),
      (x) => {
        times++;
        if (fails) throw new Error("refused");
        return x + 1;
      },
    ) as Waitable<number>;
    const outcome = after.catch((e: Error) => e.message);
    if (fails) expect(() => after.waitSync()).toThrow("refused");
    else expect(after.waitSync()).toBe(6);
    expect(await outcome).toBe(fails ? "refused" : 6);
    expect(times).toBe(1);
  }
});

test("mapped gives what map gives", () => {
  const show = (x: number, i: number): string => `${x}:${i}`;
  for (const xs of [[], [3], [5, 6, 7]]) expect(mapped(xs, show)).toEqual(xs.map(show));
});

test("its arrays are packed, also once the caller is optimised", () => {
  setFlagsFromString("--allow-natives-syntax");
  const isHoley = new Function("xs", "return %HasHoleyElements(xs)") as (xs: unknown[]) => boolean;
  const optimize = new Function(
    "fn",
    "arg",
    "%PrepareFunctionForOptimization(fn); fn(arg); fn(arg); %OptimizeFunctionOnNextCall(fn); return fn(arg)",
  ) as <T>(fn: (xs: number[]) => T, arg: number[]) => T;
  setFlagsFromString("--no-allow-natives-syntax");
  expect(isHoley(optimize((xs) => mapped(xs, (x) => ({ x })), [1, 2, 3]))).toBe(false);
  // why it exists: when this fails, `map` will do
  expect(isHoley(optimize((xs) => xs.map((x) => ({ x })), [1, 2, 3]))).toBe(true);
});
