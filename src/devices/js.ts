// JS interprets the list of UOps, one node at a time, with the meaning that the op's record gives. Slow and plain: it
// is the oracle that every other device is compared with.

import type { Renderer } from "../codegen/target.ts";
import {
  bitcastValue,
  castValue,
  type DType,
  Pointer,
  readValue,
  scalarOf,
  type Value,
  wrap,
  writeValue,
} from "../dtype.ts";
import { InternalError } from "../errors.ts";
import { timestamp } from "../helpers.ts";
import { opRecord } from "../ops.ts";
import type { Compiled, Program } from "../runtime/device.ts";
import { elementOf, type UOp, UOpGraph, type UOpName, valueType } from "../uop/uops.ts";
import { hostAllocator } from "./ext.ts";
import {
  type Cell,
  Copies,
  type Instruction,
  MEETINGS,
  type Meeting,
  repacked,
  runGroup,
  Shared,
} from "./jsgroup.ts";

export const JSRenderer: Renderer = {
  name: "JS",
  hasLocal: false,
  hasThreads: false,
  globalMax: [],
  localMax: [],
  sharedMax: 1 << 16,
  maxBuffers: 500,
  support: () => "native",
  has: () => true,
  saturatingCast: true,
  safeDivision: true,
  simd: undefined,
  gpu: undefined,
  render: (_, uops) => uops,
};

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

/** Where a node finds things: its own cell, those of its sources, the end of what it opens. */
interface Wiring {
  readonly i: number;
  readonly at: readonly number[];
  readonly jump: number;
  readonly list: UOpGraph;
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
const fixed: InstructionMaker<"CONST" | "DEFINE_ACC"> = (u, { i }) => {
  const value = lift(valueType(u).count, [u.arg], (x) => wrap(scalarOf(valueType(u)), x));
  return set(i, () => value);
};
const converted =
  (f: typeof castValue): InstructionMaker<"CAST" | "BITCAST"> =>
  (u, { i, at }) => {
    const src = at[0] as number;
    const [to, from] = [scalarOf(valueType(u)), scalarOf(valueType(u.srcs[0] as UOp))];
    const [count, before] = [valueType(u).count, valueType(u.srcs[0] as UOp).count];
    if (count !== before) return set(i, (cells) => repacked(lanes(cells[src], before), from, to));
    return set(i, (cells) => lift(count, [cells[src]], (x) => f(to, x, from)));
  };

/** What each node does: reads its sources' cells, writes its own, says where to go on. Exhaustive. */
const INSTRUCTIONS: { readonly [K in UOpName]: InstructionMaker<K> } = {
  // filled in before the start
  DEFINE_GLOBAL: () => goOn,
  DEFINE_VAR: () => goOn,
  CONST: fixed,
  DEFINE_ACC: fixed,
  LOOP: (_, { i, at, jump }) => {
    const [from, to] = at as [number, number];
    return (cells, pc) => {
      cells[i] = cells[from];
      return (cells[i] as number) < (cells[to] as number) ? pc + 1 : jump + 1;
    };
  },
  ENDLOOP: (u, { at, list }) => {
    const loop = at[0] as number;
    const end = list.indexOf((u.srcs[0] as UOp).srcs[1] as UOp);
    return (cells, pc) => {
      const next = (cells[loop] as number) + 1;
      cells[loop] = next;
      return next < (cells[end] as number) ? loop + 1 : pc + 1;
    };
  },
  IF: (_, { at, jump }) => {
    const condition = at[0] as number;
    return (cells, pc) => (cells[condition] ? pc + 1 : jump + 1);
  },
  ENDIF: () => goOn,
  LOAD: (u, { i, at }) => {
    const { type, count } = memory(u.srcs[0] as UOp, u);
    const [, , gate, other] = at;
    if (gate === undefined || other === undefined) return set(i, (cells) => read(cells, at, type, count));
    return set(i, (cells) => (cells[gate] ? read(cells, at, type, count) : cells[other]));
  },
  STORE: (u, { at }) => {
    const { type, count } = memory(u.srcs[0] as UOp, u.srcs[2] as UOp);
    const gate = at[3];
    return (cells, pc) => {
      if (gate === undefined || cells[gate]) write(cells, at, type, count);
      return pc + 1;
    };
  },
  ALU: (u, { i, at }) => {
    const { evaluate } = opRecord(u.arg);
    const d = scalarOf(valueType(u.srcs.at(-1) as UOp));
    const { count } = valueType(u);
    const f = (...xs: Value[]): Value => evaluate(d, ...xs);
    return set(i, (cells) =>
      lift(
        count,
        at.map((k) => cells[k]),
        f,
      ),
    );
  },
  CAST: converted(castValue),
  BITCAST: converted(bitcastValue),
  PHI: (_, { i, at }) => {
    const [acc, value] = at as [number, number];
    return (cells, pc) => {
      cells[acc] = cells[i] = cells[value];
      return pc + 1;
    };
  },
  GEP: (u, { i, at }) => {
    const src = at[0] as number;
    return set(i, (cells) => (cells[src] as readonly Value[])[u.arg]);
  },
  VECTORIZE: (_, { i, at }) => set(i, (cells) => at.map((k) => cells[k] as Value)),
  // filled in for each work item
  SPECIAL: () => goOn,
  // filled in for each workgroup; its items meet at the others (jsgroup.ts)
  DEFINE_LOCAL: () => goOn,
  BARRIER: () => goOn,
  SHFL: () => goOn,
  LDMATRIX: () => goOn,
  WMMA: () => goOn,
  ASYNC: (u, { at, list }) => {
    const [to, place, from, index, gate] = at as [number, number, number, number, number?];
    const type = elementOf({ ...u, srcs: u.srcs.slice(2) } as UOp);
    const copies = list.uops.length;
    return (cells, pc) => {
      if (gate !== undefined && !cells[gate]) return pc + 1;
      const [shared, first] = [cells[to] as Shared, cells[place] as number];
      const values = lanes(read(cells, [from, index], type, u.arg), u.arg);
      if (first % u.arg !== 0 || (cells[index] as number) % u.arg !== 0)
        throw new InternalError(`ASYNC: ${u.arg} from ${cells[index]} to ${first}, both must be multiples`);
      values.forEach((_, l) => void shared.expect(first + l));
      (cells[copies] as Copies).add(() => values.forEach((x, l) => void shared.arrive(first + l, x)));
      return pc + 1;
    };
  },
  COMMIT: (_, { list }) => {
    const copies = list.uops.length;
    return (cells, pc) => {
      (cells[copies] as Copies).commit();
      return pc + 1;
    };
  },
  WAIT: (u, { list }) => {
    const copies = list.uops.length;
    return (cells, pc) => {
      (cells[copies] as Copies).wait(u.arg);
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

function instructions(list: UOpGraph): Instruction[] {
  const ends = new Map<UOp, number>();
  list.uops.forEach((u, i) => {
    if (u.op === "ENDLOOP" || u.op === "ENDIF") ends.set(u.srcs[0] as UOp, i);
  });
  return list.uops.map((u, i) => {
    const at = u.srcs.map((s) => list.indexOf(s));
    return (INSTRUCTIONS[u.op] as InstructionMaker<UOpName>)(u, { i, at, jump: ends.get(u) ?? 0, list });
  });
}

function memory(buf: UOp, value: UOp): { type: DType; count: number } {
  if (!(buf.dtype instanceof Pointer)) throw new InternalError(`${buf.op} is no buffer`);
  return { type: buf.dtype.base, count: valueType(value).count };
}
function read(cells: Cell[], at: readonly number[], type: DType, count: number): Cell {
  const [view, index] = [cells[at[0] as number] as DataView | Shared, cells[at[1] as number] as number];
  if (view instanceof Shared) {
    return count === 1 ? view.read(index) : Array.from({ length: count }, (_, l) => view.read(index + l));
  }
  if (count === 1) return readValue(view, index * type.itemsize, type);
  return Array.from({ length: count }, (_, l) => readValue(view, (index + l) * type.itemsize, type));
}
function write(cells: Cell[], at: readonly number[], type: DType, count: number): void {
  const [view, index] = [cells[at[0] as number] as DataView | Shared, cells[at[1] as number] as number];
  if (view instanceof Shared) {
    lanes(cells[at[2] as number], count).forEach((x, l) => void view.write(index + l, x));
    return;
  }
  lanes(cells[at[2] as number], count).forEach(
    (x, l) => void writeValue(view, (index + l) * type.itemsize, type, x),
  );
}

/** The values of the specials, one combination after the other; the last of them is the fastest. */
function* combinations(sizes: readonly number[]): Generator<readonly number[]> {
  const [size, ...rest] = sizes;
  if (size === undefined) return yield [];
  for (let at = 0; at < size; at++) for (const others of combinations(rest)) yield [at, ...others];
}

function interpreter(list: UOpGraph): Program<Uint8Array> {
  const program = instructions(list);
  const globals = list.globals().toSorted((a, b) => a.arg[0] - b.arg[0]);
  const vars = list.uops.flatMap((u, i) => (u.op === "DEFINE_VAR" ? [i] : []));
  // gidx0 is the fastest, as on a GPU
  const specials = (letter: string): { i: number; dim: number }[] =>
    list.uops
      .flatMap((u, i) => (u.op === "SPECIAL" && u.arg[1].startsWith(letter) ? [{ i, dim: u.arg[0] }] : []))
      .sort((a, b) => b.dim - a.dim);
  const [groups, items] = [specials("g"), specials("l")];
  const locals = list.uops.flatMap((u, i) => (u.op === "DEFINE_LOCAL" ? [{ u, i }] : []));
  const meetings = new Map<number, Meeting>();
  list.uops.forEach((u, i) => {
    const make = MEETINGS[u.op] as ((u: UOp, i: number, at: readonly number[]) => Meeting) | undefined;
    const at = u.srcs.map((s) => list.indexOf(s));
    if (make !== undefined) meetings.set(i, make(u, i, at));
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
      const inGroup = [...combinations(items.map(({ dim }) => localSize[dim] as number))];
      for (const group of combinations(groups.map(({ dim }) => globalSize[dim] as number))) {
        groups.forEach(({ i }, k) => {
          cells[i] = group[k];
        });
        const shared = locals.map(({ u, i }) => {
          const made = new Shared((u.dtype as Pointer).base, u.arg[1]);
          cells[i] = made;
          return made;
        });
        const each = inGroup.map((item) => {
          const own = inGroup.length === 1 ? cells : [...cells];
          items.forEach(({ i }, k) => {
            own[i] = item[k];
          });
          // after the cells of the list: what this item copies
          own[program.length] = new Copies();
          return own;
        });
        runGroup(program, meetings, each, shared);
      }
      return wait ? (timestamp() - start) / 1000 : undefined;
    },
  };
}

export const open = (name: string): Compiled<Uint8Array> => ({
  name,
  allocator: hostAllocator(name),
  renderer: JSRenderer,
  keepsTime: false,
  space: undefined,
  timeline: undefined,
  graph: undefined,
  compilesAside: false,
  compile(_, source) {
    if (!(source instanceof UOpGraph)) throw new InternalError("JS runs lists of UOps");
    return interpreter(source);
  },
  synchronize() {},
});
