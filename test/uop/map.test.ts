// Maps and sets by the ids of nodes.

import { expect, test } from "vitest";
import { UOpArena } from "../../src/uop/arena.ts";
import { UOpMap, UOpSet } from "../../src/uop/map.ts";
import type { Range } from "../../src/uop/node.ts";

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
