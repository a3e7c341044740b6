// The kernel that copies bytes where a blit cannot, as a list of UOps: the device's own renderer spells it.

import { dtypes, Pointer } from "../../dtype.ts";
import { Variable } from "../../shape/symbolic.ts";
import { UOpGraph } from "../../uop/list.ts";

/** Threads of a threadgroup; each copies a byte. */
export const COPY_THREADS = 256;
const MOST = 2 ** 31 - 1;

/** data0[i] = data1[i] for i < n */
export function copyBytesUops(): UOpGraph {
  const { int32, uint8, bool } = dtypes;
  const list = new UOpGraph();
  const dest = list.add("DEFINE_GLOBAL", new Pointer(uint8, false), [], [0, "data0", true]);
  const src = list.add("DEFINE_GLOBAL", new Pointer(uint8, false), [], [1, "data1", false]);
  const n = list.add("DEFINE_VAR", int32, [], Variable("n", 1, MOST));
  const group = list.add("SPECIAL", int32, [], [0, "gidx0", Math.ceil(MOST / COPY_THREADS)]);
  const thread = list.add("SPECIAL", int32, [], [0, "lidx0", COPY_THREADS]);
  const first = list.add("ALU", int32, [group, list.add("CONST", int32, [], COPY_THREADS)], "MUL");
  const i = list.add("ALU", int32, [first, thread], "ADD");
  const isInside = list.add("ALU", bool, [i, n], "CMPLT");
  const value = list.add("LOAD", uint8, [src, i, isInside, list.add("CONST", uint8, [], 0)]);
  list.add("STORE", undefined, [dest, i, value, isInside]);
  return list;
}
