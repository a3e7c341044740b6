// What the AMD device sees of a GPU: memory with an address, a compute and a copy ring that take words, and
// what the hardware is. The kernel driver (driver/) gives it; what the words say is for commands/. Types
// only.

import type { HardwareGpu } from "../../runtime/hcq/gpu.ts";
import type { PacketGeneration } from "./commands/generations.ts";

export interface AMDGpu extends HardwareGpu {
  /** the instruction set: gfx1100 */
  readonly arch: string;
  readonly generation: PacketGeneration;
  /** those that one queue uses, of one XCC; threads of a wavefront */
  readonly computeUnits: number;
  readonly wave: number;
  readonly shaderEngines: number;
  /** wavefronts of a compute unit that can have scratch memory at the same time */
  readonly scratchSlots: number;

  /**
   * Hands words to a ring and returns: they are in the ring, a barrier (what was written to any memory before
   * is seen), the new end of the ring, the doorbell. Waits only where the ring is full; throws the GPU's
   * fault.
   */
  submit(kind: "compute" | "copy", words: ArrayLike<number>): void;
}
