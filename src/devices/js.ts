// JS interprets the list of UOps, one node at a time, with the meaning that the op's record gives. Slow and plain: it
// is the oracle that every other device is compared with.

import type { Renderer } from "../codegen/target.ts";
import { type UOp, UOpGraph, valueType } from "../codegen/uops.ts";
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
import { hostAllocator } from "./ext.ts";

export const JSRenderer: Renderer = {
  name: "JS",
  hasLocal: false,
  globalMax: [],
  localMax: [],
  sharedMax: 0,
  support: () => "native",
  has: () => true,
  saturatingCast: true,
  safeDivision: true,
  render: (_, uops) => uops,
};

/** A scalar, or one value a lane. */
type Cell = Value | readonly Value[] | DataView | undefined;
type Step = (cells: Cell[], pc: number) => number;

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

/** What each node does: reads its sources' cells, writes its own, says where to go on. */
function steps(list: UOpGraph): Step[] {
  const ends = new Map<UOp, number>();
  list.uops.forEach((u, i) => {
    if (u.op === "ENDLOOP" || u.op === "ENDIF") ends.set(u.srcs[0] as UOp, i);
  });
  return list.uops.map((u, i): Step => {
    const at = u.srcs.map((s) => list.indexOf(s));
    const cell = (cells: Cell[], k: number): Cell => cells[at[k] as number];
    const set =
      (f: (cells: Cell[]) => Cell): Step =>
      (cells, pc) => {
        cells[i] = f(cells);
        return pc + 1;
      };
    const jump = ends.get(u) ?? 0;
    switch (u.op) {
      case "DEFINE_GLOBAL":
      case "DEFINE_VAR":
        return (_, pc) => pc + 1; // filled in before the start
      case "CONST":
      case "DEFINE_ACC": {
        const value = lift(valueType(u).count, [u.arg], (x) => wrap(scalarOf(valueType(u)), x));
        return set(() => value);
      }
      case "LOOP":
        return (cells, pc) => {
          cells[i] = cell(cells, 0);
          return (cells[i] as number) < (cell(cells, 1) as number) ? pc + 1 : jump + 1;
        };
      case "ENDLOOP":
        return (cells, pc) => {
          const loop = u.srcs[0] as UOp;
          const next = (cell(cells, 0) as number) + 1;
          cells[at[0] as number] = next;
          return next < (cells[list.indexOf(loop.srcs[1] as UOp)] as number) ? (at[0] as number) + 1 : pc + 1;
        };
      case "IF":
        return (cells, pc) => (cell(cells, 0) ? pc + 1 : jump + 1);
      case "LOAD": {
        const { type, count } = memory(u.srcs[0] as UOp, u);
        return set((cells) =>
          at.length === 4 && !cell(cells, 2) ? cell(cells, 3) : read(cells, cell, type, count),
        );
      }
      case "STORE": {
        const { type, count } = memory(u.srcs[0] as UOp, u.srcs[2] as UOp);
        return (cells, pc) => {
          if (at.length < 4 || cell(cells, 3)) write(cells, cell, type, count);
          return pc + 1;
        };
      }
      case "ALU": {
        const { evaluate } = opRecord(u.arg);
        const d = scalarOf(valueType(u.srcs.at(-1) as UOp));
        return set((cells) =>
          lift(
            valueType(u).count,
            at.map((k) => cells[k]),
            (...xs) => evaluate(d, ...xs),
          ),
        );
      }
      case "CAST":
      case "BITCAST": {
        const [to, from] = [scalarOf(valueType(u)), scalarOf(valueType(u.srcs[0] as UOp))];
        const f = u.op === "CAST" ? castValue : bitcastValue;
        return set((cells) => lift(valueType(u).count, [cell(cells, 0)], (x) => f(to, x, from)));
      }
      case "PHI":
        return (cells, pc) => {
          cells[at[0] as number] = cells[i] = cell(cells, 1);
          return pc + 1;
        };
      case "GEP":
        return set((cells) => (cell(cells, 0) as readonly Value[])[u.arg]);
      case "VECTORIZE":
        return set((cells) => at.map((k) => cells[k] as Value));
      case "ENDIF":
        return (_, pc) => pc + 1;
      default:
        throw new InternalError(`JS does not interpret ${u.op}`);
    }
  });
}

function memory(buf: UOp, value: UOp): { type: DType; count: number } {
  if (!(buf.dtype instanceof Pointer)) throw new InternalError(`${buf.op} is no buffer`);
  return { type: buf.dtype.base, count: valueType(value).count };
}
type Get = (cells: Cell[], k: number) => Cell;
function read(cells: Cell[], cell: Get, type: DType, count: number): Cell {
  const [view, index] = [cell(cells, 0) as DataView, cell(cells, 1) as number];
  if (count === 1) return readValue(view, index * type.itemsize, type);
  return Array.from({ length: count }, (_, l) => readValue(view, (index + l) * type.itemsize, type));
}
function write(cells: Cell[], cell: Get, type: DType, count: number): void {
  const [view, index] = [cell(cells, 0) as DataView, cell(cells, 1) as number];
  lanes(cell(cells, 2), count).forEach((x, l) => void writeValue(view, (index + l) * type.itemsize, type, x));
}

function interpreter(list: UOpGraph): Program<Uint8Array> {
  const program = steps(list);
  const globals = list.globals().sort((a, b) => a.arg[0] - b.arg[0]);
  const vars = list.uops.flatMap((u, i) => (u.op === "DEFINE_VAR" ? [i] : []));
  return {
    run(handles, { vals }, wait) {
      const start = timestamp();
      const cells: Cell[] = new Array(program.length).fill(undefined);
      globals.forEach((u, k) => {
        const h = handles[k] as Uint8Array;
        cells[list.indexOf(u)] = new DataView(h.buffer, h.byteOffset, h.byteLength);
      });
      vars.forEach((i, k) => {
        cells[i] = vals[k];
      });
      for (let pc = 0; pc < program.length; ) pc = (program[pc] as Step)(cells, pc);
      return wait ? (timestamp() - start) / 1000 : undefined;
    },
  };
}

export const open = (name: string): Compiled<Uint8Array> => ({
  name,
  allocator: hostAllocator(name),
  renderer: JSRenderer,
  compile(_, source) {
    if (!(source instanceof UOpGraph)) throw new InternalError("JS runs lists of UOps");
    return interpreter(source);
  },
  synchronize() {},
});
