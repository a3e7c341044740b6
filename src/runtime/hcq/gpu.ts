// What a device that we drive ourselves (hardware.ts) sees of its GPU: memory with an address, two rings that
// the GPU fetches from, its clock, what it stumbled over. The kernel driver of a maker gives the real one and
// the tests a mock. Types only. A number holds every address.

import type { MemorySource } from "./pool.ts";

/** A ring that the GPU fetches from. What it was given runs in order; rings run beside each other. */
export interface GpuRing {
  readonly kind: "compute" | "copy";
  /** How much was handed over and not fetched yet, in whatever unit: it falls while the GPU works. */
  pending(): number;
  /**
   * What the GPU says it stumbled over; undefined while the ring is well. It never
   * gets well again, see `restart`.
   */
  fault(): string | undefined;
}

export interface HardwareGpu extends MemorySource {
  /** as its maker calls it */
  readonly name: string;
  /** bytes of the GPU's memory, whoever uses it */
  readonly totalBytes: number;
  readonly compute: GpuRing;
  readonly copy: GpuRing;
  /**
   * Other rings in place of `compute` and `copy`, after a fault. What they
   * had queued is lost, memory stays.
   */
  restart(): void;
  /** The GPU's clock, the one of the timestamps in signals, and the nanoseconds of its tick. */
  time(): bigint;
  readonly tick: number;
  /** Bytes of the GPU's memory that nobody uses. */
  freeBytes(): number;
  /** Gives everything back: memory, rings, files. What is still running is dropped. */
  close(): void;
}
