// docs/tour.ts runs as `npm run tour` runs it, uses public names only, and says 5 at every level.

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "..", "..");
const tour = join(root, "docs", "tour.ts");

test("the tour runs and every level gives 5", () => {
  const { DEV: _, DEBUG: __, ...env } = process.env;
  const run = spawnSync(process.execPath, ["--import", "tsx", tour], { cwd: root, encoding: "utf8", env });
  expect(run.stderr).toBe("");
  expect(run.status).toBe(0);
  // how many bytes the module has is the assembler's business
  expect(run.stdout.replace(/^\d+ bytes/m, "N bytes")).toBe(`\
1. UOps: what one kernel does, step by step

step  Op_name               type                      input                           arg
   0 UOps.DEFINE_GLOBAL  : ptr.dtypes.int            []                               (0, 'data0', True)
   1 UOps.DEFINE_GLOBAL  : ptr.dtypes.int            []                               (1, 'data1', False)
   2 UOps.DEFINE_GLOBAL  : ptr.dtypes.int            []                               (2, 'data2', False)
   3 UOps.CONST          : dtypes.int                []                               0
   4 UOps.LOAD           : dtypes.int                [1, 3]                           None
   5 UOps.LOAD           : dtypes.int                [2, 3]                           None
   6 UOps.ALU            : dtypes.int                [4, 5]                           BinaryOps.ADD
   7 UOps.STORE          :                           [0, 3, 6]                        None

void add(int* data0, const int* data1, const int* data2) {
  int val0 = data1[0];
  int val1 = data2[0];
  data0[0] = (val0+val1);
}

N bytes of WebAssembly say: 5
two constants are folded at once: CONST 5

2. ScheduleItem: what is to be computed, and on which buffers

STORE MemBuffer(0, dtypes.int, ShapeTracker(View([1])))
  ADD
    LOAD MemBuffer(1, dtypes.int, ShapeTracker(View([1])))
    CONST ConstBuffer(3, dtypes.int, ShapeTracker(View([1])))

in the queue of WASM: STORE(1 out, 1 in)
the queue ran and left: 5

3. LazyBuffers: a graph of what depends on what

<LB WASM [1] int32 ADD>
  of <LB WASM [1] int32 COPY>
  and <LB WASM [1] int32 COPY>

scheduled: COPY, COPY, STORE
<LB WASM [1] int32 ADD realized>: 5
scheduled again: 0 items

4. Tensors: what you would write

<Tensor [1] int32 on WASM> stands for <LB WASM [1] int32 ADD>
and is 5
`);
});

test("it imports from entry points of gradloom and nowhere else", () => {
  const imports = [...readFileSync(tour, "utf8").matchAll(/(?:from|import)\s*\(?\s*"([^"]+)"/g)].map(
    (m) => m[1],
  );
  expect(imports).toEqual(["gradloom", "gradloom/render"]);
});
