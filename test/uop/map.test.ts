// Maps and sets by the ids of nodes, and the order of nodes that passes share.

import { expect, test } from "vitest";
import { UOpArena } from "../../src/uop/arena.ts";
import { UOpGraph } from "../../src/uop/list.ts";
import { UOpMap, UOpSet } from "../../src/uop/map.ts";
import type { Range } from "../../src/uop/node.ts";
import { mapGraph } from "../../src/uop/rewrite.ts";

const variable = (a: UOpArena, of: number): Range => a.range({ size: 4, kind: "output", of });

test("a map holds nodes that were there, nodes that came later, and no others", () => {
  const a = new UOpArena();
  const [x, y] = [variable(a, 0), variable(a, 1)];
  const map = new UOpMap<string>(a);
  const set = new UOpSet(a);
  const later = a.alu("ADD", x, y);
  map.set(x, "x");
  map.set(later, "sum");
  set.add(later);
  expect([x, y, later].map((u) => map.get(u))).toEqual(["x", undefined, "sum"]);
  expect([x, y, later].map((u) => set.has(u))).toEqual([false, false, true]);
  map.delete(x);
  expect(map.has(x)).toBe(false);
  const other = variable(new UOpArena(), 0);
  expect([map.has(other), set.has(other)]).toEqual([false, false]);
});

test("nodes come sources first, each once, and as one list as long as the root is the same", () => {
  const a = new UOpArena();
  const [x, y] = [variable(a, 0), variable(a, 1)];
  const sum = a.alu("ADD", x, y);
  const root = a.alu("MUL", sum, a.alu("ADD", sum, x));
  const nodes = a.nodes(root);
  for (const u of nodes) for (const s of u.srcs) expect(nodes.indexOf(s)).toBeLessThan(nodes.indexOf(u));
  expect(new Set(nodes).size).toBe(nodes.length);
  expect(nodes.at(-1)).toBe(root);
  expect(a.nodes(root)).toBe(nodes);
});

test("a pass that changes nothing gives the same root, one that changes a leaf rebuilds what is above it", () => {
  const a = new UOpArena();
  const [x, y] = [variable(a, 0), variable(a, 1)];
  const root = a.alu("MUL", a.alu("ADD", x, y), y);
  expect(mapGraph(root, a, () => undefined)).toBe(root);
  const changed = mapGraph(root, a, (u) => (u === x ? y : undefined));
  expect(changed).toBe(a.alu("MUL", a.alu("ADD", y, y), y));
});

test("a list knows the place of its own nodes only", () => {
  const a = new UOpArena();
  const list = new UOpGraph(a);
  const [x, y] = [variable(a, 0), variable(a, 1)];
  list.push(x);
  expect([list.has(x), list.has(y), list.indexOf(x), list.indexOf(y)]).toEqual([true, false, 0, -1]);
});
