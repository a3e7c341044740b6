// AMD's matrix cores: products by TC on JS against loops, for each family, and the layout of each core
// against the registers of the hardware as AMD's manuals draw them, emulated here word by word.

import { dtypes } from "gradloom";
import { beforeAll, describe, expect, test } from "vitest";
import { MFMA, WMMA11, WMMA12 } from "../../../src/codegen/opt/matrixcores.ts";
import type { Renderer } from "../../../src/codegen/target.ts";
import { repacked } from "../../../src/devices/js/workgroup.ts";
import type { Value } from "../../../src/dtype.ts";
import { optimized } from "../../../src/engine/compiler.ts";
import { range } from "../../../src/helpers.ts";
import { amdFor } from "../../../src/render/amd.ts";
import { Device } from "../../../src/runtime/registry.ts";
import { type Digits, type TensorCore, warpOf } from "../../../src/uop/matrix.ts";
import { expectValues, tensor } from "../../device/harness.ts";
import { Random } from "../../shape/random.ts";
import { lastItem, lowered, opsIn, opt, runKernel } from "../kernels.ts";

beforeAll(async () => {
  await Device.open("JS");
});
const ARCHS = ["gfx90a", "gfx1100", "gfx1201"] as const;
const target = (arch: string): Renderer => amdFor(arch, { computeUnits: 96 }) as Renderer;

describe.each(ARCHS)("TC on %s", (arch) => {
  const on = target(arch);
  const cores = on.gpu?.tensorCores ?? [];
  test.each(cores.map((c, i) => [c.name, c, i] as const))("%s", async (_, core, number) => {
    const r = new Random(number + 1);
    const matrix = (shape: readonly number[]) =>
      tensor(
        "JS",
        core.from,
        range(shape[0]! * shape[1]!).map(() => r.int(-3, 3)),
        shape,
      );
    for (const [transA, transB] of [
      [false, false],
      [true, true],
    ] as const) {
      const a = transA ? matrix([48, 32]).T : matrix([32, 48]);
      const b = transB ? matrix([64, 48]).T : matrix([48, 64]);
      const item = await lastItem(a.dot(b));
      const want = await runKernel(item, lowered(item));
      const step = opt("TC", 2, number);
      const warps = [opt("UPCAST", 0, 2), opt("LOCAL", 1, 2)];
      for (const list of [[step], [step, ...warps], [step, ...warps, opt("SHARED", 2, 1)]]) {
        const kernel = lowered(item, list, on);
        expect(opsIn(kernel, "WMMA").length).toBeGreaterThan(0);
        expect(opsIn(kernel, "LDMATRIX")).toEqual([]);
        const got = await runKernel(item, kernel);
        const type = item.outputs[0]?.dtype;
        if (type !== undefined) expectValues(type, got, want, kernel.name, { zeros: "equal" });
      }
    }
  });
  test("the heuristic takes it, and operands go through shared memory", async () => {
    const r = new Random(3);
    const half = () =>
      tensor(
        "JS",
        dtypes.float16,
        range(128 * 128).map(() => r.int(-3, 3)),
        [128, 128],
      );
    const item = await lastItem(half().dot(half()));
    const kernel = optimized(item.ast, on, false);
    expect(kernel.opts.map((o) => o.op)).toEqual(expect.arrayContaining(["TC", "SHARED"]));
    const want = await runKernel(item, lowered(item));
    expectValues(dtypes.float16, await runKernel(item, kernel), want, kernel.name, { zeros: "equal" });
  });
});

// ---- the hardware, by its manuals ----

/** Which element of its matrix a half of a register of a lane is: rows of a, columns of b alike. */
type Half = (lane: number, register: number, half: number) => readonly [side: number, k: number];
/** Which element of the result a register of a lane is. */
type Result = (lane: number, register: number) => readonly [row: number, column: number];
interface Hardware {
  readonly lanes: number;
  /** registers of an operand, and of the result */
  readonly registers: readonly [operand: number, result: number];
  readonly operand: Half;
  readonly result: Result;
}
const HARDWARE: readonly (readonly [string, readonly TensorCore[], Hardware])[] = [
  [
    "v_mfma_f32_16x16x16: lane 16 q + s has side s and k 4 q to 4 q + 3, of the result rows 4 q to 4 q + 3",
    MFMA,
    {
      lanes: 64,
      registers: [2, 4],
      operand: (lane, v, half) => [lane & 15, ((lane >> 4) << 2) | (v << 1) | half],
      result: (lane, v) => [((lane >> 4) << 2) | v, lane & 15],
    },
  ],
  [
    "v_wmma_f32_16x16x16 of RDNA 3: lanes s and 16 + s have all of side s; register v has rows 2 v and 2 v + 1",
    WMMA11,
    {
      lanes: 32,
      registers: [8, 8],
      operand: (lane, v, half) => [lane & 15, (v << 1) | half],
      result: (lane, v) => [(v << 1) | (lane >> 4), lane & 15],
    },
  ],
  [
    "v_wmma_f32_16x16x16 of RDNA 4: the upper lanes have k of 8 and more, and rows of 8 and more",
    WMMA12,
    {
      lanes: 32,
      registers: [4, 8],
      operand: (lane, v, half) => [lane & 15, ((lane >> 4) << 3) | (v << 1) | half],
      result: (lane, v) => [((lane >> 4) << 3) | v, lane & 15],
    },
  ],
];
const at = (digits: Digits, lane: number, element: number): number =>
  digits.reduce((n, [from, by, size, times]) => {
    const x = from === "lane" ? lane : element;
    return n + (Math.floor(x / by) % size) * times;
  }, 0);

test.each(HARDWARE)("%s", (_, cores, { lanes, registers, operand, result }) => {
  for (const core of cores) {
    expect(warpOf(core)).toBe(lanes);
    const r = new Random(7);
    const [a, b] = [0, 1].map(() => range(16).map(() => range(16).map(() => r.int(-4, 4)))) as number[][][];
    // what a kernel gives the instruction: words made of the elements that the record says
    const words = (side: "a" | "b", matrix: number[][]): Value[][] =>
      range(lanes).map((lane) => {
        const { elements, row, column } = core[side];
        const values = range(elements).map((e) => matrix[at(row, lane, e)]![at(column, lane, e)]!);
        return repacked(values, core.from, dtypes.uint32);
      });
    const [x, y] = [words("a", a!), words("b", b!)];
    expect(x[0]).toHaveLength(registers[0]);
    // what the instruction makes of them
    const read = (held: Value[][], lane: number): Map<string, number> =>
      new Map(
        range(registers[0]).flatMap((v) =>
          repacked([held[lane]![v]!], dtypes.uint32, core.from).map(
            (value, half) => [operand(lane, v, half).join(), Number(value)] as const,
          ),
        ),
      );
    const gathered = (held: Value[][]) => new Map(range(lanes).flatMap((lane) => [...read(held, lane)]));
    const [left, right] = [gathered(x), gathered(y)];
    const product = (row: number, column: number) =>
      range(16).reduce((s, k) => s + left.get(`${row},${k}`)! * right.get(`${column},${k}`)!, 0);
    for (const lane of range(lanes)) {
      for (const v of range(registers[1])) {
        const [row, column] = [at(core.c.row, lane, v), at(core.c.column, lane, v)];
        expect([row, column]).toEqual(result(lane, v));
        const want = range(16).reduce((s, k) => s + a![row]![k]! * b![k]![column]!, 0);
        expect(product(...result(lane, v))).toBe(want);
      }
    }
  }
});
