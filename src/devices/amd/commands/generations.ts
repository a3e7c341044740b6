// What differs between AMD's GPUs for those who write packets: numbers of registers, fields that moved,
// limits. From the headers of the Linux driver amdgpu and LLVM's description of the processors.

/** How a generation takes its packets. */
export interface PacketGeneration {
  /** packets of the caches are those of RDNA (GCR), or those of GFX9 (COHER) */
  readonly caches: "gfx9" | "gcr";
  /** the register COMPUTE_PGM_RSRC3 */
  readonly rsrc3: number;
  /** bits that COMPUTE_PGM_RSRC1 gets besides those of the compiler */
  readonly rsrc1: number;
  /** the hardware is told where scratch lies; otherwise the code finds that in scalar registers */
  readonly hasScratchBase: boolean;
  /** bytes that the size of a wavefront's scratch is counted in, and bits of that field */
  readonly scratchUnit: number;
  readonly scratchBits: number;
  /** COMPUTE_TMPRING_SIZE counts wavefronts of a shader engine, or of all of them */
  readonly scratchPerEngine: boolean;
  /** bytes that one packet of the copy engine moves at most */
  readonly longestCopy: number;
  /** what a fence of the copy engine says of its memory: uncached, where it can say that */
  readonly fenceType: number;
}

const GFX9: PacketGeneration = {
  caches: "gfx9",
  rsrc3: 0x2e2d,
  rsrc1: 0,
  hasScratchBase: false,
  scratchUnit: 1024,
  scratchBits: 13,
  scratchPerEngine: false,
  // a little less than its field of 22 bits can say, as the driver has it
  longestCopy: 0x3fffe0,
  fenceType: 0,
};
/** Wavefronts can be saved by the kernel driver only with the bit PRIV. */
const PRIV = 1 << 20;
const GFX11: PacketGeneration = {
  caches: "gcr",
  rsrc3: 0x2e28,
  rsrc1: PRIV,
  hasScratchBase: true,
  scratchUnit: 256,
  scratchBits: 15,
  scratchPerEngine: true,
  longestCopy: 2 ** 30,
  fenceType: 3 << 16,
};
const GFX942: PacketGeneration = { ...GFX9, hasScratchBase: true, longestCopy: 2 ** 30 };
const GFX12: PacketGeneration = { ...GFX11, rsrc1: 0, scratchBits: 18 };

/** By the name of the instruction set. */
export const GENERATIONS: Readonly<Record<string, PacketGeneration>> = {
  gfx90a: GFX9,
  gfx942: GFX942,
  gfx1100: GFX11,
  gfx1101: GFX11,
  gfx1102: GFX11,
  gfx1200: GFX12,
  gfx1201: GFX12,
};
