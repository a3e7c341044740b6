// TC (tensor cores): a sum of products of a matrix by a matrix becomes WMMA, by which the threads of a warp
// multiply small matrices together. Lowering has split two output axes and a reduction axis into the sides of
// these (`tile` ranges); here they become the threads of the warp and the elements that each of them holds,
// as the fragments of the TensorCore say. Operands are read element by element, or, with SHARED, by LDMATRIX
// from shared memory if their layout there allows it.

import { type DType, dtypes } from "../../dtype.ts";
import { ArgumentError } from "../../errors.ts";
import { range, toposort } from "../../helpers.ts";
import { smax } from "../../shape/symbolic.ts";
import type { UOpArena } from "../../uop/arena.ts";
import type { Digits, Fragment, TensorCore } from "../../uop/matrix.ts";
import type { Expr, Range, Reduce, UOp } from "../../uop/node.ts";
import { substitute } from "../../uop/substitute.ts";
import { affine, toIndex } from "../analysis/affine.ts";
import { gatedContractionOf, rowsAndColumns } from "../analysis/contraction.ts";
import type { KernelGraph } from "../lower/lower.ts";
import type { Gpu, Target } from "../target.ts";
import { computedTile } from "./computedtile.ts";
import { isExactEnough } from "./mma.ts";
import { type OptOp, showOpts } from "./opts.ts";
import { constantAxes, type OptDoc, type OptRecord } from "./record.ts";
import { type CopyLoop, loopOf, type Reader, type TiledLoad, tileOf } from "./shared.ts";
import { axisOrder } from "./swap.ts";

const { uint8, uint16, uint32 } = dtypes;
/** The integers that have the bits of an element, by its size. */
const bitsOf = (itemsize: number): DType => (itemsize === 1 ? uint8 : itemsize === 2 ? uint16 : uint32);
/** The words that a thread holds of a matrix. */
const wordsOf = ({ elements }: Fragment, { itemsize }: DType): DType => uint32.vec((elements * itemsize) / 4);
/** A row of LDMATRIX, in bytes, and what the rows of an opaque operand start at a multiple of. */
const ROW = 16;

export const TC_DOC: OptDoc = {
  textbook: "tensor cores (matrix multiply-accumulate instructions)",
  summary:
    "Warps multiply small matrices in one instruction: the reduce axis, and the last two output axes. With SHARED " +
    "the operands come from shared memory.",
  picture: `
for i: for j: for k:
  c[i, j] += a[i, k] * b[k, j]        TC(2, core=0)
for each tile of 16 x 8 results: for k in steps of 16:
  warp: C += A * B, in one instruction`,
};

export const TC: OptRecord<"TC"> = {
  name: "TC",
  params: {
    axis: { meaning: "the reduce axis of a sum of products", least: 0 },
    core: { meaning: "the number of a tensor core in the target's list", least: 0 },
  },
  takes: "reduce",
  expected: "the number of a tensor core in the target's list",
  once: true,
  candidates: (kernel, { target }) => {
    const cores = target.gpu?.tensorCores ?? [];
    return constantAxes(kernel, "reduce").flatMap(({ axis }) =>
      cores.flatMap((c, core) => (isExactEnough(c) ? [{ op: "TC", axis, core } as const] : [])),
    );
  },
  tiles: tensorCoreSides,
  transform(graph, opt, { opts, target }) {
    const { gpu } = target;
    const core = gpu?.tensorCores[opt.core];
    if (gpu === undefined || core === undefined) return graph;
    return new TensorCores(graph, { opts, tc: opt, core, gpu }).run();
  },
};

/** TC takes the last two output axes, as SWAP leaves them, and the reduce axis that it names. */
function tensorCoreSides(
  outputs: number,
  tc: OptOp<"TC">,
  { name, gpu }: Target,
  opts: readonly OptOp[],
): Map<number, number> {
  const core = gpu?.tensorCores[tc.core];
  if (core === undefined || outputs < 2 || tc.axis < outputs) {
    const cores = gpu?.tensorCores.map((c, i) => `${i} ${c.name}`).join(", ");
    throw new ArgumentError(
      `${showOpts([tc])}: expected a reduce axis of a kernel with two output axes, and a tensor core of ${name}: ` +
        (cores || "it has none"),
    );
  }
  if (!isExactEnough(core)) {
    throw new ArgumentError(
      `${showOpts([tc])}: ${core.name} ignores the last ${core.ignored} bits of its factors; expected a tensor core ` +
        "that is exact. Set ALLOW_TF32=1, or leave TC out",
    );
  }
  const [m = 0, n = 1] = axisOrder(opts, outputs).slice(-2);
  return new Map([
    [m, core.m],
    [n, core.n],
    [tc.axis, core.k],
  ]);
}

/** An operand as it is in memory, and the sides of its matrix. */
interface Operand {
  readonly value: Expr;
  readonly row: Range;
  readonly column: Range;
  readonly fragment: Fragment;
}

/** The range along the rows that LDMATRIX reads, and which of eight rows this thread addresses. */
interface MatrixRows {
  readonly side: Range;
  readonly within: Expr;
}

interface TensorCoreOptions {
  /** the whole list */
  readonly opts: readonly OptOp[];
  readonly tc: OptOp<"TC">;
  readonly core: TensorCore;
  readonly gpu: Gpu;
}

class TensorCores {
  readonly #lowered: KernelGraph;
  readonly #arena: UOpArena;
  readonly #opts: readonly OptOp[];
  readonly #tc: OptOp<"TC">;
  readonly #core: TensorCore;
  readonly #gpu: Gpu;
  /** the thread's index in the warp, and the elements of the result that it holds */
  readonly #thread: Range;
  readonly #element: Range;

  constructor(lowered: KernelGraph, { opts, tc, core, gpu }: TensorCoreOptions) {
    this.#lowered = lowered;
    this.#arena = lowered.arena;
    this.#opts = opts;
    this.#tc = tc;
    this.#core = core;
    this.#gpu = gpu;
    this.#thread = this.#arena.range({ kind: "warp", size: gpu.warp, of: -1 });
    this.#element = this.#arena.range({ kind: "upcast", size: core.c.elements, of: -1 });
  }
  #int(n: number): Expr {
    return this.#arena.int(n);
  }

  run(): KernelGraph {
    const { sink, axes, order } = this.#lowered;
    const nodes = toposort<UOp>([sink], (x) => x.srcs);
    const sides = nodes.filter((u) => u.op === "RANGE").filter((r) => r.axis.kind === "tile");
    const k = sides.find((s) => s.axis.of === this.#tc.axis);
    const outputs = 1 + Math.max(...axes.filter(isOutput).map((a) => (a.of === this.#tc.axis ? -1 : a.of)));
    const place = (r: Range): number => axisOrder(this.#opts, outputs).indexOf(r.axis.of);
    const [m, n] = sides.filter((s) => s !== k).sort((a, b) => place(a) - place(b));
    const reduces = nodes.filter((u) => u.op === "REDUCE");
    const [sum, ...others] = reduces.filter((u) => k !== undefined && u.ranges.includes(k));
    if (sum === undefined || others.length > 0 || m === undefined || n === undefined || k === undefined) {
      return this.#refuse("this reduce is not a sum over one loop for each result");
    }
    const { c } = this.#core;
    const product = this.#product(sum, m, n, k);
    const by = new Map<UOp, UOp>([
      [sum, this.#arena.element(product, this.#element)],
      [m, this.#index(c.row, this.#element)],
      [n, this.#index(c.column, this.#element)],
    ]);
    const [thread, element] = [this.#thread.axis, this.#element.axis];
    const changed = substitute(sink, by, this.#arena);
    return { ...this.#lowered, sink: changed, axes: [...axes, thread, element], order: [...order, thread] };
  }
  #refuse(why: string): never {
    throw new ArgumentError(
      `${showOpts([this.#tc])}: ${this.#core.name} does not fit, ${why}; name another step or leave TC out`,
    );
  }

  /** An index made of digits of the thread's index in the warp and of the index of an element. */
  #index(digits: Digits, element: Expr): Expr {
    const a = this.#arena;
    return digits.reduce((sum, [from, by, size, times]) => {
      const x = from === "lane" ? this.#thread : element;
      const isLast = from === "lane" && by * size === this.#gpu.warp;
      const high = a.alu("IDIV", x, this.#int(by));
      const digit = isLast ? high : a.alu("MOD", high, this.#int(size));
      return a.alu("ADD", sum, a.alu("MUL", digit, this.#int(times)));
    }, this.#int(0));
  }

  /** The elements of the result that a thread holds, as a vector. */
  #product(sum: Reduce, m: Range, n: Range, k: Range): Expr {
    const contraction = gatedContractionOf(sum);
    if (contraction === undefined || sum.dtype !== this.#core.to) {
      const { fn, body, dtype } = sum;
      const what = body.op === "ALU" ? body.fn : body.op;
      return this.#refuse(
        `it adds up products (MUL) as ${this.#core.to.name} and this is a ${fn} of ${what} as ${dtype.name}`,
      );
    }
    const [x, y] = contraction.factors;
    const sides = rowsAndColumns(x.value, y.value, m.axis, n.axis);
    if (sides === undefined) {
      return this.#refuse("the factors are not rows of one matrix and columns of another");
    }
    const [left, right] = sides;
    const { a, b } = this.#core;
    const rest = contraction.ranges.filter((r) => r !== k);
    const value = (x: Expr): Expr => this.#inside(this.#narrow(x), contraction.gate);
    const rows = this.#operand({ value: value(left), row: m, column: k, fragment: a }, rest);
    const columns = this.#operand({ value: value(right), row: k, column: n, fragment: b }, rest);
    return this.#arena.reduce("SUM", this.#multiply(rows, columns), rest);
  }
  /** A warp multiplies two matrices; the REDUCE around it adds up. */
  #multiply(a: Expr, b: Expr): Expr {
    const { to, c } = this.#core;
    return this.#arena.make("WMMA", to.vec(c.elements), [a, b], this.#core);
  }
  /** The value before it was widened for the sum. */
  #narrow(u: Expr): Expr {
    const { from } = this.#core;
    const value = u.dtype !== from && u.op === "CAST" ? u.operand : u;
    if (value.dtype !== from)
      this.#refuse(`it multiplies ${from.name} and the factors are ${value.dtype.name}`);
    return value;
  }

  /** The value as it is multiplied: 0 beyond the end of the sum, where the other factor may be anything. */
  #inside(value: Expr, gate: Expr | undefined): Expr {
    if (gate === undefined) return value;
    const isZeroThere = value.op === "LOAD" && value.gate !== undefined && implies(value.gate, gate);
    return isZeroThere ? value : this.#arena.alu("WHERE", gate, value, this.#arena.constant(value.dtype, 0));
  }

  /** The words that a thread holds of an operand. */
  #operand(operand: Operand, ranges: readonly Range[]): Expr {
    const { value, row, column, fragment } = operand;
    const a = this.#arena;
    const shared = this.#opts.find((o) => o.op === "SHARED");
    if (this.#core.isOpaque && shared === undefined)
      this.#refuse("it multiplies what SHARED brings to shared memory");
    let read = value;
    if (shared !== undefined) {
      const tiled = this.#tiles(value, loopOf(ranges, shared), shared);
      if (this.#core.isOpaque) return this.#fragment(operand, tiled("matrices"));
      for (const reader of this.#core.fitsLoadMatrix ? (["swizzled", "matrices"] as const) : []) {
        const found = tiled(reader);
        const matrices = found && this.#matrices(operand, found);
        if (matrices !== undefined) return matrices;
      }
      const found = tiled("threads");
      if (found === undefined) this.#refuse("with SHARED: a workgroup needs no box of an operand");
      read = a.load(found.tile, toIndex({ terms: found.pitches, k: 0 }, a));
    }
    const { itemsize } = this.#core.from;
    const bits = bitsOf(itemsize);
    const elements = range(fragment.elements).map((i) => {
      const by = new Map<UOp, UOp>([
        [row, this.#index(fragment.row, this.#int(i))],
        [column, this.#index(fragment.column, this.#int(i))],
      ]);
      return a.bitcast(substitute(read, by, a), bits);
    });
    return a.bitcast(a.vectorize(elements), wordsOf(fragment, this.#core.from));
  }

  /** The tile of an operand for a reader: a box of its buffer, or computed where it is not one. */
  #tiles(
    value: Expr,
    loop: CopyLoop,
    { stages }: OptOp<"SHARED">,
  ): (reader: Reader) => TiledLoad | undefined {
    const options = { stages, gpu: this.#gpu };
    const boxOf = (reader: Reader): TiledLoad | undefined => {
      const found =
        value.op === "LOAD" ? tileOf(value, loop, this.#lowered, { ...options, reader }) : undefined;
      return found?.offset === 0 ? found : undefined;
    };
    if (boxOf("threads") !== undefined || boxOf("swizzled") !== undefined) return boxOf;
    return (reader) => computedTile(value, loop, this.#lowered, { ...options, reader });
  }

  /** The operand as the hardware loads it from a tile: rows, or columns, that are contiguous there. */
  #fragment({ row, column, fragment }: Operand, tiled: TiledLoad | undefined): Expr {
    const { a, from } = this.#core;
    const [rows, columns] = [tiled?.pitches.get(row), tiled?.pitches.get(column)];
    const isTransposed = columns !== 1;
    const pitch = isTransposed ? columns : rows;
    if (tiled === undefined || pitch === undefined || (isTransposed && rows !== 1))
      return this.#refuse("an operand is not a box of its buffer");
    const others = [...tiled.pitches].filter(([r]) => r !== row && r !== column);
    // the hardware loads vectors of 16 bytes
    if ([pitch, ...others.map(([, p]) => p)].some((p) => p % (ROW / from.itemsize) !== 0))
      return this.#refuse("rows of an operand do not start at vectors of 16 bytes");
    const at = toIndex({ terms: new Map(others), k: 0 }, this.#arena);
    const side = fragment === a ? "a" : "b";
    const words = wordsOf(this.#core[side], from);
    const load = { core: this.#core, side, pitch, isTransposed } as const;
    return this.#arena.make("LDFRAGMENT", words, [tiled.tile, at], load);
  }

  /**
   * Of a matrix of 8 rows of 16 bytes each thread gets one word: thread t has word t % 4 of row t / 4. So
   * each word of the fragment is such a matrix, if the rows of the operand (for `b`: its columns) are
   * contiguous in shared memory; 16-bit matrices may also be stored transposed. Each thread gives the address
   * of one row. Four matrices are read at once, of `a`: two vertically, then the next column pair; of `b`:
   * two horizontally, then those of the next lane.
   */
  #matrices({ row, column, fragment }: Operand, tiled: TiledLoad): Expr | undefined {
    const { tile, pitches } = tiled;
    const a = this.#arena;
    const { itemsize } = this.#core.from;
    const isB = fragment === this.#core.b;
    const [outer, inner] = isB ? [column, row] : [row, column];
    const isTransposed = pitches.get(inner) !== 1;
    if (isTransposed && (pitches.get(outer) !== 1 || itemsize !== 2)) return undefined;
    // a row starts at a multiple of its length
    const others = [...pitches].filter(([r]) => r !== (isTransposed ? outer : inner));
    if (others.some(([, p]) => p % (ROW / itemsize) !== 0)) return undefined;
    const words = (fragment.elements * itemsize) / 4;
    const times = (x: Expr, n: number): Expr => a.alu("MUL", x, this.#int(n));
    const eighth = a.alu("IDIV", this.#thread, this.#int(8));
    const half = a.alu("IDIV", this.#thread, this.#int(16));
    const within = a.alu("MOD", this.#thread, this.#int(8));
    const below = isB ? this.#int(0) : a.alu("MOD", eighth, this.#int(2));
    const beside = isB ? a.alu("MOD", eighth, this.#int(2)) : half;
    const [first, second] = isTransposed
      ? [times(below, 8), a.alu("ADD", within, times(beside, 8))]
      : [a.alu("ADD", within, times(below, 8)), times(beside, ROW / itemsize)];
    const by = new Map<UOp, UOp>([
      [outer, first],
      [inner, second],
    ]);
    const pair = isB ? pairOf(outer, pitches) : undefined;
    if (pair !== undefined) by.set(pair, a.alu("ADD", times(a.alu("IDIV", pair, this.#int(2)), 2), half));
    const at = this.#indexIn(tiled, by, { side: isTransposed ? inner : outer, within });
    if (at === undefined) return undefined;
    const read = a.make(
      "LDMATRIX",
      uint32.vec(pair === undefined ? words : 2 * words),
      [tile, at],
      isTransposed,
    );
    if (pair === undefined) return read;
    const odd = times(a.alu("MOD", pair, this.#int(2)), words);
    return a.vectorize(range(words).map((i) => a.element(read, a.alu("ADD", odd, this.#int(i)))));
  }
  /**
   * The index in a tile after its ranges are replaced; eight of its rows are read at once. undefined: the
   * swizzle does not fit.
   */
  #indexIn({ tile, pitches }: TiledLoad, by: ReadonlyMap<UOp, UOp>, rows: MatrixRows): Expr | undefined {
    const { side, within } = rows;
    const a = this.#arena;
    const sum = (of: (pitch: number) => boolean): Expr => {
      const terms = new Map([...pitches].filter(([, p]) => of(p)));
      return toIndex(affine(substitute(toIndex({ terms, k: 0 }, a), by, a)), a);
    };
    const { swizzle } = tile.tile;
    if (swizzle === undefined) return sum(() => true);
    const { unit, pieces, every } = swizzle;
    const period = every * pieces;
    const pitch = period / 8;
    const isEven = [...pitches].every(([r, p]) => p < pitch || p % (r === side ? pitch : period) === 0);
    if (pitches.get(side) !== pitch || !isEven) return undefined;
    const way = a.alu("MUL", a.alu("IDIV", within, this.#int(8 / pieces)), this.#int(unit));
    const inRow = sum((p) => p % (pieces * unit) !== 0);
    const moved = a.alu("XOR", inRow, way);
    const rest = sum((p) => p % (pieces * unit) === 0);
    return a.alu("ADD", moved, rest);
  }
}

const isOutput = ({ kind }: Range["axis"]): boolean =>
  kind === "output" || kind === "local" || kind === "upcast" || kind === "tile";

/** Whether the first condition holds only where the second does: it has all of its parts. */
const implies = (x: Expr, y: Expr): boolean => {
  const parts = partsOf(x);
  return partsOf(y).every((p) => parts.includes(p));
};
const partsOf = (u: Expr): Expr[] => (u.op === "ALU" && u.fn === "AND" ? u.operands.flatMap(partsOf) : [u]);

/** An even number of lanes that are further columns of `b`. */
function pairOf(side: Range, pitches: TiledLoad["pitches"]): Range | undefined {
  const isOther = ({ kind, of }: Range["axis"]): boolean => kind === "upcast" && of === side.axis.of;
  return [...pitches.keys()].find(({ axis }) => isOther(axis) && smax(axis.size) % 2 === 0);
}
