// WGSL kernels in Chromium's WebGPU, on its software adapter: every op, cast and constant against ops.ts.
// Subnormal numbers are left out (WGSL may flush them), and ops that codegen decomposes (SIN, ERF).

import { type Browser, chromium } from "playwright-core";
import { afterAll, expect, test } from "vitest";
import { type DType, dtypes, type Value } from "../../src/dtype.ts";
import { WGSLRenderer } from "../../src/render/webgpu.ts";
import { uopsToWGSL } from "../../src/render/wgsl.ts";
import {
  aluCase,
  type Case,
  castCase,
  constantCase,
  differences,
  edges,
  encode,
  groupCase,
  opsOf,
  structureCase,
} from "../render/kernels.ts";
import { findChromium, NO_CHROMIUM, serve, WEBGPU_FLAGS } from "./harness.ts";

const { bool, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float32 } = dtypes;
const TYPES = [bool, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float32];

/** A stage has at least eight storage buffers: three ops with their five inputs. */
const OPS_A_KERNEL = 3;
const isNormal = (x: Value): boolean => Number(x) === 0 || !(Math.abs(Number(x)) < 1e-20);

function casesOf(d: DType): Case[] {
  const xs = edges(d).filter(isNormal);
  const ops = opsOf(d).filter((op) => WGSLRenderer.has(op, d));
  const chunks = Array.from({ length: Math.ceil(ops.length / OPS_A_KERNEL) }, (_, i) =>
    ops.slice(i * OPS_A_KERNEL, (i + 1) * OPS_A_KERNEL),
  );
  const alus = chunks.map((chunk, i) => ({ ...aluCase(d, chunk, xs), name: `alu_${d.name}_${i}` }));
  const casts = TYPES.filter((t) => t !== d).map((t) => ({
    ...castCase(d, [t], xs),
    name: `cast_to_${t.name}`,
  }));
  return [...alus, ...casts, constantCase(d)];
}

interface Job {
  readonly name: string;
  readonly code: string;
  readonly outs: readonly number[];
  readonly ins: readonly (readonly number[])[];
  readonly vals: readonly number[];
  readonly groups: number;
}
type Answer = { readonly error: string } | { readonly outs: readonly (readonly number[])[] };

const jobOf = (c: Case): Job => ({
  name: c.name,
  code: uopsToWGSL(c.name, c.uops),
  outs: c.outputs.map((o) => o.values.length * o.dtype.itemsize),
  ins: c.inputs.map(({ dtype, values }) => [...encode(dtype, values)]),
  vals: c.vals,
  groups: c.local === 1 ? 1 : 2,
});

/** Runs in the page, so it is plain JavaScript: every job on its own pipeline and buffers. */
const RUN = `async (jobs) => {
  const adapter = await navigator.gpu?.requestAdapter();
  if (!adapter) return undefined;
  const device = await adapter.requestDevice();
  const { STORAGE, UNIFORM, COPY_SRC, COPY_DST, MAP_READ } = GPUBufferUsage;
  const padded = (n) => Math.max(16, Math.ceil(n / 4) * 4);
  const buffer = (n, usage) => device.createBuffer({ size: padded(n), usage });
  const filled = (bytes, usage) => {
    const made = buffer(bytes.length, usage | COPY_DST);
    const data = new Uint8Array(padded(bytes.length));
    data.set(bytes);
    device.queue.writeBuffer(made, 0, data);
    return made;
  };
  const run = async (job) => {
    const module = device.createShaderModule({ code: job.code });
    const errors = (await module.getCompilationInfo()).messages.filter((m) => m.type === "error");
    if (errors.length > 0) return { error: job.name + " line " + errors[0].lineNum + ": " + errors[0].message };
    const compute = { module, entryPoint: job.name };
    const pipeline = await device.createComputePipelineAsync({ layout: "auto", compute });
    const outs = job.outs.map((n) => buffer(n, STORAGE | COPY_SRC));
    const storage = [...outs, ...job.ins.map((bytes) => filled(bytes, STORAGE))];
    const vals = new Uint8Array(Int32Array.from(job.vals).buffer);
    // a binding that the kernel does not use has no place in the automatic layout
    const used = (i) => job.code.includes("data" + i + "[");
    const entriesOf = (all) => all.map((b, binding) => ({ binding, resource: { buffer: b } }));
    const entries = entriesOf(storage).filter((e) => used(e.binding));
    const group = (i, entries) => device.createBindGroup({ layout: pipeline.getBindGroupLayout(i), entries });
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, group(0, entries));
    if (vals.length > 0) pass.setBindGroup(1, group(1, entriesOf([filled(vals, UNIFORM)])));
    pass.dispatchWorkgroups(job.groups);
    pass.end();
    const reads = job.outs.map((n) => buffer(n, MAP_READ | COPY_DST));
    reads.forEach((r, i) => encoder.copyBufferToBuffer(outs[i], 0, r, 0, padded(job.outs[i])));
    device.queue.submit([encoder.finish()]);
    const bytes = await Promise.all(reads.map(async (r, i) => {
      await r.mapAsync(GPUMapMode.READ);
      return [...new Uint8Array(r.getMappedRange()).slice(0, job.outs[i])];
    }));
    return { outs: bytes };
  };
  const answers = [];
  for (const job of jobs) {
    device.pushErrorScope("validation");
    const answer = await run(job).catch((e) => ({ error: job.name + ": " + e }));
    const invalid = await device.popErrorScope();
    answers.push(invalid ? { error: job.name + ": " + invalid.message } : answer);
  }
  return answers;
}`;

let browser: Browser | undefined;
let server: Awaited<ReturnType<typeof serve>> | undefined;
afterAll(async () => {
  await browser?.close();
  await server?.close();
});

test("every op, cast and constant agrees with ops.ts", async ({ skip }) => {
  const executablePath = findChromium();
  if (executablePath === undefined) console.log(`skip: ${NO_CHROMIUM}`);
  skip(executablePath === undefined, NO_CHROMIUM);
  browser = await chromium.launch({ executablePath, args: WEBGPU_FLAGS });
  server = await serve(new Map([["page.js", ""]]));
  const page = await browser.newPage();
  await page.goto(server.url);
  const cases = [...TYPES.flatMap(casesOf), structureCase(), groupCase()];
  const jobs = cases.map(jobOf);
  const answers = await page.evaluate<Answer[] | undefined>(`(${RUN})(${JSON.stringify(jobs)})`);
  if (answers === undefined) {
    console.log("skip: Chromium offers no WebGPU adapter");
    return skip("Chromium offers no WebGPU adapter");
  }
  const wrong = answers.flatMap((answer, i) =>
    "error" in answer
      ? [answer.error]
      : differences(
          cases[i] as Case,
          answer.outs.map((bytes) => Uint8Array.from(bytes)),
        ),
  );
  expect(wrong).toEqual([]);
});
