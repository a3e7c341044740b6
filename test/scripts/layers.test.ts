// The import rule between stages (scripts/layers.mjs): src/ keeps it, and a planted
// violation fails with a clear text.

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";

const script = join(import.meta.dirname, "..", "..", "scripts", "layers.mjs");

function layers(files?: Record<string, string>) {
  const root = mkdtempSync(join(tmpdir(), "gradloom-layers-"));
  try {
    for (const [path, text] of Object.entries(files ?? {})) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), text);
    }
    const run = spawnSync(process.execPath, files ? [script, root] : [script], { encoding: "utf8" });
    return { status: run.status, complaints: run.stderr.split("\n").filter((line) => line !== "") };
  } finally {
    rmSync(root, { recursive: true });
  }
}

test("src/ keeps the rule", () => {
  expect(layers()).toEqual({ status: 0, complaints: [] });
});

test("allowed imports pass: leaves, own stage, allowed stages, types where only types are allowed", () => {
  const { status, complaints } = layers({
    "dtype.ts": 'import { env } from "./env.ts";\n',
    "shape/view.ts": 'import { prod } from "../helpers.ts";\nimport { Variable } from "./symbolic.ts";\n',
    "codegen/lower.ts": 'import type { ScheduleItem } from "../schedule/schedule.ts";\n',
    "codegen/kernel.ts": 'import {\n  type ScheduleItem,\n  type Other,\n} from "../schedule/schedule.ts";\n',
    "devices/node.ts": 'import fs from "node:fs";\nexport const clang = () => import("./clang.ts");\n',
    "engine/realize.ts": 'import { devices } from "#devices";\n',
    "tensor/tensor.ts": '// import { x } from "../codegen/uops.ts"\n',
  });
  expect(complaints).toEqual([]);
  expect(status).toBe(0);
});

const planted: [file: string, text: string, complaint: string][] = [
  [
    "shape/view.ts",
    'import {\n  UOp,\n} from "../codegen/uops.ts";',
    "src/shape/view.ts imports src/codegen/uops.ts: shape may import only leaves",
  ],
  [
    "env.ts",
    'export * from "./shape/view.ts";',
    "src/env.ts imports src/shape/view.ts: leaves may import only leaves",
  ],
  [
    "codegen/lower.ts",
    'import { createSchedule } from "../schedule/schedule.ts";',
    "src/codegen/lower.ts imports src/schedule/schedule.ts: " +
      "codegen may import only leaves, shape, types of schedule, schedule/lazyop.ts, uop, host/rest.ts",
  ],
  [
    "lazy/lazybuffer.ts",
    'const load = () => import("#devices");',
    "src/lazy/lazybuffer.ts imports #devices: lazy may import only leaves, shape, runtime",
  ],
  [
    "engine/realize.ts",
    'import "../tensor/tensor.ts";',
    "src/engine/realize.ts imports src/tensor/tensor.ts: engine may import only " +
      "leaves, shape, lazy, schedule, uop, codegen, render, runtime, devices, host, viz",
  ],
  [
    "runtime/buffer.ts",
    'import { readFileSync } from "node:fs";',
    "src/runtime/buffer.ts imports node:fs: only host, devices and cli may import node: modules and packages",
  ],
  [
    "utils/misc.ts",
    "",
    "src/utils/misc.ts belongs to no stage: move it, or give it a row in scripts/layers.mjs",
  ],
];

test.each(planted)("a planted violation in %s fails", (file, text, complaint) => {
  expect(layers({ [file]: text })).toEqual({ status: 1, complaints: [complaint] });
});

test("stages that import each other's values in a circle fail; types may", () => {
  const engine = { "engine/realize.ts": 'import { log } from "../viz/log.ts";\n' };
  expect(layers({ ...engine, "viz/log.ts": 'import type { x } from "../engine/realize.ts";\n' }).status).toBe(
    0,
  );
  expect(layers({ ...engine, "viz/log.ts": 'const x = () => import("../engine/realize.ts");\n' })).toEqual({
    status: 1,
    complaints: [
      "engine, viz import each other in a circle: src/engine/realize.ts imports ../viz/log.ts; " +
        "src/viz/log.ts imports ../engine/realize.ts",
    ],
  });
});
