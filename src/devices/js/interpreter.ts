// The interpreter of JS: each node of a list becomes an instruction, a function that reads the cells of its
// sources and writes its own, with the meaning that the op's record gives. In goes the list, out comes a
// program that runs a whole grid.

import {
  bitcastValue,
  castValue,
  type DType,
  readValue,
  scalarOf,
  type Value,
  wrap,
  writeValue,
} from "../../dtype.ts";
import { InternalError } from "../../errors.ts";
import { timestamp } from "../../helpers.ts";
import { opRecord } from "../../ops.ts";
import type { Program } from "../../runtime/device.ts";
import type { UOpGraph } from "../../uop/list.ts";
import type { Bitcast, Cast, Expr, Memory, UOp, UOpName } from "../../uop/node.ts";
import { Copies, Shared } from "./memory.ts";
import { type Cell, type Instruction, type Meeting, meetingOf, repacked, runGroup } from "./workgroup.ts";

const lanes = (c: Cell, n: number): readonly Value[] => {
  if (Array.isArray(c)) return c;
  return Array.from({ length: n }, () => c as Value);
};
/** Applies a function of scalars to cells of `n` lanes. */
const lift = (n: number, cells: readonly Cell[], f: (...xs: Value[]) => Value): Cell => {
  if (n === 1) return f(...(cells as Value[]));
  const spread = cells.map((c) => lanes(c, n));
  return Array.from({ length: n }, (_, i) => f(...spread.map((s) => s[i] as Value)));
};
const integer = (c: Cell): number => c as number;

/** Where a node finds things. */
interface Wiring {
  /** its own cell */
  readonly own: number;
  /** the cell of one of its sources */
  cell(source: UOp): number;
  /** the end of the loop or branch that it opens */
  readonly end: number;
  /** the cell that holds the copies of the thread */
  readonly copies: number;
}
type InstructionMaker<K extends UOpName> = (u: UOp<K>, w: Wiring) => Instruction;

const goOn: Instruction = (_, pc) => pc + 1;
const set =
  (i: number, f: (cells: Cell[]) => Cell): Instruction =>
  (cells, pc) => {
    cells[i] = f(cells);
    return pc + 1;
  };
const unsupported = (u: UOp): Instruction => {
  throw new InternalError(`JS does not interpret ${u.op}`);
};
function constant(dtype: DType, value: Value, { own }: Wiring): Instruction {
  const cell = lift(dtype.count, [value], (x) => wrap(scalarOf(dtype), x));
  return set(own, () => cell);
}
function converted(f: typeof castValue, u: Cast | Bitcast, { own, cell }: Wiring): Instruction {
  const source = cell(u.operand);
  const [to, from] = [scalarOf(u.dtype), scalarOf(u.operand.dtype)];
  const [count, before] = [u.dtype.count, u.operand.dtype.count];
  if (count !== before) return set(own, (cells) => repacked(lanes(cells[source], before), from, to));
  return set(own, (cells) => lift(count, [cells[source]], (x) => f(to, x, from)));
}

/** What each node does: reads its sources' cells, writes its own, says where to go on. Exhaustive. */
const INSTRUCTIONS: { readonly [K in UOpName]: InstructionMaker<K> } = {
  // filled in before the start
  DEFINE_GLOBAL: () => goOn,
  DEFINE_VAR: () => goOn,
  CONST: (u, w) => constant(u.dtype, u.value, w),
  DEFINE_ACC: (u, w) => constant(u.dtype, u.initial, w),
  LOOP: (u, { own, cell, end }) => {
    const [from, to] = [cell(u.start), cell(u.end)];
    return (cells, pc) => {
      cells[own] = cells[from];
      return integer(cells[own]) < integer(cells[to]) ? pc + 1 : end + 1;
    };
  },
  ENDLOOP: ({ loop }, { cell }) => {
    const [start, end] = [cell(loop), cell(loop.end)];
    return (cells, pc) => {
      const now = cells[start];
      const next = typeof now === "bigint" ? now + 1n : integer(now) + 1;
      cells[start] = next;
      return next < integer(cells[end]) ? start + 1 : pc + 1;
    };
  },
  IF: (u, { cell, end }) => {
    const condition = cell(u.condition);
    return (cells, pc) => (cells[condition] ? pc + 1 : end + 1);
  },
  ENDIF: () => goOn,
  LOAD: (u, { own, cell }) => {
    const place = placeOf(u.buffer, u.index, cell);
    const { count } = u.dtype;
    if (u.gate === undefined || u.otherwise === undefined)
      return set(own, (cells) => read(cells, place, count));
    const [gate, otherwise] = [cell(u.gate), cell(u.otherwise)];
    return set(own, (cells) => (cells[gate] ? read(cells, place, count) : cells[otherwise]));
  },
  STORE: (u, { cell }) => {
    const place = placeOf(u.buffer, u.index, cell);
    const { count } = u.value.dtype;
    const value = cell(u.value);
    const gate = u.gate && cell(u.gate);
    return (cells, pc) => {
      if (gate === undefined || cells[gate]) write(cells, place, lanes(cells[value], count));
      return pc + 1;
    };
  },
  ALU: (u, { own, cell }) => {
    const { evaluate } = opRecord(u.fn);
    const type = scalarOf(u.operandType);
    const { count } = u.dtype;
    const operands = u.operands.map((x) => cell(x));
    const f = (...xs: Value[]): Value => evaluate(type, ...xs);
    return set(own, (cells) =>
      lift(
        count,
        operands.map((k) => cells[k]),
        f,
      ),
    );
  },
  CAST: (u, w) => converted(castValue, u, w),
  BITCAST: (u, w) => converted(bitcastValue, u, w),
  PHI: (u, { own, cell }) => {
    const [accumulator, value] = [cell(u.accumulator), cell(u.value)];
    return (cells, pc) => {
      cells[accumulator] = cells[own] = cells[value];
      return pc + 1;
    };
  },
  GEP: (u, { own, cell }) => {
    const vector = cell(u.vector);
    return set(own, (cells) => lanes(cells[vector], u.vector.dtype.count)[u.lane]);
  },
  VECTORIZE: (u, { own, cell }) => {
    const scalars = u.lanes.map((x) => cell(x));
    return set(own, (cells) => scalars.map((k) => cells[k] as Value));
  },
  // filled in for each thread
  SPECIAL: () => goOn,
  // filled in for each workgroup; its threads meet at the others (workgroup.ts)
  DEFINE_LOCAL: () => goOn,
  BARRIER: () => goOn,
  SHFL: () => goOn,
  LDMATRIX: () => goOn,
  LDFRAGMENT: () => goOn,
  WMMA: () => goOn,
  ASYNC: (u, { cell, copies }) => {
    const { elements } = u;
    const [from, to] = [placeOf(u.from, u.fromIndex, cell), placeOf(u.to, u.toIndex, cell)];
    const gate = u.gate && cell(u.gate);
    const inside = u.inside && cell(u.inside);
    return (cells, pc) => {
      if (gate !== undefined && !cells[gate]) return pc + 1;
      const [shared, first] = [cells[to.memory] as Shared, integer(cells[to.index])];
      const isInside = inside === undefined || Boolean(cells[inside]);
      const values = lanes(isInside ? read(cells, from, elements) : 0, elements);
      if (first % elements !== 0 || (isInside && integer(cells[from.index]) % elements !== 0))
        throw new InternalError(
          `ASYNC: ${elements} from ${cells[from.index]} to ${first}, both must be multiples`,
        );
      values.forEach((_, l) => void shared.expect(first + l));
      (cells[copies] as Copies).add(() => values.forEach((x, l) => void shared.arrive(first + l, x)));
      return pc + 1;
    };
  },
  COMMIT: (_, { copies }) => {
    return (cells, pc) => {
      (cells[copies] as Copies).commit();
      return pc + 1;
    };
  },
  WAIT: ({ pending }, { copies }) => {
    return (cells, pc) => {
      (cells[copies] as Copies).wait(pending);
      return pc + 1;
    };
  },
  // linearize leaves no op of the graph in a list
  RANGE: unsupported,
  REDUCE: unsupported,
  STAGE: unsupported,
  TILE: unsupported,
  ELEMENT: unsupported,
  SINK: unsupported,
};

function stepOf<K extends UOpName>(u: UOp<K>, w: Wiring): Instruction {
  const make: InstructionMaker<K> = INSTRUCTIONS[u.op as K];
  return make(u, w);
}
function instructions(list: UOpGraph): Instruction[] {
  const ends = new Map<UOp, number>();
  list.uops.forEach((u, i) => {
    if (u.op === "ENDLOOP") ends.set(u.loop, i);
    else if (u.op === "ENDIF") ends.set(u.branch, i);
  });
  const cell = (source: UOp): number => list.indexOf(source);
  return list.uops.map((u, own) => stepOf(u, { own, cell, end: ends.get(u) ?? 0, copies: list.uops.length }));
}

/** The cells that say where in memory something is. */
interface CellAddress {
  readonly type: DType;
  readonly memory: number;
  readonly index: number;
}
const placeOf = (memory: Memory, index: Expr, cell: Wiring["cell"]): CellAddress => ({
  type: memory.dtype.base,
  memory: cell(memory),
  index: cell(index),
});
function read(cells: Cell[], place: CellAddress, count: number): Cell {
  const [view, index] = [cells[place.memory] as DataView | Shared, integer(cells[place.index])];
  const { type } = place;
  if (view instanceof Shared) {
    return count === 1 ? view.read(index) : Array.from({ length: count }, (_, l) => view.read(index + l));
  }
  if (count === 1) return readValue(view, index * type.itemsize, type);
  return Array.from({ length: count }, (_, l) => readValue(view, (index + l) * type.itemsize, type));
}
function write(cells: Cell[], place: CellAddress, values: readonly Value[]): void {
  const [view, index] = [cells[place.memory] as DataView | Shared, integer(cells[place.index])];
  const { type } = place;
  if (view instanceof Shared) values.forEach((x, l) => void view.write(index + l, x));
  else values.forEach((x, l) => void writeValue(view, (index + l) * type.itemsize, type, x));
}

/** The values of the specials, one combination after the other; the last of them is the fastest. */
function* combinations(sizes: readonly number[]): Generator<readonly number[]> {
  const [size, ...rest] = sizes;
  if (size === undefined) return yield [];
  for (let at = 0; at < size; at++) for (const others of combinations(rest)) yield [at, ...others];
}

export function interpreter(list: UOpGraph): Program<Uint8Array> {
  const program = instructions(list);
  const globals = list.globals().toSorted((a, b) => a.position - b.position);
  const vars = list.uops.flatMap((u, i) => (u.op === "DEFINE_VAR" ? [i] : []));
  // gidx0 is the fastest, as on a GPU
  const specials = (letter: string): { i: number; dim: number }[] =>
    list.uops
      .flatMap((u, i) => (u.op === "SPECIAL" && u.name.startsWith(letter) ? [{ i, dim: u.dimension }] : []))
      .sort((a, b) => b.dim - a.dim);
  const [groups, threads] = [specials("g"), specials("l")];
  const locals = list.uops.flatMap((u, i) => (u.op === "DEFINE_LOCAL" ? [{ u, i }] : []));
  const meetings = new Map<number, Meeting>();
  list.uops.forEach((u, i) => {
    const meeting = meetingOf(u, (source) => list.indexOf(source));
    if (meeting !== undefined) meetings.set(i, meeting);
  });
  return {
    run(handles, { vals, globalSize, localSize }, wait) {
      const start = timestamp();
      const cells: Cell[] = new Array(program.length).fill(undefined);
      globals.forEach((u, k) => {
        const h = handles[k] as Uint8Array;
        cells[list.indexOf(u)] = new DataView(h.buffer, h.byteOffset, h.byteLength);
      });
      vars.forEach((i, k) => {
        cells[i] = vals[k];
      });
      const inGroup = [...combinations(threads.map(({ dim }) => localSize[dim] as number))];
      for (const group of combinations(groups.map(({ dim }) => globalSize[dim] as number))) {
        groups.forEach(({ i }, k) => {
          cells[i] = group[k];
        });
        const shared = locals.map(({ u, i }) => {
          const made = new Shared(u.dtype.base, u.elements);
          cells[i] = made;
          return made;
        });
        const each = inGroup.map((indexes) => {
          const own = inGroup.length === 1 ? cells : [...cells];
          threads.forEach(({ i }, k) => {
            own[i] = indexes[k];
          });
          // after the cells of the list: what this thread copies
          own[program.length] = new Copies();
          return own;
        });
        runGroup(program, meetings, each, shared);
      }
      return wait ? (timestamp() - start) / 1000 : undefined;
    },
  };
}
