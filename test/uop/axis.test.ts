// Axes: which kinds are threads of a workgroup, and which are lanes that are written out.

import { expect, test } from "vitest";
import { type AxisKind, isLane, isThread } from "../../src/uop/axis.ts";

test("a kind is a thread, a lane, or a loop", () => {
  const KINDS: { readonly [K in AxisKind]: "thread" | "lane" | "loop" } = {
    output: "loop",
    local: "thread",
    top: "thread",
    reduce: "loop",
    upcast: "lane",
    unroll: "lane",
    group: "lane",
    tile: "loop",
    warp: "thread",
    copy: "loop",
  };
  const found = Object.keys(KINDS).map((k) => {
    const kind = k as AxisKind;
    return [kind, isThread({ kind }) ? "thread" : isLane({ kind }) ? "lane" : "loop"];
  });
  expect(Object.fromEntries(found)).toEqual(KINDS);
});
