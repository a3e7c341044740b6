// `npm run bench -- webgpu`: large kernels and steps on WEBGPU and on our CUDA device, and the sizes of
// webgpu/works.ts beside jax-js's and tfjs's WebGPU backends, all through Dawn in Node, each in a process of
// its own that measures in the same way; what a captured kernel costs; the first result of a page. A software
// adapter (SwiftShader) says nothing of a GPU's speed: there only what the host does is measured.

import { join } from "node:path";
import type { Line } from "./gpu/child.ts";
import { KERNELS, WORKLOADS } from "./gpu/workloads.ts";
import { linesOf, part, rate } from "./gpu.ts";
import { type Report, type Row, summarize } from "./stats.ts";
import { GRADLOOM } from "./webgpu/gradloom.ts";
import { WORKS, type WorkName } from "./webgpu/works.ts";

/** On WEBGPU and on CUDA, and how fast WEBGPU should be at least, of CUDA or in TFLOP/s. */
const LARGE: Readonly<Record<string, { readonly ofCuda?: number; readonly tflops?: number }>> = {
  add: { ofCuda: 0.9 },
  sum: { ofCuda: 0.9 },
  softmax: { ofCuda: 0.9 },
  layernorm: { ofCuda: 0.9 },
  var: { ofCuda: 0.9 },
  "matmul-f32": { ofCuda: 0.9 },
  "matmul-f16": { tflops: 150 },
  mnist: {},
};
/** Beside peers, and how many times as fast as the better one WEBGPU should be. */
const BESIDE: Readonly<Partial<Record<WorkName, number>>> = { "matmul-4096": 2, mlp: 10 };
/** Microseconds of a captured kernel, end to end and of the host; milliseconds of the host in a step. */
const [END_TO_END, HOST, HOST_STEP] = [6, 1.5, 0.3];
const STEPS: readonly string[] = ["mlp", "mnist128"];

export const WEBGPU_FLAGS: Readonly<Record<string, string>> = {
  "--only=WORK,…": `only these: ${[...Object.keys(LARGE), ...Object.keys(WORKS), "chain", "page"].join(", ")}`,
  "--software": "all works, on a software adapter too",
};

export async function webgpu(flags: ReadonlySet<string>): Promise<Report> {
  const skipped: string[] = [];
  const adapter = adapterName();
  const isSoftware = /swiftshader|llvmpipe|lavapipe|software/i.test(adapter);
  const chosen = [...flags]
    .find((f) => f.startsWith("--only="))
    ?.slice("--only=".length)
    .split(",");
  const wanted = (name: string): boolean =>
    chosen?.includes(name) ?? (!isSoftware || flags.has("--software") || ["chain", "page"].includes(name));
  const rows: Row[] = [];
  const large = Object.keys(LARGE).filter(wanted);
  if (large.length > 0) rows.push(...largeRows(large, skipped));
  const works = (Object.keys(WORKS) as WorkName[]).filter(wanted);
  if (works.length > 0) rows.push(...workRows(works, skipped));
  if (wanted("chain")) rows.push(...chainRows(isSoftware, skipped));
  if (wanted("page")) rows.push(...(await page(skipped)));
  return { title: "webgpu", rows, skipped, facts: { adapter } };
}

/** A machine with a GPU may have no browser to drive. */
async function page(skipped: string[]): Promise<Row[]> {
  try {
    return await (await import("./webgpu/page.ts")).pageRows(skipped);
  } catch (e) {
    if ((e as { code?: string }).code !== "ERR_MODULE_NOT_FOUND") throw e;
    skipped.push(`a page: ${(e as Error).message.split("\n")[0]}`);
    return [];
  }
}

/** What Dawn says of the adapter; it ends the process that asks. */
function adapterName(): string {
  const program = `import { installGpu } from ${JSON.stringify(join(import.meta.dirname, "webgpu/dawn.mjs"))};
    await installGpu();
    const { info } = (await navigator.gpu.requestAdapter()) ?? {};
    console.log(JSON.stringify({ adapter: info && [info.vendor, info.architecture, info.description].join(" ") }));
    process.exit();`;
  const args = [...process.execArgv, "--input-type=module", "-e", program];
  const lines = linesOf<{ adapter?: string }>(process.execPath, args);
  return typeof lines === "string" ? `none (${lines})` : (lines[0]?.adapter ?? "none");
}

/** What the processes say of these works, by engine and work; each is a process of its own. */
function measured(
  engines: Readonly<Record<string, readonly string[]>>,
  works: readonly string[],
  skipped: string[],
): Map<string, Map<string, Line>> {
  const found = new Map<string, Map<string, Line>>();
  for (const [engine, [file = "", ...args]] of Object.entries(engines)) {
    process.stderr.write(`${engine}\n`);
    const program = [...process.execArgv, "--expose-gc", join(import.meta.dirname, file)];
    const lines = linesOf(process.execPath, [...program, ...args, ...works]);
    if (typeof lines === "string") skipped.push(`${engine}: ${lines}`);
    else found.set(engine, new Map(lines.map((l) => [l.workload, l])));
    for (const { workload, error } of typeof lines === "string" ? [] : lines)
      if (error !== undefined) skipped.push(`${workload} on ${engine}: ${error.split("\n")[0]}`);
  }
  return found;
}
const medianOf = (line: Line | undefined): number | undefined =>
  line?.ms === undefined ? undefined : summarize(line.ms).median;

function largeRows(names: readonly string[], skipped: string[]): Row[] {
  const devices = { WEBGPU: ["gpu/child.ts", "WEBGPU"], CUDA: ["gpu/child.ts", "CUDA"] };
  const found = measured(devices, names, skipped);
  return names.flatMap((name) => {
    const workload = WORKLOADS[name];
    const cuda = medianOf(found.get("CUDA")?.get(name));
    return [...found].flatMap(([device, lines]): Row[] => {
      const line = lines.get(name);
      if (workload === undefined || line?.ms === undefined) return [];
      const times = summarize(line.ms);
      const { ofCuda, tflops } = LARGE[name] ?? {};
      const isOurs = device === "WEBGPU";
      const limit =
        tflops !== undefined
          ? (workload.amount ?? 0) / tflops / 1e9
          : ofCuda === undefined || cuda === undefined
            ? undefined
            : cuda / ofCuda;
      const ratio = isOurs && cuda !== undefined ? `, ${(cuda / times.median).toFixed(2)} × CUDA` : "";
      const host = line.hostMs === undefined ? "" : `, host ${(1000 * line.hostMs).toFixed(0)} µs`;
      const note = `${rate(workload, times.median)}${ratio}, ${line.kernels} kernels${host}`;
      const limited = isOurs && limit !== undefined ? { limit: Number(limit.toPrecision(3)) } : {};
      return [{ what: `${workload.what}: ${device}`, ...times, note, ...limited }];
    });
  });
}

function workRows(names: readonly WorkName[], skipped: string[]): Row[] {
  const engines = {
    WEBGPU: ["gpu/child.ts", "WEBGPU"],
    CUDA: ["gpu/child.ts", "CUDA"],
    "jax-js": ["webgpu/peer.mjs", "jax"],
    tfjs: ["webgpu/peer.mjs", "tfjs"],
  };
  const found = measured(engines, names, skipped);
  return names.flatMap((name) => {
    const ours = medianOf(found.get("WEBGPU")?.get(name));
    const theirs = ["jax-js", "tfjs"].flatMap((e) => medianOf(found.get(e)?.get(name)) ?? []);
    const times = BESIDE[name];
    return [...found].flatMap(([engine, lines]): Row[] => {
      const line = lines.get(name);
      if (line?.ms === undefined) return [];
      const figures = summarize(line.ms);
      const isOurs = engine === "WEBGPU";
      const ratio =
        isOurs || ours === undefined ? [] : [`WEBGPU is ${(figures.median / ours).toFixed(2)} × as fast`];
      const host = isOurs && line.hostMs !== undefined ? [`host ${(1000 * line.hostMs).toFixed(0)} µs`] : [];
      const flops = GRADLOOM[name].amount;
      const speed = flops === undefined ? [] : [`${(flops / figures.median / 1e9).toPrecision(3)} TFLOP/s`];
      const note = [...speed, ...ratio, ...host].join(", ");
      const row: Row = { what: `${WORKS[name]}: ${engine}`, ...figures, note };
      const limited =
        isOurs && times !== undefined && theirs.length > 0
          ? [{ ...row, limit: Number((Math.min(...theirs) / times).toPrecision(3)) }]
          : [row];
      if (!isOurs || !STEPS.includes(name) || line.hostMs === undefined) return limited;
      const step = { what: `${WORKS[name]}: ${engine}, of the host`, ...summarize([line.hostMs]) };
      return [...limited, { ...step, limit: HOST_STEP }];
    });
  });
}

/** Dependent tiny kernels of a captured step: end to end, and until the host is free again. */
function chainRows(isSoftware: boolean, skipped: string[]): Row[] {
  const file = part("gpu/child.ts", "child.mjs");
  const lines = linesOf(process.execPath, [...process.execArgv, "--expose-gc", file, "WEBGPU", "chain"]);
  const line = typeof lines === "string" ? undefined : lines[0];
  if (line?.ms === undefined) {
    skipped.push(`${KERNELS} tiny kernels: ${typeof lines === "string" ? lines : line?.error}`);
    return [];
  }
  const each = (ms: number): number => (1000 * ms) / KERNELS;
  const what = `one of ${KERNELS} dependent tiny kernels, captured`;
  const all = { what: `${what}: end to end`, ...summarize(line.ms.map(each)), unit: "µs" };
  const host = summarize([each(line.hostMs ?? NaN)]);
  return [
    isSoftware ? { ...all, note: "a software adapter" } : { ...all, limit: END_TO_END },
    { what: `${what}: of the host`, ...host, unit: "µs", limit: HOST },
  ];
}
