// Memory for what one submission needs: its stream and the arguments of its kernels. Handed out in order from
// two halves; a half is used again when everything that was submitted from it is done.

import { InternalError } from "../../errors.ts";

/** What transient memory asks of its device. */
interface TransientHost {
  alloc(nbytes: number): number;
  /** the bytes of a half */
  readonly half: number;
  /** what every address is a multiple of: a power of two */
  readonly align: number;
  /** a point that all submissions so far come before */
  mark(): () => boolean;
  block(done: () => boolean): void;
}

export class Transient {
  readonly #host: TransientHost;
  #start = 0;
  #used: number;
  #half = 1;
  /** whether the work of each half is done */
  readonly #passed: (() => boolean)[] = [() => true, () => true];

  constructor(host: TransientHost) {
    this.#host = host;
    this.#used = host.half;
  }

  /** The most that can be had at once. */
  get half(): number {
    return this.#host.half;
  }

  /** `more`: what will be asked for next lies in the same half, if it is no larger than this. */
  alloc(nbytes: number, more = 0): number {
    const { half, align } = this.#host;
    const size = (nbytes + align - 1) & -align;
    if (size + more > half) throw new InternalError(`${nbytes} bytes of transient memory, of ${half}`);
    if (this.#used + size + more > half) this.#swapHalves();
    const at = this.#start + this.#half * half + this.#used;
    this.#used += size;
    return at;
  }
  #swapHalves(): void {
    if (this.#start === 0) this.#start = this.#host.alloc(2 * this.half);
    else this.#passed[this.#half] = this.#host.mark();
    this.#half = 1 - this.#half;
    const passed = this.#passed[this.#half] as () => boolean;
    if (!passed()) this.#host.block(passed);
    this.#used = 0;
  }
}
