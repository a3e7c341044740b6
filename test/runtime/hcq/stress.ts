// Random work on a device that we drive ourselves, over both queues, with a host that runs ahead: kernels
// alone and in chains, copies whole and in parts, host writes, memory given back and taken again; twins in
// JavaScript say what must be there. For the mock in CI and, with 100,000 submissions, for a GPU
// (hardware.test.ts).

import type { HardwareBlock } from "../../../src/runtime/hcq/gpumemory.ts";
import type { HardwareDevice } from "../../../src/runtime/hcq/hardware.ts";
import type { HCQProgram } from "../../../src/runtime/hcq/program.ts";
import { Random } from "../../shape/random.ts";
import { scaleUops } from "./kernels.ts";

const FACTORS = [
  [3, 1],
  [-1, 7],
  [65537, -5],
  [1, 0x1234567],
] as const;
/** Numbers in a buffer: pieces of shared blocks, and one with memory of its own. */
const SIZES = [1, 7, 64, 64, 256, 256, 1000, 1000, 1024, 4096, 300_000, 300_000];
/** Large ones are used seldom: the twins take longer than the GPU. */
const LARGE = 10_000;

interface Twin {
  block: HardwareBlock;
  values: Int32Array;
}
interface Kernel {
  readonly program: HCQProgram;
  readonly factor: number;
  readonly plus: number;
}

export class Stress {
  readonly #device: HardwareDevice;
  readonly #random: Random;
  #kernels: Kernel[] = [];
  readonly #twins: Twin[] = [];
  submissions = 0;
  checks = 0;

  constructor(device: HardwareDevice, seed: number) {
    this.#device = device;
    this.#random = new Random(seed);
  }

  async run(submissions: number): Promise<void> {
    const { renderer } = this.#device;
    for (const [i, [factor, plus]] of FACTORS.entries()) {
      const name = `stress${i}`;
      const source = renderer.render(name, scaleUops(factor, plus));
      this.#kernels.push({ program: (await this.#device.compile(name, source)) as HCQProgram, factor, plus });
    }
    for (const size of SIZES) this.#twins.push(this.#make(size));
    while (this.submissions < submissions) await this.#step();
    for (const twin of this.#twins) await this.#check(twin);
  }
  /** Gives all memory back. */
  async end(): Promise<void> {
    await this.#device.synchronize();
    for (const { block } of this.#twins.splice(0)) this.#device.allocator.free(block);
    this.#kernels = [];
    this.#device.drain();
  }

  #make(size: number): Twin {
    this.submissions++;
    return { block: this.#device.allocator.alloc(size * 4, true), values: new Int32Array(size) };
  }

  async #step(): Promise<void> {
    const r = this.#random;
    const small = this.#twins.filter(({ values }) => values.length < LARGE);
    const among = r.chance(1) ? this.#twins : small;
    const [a, b] = [r.pick(among), r.pick(among)];
    const what = r.int(0, 99);
    if (what < 40) this.#kernel(a, b);
    else if (what < 55)
      this.#chain(Array.from({ length: r.int(2, 6) }, () => [r.pick(small), r.pick(small)]));
    else if (what < 75) this.#copy(a, b);
    else if (what < 80) this.#copyParts(a, b);
    else if (what < 92) this.#write(a);
    else if (what < 95) this.#renew(a);
    else await this.#check(a);
  }

  /** What a launch does to the twins; gives how many numbers it is for. */
  #apply({ factor, plus }: Kernel, to: Twin, from: Twin): number {
    const n = Math.min(to.values.length, from.values.length);
    for (let i = 0; i < n; i++) to.values[i] = Math.imul(from.values[i] as number, factor) + plus;
    return n;
  }
  #kernel(to: Twin, from: Twin): void {
    const kernel = this.#random.pick(this.#kernels);
    const n = this.#apply(kernel, to, from);
    kernel.program.run([to.block, from.block], { globalSize: [n], localSize: [1], vals: [] }, false);
    this.submissions++;
  }
  /** Several kernels in one submission, which follow each other without the host. */
  #chain(pairs: readonly (readonly Twin[])[]): void {
    const device = this.#device;
    const value = device.nextTimelineValue();
    const queue = device
      .computeQueue()
      .wait(device.timelineSignal, value - 1)
      .memoryBarrier();
    const args = pairs.map(([to, from]) => {
      const kernel = this.#random.pick(this.#kernels);
      const n = this.#apply(kernel, to as Twin, from as Twin);
      const kernargs = kernel.program.allocKernargs([(to as Twin).block, (from as Twin).block], []);
      queue.exec(kernel.program, kernargs, [n], [1]);
      return kernargs;
    });
    queue.signal(device.timelineSignal, value).submit(device);
    for (const kernargs of args) kernargs.free();
    this.submissions++;
  }
  #copy(to: Twin, from: Twin): void {
    if (to === from) return;
    const n = Math.min(to.values.length, from.values.length);
    to.values.set(from.values.subarray(0, n));
    this.#device.allocator.transfer(to.block, from.block, n * 4);
    this.submissions++;
  }
  #copyParts(to: Twin, from: Twin): void {
    if (to === from) return;
    const device = this.#device;
    const { allocator } = device;
    const value = device.nextTimelineValue();
    const queue = device.copyQueue().wait(device.timelineSignal, value - 1);
    for (let part = this.#random.int(1, 4); part > 0; part--) {
      const [at, source] = [to, from].map(({ values }) => this.#random.int(0, values.length - 1)) as [
        number,
        number,
      ];
      const n = this.#random.int(1, Math.min(to.values.length - at, from.values.length - source));
      to.values.set(from.values.subarray(source, source + n), at);
      queue.copy(
        allocator.offset(to.block, n * 4, at * 4),
        allocator.offset(from.block, n * 4, source * 4),
        n * 4,
      );
    }
    queue.signal(device.timelineSignal, value).submit(device);
    this.submissions++;
  }
  #write(to: Twin): void {
    for (let i = 0; i < to.values.length; i++) to.values[i] = this.#random.int(-1e6, 1e6);
    this.#device.allocator.copyin(to.block, new Uint8Array(to.values.buffer));
    this.submissions++;
  }
  /**
   * Memory that work in flight may still read is given back, and other memory taken, which reads as zeros.
   */
  #renew(twin: Twin): void {
    this.#device.allocator.free(twin.block);
    Object.assign(twin, this.#make(twin.values.length));
  }
  async #check({ block, values }: Twin): Promise<void> {
    const bytes = new Uint8Array(values.byteLength);
    await this.#device.allocator.copyout(bytes, block);
    const got = new Int32Array(bytes.buffer);
    const at = got.findIndex((x, i) => x !== values[i]);
    if (at >= 0) {
      throw new Error(
        `after ${this.submissions} submissions number ${at} of ${values.length} is ${got[at]}, not ${values[at]}`,
      );
    }
    this.checks++;
  }
}
