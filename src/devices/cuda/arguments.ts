// The arguments of a kernel as the driver takes them: one block of host memory, buffers first, then
// variables, behind a list that says where the block is and how long. Written in place: a launch or a graph's
// update reads it during its call.

/**
 * What the list is made of: CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE, CU_LAUNCH_PARAM_END.
 */
const [POINTER, SIZE, END] = [1n, 2n, 0n];
/** The list has five words, then comes the size that it points to. */
const HEAD = 6 * 8;

export class KernelArguments {
  /** the address of the list: `extra` of cuLaunchKernel */
  readonly extra: number;
  readonly #words: Uint32Array;
  readonly #vals: Int32Array;
  readonly #size: BigUint64Array;

  /** Room for this many arguments. */
  static bytes(buffers: number, vals: number): number {
    return HEAD + 8 * (buffers + Math.ceil(vals / 2));
  }

  /**
   * `memory` lies at `address`; the arguments lie in it from `offset` on, `bytes` of them with their list.
   */
  constructor(memory: ArrayBuffer, address: number, offset: number, bytes: number) {
    this.extra = address + offset;
    const block = offset + HEAD;
    const list = [POINTER, BigInt(address + block), SIZE, BigInt(this.extra + 40), END];
    new BigUint64Array(memory, offset, 5).set(list);
    this.#size = new BigUint64Array(memory, offset + 40, 1);
    this.#words = new Uint32Array(memory, block, (bytes - HEAD) / 4);
    this.#vals = new Int32Array(memory, block, (bytes - HEAD) / 4);
  }

  /** How many there are; the variables come after the buffers. */
  resize(buffers: number, vals: number): void {
    this.#size[0] = BigInt(8 * buffers + 4 * vals);
  }
  setBuffer(i: number, address: number): void {
    this.#words[2 * i] = address >>> 0;
    this.#words[2 * i + 1] = Math.floor(address / 2 ** 32);
  }
  /** The i-th variable of a kernel with this many buffers. */
  setVal(buffers: number, i: number, value: number): void {
    this.#vals[2 * buffers + i] = value;
  }
}
