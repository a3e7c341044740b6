// The driver of the passes: every pass of PASSES is recorded once, in order, between lower and linearize;
// SPEC names the pass that broke the graph; DEBUG=7 prints; a recorder that is gone gets nothing.

import { expect, test, vi } from "vitest";
import { PASSES, toKernel } from "../../src/codegen/kernel.ts";
import { lower } from "../../src/codegen/lower/lower.ts";
import { type PassRecord, passSteps, passTimes, withPassRecorder } from "../../src/codegen/pass.ts";
import { dtypes } from "../../src/dtype.ts";
import { withEnv } from "../../src/env.ts";
import { runSync } from "../../src/helpers.ts";
import { ClangRenderer } from "../../src/render/languages.ts";
import { WASMRenderer } from "../../src/render/wasm/renderer.ts";
import type { ScheduleItem } from "../../src/schedule/schedule.ts";
import { makeUOp } from "../../src/uop/node.ts";
import { tensor } from "../device/harness.ts";
import { lastItem } from "./kernels.ts";

const item = (): Promise<ScheduleItem> => {
  const x = tensor("JS", dtypes.float32, [1, 2, 3, 4, 5, 6, 7, 8], [2, 4]);
  return lastItem(x.sub(x.max(1, true)).exp().sum(1));
};
const names = PASSES.map((p) => p.name);

test("every pass is recorded once, in order, with its graph", async () => {
  const { ast } = await item();
  const records: PassRecord[] = [];
  withPassRecorder(
    (r) => void records.push(r),
    () => toKernel(ast, [], WASMRenderer),
  );
  expect(records.map((r) => r.pass)).toEqual(["lower", ...names, "linearize"]);
  expect(records[0]?.text()).toMatch(/max over r\d of data1\[/);
  expect(records.at(-1)?.text()).toContain("UOps.DEFINE_ACC");
  const changed = records.filter((r) => r.isChanged).map((r) => r.pass);
  expect(changed).toContain("decompose");
  expect(changed).not.toContain("tensor cores");
  toKernel(ast, [], ClangRenderer);
  expect(records).toHaveLength(names.length + 2);
});

test("a pass that does not concern a kernel is skipped, and shown as idle", async () => {
  const { ast } = await item();
  const graph = lower(ast, [], ClangRenderer);
  const pass = { name: "for others", applies: () => false, run: vi.fn(() => graph) };
  const steps = () => passSteps(graph, [pass], { opts: [], target: ClangRenderer });
  expect(steps().next()).toEqual({ done: true, value: graph });
  const records: PassRecord[] = [];
  withPassRecorder(
    (r) => void records.push(r),
    () => runSync(steps(), "passes"),
  );
  expect(records.map((r) => [r.pass, r.isChanged])).toEqual([["for others", false]]);
  expect(pass.run).not.toHaveBeenCalled();
});

test("the time of each pass adds up", async () => {
  const { ast } = await item();
  const before = passTimes().get("linearize") ?? 0;
  toKernel(ast, [], ClangRenderer);
  expect(passTimes().get("linearize")).toBeGreaterThan(before);
});

test("SPEC=1 names the pass that broke the graph", async () => {
  const { ast } = await item();
  const graph = lower(ast, [], ClangRenderer);
  const broken = {
    name: "a bad pass",
    run: () => ({ ...graph, sink: makeUOp("SINK", undefined, [graph.arena.int(1)], undefined) }),
  };
  const run = () => runSync(passSteps(graph, [broken], { opts: [], target: ClangRenderer }), "passes");
  expect(() => withEnv({ SPEC: 1 }, run)).toThrow(/a bad pass made a malformed SINK/);
  expect(() => withEnv({ SPEC: 0 }, run)).not.toThrow();
});

test("DEBUG=7 prints what each pass made, or that it had nothing to do", async () => {
  const { ast } = await item();
  const lines: string[] = [];
  const log = vi.spyOn(console, "log").mockImplementation((line: string) => void lines.push(line));
  try {
    withEnv({ DEBUG: 7 }, () => toKernel(ast, [], ClangRenderer));
  } finally {
    log.mockRestore();
  }
  expect(lines.find((l) => l.startsWith("---- lower"))).toMatch(/ms\nloops: r0 < 2 output/);
  expect(lines.find((l) => l.startsWith("---- tensor cores"))).toMatch(/: nothing to do$/);
});
