// A kernel on the GPU: its image in the GPU's memory, and the packets that start it. What does not change
// between launches (registers, scratch, where its code is) is made once; a launch adds the address of its
// arguments and its sizes.

import { DeviceError, InternalError } from "../../../errors.ts";
import { WordProgram } from "../../../runtime/hcq/wordargs.ts";
import { high, low } from "../../../runtime/hcq/words.ts";
import type { AMDDevice } from "../device.ts";
import type { Hsaco } from "./hsaco.ts";
import { acquireMemory, dispatch, REGISTERS, setRegisters, waitIdle } from "./pm4.ts";

/** Code lies at multiples of this, which the register leaves out. */
const CODE_STEP = 256;
/** LDS of a workgroup is given in such steps, in a field of COMPUTE_PGM_RSRC2. */
const [LDS_STEP, LDS_SHIFT] = [512, 15];
const ARGUMENT_STEP = 16;

/** Scratch memory for all wavefronts there can be, and COMPUTE_TMPRING_SIZE. */
export interface Scratch {
  readonly va: number;
  readonly nbytes: number;
  readonly perThread: number;
  readonly size: number;
}

/** What the code of GFX9 finds scratch by: 32 bits an element, swizzled by thread. */
const DESCRIPTOR_SWIZZLE = 2 ** 31;
const DESCRIPTOR_FORMAT =
  4 | (5 << 3) | (6 << 6) | (7 << 9) | (4 << 12) | (4 << 15) | (1 << 19) | (3 << 21) | (1 << 23);

type Extent = readonly [number, number, number];
const threeOf = ([x = 1, y = 1, z = 1]: readonly number[]): Extent => [x, y, z];

export class AMDProgram extends WordProgram {
  readonly name: string;
  readonly device: AMDDevice;
  readonly hsaco: Hsaco;
  protected readonly offsets: readonly number[];
  readonly blank: Int32Array;
  readonly #fixed: readonly number[];
  /** what the code finds in its first scalar registers, before the address of the arguments */
  readonly #scalars: readonly number[];

  constructor(device: AMDDevice, name: string, hsaco: Hsaco) {
    super();
    this.name = name;
    this.device = device;
    this.hsaco = hsaco;
    this.offsets = hsaco.offsets;
    this.blank = new Int32Array((Math.ceil(hsaco.kernargBytes / ARGUMENT_STEP) * ARGUMENT_STEP) / 4);
    const scratch = hsaco.scratch === 0 ? undefined : device.scratchFor(hsaco.scratch);
    const code = device.upload(this, hsaco.image) + hsaco.entry;
    if (code % CODE_STEP !== 0)
      throw new InternalError(`kernel ${name}: its code lies at 0x${code.toString(16)}`);
    this.#fixed = this.#registers(code, scratch);
    this.#scalars = this.#scratchScalars(scratch);
  }

  #registers(code: number, scratch: Scratch | undefined): number[] {
    const { generation } = this.device.gpu;
    const [rsrc1, rsrc2, rsrc3] = this.hsaco.rsrc;
    const lds = Math.ceil(this.hsaco.shared / LDS_STEP) << LDS_SHIFT;
    const base = (scratch?.va ?? 0) / CODE_STEP;
    return [
      ...setRegisters(REGISTERS.PGM_LO, low(code / CODE_STEP), high(code / CODE_STEP)),
      ...setRegisters(REGISTERS.PGM_RSRC1, rsrc1 | generation.rsrc1, rsrc2 | lds),
      ...setRegisters(generation.rsrc3, rsrc3),
      ...setRegisters(REGISTERS.TMPRING_SIZE, scratch?.size ?? 0),
      ...(generation.hasScratchBase ? setRegisters(REGISTERS.SCRATCH_BASE_LO, low(base), high(base)) : []),
      ...setRegisters(REGISTERS.RESTART_X, 0, 0, 0),
      ...setRegisters(REGISTERS.RESOURCE_LIMITS, 0),
    ];
  }
  #scratchScalars(scratch: Scratch | undefined): number[] {
    const { wantsScratchDescriptor, wantsScratchAddress } = this.hsaco;
    const [va, nbytes] = [scratch?.va ?? 0, scratch?.nbytes ?? 0];
    return [
      ...(wantsScratchDescriptor
        ? [low(va), high(va) + DESCRIPTOR_SWIZZLE, Math.min(nbytes, 0xffffffff), DESCRIPTOR_FORMAT]
        : []),
      ...(wantsScratchAddress ? [low(va), high(va)] : []),
    ];
  }

  /**
   * Starts it when the caches next to the compute units forget what they have, and waits until it is done.
   */
  launch(argumentsAt: number, globalSize: readonly number[], localSize: readonly number[]): number[] {
    const [grid, block] = [threeOf(globalSize), threeOf(localSize)];
    const threads = block[0] * block[1] * block[2];
    const { maxThreads, isWave32 } = this.hsaco;
    if (threads > maxThreads || threads < 1) {
      throw new DeviceError(
        `${this.device.name}: kernel ${this.name} takes workgroups of 1 to ${maxThreads} threads, not of ` +
          `${block.join(" × ")}; a smaller local size is needed`,
      );
    }
    const scalars = [...this.#scalars, low(argumentsAt), high(argumentsAt)];
    return [
      ...acquireMemory(this.device.gpu.generation, "near"),
      ...this.#fixed,
      ...setRegisters(REGISTERS.USER_DATA_0, ...scalars),
      ...setRegisters(REGISTERS.START_X, 0, 0, 0, ...block, 0, 0),
      ...dispatch(grid, isWave32),
      ...waitIdle(),
    ];
  }
}
