// What the threads of a workgroup share, as JS has it: memory that notes who touched what since the last
// barrier, so that a kernel that would only work by luck on a GPU fails here, and copies that are under way.

import { type DType, readValue, type Value, writeValue } from "../../dtype.ts";
import { InternalError } from "../../errors.ts";

/** Touched by several threads. */
const MANY = -2;

/** Memory of one workgroup. It starts as NaN, as a GPU's may. */
export class Shared {
  readonly #type: DType;
  readonly #view: DataView;
  readonly #writer: Int32Array;
  readonly #reader: Int32Array;
  /** where copies are under way: they may land at any time */
  readonly #awaited: Uint8Array;
  /** the thread that runs now */
  thread = 0;

  constructor(type: DType, size: number) {
    this.#type = type;
    this.#view = new DataView(new Uint8Array(size * type.itemsize).fill(0xff).buffer);
    this.#writer = new Int32Array(size).fill(-1);
    this.#reader = new Int32Array(size).fill(-1);
    this.#awaited = new Uint8Array(size);
  }
  /** A copy to here starts. */
  expect(index: number): void {
    this.#claim(index);
    this.#awaited[index] = 1;
  }
  /** And ends. */
  arrive(index: number, value: Value): void {
    this.#awaited[index] = 0;
    this.write(index, value);
  }
  read(index: number): Value {
    const writer = this.#writer[index];
    if (writer === undefined) throw new InternalError(`shared memory has no element ${index}`);
    if (writer !== -1 && writer !== this.thread) this.#race(index, "reads what another wrote");
    if (this.#awaited[index] === 1) this.#race(index, "reads what is being copied");
    const reader = this.#reader[index] as number;
    this.#reader[index] = reader === -1 || reader === this.thread ? this.thread : MANY;
    return readValue(this.#view, index * this.#type.itemsize, this.#type);
  }
  write(index: number, value: Value): void {
    this.#claim(index);
    writeValue(this.#view, index * this.#type.itemsize, this.#type, value);
  }
  #claim(index: number): void {
    const [writer, reader] = [this.#writer[index], this.#reader[index]];
    if (writer === undefined) throw new InternalError(`shared memory has no element ${index}`);
    if (writer !== -1 && writer !== this.thread) this.#race(index, "writes what another wrote");
    if (reader !== -1 && reader !== this.thread) this.#race(index, "writes what another read");
    if (this.#awaited[index] === 1) this.#race(index, "writes what is being copied");
    this.#writer[index] = this.thread;
  }
  /** After a barrier everything may be touched by everyone. */
  settle(): void {
    this.#writer.fill(-1);
    this.#reader.fill(-1);
  }
  #race(index: number, what: string): never {
    throw new InternalError(
      `thread ${this.thread} ${what} at ${index} of shared memory, without a barrier between`,
    );
  }
}

/**
 * The copies of one thread that are under way: they end when it waits for them, which is the latest that they
 * may on a GPU.
 */
export class Copies {
  #batches: (() => void)[][] = [];
  #next: (() => void)[] = [];

  add(copy: () => void): void {
    this.#next.push(copy);
  }
  commit(): void {
    this.#batches.push(this.#next);
    this.#next = [];
  }
  /** All but the last `left` batches. */
  wait(left: number): void {
    const count = Math.max(0, this.#batches.length - left);
    for (const copy of this.#batches.splice(0, count).flat()) copy();
  }
}
