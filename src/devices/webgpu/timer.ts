// The seconds that one kernel takes, by the GPU's own clock, where it has timestamps. Browsers round them, to
// 100 microseconds unless the page asks for more: a short kernel may take 0. The first rounded time says so.

import { type GpuBuffer, type GpuQuerySet, MAP_READ, USAGE } from "./api.ts";
import type { Dispatch, GpuStream } from "./stream.ts";

const BYTES = 16;
/** What browsers round to, in nanoseconds; Dawn, in Chrome and Node, clears so many bits. */
const STEPS = [100_000n, 1n << 16n];

export class GpuTimer {
  readonly #stream: GpuStream;
  readonly #queries: GpuQuerySet;
  readonly #resolved: GpuBuffer;
  readonly #reader: GpuBuffer;
  #isKnown = false;
  /** one after the other: they share the queries */
  #last: Promise<unknown> = Promise.resolve();

  constructor(stream: GpuStream) {
    this.#stream = stream;
    const { gpu } = stream;
    this.#queries = gpu.createQuerySet({ type: "timestamp", count: 2 });
    this.#resolved = gpu.createBuffer({ size: BYTES, usage: USAGE.QUERY_RESOLVE | USAGE.COPY_SRC });
    this.#reader = gpu.createBuffer({ size: BYTES, usage: USAGE.MAP_READ | USAGE.COPY_DST });
  }

  /** `dispatch` is asked for when it is this one's turn: its variables have their place until the submit. */
  seconds(dispatch: () => Dispatch): Promise<number> {
    const measured = this.#last.then(() => this.#measure(dispatch()));
    this.#last = measured.catch(() => {});
    return measured;
  }
  async #measure(d: Dispatch): Promise<number> {
    const stream = this.#stream;
    stream.timed(d, { querySet: this.#queries, beginningOfPassWriteIndex: 0, endOfPassWriteIndex: 1 });
    stream.command((encoder) => {
      encoder.resolveQuerySet(this.#queries, 0, 2, this.#resolved, 0);
      encoder.copyBufferToBuffer(this.#resolved, 0, this.#reader, 0, BYTES);
    });
    stream.flush();
    await stream.until(this.#reader.mapAsync(MAP_READ, 0, BYTES));
    const [start = 0n, end = 0n] = new BigUint64Array(this.#reader.getMappedRange(0, BYTES));
    this.#reader.unmap();
    this.#noteRounding(start, end);
    return Math.max(0, Number(end - start)) / 1e9;
  }
  #noteRounding(start: bigint, end: bigint): void {
    if (this.#isKnown || start === 0n) return;
    this.#isKnown = true;
    const step = STEPS.find((s) => start % s === 0n && end % s === 0n);
    if (step === undefined) return;
    console.log(
      `${this.#stream.name}: times are rounded to ${Number(step) / 1000} us here; short kernels take 0`,
    );
  }
}
