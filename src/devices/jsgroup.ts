// Workgroups on JS: the items of a group run one after the other up to the next place where they meet (a barrier, an
// exchange of values), then on from there. Shared memory notes who touched what since the last barrier, so a kernel that
// would only work by luck on a GPU fails here. js.ts makes the steps and starts groups.

import type { UOp, UOpName } from "../codegen/uops.ts";
import type { DType, Value } from "../dtype.ts";
import { readValue, writeValue } from "../dtype.ts";
import { InternalError } from "../errors.ts";

/** A scalar, or one value a lane. */
export type Cell = Value | readonly Value[] | DataView | Shared | undefined;
export type Step = (cells: Cell[], pc: number) => number;
/** What happens when all items of a group have come to one place; they are in the order of lidx, lidx0 the fastest. */
export type Meeting = (items: readonly Cell[][], shared: readonly Shared[]) => void;

/** Touched by several items. */
const MANY = -2;

/** Memory of one workgroup. It starts as NaN, as a GPU's may. */
export class Shared {
  readonly #type: DType;
  readonly #view: DataView;
  readonly #writer: Int32Array;
  readonly #reader: Int32Array;
  /** the item that runs now */
  item = 0;

  constructor(type: DType, size: number) {
    this.#type = type;
    this.#view = new DataView(new Uint8Array(size * type.itemsize).fill(0xff).buffer);
    this.#writer = new Int32Array(size).fill(-1);
    this.#reader = new Int32Array(size).fill(-1);
  }
  read(index: number): Value {
    const writer = this.#writer[index];
    if (writer === undefined) throw new InternalError(`shared memory has no element ${index}`);
    if (writer !== -1 && writer !== this.item) this.#race(index, "reads what another wrote");
    const reader = this.#reader[index] as number;
    this.#reader[index] = reader === -1 || reader === this.item ? this.item : MANY;
    return readValue(this.#view, index * this.#type.itemsize, this.#type);
  }
  write(index: number, value: Value): void {
    const [writer, reader] = [this.#writer[index], this.#reader[index]];
    if (writer === undefined) throw new InternalError(`shared memory has no element ${index}`);
    if (writer !== -1 && writer !== this.item) this.#race(index, "writes what another wrote");
    if (reader !== -1 && reader !== this.item) this.#race(index, "writes what another read");
    this.#writer[index] = this.item;
    writeValue(this.#view, index * this.#type.itemsize, this.#type, value);
  }
  /** After a barrier everything may be touched by everyone. */
  settle(): void {
    this.#writer.fill(-1);
    this.#reader.fill(-1);
  }
  #race(index: number, what: string): never {
    throw new InternalError(
      `item ${this.item} ${what} at ${index} of shared memory, without a barrier between`,
    );
  }
}

/** The ops at which items meet. */
export const MEETINGS: {
  readonly [K in UOpName]?: (u: UOp<K>, i: number, at: readonly number[]) => Meeting;
} = {
  BARRIER: () => (_, shared) => {
    for (const s of shared) s.settle();
  },
  SHFL: (u, i, at) => (items) => {
    const values = items.map((cells) => cells[at[0] as number]);
    items.forEach((cells, lane) => {
      const partner = lane ^ u.arg;
      if (partner >= items.length) throw new InternalError(`SHFL ${u.arg}: item ${lane} has no partner`);
      cells[i] = values[partner];
    });
  },
};

/** Runs all items of one group. A step where they meet is done for all of them at once. */
export function runGroup(
  program: readonly Step[],
  meetings: ReadonlyMap<number, Meeting>,
  items: readonly Cell[][],
  shared: readonly Shared[],
): void {
  if (meetings.size === 0) {
    items.forEach((cells, item) => {
      for (const s of shared) s.item = item;
      for (let pc = 0; pc < program.length; ) pc = (program[pc] as Step)(cells, pc);
    });
    return;
  }
  let start = 0;
  for (;;) {
    const stops = items.map((cells, item) => {
      for (const s of shared) s.item = item;
      let pc = start;
      while (pc < program.length && !meetings.has(pc)) pc = (program[pc] as Step)(cells, pc);
      return pc;
    });
    const stop = stops[0] as number;
    const other = stops.find((pc) => pc !== stop);
    if (other !== undefined) {
      throw new InternalError(`some items of a workgroup meet at step ${stop}, others at ${other}`);
    }
    const meeting = meetings.get(stop);
    if (meeting === undefined) return;
    meeting(items, shared);
    start = stop + 1;
  }
}
