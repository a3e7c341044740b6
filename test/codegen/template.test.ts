import { createSchedule, Tensor } from "gradloom";
import { CUDARenderer, MetalRenderer, WASMRenderer, WGSLRenderer } from "gradloom/render";
import { expect, test } from "vitest";
import { type Kernel, similarKernel, toFastKernel, toKernel } from "../../src/codegen/kernel.ts";
import { passTimes } from "../../src/codegen/pass.ts";
import type { Renderer } from "../../src/codegen/target.ts";
import { optimized } from "../../src/engine/compiler.ts";
import { astStructure, type LazyOp } from "../../src/schedule/lazyop.ts";
import { nextUOpId } from "../../src/uop/node.ts";

const renderers: readonly Renderer[] = [WASMRenderer, CUDARenderer, MetalRenderer, WGSLRenderer];
const input = (...shape: number[]): Tensor => Tensor.empty(shape, { device: "JS" });
const [x, y] = [input(32, 24), input(24, 16)];

/** Programs with two constants, some of which meet others on the way. */
const PROGRAMS: Readonly<Record<string, (a: number, b: number) => Tensor>> = {
  elementwise: (a, b) => x.mul(a).add(b).relu(),
  product: (a, b) => x.matmul(y).mul(a).maximum(b),
  sigmoid: (a, b) => x.mul(a).sigmoid().sub(b),
  softmax: (a, b) => x.mul(a).softmax(1).mul(b),
  variance: (a, b) => x.add(a).var(1).add(b).sqrt(),
  padded: (a, b) => x.add(a).pad([1, 2, 3, 0]).mul(b),
  "two constants in one op": (a, b) => Tensor.full([32, 24], a, { device: "JS" }).pow(b).add(x),
  "a comparison": (a, b) => x.lt(a).where(x, b),
  "in half precision": (a, b) => x.cast("float16").mul(a).add(b),
  "as an integer": (a, b) =>
    x
      .mul(b)
      .cast("int32")
      .add(Tensor.full([32, 24], a, { device: "JS" }).cast("int32")),
};
/** The last ones are constants of decompositions, of means, or equal to each other. */
const VALUES: readonly (readonly [number, number])[] = [
  [2.5, 7.25],
  [7.25, 2.5],
  [-2.5, 0.3],
  [3.75, -7.25],
  [0.1, 0.1],
  [9.5, 9.5],
  [Math.LOG2E, 130],
  [1 / 24, 12583166],
  [0.5, 2],
];

const astOf = (t: Tensor): readonly LazyOp[] => createSchedule([t.lazydata]).at(-1)?.ast ?? [];
const textOf = (r: Renderer, { uops, ops, bytes }: Kernel): string => {
  const { code } = r.render("kernel", uops);
  return `${uops}\n${ops} ${bytes}\n${code}`;
};

test.each(Object.entries(PROGRAMS))("a template gives what lowering gives: %s", (_, program) => {
  for (const renderer of renderers) {
    const all = VALUES.map((values) => {
      const ast = astOf(program(...values));
      const kernel = toFastKernel(ast, renderer, false);
      return { ...astStructure(ast), kernel, text: textOf(renderer, kernel) };
    });
    for (const template of all) {
      for (const { key, constants, text } of all) {
        const made = key === template.key ? similarKernel(template, constants) : undefined;
        if (made !== undefined) expect(textOf(renderer, made)).toBe(text);
      }
    }
  }
});

test("equal constants, those of decompositions and other signs are lowered again", () => {
  const of = (a: number, b: number) => {
    const ast = astOf(PROGRAMS.sigmoid?.(a, b) as Tensor);
    return { kernel: toKernel(ast, [], WASMRenderer), constants: astStructure(ast).constants };
  };
  const template = of(2.5, 7.25);
  const isSimilar = (a: number, b: number): boolean =>
    similarKernel(template, of(a, b).constants) !== undefined;
  expect(isSimilar(3.5, 8.25)).toBe(true);
  expect(isSimilar(7.25, 2.5)).toBe(true);
  expect(isSimilar(3.5, 3.5)).toBe(false);
  expect(isSimilar(3.5, -8.25)).toBe(false);
  expect(isSimilar(3.5, 0.6931471824645996)).toBe(false);
});

test("a constant that was folded cannot be another", () => {
  const of = (a: number) => {
    const ast = astOf(x.add(Tensor.full([32, 24], a, { device: "JS" }).exp2()));
    return { kernel: toKernel(ast, [], WASMRenderer), constants: astStructure(ast).constants };
  };
  expect(of(2.5).constants).toEqual([2.5]);
  expect(similarKernel(of(2.5), of(2.5).constants)).toBeDefined();
  expect(similarKernel(of(2.5), of(3.5).constants)).toBeUndefined();
});

test("layers that differ in a constant are lowered once", () => {
  const layer = (c: number): Kernel => optimized(astOf(x.matmul(y).mul(c).exp()), WASMRenderer, false);
  const first = layer(1.25);
  const spent = passTimes().get("lower");
  const before = nextUOpId();
  const second = layer(1.75);
  expect(nextUOpId() - before).toBe(second.uops.uops.length);
  expect(passTimes().get("lower")).toBe(spent);
  expect(second.name).not.toBe(first.name);
  expect(second.uops.uops.filter((u) => u.op === "CONST" && u.value === 1.75)).toHaveLength(1);
  expect(second.uops.uops.some((u) => u.op === "CONST" && u.value === 1.25)).toBe(false);
});
