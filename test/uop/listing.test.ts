// The listing of a kernel, which is also the text of a list. What the seed prints is in golden/.

import { expect, test } from "vitest";
import { dtypes, PtrDType } from "../../src/dtype.ts";
import { UOpGraph } from "../../src/uop/list.ts";
import { listing } from "../../src/uop/listing.ts";

const { int32, float32 } = dtypes;

test("the listing: op, type, the numbers of its sources, argument", () => {
  const g = new UOpGraph();
  const data = g.add("DEFINE_GLOBAL", PtrDType(float32), [], [0, "data0", true]);
  const zero = g.add("CONST", int32, [], 0);
  g.add("STORE", undefined, [data, zero, g.add("LOAD", float32, [data, zero])]);
  const [head, ...rows] = listing(g).split("\n");
  expect(String(g)).toBe(listing(g));
  expect(head).toMatch(/^step +Op_name +type +input +arg$/);
  expect(rows.map((r) => r.trim().replaceAll(/ +/g, " "))).toEqual([
    "0 UOps.DEFINE_GLOBAL : ptr.dtypes.float [] (0, 'data0', True)",
    "1 UOps.CONST : dtypes.int [] 0",
    "2 UOps.LOAD : dtypes.float [0, 1] None",
    "3 UOps.STORE : [0, 1, 2] None",
  ]);
});
