// A kernel on the GPU: its image in the GPU's memory, the QMD that every launch begins with, and its
// arguments in constant bank 0, behind the words that the driver would put there (sizes, windows of shared
// and local memory).

import { DeviceError } from "../../../errors.ts";
import { type WordArgs, WordProgram } from "../../../runtime/hcq/wordargs.ts";
import { high, low } from "../../../runtime/hcq/words.ts";
import type { NVDevice } from "../device.ts";
import type { Cubin } from "./cubin.ts";
import { carveout, maxBlocks, type Qmd, qmdFor, type Size } from "./qmd.ts";

/** Words of bank 0 that compiled code reads: sizes of block and grid, windows, the end of the stack. */
const BANK0 = { block: 0, grid: 3, sharedWindow: 6, localWindow: 8, stack: 10 } as const;
const STACK_END = 0xfffdc0;
/**
 * The stack grows down from there; what is above it, to the end of the 16 MiB that a
 * thread can address, is the system's.
 */
const BEHIND_STACK = 2 ** 24 - STACK_END;
/** Of a block's shared memory, for the system. Since Hopper the compiler counts it. */
const RESERVED_SHARED = 1024;
const SHARED_STEP = 128;
/**
 * Enough for all blocks of kernels that use none: an SM that is divided anew
 * between two kernels has to be empty.
 */
const USUAL_SHARED = 32 * 1024;
const REGISTERS_OF_SM = 65536;
const MAX_THREADS = 1024;

export class NVProgram extends WordProgram {
  readonly name: string;
  readonly device: NVDevice;
  readonly cubin: Cubin;
  readonly #template: Qmd;
  /** bytes of shared memory a block */
  readonly #shared: number;
  protected readonly offsets: readonly number[];
  /** bank 0 without arguments */
  readonly blank: Int32Array;

  /** `dynamicShared`: bytes of shared memory a block besides those that the cubin says. */
  constructor(device: NVDevice, name: string, cubin: Cubin, dynamicShared: number) {
    super();
    this.name = name;
    this.device = device;
    this.cubin = cubin;
    this.offsets = cubin.parameters.map((p) => p.offset);
    const local = cubin.local === 0 ? 0 : Math.ceil((cubin.local + BEHIND_STACK) / 16) * 16;
    device.growLocal(local);
    const code = device.keep(this, cubin.image.byteLength);
    cubin.relocate(code.va);
    code.words.set(new Int32Array(padded(cubin.image).buffer));
    const { arch } = device.gpu;
    const shared = arch >= 90 ? Math.max(RESERVED_SHARED, cubin.shared) : RESERVED_SHARED + cubin.shared;
    this.#shared = Math.ceil((shared + dynamicShared) / SHARED_STEP) * SHARED_STEP;
    this.#template = qmdFor({
      va: code.va + cubin.entry,
      codeBytes: cubin.codeBytes,
      registers: cubin.registers,
      barriers: cubin.barriers,
      shared: this.#shared,
      local,
      arch,
    });
    for (const [bank, { offset, size }] of cubin.banks) this.#template.constant(bank, code.va + offset, size);
    this.blank = new Int32Array(padded(cubin.constant0).buffer);
    const { sharedWindow, localWindow } = device.gpu;
    const head = new Int32Array([low(sharedWindow), high(sharedWindow), low(localWindow), high(localWindow)]);
    this.blank.set(head, BANK0.sharedWindow);
    this.blank[BANK0.stack] = STACK_END;
  }

  /** The QMD of a launch with these arguments, which has no size yet. */
  qmd(kernargs: WordArgs): Qmd {
    const qmd = this.#template.copy();
    qmd.constant(0, kernargs.va, this.blank.byteLength);
    return qmd;
  }
  setSize(qmd: Qmd, kernargs: WordArgs, globalSize: readonly number[], localSize: readonly number[]): void {
    const [grid, block] = [threeOf(globalSize), threeOf(localSize)];
    const threads = block[0] * block[1] * block[2];
    const { registers, maxThreads = MAX_THREADS } = this.cubin;
    const perThread = Math.ceil(registers / 8) * 8;
    const most = Math.min(maxThreads, Math.floor(REGISTERS_OF_SM / perThread / 32) * 32);
    if (threads > most || threads === 0) {
      throw new DeviceError(
        `${this.device.name}: kernel ${this.name} takes blocks of 1 to ${most} threads (${registers} registers each), ` +
          `not of ${block.join(" × ")}; a smaller local size is needed`,
      );
    }
    const warps = Math.ceil(threads / 32);
    const { arch, maxWarpsPerSM } = this.device.gpu;
    const blocks = Math.min(
      maxBlocks(arch),
      Math.floor(maxWarpsPerSM / warps),
      Math.floor(REGISTERS_OF_SM / (perThread * 32 * warps)),
    );
    qmd.size(grid, block, carveout(arch, Math.max(USUAL_SHARED, blocks * this.#shared)));
    kernargs.set(BANK0.block, block);
    kernargs.set(BANK0.grid, grid);
  }
}

const threeOf = ([x = 1, y = 1, z = 1]: readonly number[]): Size => [x, y, z];

/** A whole number of 16 bytes, what constant banks are measured in. */
function padded(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(Math.ceil(bytes.byteLength / 16) * 16);
  whole.set(bytes);
  return whole;
}
