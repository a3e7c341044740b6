import { createSchedule, Tensor } from "gradloom";
import { expect, test } from "vitest";
import { optimized } from "../../src/engine/compiler.ts";
import { WASMRenderer } from "../../src/render/wasm/renderer.ts";
import { astKey, astNodes, astStructure, type LazyOp } from "../../src/schedule/lazyop.ts";
import { itemsOf, ready } from "./count.ts";

const astOf = (t: Tensor): readonly LazyOp[] => createSchedule([t.lazydata]).at(-1)?.ast ?? [];
const input = (...shape: number[]): Tensor => Tensor.empty(shape, { device: "JS" });

test("the nodes of a kernel are sorted once, sources first", () => {
  const ast = astOf(input(16, 8).mul(2.5).softmax(1));
  const nodes = astNodes(ast);
  astKey(ast);
  optimized(ast, WASMRenderer, false);
  expect(astNodes(ast)).toBe(nodes);
  expect(new Set(nodes).size).toBe(nodes.length);
  for (const [i, u] of nodes.entries()) for (const s of u.srcs) expect(nodes.indexOf(s)).toBeLessThan(i);
});

test("a structure has the constants that its key leaves out, in order", () => {
  const x = input(4, 6);
  const of = (a: number, b: number) => astStructure(astOf(x.mul(a).add(1).sub(b)));
  expect(of(2.5, 7.25).key).toBe(of(0.1, 3.5).key);
  expect(of(2.5, 7.25).constants).toEqual([2.5, 7.25]);
  expect(astKey(astOf(x.mul(2.5)))).not.toBe(astKey(astOf(x.mul(3.5))));
});

test("equal kernels of one graph, and of the next, have one AST", () => {
  const layers = (w: readonly Tensor[]): Tensor => w.reduce((x, m) => x.dot(m).relu(), ready([4, 8]));
  const weights = (): Tensor[] => Array.from({ length: 4 }, () => ready([8, 8]));
  const [first, second] = [itemsOf(layers(weights())), itemsOf(layers(weights()), layers(weights()))];
  expect([first.length, second.length]).toEqual([4, 8]);
  expect(new Set([...first, ...second].map((si) => si.ast)).size).toBe(1);
  expect(itemsOf(layers([ready([8, 16])]))[0]?.ast).not.toBe(first[0]?.ast);
});
