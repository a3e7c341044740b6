// What the NV device sees of a GPU: memory with an address, two channels that fetch words, and what the
// hardware is. The kernel driver (driver/) gives the real one and the tests a mock; what the words say is for
// commands/. Types only. Every address is below 2^40, where all of the hardware's pointers reach, so a number
// holds it.

import type { GpuRing, HardwareGpu } from "../../runtime/hcq/gpu.ts";

/** A ring whose entries the GPU fetches. */
export interface NVChannel extends GpuRing {
  /** how many entries the ring has; one is always left empty */
  readonly entries: number;
}

/** The classes of the engines, as the driver numbers them. Hopper: c86f, cbc0, c8b5. */
export interface NVClasses {
  readonly channel: number;
  readonly compute: number;
  readonly copy: number;
}

export interface NVGpu extends HardwareGpu {
  /** the compute capability without the point: 90 */
  readonly arch: number;
  readonly classes: NVClasses;
  /**
   * multiprocessors that work; the GPCs, TPCs and SMs below count those that do
   * not too, as local memory has to
   */
  readonly smCount: number;
  readonly gpcs: number;
  readonly tpcsPerGpc: number;
  readonly smsPerTpc: number;
  readonly maxWarpsPerSM: number;
  /** 4 GiB of addresses each that no memory gets: where kernels see shared and local memory */
  readonly sharedWindow: number;
  readonly localWindow: number;

  readonly compute: NVChannel;
  readonly copy: NVChannel;

  /**
   * Hands `dwords` words at `va` to the channel and returns: a ring entry, the new end of the ring, a barrier
   * (what was written to any memory before is seen), the doorbell. Waits only where the ring is
   * full; throws the channel's fault.
   */
  submit(channel: NVChannel, va: number, dwords: number): void;
}
