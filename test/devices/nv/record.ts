// Records golden/h200.json on a machine with the GPU: runs the programs there, which check their results, and
// writes what the device handed over. `npx tsx test/devices/nv/record.ts FILE`, after a
// change of the words that is meant.

import { writeFileSync } from "node:fs";
import { CudaCompiler, openNvrtc } from "../../../src/devices/cuda/nvrtc.ts";
import { openKernel } from "../../../src/devices/linux/syscalls.ts";
import { loadCubin } from "../../../src/devices/nv/commands/cubin.ts";
import { NVDevice } from "../../../src/devices/nv/device.ts";
import { openGpu } from "../../../src/devices/nv/driver/driver.ts";
import { openKoffi } from "../../../src/host/koffi.ts";
import { CUDARenderer } from "../../../src/render/languages.ts";
import { runPrograms } from "./programs.ts";
import { recorded } from "./recorder.ts";

const [file] = process.argv.slice(2);
if (file === undefined) throw new Error("usage: npx tsx test/devices/nv/record.ts FILE");
const { gpu, recording } = recorded(openGpu(await openKernel("NV"), 0));
const nvrtc = openNvrtc(await openKoffi("NV"), "NV");
const compiler = new CudaCompiler(nvrtc, gpu.arch, "NV");
const kernels: Record<string, { registers: number; codeBytes: number }> = {};
const device = new NVDevice("NV", gpu, {
  renderer: { ...CUDARenderer, name: "NV" },
  compile(name, source) {
    const made = compiler.compile(name, source.code as string);
    const { registers, codeBytes } = loadCubin(made.code, made.entry, gpu.arch);
    kernels[name] = { registers, codeBytes };
    return made;
  },
});
const kept = await runPrograms(device);
const count = recording.submissions.length;
writeFileSync(file, `${JSON.stringify({ nvrtc: nvrtc.version, kernels, ...recording }, null, 2)}\n`);
if (kept !== undefined) console.log(`${file}: ${count} submissions, all results right`);
gpu.close();
