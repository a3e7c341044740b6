// TC: a sum of products of a matrix by a matrix becomes WMMA, by which the items of a warp multiply small matrices together.
// Lowering has cut two output axes and a reduce axis into the sides of these (`tile` ranges); here they become the items of
// the warp and the elements that each of them holds, as the fragments of the TensorCore say. Operands are read element by
// element, or, with SHARED, by LDMATRIX from shared memory where their rows lie there as it wants them.

import { type DType, dtypes } from "../../dtype.ts";
import { ArgumentError } from "../../errors.ts";
import { range, toposort } from "../../helpers.ts";
import {
  type Fragment,
  type Parts,
  type TensorCore,
  type UOp,
  type UOpArena,
  valueType,
} from "../../uop/uops.ts";
import { affine, replace, toIndex } from "../analysis/affine.ts";
import type { Axis, Lowered } from "../lower/lower.ts";
import type { Target } from "../target.ts";
import { type OptOp, showOpts } from "./opts.ts";
import { loopOf, type Staged, stage } from "./shared.ts";

const { int32, uint8, uint16, uint32 } = dtypes;
/** Elements as they lie in a word, by their size. */
const BITS: Readonly<Record<number, DType>> = { 1: uint8, 2: uint16, 4: uint32 };
/** A row of LDMATRIX, in bytes. */
const ROW = 16;

export function useTensorCores(lowered: Lowered, opts: readonly OptOp[], target: Target): Lowered {
  const tc = opts.find((o) => o.op === "TC");
  const core = tc === undefined ? undefined : target.gpu?.tensorCores[tc.amount];
  if (tc === undefined || core === undefined) return lowered;
  return new Tensors(lowered, opts, tc, core, target.gpu?.warp ?? 1).run();
}

/** An operand as it is in memory, and the sides of its matrix. */
interface Operand {
  readonly value: UOp;
  readonly row: UOp;
  readonly column: UOp;
  readonly fragment: Fragment;
}

class Tensors {
  readonly #lowered: Lowered;
  readonly #arena: UOpArena;
  readonly #opts: readonly OptOp[];
  readonly #tc: OptOp;
  readonly #core: TensorCore;
  readonly #item: { axis: Axis; range: UOp };
  readonly #element: { axis: Axis; range: UOp };

  constructor(...[lowered, opts, tc, core, warp]: [Lowered, readonly OptOp[], OptOp, TensorCore, number]) {
    this.#lowered = lowered;
    this.#arena = lowered.arena;
    this.#opts = opts;
    this.#tc = tc;
    this.#core = core;
    this.#item = this.#axis(lowered.axes.length, "warp", warp);
    this.#element = this.#axis(lowered.axes.length + 1, "upcast", core.c.elements);
  }
  #axis(id: number, kind: Axis["kind"], size: number): { axis: Axis; range: UOp } {
    const ends = [this.#int(0), this.#int(size)];
    return { axis: { id, size, kind, of: -1 }, range: this.#arena.make("RANGE", int32, ends, id) };
  }
  #int(n: number): UOp {
    return this.#arena.constant(int32, n);
  }

  run(): Lowered {
    const { sink, axes, order } = this.#lowered;
    const nodes = toposort([sink], (x) => x.srcs);
    const sides = nodes.filter((u) => u.op === "RANGE" && axes[u.arg]?.kind === "tile");
    const k = sides.find((s) => axes[s.arg as number]?.of === this.#tc.axis);
    const [m, n] = sides
      .filter((s) => s !== k)
      .sort((a, b) => (axes[a.arg as number]?.of ?? 0) - (axes[b.arg as number]?.of ?? 0));
    const sums = nodes.filter((u) => u.op === "REDUCE" && k !== undefined && u.srcs.includes(k));
    const [sum] = sums;
    if (sum === undefined || sums.length !== 1 || m === undefined || n === undefined || k === undefined) {
      return this.#refuse("this reduce is no sum over one loop for each result");
    }
    const { c } = this.#core;
    const product = this.#product(sum as UOp<"REDUCE">, m, n, k);
    const lane = this.#arena.make("ELEMENT", this.#core.to, [product, this.#element.range], undefined);
    const by = new Map([
      [sum, lane],
      [m, this.#index(c.row, this.#element.range)],
      [n, this.#index(c.column, this.#element.range)],
    ]);
    const made = [this.#item.axis, this.#element.axis];
    const changed = replace(sink, by, this.#arena);
    return { ...this.#lowered, sink: changed, axes: [...axes, ...made], order: [...order, this.#item.axis] };
  }
  #refuse(why: string): never {
    throw new ArgumentError(
      `${showOpts([this.#tc])}: ${this.#core.name} does not fit, ${why}; name another step or leave TC out`,
    );
  }

  /** A number out of the item's place in the warp and the number of an element. */
  #index(parts: Parts, element: UOp): UOp {
    const a = this.#arena;
    return parts.reduce((sum, [from, by, size, times]) => {
      const x = from === "lane" ? this.#item.range : element;
      const last = from === "lane" && by * size === (this.#item.axis.size as number);
      const high = a.alu("IDIV", x, this.#int(by));
      const digit = last ? high : a.alu("MOD", high, this.#int(size));
      return a.alu("ADD", sum, a.alu("MUL", digit, this.#int(times)));
    }, this.#int(0));
  }

  /** The elements of the result that an item holds, as a vector. */
  #product(sum: UOp<"REDUCE">, m: UOp, n: UOp, k: UOp): UOp {
    const [body, ...ranges] = sum.srcs as [UOp, ...UOp[]];
    if (sum.arg !== "SUM" || body.op !== "ALU" || body.arg !== "MUL" || sum.dtype !== this.#core.to) {
      const what = body.op === "ALU" ? body.arg : body.op;
      return this.#refuse(
        `it adds up products (MUL) as ${this.#core.to.name} and this is a ${sum.arg} of ${what} as ${valueType(sum).name}`,
      );
    }
    const depends = (u: UOp, r: UOp): boolean => toposort([u], (x) => x.srcs).includes(r);
    const [x, y] = body.srcs as [UOp, UOp];
    const [left, right] = depends(x, m) ? [x, y] : [y, x];
    if (depends(left, n) || depends(right, m) || !depends(left, m) || !depends(right, n)) {
      return this.#refuse("the factors are no rows of one matrix and columns of another");
    }
    const { a, b, to, c } = this.#core;
    const rest = ranges.filter((r) => r !== k);
    const words = [
      this.#operand({ value: this.#narrow(left), row: m, column: k, fragment: a }, rest),
      this.#operand({ value: this.#narrow(right), row: k, column: n, fragment: b }, rest),
    ];
    const one = this.#arena.make("WMMA", to.vec(c.elements), words, this.#core);
    return rest.length === 0 ? one : this.#arena.make("REDUCE", one.dtype, [one, ...rest], "SUM");
  }
  /** The value before it was widened for the sum. */
  #narrow(u: UOp): UOp {
    const { from } = this.#core;
    const value = u.dtype !== from && u.op === "CAST" ? (u.srcs[0] as UOp) : u;
    if (value.dtype !== from)
      this.#refuse(`it multiplies ${from.name} and the factors are ${valueType(value).name}`);
    return value;
  }

  /** The words that an item holds of an operand. */
  #operand(operand: Operand, ranges: readonly UOp[]): UOp {
    const { value, row, column, fragment } = operand;
    const a = this.#arena;
    const shared = this.#opts.find((o) => o.op === "SHARED");
    let read = value;
    if (shared !== undefined && value.op === "LOAD") {
      const loop = loopOf(ranges, shared, this.#lowered);
      const staged = (reader?: "matrices" | "swizzled"): Staged | undefined => {
        const found = stage(value, loop, this.#lowered, shared.amount, reader);
        return found?.offset === 0 ? found : undefined;
      };
      for (const reader of ["swizzled", "matrices"] as const) {
        const found = staged(reader);
        const matrices = found && this.#matrices(operand, found);
        if (matrices !== undefined) return matrices;
      }
      const found = staged();
      if (found === undefined) this.#refuse("with SHARED: an operand is no box of its buffer");
      const at = toIndex({ terms: found.pitches, k: 0 }, a);
      read = a.make("LOAD", value.dtype, [found.tile, at], undefined);
    }
    const { itemsize } = this.#core.from;
    const bits = BITS[itemsize] as DType;
    const elements = range(fragment.elements).map((i) => {
      const [r, c] = [fragment.row, fragment.column].map((p) => this.#index(p, this.#int(i)));
      return a.bitcast(
        replace(
          read,
          new Map([
            [row, r as UOp],
            [column, c as UOp],
          ]),
          a,
        ),
        bits,
      );
    });
    const all = a.make("VECTORIZE", bits.vec(fragment.elements), elements, undefined);
    return a.bitcast(all, uint32.vec((fragment.elements * itemsize) / 4));
  }

  /**
   * A matrix of 8 rows of 16 bytes is a word an item: its row is the item's number by 4, its columns are those of the rest. So
   * each word of the fragment is such a matrix, if the rows of the operand (for b: its columns) lie side by side in shared memory;
   * 16-bit matrices may also lie the other way and be turned. Each item says where one row of one matrix starts. Four are
   * read at once: those of a are below each other, then beside; those of b beside, then of another lane.
   */
  #matrices({ row, column, fragment }: Operand, { tile, pitches }: Staged): UOp | undefined {
    const a = this.#arena;
    const { itemsize } = this.#core.from;
    const isB = fragment === this.#core.b;
    const [outer, inner] = isB ? [column, row] : [row, column];
    const turned = pitches.get(inner) !== 1;
    if (turned && (pitches.get(outer) !== 1 || itemsize !== 2)) return undefined;
    // a row starts at a multiple of its length
    const others = [...pitches].filter(([r]) => r !== (turned ? outer : inner));
    if (others.some(([, p]) => p % (ROW / itemsize) !== 0)) return undefined;
    const words = (fragment.elements * itemsize) / 4;
    const item = this.#item.range;
    const times = (x: UOp, n: number): UOp => a.alu("MUL", x, this.#int(n));
    const [eighth, half] = [8, 16].map((n) => a.alu("IDIV", item, this.#int(n))) as [UOp, UOp];
    const within = a.alu("MOD", item, this.#int(8));
    const below = isB ? this.#int(0) : a.alu("MOD", eighth, this.#int(2));
    const beside = isB ? a.alu("MOD", eighth, this.#int(2)) : half;
    const [first, second] = turned
      ? [times(below, 8), a.alu("ADD", within, times(beside, 8))]
      : [a.alu("ADD", within, times(below, 8)), times(beside, ROW / itemsize)];
    const by = new Map([
      [outer, first],
      [inner, second],
    ]);
    const pair = isB ? this.#pair(outer, pitches) : undefined;
    if (pair !== undefined) by.set(pair, a.alu("ADD", times(a.alu("IDIV", pair, this.#int(2)), 2), half));
    const at = this.#place(tile as UOp<"TILE">, pitches, by, turned ? inner : outer, within);
    if (at === undefined) return undefined;
    const read = a.make("LDMATRIX", uint32.vec(pair === undefined ? words : 2 * words), [tile, at], turned);
    if (pair === undefined) return read;
    const odd = times(a.alu("MOD", pair, this.#int(2)), words);
    const mine = range(words).map((i) =>
      a.make("ELEMENT", uint32, [read, a.alu("ADD", odd, this.#int(i))], undefined),
    );
    return a.make("VECTORIZE", uint32.vec(words), mine, undefined);
  }
  /** Lanes, an even number, that are other columns of b. */
  #pair(side: UOp, pitches: ReadonlyMap<UOp, number>): UOp | undefined {
    const { axes } = this.#lowered;
    const axisOf = (r: UOp): Axis | undefined => axes[r.arg as number];
    const isOther = (a?: Axis): boolean => a?.kind === "upcast" && a.of === axisOf(side)?.of;
    return [...pitches.keys()].find((r) => isOther(axisOf(r)) && (axisOf(r)?.size as number) % 2 === 0);
  }
  /** The place in a tile, where its ranges are replaced; `side` runs over its rows, of which eight are read at once. */
  #place(
    ...[tile, pitches, by, side, within]: [
      UOp<"TILE">,
      ReadonlyMap<UOp, number>,
      ReadonlyMap<UOp, UOp>,
      UOp,
      UOp,
    ]
  ): UOp | undefined {
    const a = this.#arena;
    const sum = (of: (pitch: number) => boolean): UOp => {
      const terms = new Map([...pitches].filter(([, p]) => of(p)));
      return toIndex(affine(replace(toIndex({ terms, k: 0 }, a), by, a)), a);
    };
    const { swizzle } = tile.arg;
    if (swizzle === undefined) return sum(() => true);
    const { unit, pieces, every } = swizzle;
    const period = every * pieces;
    const pitch = period / 8;
    const isEven = [...pitches].every(([r, p]) => p < pitch || p % (r === side ? pitch : period) === 0);
    if (pitches.get(side) !== pitch || !isEven) return undefined;
    const way = a.alu("MUL", a.alu("IDIV", within, this.#int(8 / pieces)), this.#int(unit));
    const moved = a.alu(
      "XOR",
      sum((p) => p % (pieces * unit) !== 0),
      way,
    );
    return a.alu(
      "ADD",
      moved,
      sum((p) => p % (pieces * unit) === 0),
    );
  }
}
