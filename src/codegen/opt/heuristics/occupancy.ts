// How many threads and workgroups a compute unit of a GPU has at once: what registers, shared memory and the
// machine's own limits leave room for. In go the figures of the target and what a workgroup takes, out comes
// a number.

import type { Gpu } from "../../target.ts";

/** Registers of a thread for addresses, counters and the like. */
const ADDRESSES = 30;
/** Registers are allocated to a thread in units of this many. */
const GRANULE = 8;

/** Threads of a workgroup where nothing speaks for another number: about eight workgroups fill a unit. */
export const workgroupThreads = (gpu: Gpu): number => 2 ** Math.round(Math.log2(gpu.threadsPerUnit / 8));

/** Registers of a thread with this many accumulators and words of operands. */
export const registersOf = (accumulators: number, operands: number): number =>
  Math.ceil((accumulators + operands + ADDRESSES) / GRANULE) * GRANULE;

/** Workgroups for which a compute unit has registers, at least 1; `registers` are those of a thread. */
export function workgroupsByRegisters(gpu: Gpu, threads: number, registers: number): number {
  const perScheduler = gpu.registersPerUnit / gpu.schedulers / gpu.warp;
  const warpsPerScheduler = gpu.threadsPerUnit / gpu.warp / gpu.schedulers;
  const warps = gpu.schedulers * Math.min(warpsPerScheduler, Math.floor(perScheduler / registers));
  const fitting = Math.floor(warps / Math.ceil(threads / gpu.warp));
  return Math.max(1, Math.min(gpu.workgroupsPerUnit, fitting));
}

/** Workgroups for which a compute unit has threads and shared memory; 0 where not even one fits. */
export function workgroupsByRoom(gpu: Gpu, threads: number, sharedBytes: number): number {
  const warps = Math.ceil(threads / gpu.warp);
  return Math.min(
    Math.floor(gpu.sharedPerUnit / (sharedBytes + gpu.sharedReserved)),
    Math.floor(gpu.threadsPerUnit / (gpu.warp * warps)),
  );
}
