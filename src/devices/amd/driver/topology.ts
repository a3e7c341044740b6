// The GPUs of this machine, as the kernel driver describes them in its folder of sysfs: one folder a node,
// whose file `properties` has a name and a number a line. Nodes of processors have no gpu_id.

import { DeviceError } from "../../../errors.ts";
import type { LinuxSystem } from "../../linux/syscalls.ts";

const NODES = "/sys/devices/virtual/kfd/kfd/topology/nodes";

export interface GpuNode {
  readonly gpuId: number;
  readonly name: string;
  /** gfx1100 */
  readonly arch: string;
  /** the same as the driver writes it: 110000 */
  readonly version: number;
  readonly renderMinor: number;
  /** of one XCC, which is as far as one queue reaches; all others are of one, too */
  readonly computeUnits: number;
  readonly shaderEngines: number;
  readonly wave: number;
  readonly scratchSlots: number;
  readonly xccs: number;
  readonly arrays: number;
  readonly arraysPerEngine: number;
  readonly memoryBytes: number;
}

const numbersOf = (text: string): ReadonlyMap<string, number> =>
  new Map(
    text
      .trim()
      .split("\n")
      .map((line) => line.split(" "))
      .map(([name = "", value = ""]) => [name, Number(value)]),
  );

/** Those that this process may use, in the order of their nodes. */
export function findGpus(system: LinuxSystem): GpuNode[] {
  return system
    .list(NODES)
    .toSorted((a, b) => Number(a) - Number(b))
    .flatMap((node) => {
      const path = `${NODES}/${node}`;
      // where a container hides a GPU, its file cannot be read
      const gpuId = Number(system.read(`${path}/gpu_id`) ?? 0);
      const properties = system.read(`${path}/properties`);
      return gpuId === 0 || properties === undefined ? [] : [describe(system, path, gpuId, properties)];
    });
}

function describe(system: LinuxSystem, path: string, gpuId: number, text: string): GpuNode {
  const all = numbersOf(text);
  const get = (name: string, otherwise?: number): number => {
    const found = all.get(name) ?? otherwise;
    if (found !== undefined && Number.isFinite(found)) return found;
    throw new DeviceError(`AMD: ${path}/properties has no ${name}; the driver amdgpu is too old, update it`);
  };
  const version = get("gfx_target_version");
  const xccs = Math.max(1, get("num_xcc", 1));
  const [arrays, arraysPerEngine] = [get("array_count"), get("simd_arrays_per_engine")];
  const arch = archOf(version);
  return {
    gpuId,
    name: system.read(`${path}/name`)?.trim() || arch,
    arch,
    version,
    renderMinor: get("drm_render_minor"),
    computeUnits: get("simd_count") / get("simd_per_cu") / xccs,
    shaderEngines: Math.max(1, arrays / arraysPerEngine / xccs),
    wave: get("wave_front_size"),
    scratchSlots: get("max_slots_scratch_cu"),
    xccs,
    arrays,
    arraysPerEngine,
    memoryBytes: memoryOf(system, path),
  };
}

/** 90010 is gfx90a: two digits each, of which the last two become one of base 16. */
const archOf = (version: number): string => {
  const [major, minor, step] = [Math.floor(version / 10000), Math.floor(version / 100) % 100, version % 100];
  return `gfx${major}${minor.toString(16)}${step.toString(16)}`;
};

/** Memory of its own, in one bank or several. */
function memoryOf(system: LinuxSystem, path: string): number {
  const banks = system
    .list(`${path}/mem_banks`)
    .map((bank) => system.read(`${path}/mem_banks/${bank}/properties`));
  return banks.reduce((n, text) => n + (numbersOf(text ?? "").get("size_in_bytes") ?? 0), 0);
}

const PAGE = 4096;
const pages = (nbytes: number): number => Math.ceil(nbytes / PAGE) * PAGE;

/** What a compute queue needs so that the driver can take it from the GPU and put it back. */
export interface QueueArea {
  /** bytes of the whole area, of the part that is saved, and of the stack in it */
  readonly bytes: number;
  readonly saved: number;
  readonly stack: number;
}
/** Bytes of a compute unit's scalar registers, shared memory and hardware registers. */
const UNIT_BYTES = 0x4000 + 0x10000 + 0x1000;
/** Bytes of its vector registers. */
const VECTOR_BYTES: readonly (readonly [isSo: (version: number) => boolean, bytes: number])[] = [
  [(v) => v < 100000, 0x80000],
  [(v) => [110000, 110001, 120000, 120001].includes(v), 0x60000],
  [() => true, 0x40000],
];
const HEADER_BYTES = 40;

/** The driver computes the same and refuses anything else. */
export function queueArea({ version, computeUnits, arrays, arraysPerEngine, xccs }: GpuNode): QueueArea {
  const isGfx9 = version < 100000;
  const vector = VECTOR_BYTES.find(([isSo]) => isSo(version))?.[1] ?? 0;
  const waves = isGfx9 ? Math.min(computeUnits * 40, (arrays / arraysPerEngine) * 512) : computeUnits * 32;
  const stack = pages(HEADER_BYTES + waves * (isGfx9 ? 8 : 12) + 8);
  const saved = stack + pages(computeUnits * (vector + UNIT_BYTES));
  const debug = Math.ceil((waves * 32) / 64) * 64;
  return { bytes: pages((saved + debug) * xccs), saved, stack };
}
