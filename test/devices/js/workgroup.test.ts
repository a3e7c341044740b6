// JS runs the threads of a workgroup as a GPU might: it stops at barriers, and fails where a kernel would
// only work by luck.

import { dtypes } from "gradloom";
import { expect, test } from "vitest";
import { sourceOf } from "../../../src/codegen/target.ts";
import { PtrDType } from "../../../src/dtype.ts";
import { Device } from "../../../src/runtime/registry.ts";
import { UOpGraph } from "../../../src/uop/list.ts";
import type { UOp } from "../../../src/uop/node.ts";

const { int32 } = dtypes;
await Device.open("JS");

/** Every thread writes to shared memory and reads its neighbour's value. */
const neighbours = (barrier: boolean): UOpGraph => {
  const g = new UOpGraph();
  const out = g.add("DEFINE_GLOBAL", PtrDType(int32), [], [0, "data0", true]);
  const thread = g.add("SPECIAL", int32, [], [0, "lidx0", 4]);
  const shared = g.add("DEFINE_LOCAL", PtrDType(int32, true), [], ["shared0", 4]);
  g.add("STORE", undefined, [shared, thread, g.add("ALU", int32, [thread, thread], "MUL")]);
  if (barrier) g.add("BARRIER", undefined);
  const next = g.add(
    "ALU",
    int32,
    [g.add("ALU", int32, [thread, g.add("CONST", int32, [], 1)], "ADD"), g.add("CONST", int32, [], 4)],
    "MOD",
  );
  g.add("STORE", undefined, [out, thread, g.add("LOAD", int32, [shared, next])]);
  return g;
};
const run = async (g: UOpGraph): Promise<Int32Array> => {
  const program = await Device.get("JS").compile("k", sourceOf(g));
  const out = new Uint8Array(16);
  await program.run([out], { globalSize: [1], localSize: [4], vals: [] }, true);
  return new Int32Array(out.buffer);
};
test("up to a barrier, then on", async () => {
  expect([...(await run(neighbours(true)))]).toEqual([1, 4, 9, 0]);
});
test("a barrier that is missing is noticed", async () => {
  await expect(run(neighbours(false))).rejects.toThrow(/internal: thread \d .* without a barrier between/);
});
test("a barrier that some threads do not reach is noticed", async () => {
  const g = new UOpGraph();
  const thread = g.add("SPECIAL", int32, [], [0, "lidx0", 4]);
  const open = g.add("IF", undefined, [
    g.add("ALU", dtypes.bool, [thread, g.add("CONST", int32, [], 2)], "CMPLT"),
  ]);
  g.add("BARRIER", undefined);
  g.add("ENDIF", undefined, [open]);
  g.add("BARRIER", undefined);
  await expect(run(g)).rejects.toThrow("some threads of a workgroup meet");
});

/**
 * Two iterations: threads copy an element each, read their neighbour's, and copy over it;
 * what happens between is given.
 */
const iterations = (between: (g: UOpGraph) => void, late: (g: UOpGraph) => void, vector = 1): UOpGraph => {
  const g = new UOpGraph();
  const out = g.add("DEFINE_GLOBAL", PtrDType(int32), [], [0, "data0", true]);
  const local = g.add("DEFINE_LOCAL", PtrDType(int32, true), [], ["shared0", 8]);
  const thread = g.add("SPECIAL", int32, [], [0, "lidx0", 4]);
  const number = (n: number) => g.add("CONST", int32, [], n);
  const neighbour = g.add("ALU", int32, [thread, number(1)], "XOR");
  const meet = (left: number): void => {
    g.add("COMMIT", undefined);
    g.add("WAIT", undefined, [], left);
  };
  g.add("ASYNC", undefined, [local, thread, out, thread], 1);
  meet(0);
  g.add("BARRIER", undefined);
  const value = g.add("LOAD", int32, [local, neighbour]);
  between(g);
  g.add("ASYNC", undefined, [local, thread, out, thread], vector);
  late(g);
  meet(0);
  g.add("STORE", undefined, [out, thread, value]);
  return g;
};
const barrier = (g: UOpGraph): void => void g.add("BARRIER", undefined);
const nothing = (): void => undefined;
test("a copy may land as soon as it starts: not where others may still read", async () => {
  expect([...(await run(iterations(barrier, nothing)))]).toEqual([0, 0, 0, 0]);
  // a barrier after the start is too late
  await expect(run(iterations(nothing, barrier))).rejects.toThrow(
    /another (read|wrote) .* without a barrier/,
  );
});
test("a copy may land as late as it is waited for: until then nobody reads or writes there", async () => {
  const [read, write] = (["LOAD", "STORE"] as const).map((op) => (g: UOpGraph): void => {
    barrier(g);
    const [local, zero] = [g.uops[1] as UOp, g.add("CONST", int32, [], 0)];
    if (op === "LOAD") g.add(op, int32, [local, zero]);
    else g.add(op, undefined, [local, zero, zero]);
  }) as [typeof nothing, typeof nothing];
  await expect(run(iterations(barrier, read))).rejects.toThrow("reads what is being copied");
  await expect(run(iterations(barrier, write))).rejects.toThrow("writes what is being copied");
});
test("a copy of several starts at a multiple of their number", async () => {
  await expect(run(iterations(barrier, nothing, 2))).rejects.toThrow(/ASYNC: 2 from 1 to 1/);
});
