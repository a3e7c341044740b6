// The fuzzer finds bugs: some are planted by wrapping a method of Tensor, and each is found within a few
// programs and made small. The command line prints its seed, counts, and says by its exit code how it went.

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { Device, DTypeError, Tensor } from "gradloom";
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { check, settingOf } from "../../scripts/fuzz/execute.ts";
import type { ClassName, Program, TypeName } from "../../scripts/fuzz/language.ts";
import { shrink, tidy } from "../../scripts/fuzz/shrink.ts";
import { unsuited } from "../../scripts/fuzz/suited.ts";
import { type Failure, isLeftOut, runSeed } from "../../scripts/fuzz/task.ts";
import { WGSLRenderer } from "../../src/render/webgpu.ts";
import { registerOracle } from "../devices/oracle.ts";

beforeAll(() => Device.open("JS"));
afterEach(() => void vi.restoreAllMocks());

type Method = "flip" | "tanh" | "remainder" | "cast" | "scatterAdd" | "softmax" | "sum" | "matmul";
type Any = (...args: never[]) => unknown;
interface Planted {
  readonly method: Method;
  readonly what: string;
  readonly c: ClassName;
  /** the wrong method, given the right one */
  readonly make: (right: (...args: unknown[]) => Tensor, self: Tensor, args: readonly unknown[]) => Tensor;
}
const BUGS: readonly Planted[] = [
  {
    method: "flip",
    what: "does nothing to a last dim of 3",
    c: "movement",
    make: (right, self, args) => (self.shape.at(-1) === 3 ? self.add(0) : right(...args)),
  },
  { method: "tanh", what: "is off by 2^-16", c: "network", make: (right) => right().mul(1 + 2 ** -16) },
  {
    method: "remainder",
    what: "has the sign of the dividend",
    c: "integer",
    make: (_, self, args) => self.fmod(args[0] as Tensor),
  },
  {
    method: "cast",
    what: "to uint8 stops at 255",
    c: "special",
    make: (right, self, args) =>
      args[0] === "uint8" && self.dtype.isFloat ? right("int32").clamp(0, 255) : right(...args),
  },
  {
    method: "scatterAdd",
    what: "keeps the last instead of adding",
    c: "index",
    make: (_, self, args) => self.scatter(...(args as [number, Tensor, Tensor])),
  },
  {
    method: "softmax",
    what: "has half its gradient",
    c: "gradient",
    make: (right, _, args) =>
      right(...args)
        .mul(0.5)
        .add(
          right(...args)
            .detach()
            .mul(0.5),
        ),
  },
  {
    method: "sum",
    what: "leaves out the last element along a dim of 4",
    c: "reduce",
    make: (right, self, args) => {
      const dims = typeof args[0] === "number" ? [args[0]] : ((args[0] ?? []) as number[]);
      const four = dims.find((d) => self.shape.at(d) === 4);
      return four === undefined ? right(...args) : self.narrow(four, 0, 3).sum(dims, args[1] as boolean);
    },
  },
];

/** The first failure among the programs of a class. */
async function hunt(c: ClassName, programs: number): Promise<Failure | undefined> {
  for (let seed = 1; seed <= programs; seed++) {
    const found = await runSeed(seed, "JS", settingOf("default"), c);
    if (found !== undefined && !isLeftOut(found)) return found;
  }
  return undefined;
}

test("a device is not held to what it does not have, and to the rest", async () => {
  const device = registerOracle("FAKEGPU", WGSLRenderer);
  await Device.open(device);
  const of = (d: TypeName, x: number): Program => ({
    c: "special",
    in: [[d, [1], [x]]],
    ops: [["mul", 0, 0.5]],
    out: [1],
  });
  const why = (p: Program): (string | undefined)[] => [unsuited(p, device), unsuited(p, "JS")];
  expect(why(of("float64", 1))).toEqual(["FAKEGPU has no float64", undefined]);
  expect(why(of("float32", 2 ** -126))).toEqual(["FAKEGPU may take a subnormal number for 0", undefined]);
  expect(why(of("float32", 1))).toEqual([undefined, undefined]);
});

describe("planted bugs are found and made small", () => {
  test.each(BUGS)("$method $what", async ({ method, c, make }) => {
    const right = Tensor.prototype[method] as Any as (this: Tensor, ...args: unknown[]) => Tensor;
    let inside = false;
    vi.spyOn(Tensor.prototype, method as "flip").mockImplementation(function (
      this: Tensor,
      ...args: unknown[]
    ) {
      // the wrong method may call itself, and what the right one calls is right
      if (inside) return right.apply(this, args);
      inside = true;
      try {
        return make((...a) => right.apply(this, a), this, args);
      } finally {
        inside = false;
      }
    } as never);
    const failure = await hunt(c, 400);
    expect(failure?.script).toContain(`.${method}(`);
    expect(failure?.calls).toBeLessThanOrEqual(c === "gradient" ? 4 : 2);
  });

  test("nothing is found where nothing is wrong", async () => {
    expect(await hunt("integer", 20)).toBeUndefined();
  });
});

describe("making programs smaller", () => {
  const program: Program = {
    c: "graph",
    in: [
      ["int32", [2, 2], [1, 2, 3, 4]],
      ["int32", [2, 2], [5, 6, 7, 8]],
    ],
    ops: [
      ["neg", 1],
      ["add", 0, "$0"],
      ["mul", 3, 3],
      ["flip", 4, [0]],
    ],
    out: [5],
  };
  test("what nothing needs goes first", () => {
    expect(tidy(program)).toEqual({
      ...program,
      in: [program.in[0]],
      ops: [
        ["add", 0, "$0"],
        ["mul", 1, 3],
        ["flip", 2, [0]],
      ],
      out: [3],
    });
  });
  test("calls, sizes and values", async () => {
    const least = await shrink(program, async (p) => p.ops.some(([m]) => m === "mul"));
    expect(least.ops.map(([m]) => m)).toEqual(["mul"]);
    expect(least.in).toEqual([["int32", [], [0]]]);
  });
});

test("integers that are known to wrap may be refused, other types may not", async () => {
  const refuse = (message: string) =>
    vi.spyOn(Tensor.prototype, "square").mockImplementation(() => {
      throw new DTypeError(message);
    });
  const p: Program = { c: "integer", in: [["int32", [1], [2]]], ops: [["square", 0]], out: [1] };
  const found = (): Promise<string | undefined> =>
    check(p, "JS", settingOf("default"), [{ d: "int32", s: [1], v: [4], bound: [0] }]);
  expect(await found()).toBe(undefined);
  refuse("square: 4611686014132420600 does not fit int32, the type of whole numbers in arrays");
  expect(await found()).toBe(undefined);
  refuse("square: expected a float");
  expect(await found()).toMatch("DTypeError: square: expected a float");
});

describe("the command", () => {
  const root = join(import.meta.dirname, "..", "..");
  const fuzz = (...args: string[]) =>
    spawnSync(process.execPath, ["--import", "tsx", "scripts/fuzz/main.ts", ...args], {
      cwd: root,
      encoding: "utf8",
    });

  test("prints its seed and what it ran", () => {
    const { stdout, status } = fuzz(..."--programs 12 --seed 7 --device JS --workers 1".split(" "));
    expect(stdout).toContain("seed 7, devices JS, 1 processes");
    expect(stdout).toMatch(/device JS +12\n/);
    expect(stdout).toMatch(/seed 7: 12 programs in \d+ s \(\d+\/s\), 0 wrong/);
    expect(status).toBe(0);
  });
  test("runs a program of the oracle by its number, and refuses others", () => {
    const { stdout, status } = fuzz(
      ..."--oracle 17 --device JS --setting default,FUSE=0 --workers 1".split(" "),
    );
    expect(stdout).toMatch(/: 2 programs in \d+ s \(\d+\/s\), 0 wrong/);
    expect(status).toBe(0);
    expect(fuzz("--oracle", "some", "--device", "JS").stderr).toMatch(
      /--oracle is some; expected all, or a number below \d+/,
    );
  });
  test("refuses what it does not know", () => {
    const { stderr, status } = fuzz("--class", "sonnets");
    expect(stderr).toContain("fuzz: --class sonnets is unknown; expected some of elementwise, integer");
    expect(status).toBe(1);
  });
});
