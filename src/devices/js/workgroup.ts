// Workgroups on JS: the threads of a group run one after the other up to the next place where they meet (a
// barrier, an exchange of values, a product of matrices), then on from there. interpreter.ts makes the
// instructions and starts groups.

import { type DType, dtypes, readValue, type Value, writeValue } from "../../dtype.ts";
import { InternalError } from "../../errors.ts";
import { range, sum } from "../../helpers.ts";
import { elementOf } from "../../uop/list.ts";
import { type Digits, type Fragment, warpOf } from "../../uop/matrix.ts";
import type { LoadFragment, LoadMatrix, MatrixMultiply, Shuffle, UOp } from "../../uop/node.ts";
import type { Copies, Shared } from "./memory.ts";

/** A scalar, or one value a lane. */
export type Cell = Value | readonly Value[] | DataView | Shared | Copies | undefined;
export type Instruction = (cells: Cell[], pc: number) => number;
/**
 * What happens when all threads of a group have come to one place; they are in the order of lidx, lidx0 the
 * fastest.
 */
export type Meeting = (threads: readonly Cell[][], shared: readonly Shared[]) => void;

/** The same bytes as other values: words as the elements in them, and back. */
export function repacked(values: readonly Value[], from: DType, to: DType): Value[] {
  const view = new DataView(new ArrayBuffer(values.length * from.itemsize));
  values.forEach((x, i) => void writeValue(view, i * from.itemsize, from, x));
  const count = view.byteLength / to.itemsize;
  return Array.from({ length: count }, (_, i) => readValue(view, i * to.itemsize, to));
}

/** Of the hardware that has LDMATRIX. */
const WARP = 32;
type CellOf = (source: UOp) => number;
/** What happens at this node when all threads have come to it; undefined: they do not meet there. */
export function meetingOf(u: UOp, cell: CellOf): Meeting | undefined {
  switch (u.op) {
    case "BARRIER":
      return (_, shared) => {
        for (const s of shared) s.settle();
      };
    case "SHFL":
      return exchange(u, cell);
    case "LDMATRIX":
      return loadMatrices(u, cell);
    case "LDFRAGMENT":
      return loadFragment(u, cell);
    case "WMMA":
      return multiply(u, cell);
    default:
      return undefined;
  }
}

function exchange(u: Shuffle, cell: CellOf): Meeting {
  const [own, operand] = [cell(u), cell(u.operand)];
  return (threads) => {
    const values = threads.map((cells) => cells[operand]);
    threads.forEach((cells, lane) => {
      const partner = lane ^ u.mask;
      if (partner >= threads.length) throw new InternalError(`SHFL ${u.mask}: thread ${lane} has no partner`);
      cells[own] = values[partner];
    });
  };
}

function loadMatrices(u: LoadMatrix, cell: CellOf): Meeting {
  const [own, memory, index] = [cell(u), cell(u.buffer), cell(u.index)];
  const words = u.dtype.count;
  const type = elementOf(u);
  const perRow = 16 / type.itemsize;
  return eachWarp(WARP, (threads, first, shared) => {
    // a row is four words; thread 8 * j + r says where row r of matrix j is
    const rows = threads.slice(0, 8 * words).map((cells, k) => {
      for (const s of shared) s.thread = first + k;
      const [array, start] = [cells[memory] as Shared, cells[index] as number];
      if (start % perRow !== 0)
        throw new InternalError(`LDMATRIX: a row at ${start} does not start at a multiple of ${perRow}`);
      const values = Array.from({ length: perRow }, (_, l) => array.read(start + l));
      return repacked(values, type, u.isTransposed ? dtypes.uint16 : dtypes.uint32) as number[];
    });
    threads.forEach((cells, lane) => {
      const [row, column] = [lane >> 2, lane % 4];
      cells[own] = Array.from({ length: words }, (_, j) => {
        const half = (k: number): number => rows[8 * j + 2 * column + k]?.[row] as number;
        return u.isTransposed ? half(0) + half(1) * 65536 : (rows[8 * j + row]?.[column] as number);
      });
    });
  });
}

function loadFragment(u: LoadFragment, cell: CellOf): Meeting {
  const [own, memory, index] = [cell(u), cell(u.buffer), cell(u.index)];
  const { core, side, pitch, isTransposed } = u.operandLoad;
  const { elements, row, column } = core[side];
  return eachWarp(warpOf(core), (threads, first, shared) => {
    const start = threads[0]?.[index] as number;
    threads.forEach((cells, lane) => {
      if (cells[index] !== start)
        throw new InternalError(`LDFRAGMENT: thread ${lane} names ${cells[index]}, the first ${start}`);
      for (const s of shared) s.thread = first + lane;
      const values = range(elements).map((e) => {
        const [r, c] = [positionOf(row, lane, e), positionOf(column, lane, e)];
        return (cells[memory] as Shared).read(start + (isTransposed ? c * pitch + r : r * pitch + c));
      });
      cells[own] = repacked(values, core.from, dtypes.uint32);
    });
  });
}

function multiply(u: MatrixMultiply, cell: CellOf): Meeting {
  const { m, n, k, a, b, c, from, ignored } = u.core;
  const own = cell(u);
  const [left, right, before] = [cell(u.a), cell(u.b), u.c && cell(u.c)];
  /** What the threads of a warp hold, as rows of `width`. */
  const gather = (
    threads: readonly Cell[][],
    fragment: Fragment,
    [height, width]: readonly [number, number],
    valuesOf: (cells: Cell[]) => readonly Value[],
  ): Float64Array => {
    const whole = new Float64Array(height * width);
    threads.forEach((cells, lane) => {
      valuesOf(cells).forEach((x, e) => {
        whole[positionOf(fragment.row, lane, e) * width + positionOf(fragment.column, lane, e)] = Number(x);
      });
    });
    return whole;
  };
  const operand = (source: number) => (cells: Cell[]) => {
    const words = (cells[source] as readonly Value[]).map((x) => (Number(x) >>> ignored) * 2 ** ignored);
    return repacked(words, dtypes.uint32, from);
  };
  const sums = (cells: Cell[]) => (before === undefined ? [] : (cells[before] as readonly Value[]));
  return eachWarp(warpOf(u.core), (threads) => {
    const x = gather(threads, a, [m, k], operand(left));
    const y = gather(threads, b, [k, n], operand(right));
    const z = gather(threads, c, [m, n], sums);
    threads.forEach((cells, lane) => {
      cells[own] = Array.from({ length: c.elements }, (_, e) => {
        const [row, column] = [positionOf(c.row, lane, e), positionOf(c.column, lane, e)];
        let total = z[row * n + column] as number;
        for (let j = 0; j < k; j++)
          total = Math.fround(total + (x[row * k + j] as number) * (y[j * n + column] as number));
        return total;
      });
    });
  });
}

/** A meeting of each warp of `size` threads by itself; `first` is the number of its first thread. */
function eachWarp(
  size: number,
  meet: (threads: readonly Cell[][], first: number, shared: readonly Shared[]) => void,
): Meeting {
  return (threads, shared) => {
    for (let first = 0; first < threads.length; first += size) {
      const warp = threads.slice(first, first + size);
      if (warp.length < size) throw new InternalError(`a warp of ${warp.length} threads, expected ${size}`);
      meet(warp, first, shared);
    }
  };
}
/** A row or column of a fragment. */
const positionOf = (digits: Digits, lane: number, element: number): number =>
  sum(
    digits.map(
      ([from, by, size, times]) => (Math.floor((from === "lane" ? lane : element) / by) % size) * times,
    ),
  );

/** Runs all threads of one group. A step where they meet is done for all of them at once. */
export function runGroup(
  program: readonly Instruction[],
  meetings: ReadonlyMap<number, Meeting>,
  threads: readonly Cell[][],
  shared: readonly Shared[],
): void {
  if (meetings.size === 0) {
    threads.forEach((cells, thread) => {
      for (const s of shared) s.thread = thread;
      for (let pc = 0; pc < program.length; ) pc = (program[pc] as Instruction)(cells, pc);
    });
    return;
  }
  let start = 0;
  for (;;) {
    const stops = threads.map((cells, thread) => {
      for (const s of shared) s.thread = thread;
      let pc = start;
      while (pc < program.length && !meetings.has(pc)) pc = (program[pc] as Instruction)(cells, pc);
      return pc;
    });
    const stop = stops[0] as number;
    const other = stops.find((pc) => pc !== stop);
    if (other !== undefined) {
      throw new InternalError(`some threads of a workgroup meet at step ${stop}, others at ${other}`);
    }
    const meeting = meetings.get(stop);
    if (meeting === undefined) return;
    meeting(threads, shared);
    start = stop + 1;
  }
}
