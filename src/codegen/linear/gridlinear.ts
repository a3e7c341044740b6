// Linearize for kernels that run as a grid: workgroups take the place of the outer loops. What the threads
// of a workgroup do together is in workgrouplinear.ts, which builds on this. A page on WEBGPU loads that with
// the first large kernel, and a page on WASM loads neither.

import { dtypes } from "../../dtype.ts";
import type { AluOp } from "../../ops.ts";
import { add, idiv, type Sint, smax, sprod } from "../../shape/symbolic.ts";
import { isThread } from "../../uop/axis.ts";
import type { Axis, Expr, Store } from "../../uop/node.ts";
import { type Arrangement, type Linearize, Linearizer } from "./linearize.ts";

export class GridLinearizer extends Linearizer {
  /** whether this workgroup is one of the kernel's; undefined: all are */
  #inGrid: Expr | undefined;

  /** Axes that some reduction does not depend on are loops inside the grid. */
  protected override arrange(): Arrangement {
    // the threads of a reduction that was folded away are not needed
    const order = this.lowered.order.filter((a) => a.kind !== "top" || this.ranges.has(a.id));
    const grid = order.filter((a) => isThread(a) || this.isEverywhere(a));
    return { grid, loops: order.filter((a) => !grid.includes(a)) };
  }

  protected override openGrid(axes: readonly Axis[]): void {
    const groups = axes.filter((a) => !isThread(a));
    this.openDims(groups, "gidx", this.globalSize, this.target.globalMax, (specials) =>
      this.inOrder(specials),
    );
  }
  /** The indexes of a workgroup; out come those of the block that it computes. */
  protected inOrder(specials: readonly Expr[]): readonly Expr[] {
    return specials;
  }

  /**
   * Workgroups that are too many for one dimension are folded into rows. Where they do not fill the last row,
   * those beyond the end do what the last one does, and store nothing.
   */
  protected override openDim(axes: readonly Axis[], name: string, sizes: Sint[]): Expr {
    const size = sprod(axes.map((a) => a.size));
    const [most = Infinity] = this.target.globalMax;
    if (name !== "gidx" || smax(size) <= most) return super.openDim(axes, name, sizes);
    const { columns, rows } = foldedGrid(size, most);
    const int = (fn: AluOp, ...xs: Expr[]): Expr => this.list.add("ALU", dtypes.int32, xs, fn);
    const number = (n: number): Expr => this.list.add("CONST", dtypes.int32, [], n);
    const column = this.special(columns, name, sizes);
    const row = this.special(rows, name, sizes);
    const all = int("ADD", int("MUL", row, number(columns)), column);
    if (typeof size === "number" && rows === size / columns) return all;
    const count = axes.map((a) => this.place(this.rangeOf(a).end)).reduce((x, y) => int("MUL", x, y));
    const gate = this.list.add("ALU", dtypes.bool, [all, count], "CMPLT");
    this.know(gate, gate);
    this.#inGrid = gate;
    return int("WHERE", gate, all, int("ADD", count, number(-1)));
  }

  /** A workgroup beyond the end stores nothing. */
  protected override storedOnce(store: Store): Store {
    if (this.#inGrid === undefined) return store;
    const gates = [store.gate, this.#inGrid].filter((g) => g !== undefined);
    return this.arena.store(store.buffer, store.index, store.value, this.arena.and(gates));
  }
}

/**
 * Arranges the workgroups in rows of at most `most`. If no such rows divide them, the last row has a few too
 * many.
 */
export function foldedGrid(size: Sint, most: number): { readonly columns: number; readonly rows: Sint } {
  const least = Math.ceil(smax(size) / most);
  if (typeof size === "number") {
    for (let rows = least; rows <= most && rows < 2 * least; rows++)
      if (size % rows === 0) return { columns: size / rows, rows };
  }
  const columns = Math.ceil(smax(size) / least);
  return { columns, rows: idiv(add(size, columns - 1), columns) };
}

/** For kernels without OptOps: each workgroup is one thread. */
export const linearizeGrid: Linearize = (lowered, opts, target) =>
  new GridLinearizer(lowered, opts, target).run();
