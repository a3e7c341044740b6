// Workgroups on JS: the items of a group run one after the other up to the next place where they meet (a barrier, an
// exchange of values), then on from there. Shared memory notes who touched what since the last barrier, so a kernel that
// would only work by luck on a GPU fails here. js.ts makes the steps and starts groups.

import { type DType, dtypes, readValue, type Value, writeValue } from "../dtype.ts";
import { InternalError } from "../errors.ts";
import { sum } from "../helpers.ts";
import { elementOf, type Fragment, type Parts, type UOp, type UOpName, valueType } from "../uop/uops.ts";

/** A scalar, or one value a lane. */
export type Cell = Value | readonly Value[] | DataView | Shared | Copies | undefined;
export type Instruction = (cells: Cell[], pc: number) => number;
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
  /** where copies are under way: they may land at any time */
  readonly #awaited: Uint8Array;
  /** the item that runs now */
  item = 0;

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
    if (writer !== -1 && writer !== this.item) this.#race(index, "reads what another wrote");
    if (this.#awaited[index] === 1) this.#race(index, "reads what is being copied");
    const reader = this.#reader[index] as number;
    this.#reader[index] = reader === -1 || reader === this.item ? this.item : MANY;
    return readValue(this.#view, index * this.#type.itemsize, this.#type);
  }
  write(index: number, value: Value): void {
    this.#claim(index);
    writeValue(this.#view, index * this.#type.itemsize, this.#type, value);
  }
  #claim(index: number): void {
    const [writer, reader] = [this.#writer[index], this.#reader[index]];
    if (writer === undefined) throw new InternalError(`shared memory has no element ${index}`);
    if (writer !== -1 && writer !== this.item) this.#race(index, "writes what another wrote");
    if (reader !== -1 && reader !== this.item) this.#race(index, "writes what another read");
    if (this.#awaited[index] === 1) this.#race(index, "writes what is being copied");
    this.#writer[index] = this.item;
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

/** The copies of one item that are under way: they end when it waits for them, which is the latest that they may on a GPU. */
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

/** The same bytes as other values: words as the elements in them, and back. */
export function repacked(values: readonly Value[], from: DType, to: DType): Value[] {
  const view = new DataView(new ArrayBuffer(values.length * from.itemsize));
  values.forEach((x, i) => void writeValue(view, i * from.itemsize, from, x));
  const count = view.byteLength / to.itemsize;
  return Array.from({ length: count }, (_, i) => readValue(view, i * to.itemsize, to));
}

/** The ops at which items meet. */
const WARP = 32;
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
  LDMATRIX: (u, i, at) =>
    eachWarp((items, first, shared) => {
      const [memory, place] = at as [number, number];
      const words = valueType(u).count;
      const type = elementOf(u);
      const perRow = 16 / type.itemsize;
      // a row is four words; item 8 * j + r says where row r of matrix j is
      const rows = Array.from({ length: 8 * words }, (_, k) => {
        const cells = items[k] as Cell[];
        for (const s of shared) s.item = first + k;
        if ((cells[place] as number) % perRow !== 0)
          throw new InternalError(
            `LDMATRIX: a row at ${cells[place]} does not start at a multiple of ${perRow}`,
          );
        const values = Array.from({ length: perRow }, (_, l) =>
          (cells[memory] as Shared).read((cells[place] as number) + l),
        );
        return repacked(values, type, u.arg ? dtypes.uint16 : dtypes.uint32) as number[];
      });
      items.forEach((cells, lane) => {
        const [row, column] = [lane >> 2, lane % 4];
        cells[i] = Array.from({ length: words }, (_, j) => {
          const half = (k: number): number => rows[8 * j + 2 * column + k]?.[row] as number;
          return u.arg ? half(0) + half(1) * 65536 : (rows[8 * j + row]?.[column] as number);
        });
      });
    }),
  WMMA: (u, i, at) =>
    eachWarp((items) => {
      const { m, n, k, a, b, c, from, ignored, to } = u.arg;
      const matrix = (
        source: number | undefined,
        fragment: Fragment,
        type: DType,
        width: number,
      ): Float64Array => {
        const whole = new Float64Array(
          type === from && fragment !== c ? (fragment === a ? m * k : k * n) : m * n,
        );
        items.forEach((cells, lane) => {
          if (source === undefined) return;
          const held = cells[source] as readonly Value[];
          const words = held.map((x) => (fragment === c ? x : (Number(x) >>> ignored) * 2 ** ignored));
          const values = fragment === c ? held : repacked(words, dtypes.uint32, from);
          values.forEach((x, e) => {
            whole[digits(fragment.row, lane, e) * width + digits(fragment.column, lane, e)] = Number(x);
          });
        });
        return whole;
      };
      const [x, y, z] = [matrix(at[0], a, from, k), matrix(at[1], b, from, n), matrix(at[2], c, to, n)];
      items.forEach((cells, lane) => {
        cells[i] = Array.from({ length: c.elements }, (_, e) => {
          const [row, column] = [digits(c.row, lane, e), digits(c.column, lane, e)];
          let total = z[row * n + column] as number;
          for (let j = 0; j < k; j++)
            total = Math.fround(total + (x[row * k + j] as number) * (y[j * n + column] as number));
          return total;
        });
      });
    }),
};

/** A meeting of each warp by itself; `first` is the number of its first item. */
function eachWarp(
  meet: (items: readonly Cell[][], first: number, shared: readonly Shared[]) => void,
): Meeting {
  return (items, shared) => {
    for (let first = 0; first < items.length; first += WARP) {
      const warp = items.slice(first, first + WARP);
      if (warp.length < WARP) throw new InternalError(`a warp of ${warp.length} items, expected ${WARP}`);
      meet(warp, first, shared);
    }
  };
}
/** A row or column of a fragment. */
const digits = (parts: Parts, lane: number, element: number): number =>
  sum(
    parts.map(
      ([from, by, size, times]) => (Math.floor((from === "lane" ? lane : element) / by) % size) * times,
    ),
  );

/** Runs all items of one group. A step where they meet is done for all of them at once. */
export function runGroup(
  program: readonly Instruction[],
  meetings: ReadonlyMap<number, Meeting>,
  items: readonly Cell[][],
  shared: readonly Shared[],
): void {
  if (meetings.size === 0) {
    items.forEach((cells, item) => {
      for (const s of shared) s.item = item;
      for (let pc = 0; pc < program.length; ) pc = (program[pc] as Instruction)(cells, pc);
    });
    return;
  }
  let start = 0;
  for (;;) {
    const stops = items.map((cells, item) => {
      for (const s of shared) s.item = item;
      let pc = start;
      while (pc < program.length && !meetings.has(pc)) pc = (program[pc] as Instruction)(cells, pc);
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
