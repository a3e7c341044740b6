// `npm run bench -- beam`: the heuristic against BEAM=4, for the kernels of the cpu bench, on WASM and CLANG.
// Both kernels run alternately on the same memory. 100 % is the speed of BEAM, by the fastest tenth of the
// runs; the heuristic should reach 85 %. Called as `beam.ts NAME …`, this file is the process of one device
// and prints rows.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Kernel, toFastKernel } from "../src/codegen/kernel.ts";
import { showOpts } from "../src/codegen/opt/opts.ts";
import type { Renderer } from "../src/codegen/target.ts";
import { searchKernel } from "../src/engine/search.ts";
import { runAsync } from "../src/helpers.ts";
import { type Buffer, Device, type ScheduleItem } from "../src/index.ts";
import type { Compiled } from "../src/runtime/device.ts";
import { KERNELS, type KernelName, kernelItems } from "./cpu/kernels.ts";
import { log } from "./processes.ts";
import { type Report, type Row, summarize } from "./stats.ts";

const WIDTH = 4;
const SHARE = 85;
const ROUND_MS = 1500;

/** For the usage text. */
export const BEAM_FLAGS: Readonly<Record<string, string>> = {
  "--only=TEXT,…": "only kernels with one of these in their name: matmul, GPT-2, sum …",
  "--dev=WASM|CLANG": "only this device",
  "--seconds=N": "the longest search for one kernel (5)",
};

export async function beam(flags: ReadonlySet<string>): Promise<Report> {
  const value = (name: string): string | undefined =>
    [...flags].find((f) => f.startsWith(`${name}=`))?.slice(name.length + 1);
  const only = value("--only")?.split(",");
  const names = Object.keys(KERNELS).filter((n) => only?.some((o) => n.includes(o)) ?? true);
  const folder = mkdtempSync(join(tmpdir(), "gradloom-beam-"));
  const skipped: string[] = [];
  try {
    const rows = (value("--dev")?.split(",") ?? ["WASM", "CLANG"]).flatMap((DEV): Row[] => {
      const env = { ...process.env, DEV, CACHE: folder, BEAM_SECONDS: value("--seconds") ?? "5" };
      const args = ["--import", "tsx", join(import.meta.dirname, "beam.ts"), ...names];
      const cwd = join(import.meta.dirname, "..");
      const { stdout, status } = spawnSync(process.execPath, args, {
        cwd,
        env,
        encoding: "utf8",
        stdio: ["ignore", "pipe", "inherit"],
      });
      if (status !== 0) skipped.push(`${DEV}: the process ended with ${status}`);
      return stdout
        .split("\n")
        .filter((line) => line.startsWith("{"))
        .map((line) => JSON.parse(line) as Row);
    });
    return { title: "beam", rows, skipped };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

// ---- the process of one device ----

/** Runs a kernel once and returns the milliseconds it took. */
async function launcher(
  kernel: Kernel,
  item: ScheduleItem,
  device: Compiled,
): Promise<() => Promise<number>> {
  const renderer = device.renderer as Renderer;
  const program = await device.compile(kernel.name, renderer.render(kernel.name, kernel.uops));
  const buffers = [...item.outputs, ...item.inputs];
  const handles = kernel.globals.map((i) => (buffers[i] as Buffer).handle);
  const launch = {
    globalSize: kernel.globalSize.map(Number),
    localSize: kernel.localSize,
    vals: [],
    work: kernel.ops + kernel.bytes,
  };
  return async () => 1000 * ((await program.run(handles, launch, true)) ?? NaN);
}

async function compare(name: string, item: ScheduleItem, device: Compiled): Promise<Row> {
  const renderer = device.renderer as Renderer;
  for (const b of [...item.outputs, ...item.inputs])
    await b.ensureAllocated().copyin(new Uint8Array(b.nbytes));
  const fast = toFastKernel(item.ast, renderer, false);
  const found = await runAsync(searchKernel(item.ast, device, renderer, false, WIDTH));
  const [heuristic, searched] = [await launcher(fast, item, device), await launcher(found, item, device)];
  const times: [number[], number[]] = [[], []];
  const end = performance.now() + ROUND_MS;
  for (let turn = 0; turn < 5 || performance.now() < end; turn++) {
    times[0].push(await heuristic());
    times[1].push(await searched());
  }
  // in the first runs the engine still compiles
  const [own, best] = [summarize(times[0].slice(2)), summarize(times[1].slice(2))];
  const same = showOpts(fast.opts) === showOpts(found.opts);
  // the fastest tenth of the runs is least disturbed by other work on the machine
  const share = same ? 100 : (100 * best.p10) / own.p10;
  const lists = same ? "the same list" : `BEAM: ${showOpts(found.opts)}`;
  return {
    what: `${name}: ${device.name}`,
    ...own,
    note: `${share.toFixed(0)} % of BEAM=${WIDTH}${share < SHARE ? `, MISSED (${SHARE})` : ""}; ${lists}`,
  };
}

async function main(names: readonly KernelName[]): Promise<void> {
  const device = await Device.open();
  for (const name of names) {
    for (const item of kernelItems(KERNELS[name]())) {
      log(`${name}: ${device.name}`);
      console.log(JSON.stringify(await compare(name, item, device)));
    }
  }
  process.exit();
}
if (process.argv[1] === import.meta.filename) await main(process.argv.slice(2) as KernelName[]);
