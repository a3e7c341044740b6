// What the process has done and holds: kernels, operations, bytes moved, bytes allocated by device. Tests
// watch these to count kernels and to see that memory is given back.

class Counters {
  /** kernels that ran */
  kernelCount = 0;
  /** copies, transfers and reads that ran */
  copyCount = 0;
  /** operations (FLOP and integer) of all kernels so far */
  globalOps = 0;
  /** bytes that kernels and copies had to move */
  globalMem = 0;
  timeSumS = 0;
  /** bytes held on all devices now */
  memUsed = 0;
  /** bytes of freed memory that are kept for the next buffer of their size; not part of `memUsed` */
  memCached = 0;
  /** the most bytes held at once so far, since the last `reset` */
  memPeak = 0;
  /** live allocations now */
  buffers = 0;
  readonly #byDevice = new Map<string, number>();

  /** Bytes held now, by device. */
  get memByDevice(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#byDevice);
  }
  /** Bytes held on one device now. */
  memUsedOn(device: string): number {
    return this.#byDevice.get(device) ?? 0;
  }
  allocated(device: string, nbytes: number, buffers: 1 | -1): void {
    this.memUsed += nbytes * buffers;
    this.memPeak = Math.max(this.memPeak, this.memUsed);
    this.buffers += buffers;
    this.#byDevice.set(device, this.memUsedOn(device) + nbytes * buffers);
  }
  /** Forgets the work done; what is allocated stays counted. */
  reset(): void {
    this.memPeak = this.memUsed;
    this.kernelCount = this.copyCount = this.globalOps = this.globalMem = this.timeSumS = 0;
  }
}

/** Kernels, copies, operations and bytes of this process. */
export const GlobalCounters = new Counters();
