// Packed types (int4, uint4, float4e2m1) leave the AST of a kernel before it is lowered: nothing after this,
// no pass and no renderer, ever sees one. A LOAD becomes the LOAD of the word that holds the element, a shift
// and a mask; values are computed in 32 bits and brought back into the type after each op; a STORE writes
// whole words, each by one thread. In goes an AST, out comes one without packed types; the arithmetic is
// narrow.ts's.

import { type DType, dtypes, wrap } from "../../dtype.ts";
import { DTypeError } from "../../errors.ts";
import { getOrMake, range } from "../../helpers.ts";
import { fitPacked, packElements, reinterpretPacked, unpackElement, wideOf } from "../../narrow.ts";
import { type Algebra, type AluOp, isAluOp, isReduceOp, opRecord, resultDType } from "../../ops.ts";
import { ConstBuffer, type LazyOp, lazyOp, MemBuffer } from "../../schedule/lazyop.ts";
import { ShapeTracker } from "../../shape/shapetracker.ts";
import { type Sint, sprod } from "../../shape/symbolic.ts";
import type { Shape } from "../../shape/view.ts";
import type { Target } from "../target.ts";

const { int32, uint8, uint32 } = dtypes;

/** The results so far, by first STORE, type of a word and `ieee`: a kernel is lowered more than once. */
const known = new WeakMap<LazyOp, Map<string, readonly LazyOp[]>>();

/** The same kernel without packed types. */
export function unpackTypes(ast: readonly LazyOp[], target: Target): readonly LazyOp[] {
  const first = ast[0] as LazyOp;
  const word = target.support(uint8) === "none" ? uint32 : uint8;
  const kernels = getOrMake(known, first, () => new Map<string, readonly LazyOp[]>());
  return getOrMake(kernels, `${word.name} ${target.ieee}`, () => {
    const unpacking = new Unpacking(word, target.ieee);
    return ast.map((store) => unpacking.of(store));
  });
}

/** The algebra of narrow.ts on nodes of one shape. */
const nodes = (shape: Shape, ieee: boolean): Algebra<LazyOp> => ({
  ieee,
  alu: (op, ...srcs) => {
    const last = srcs.at(-1) as LazyOp;
    return lazyOp(op, srcs, undefined, resultDType(op, last.dtype), last.shape);
  },
  constant: (dtype, value) => {
    const st = ShapeTracker.fromShape([]).reshape(shape.map(() => 1));
    return lazyOp("CONST", [], new ConstBuffer(value, dtype, st.expand(shape)), dtype, shape);
  },
  cast: (x, dtype) => (x.dtype === dtype ? x : lazyOp("CAST", [x], dtype, dtype, x.shape)),
  bitcast: (x, dtype) => (x.dtype === dtype ? x : lazyOp("BITCAST", [x], dtype, dtype, x.shape)),
  dtypeOf: (x) => x.dtype,
});

/** Ops whose result is one of their sources, or its negation, so no rounding is needed. */
const STAYS_FLOAT: ReadonlySet<AluOp> = new Set<AluOp>(["MAX", "WHERE", "NEG"]);

class Unpacking {
  readonly #word: DType;
  readonly #ieee: boolean;
  readonly #done = new Map<LazyOp, LazyOp>();

  constructor(word: DType, ieee: boolean) {
    this.#word = word;
    this.#ieee = ieee;
  }

  of(u: LazyOp): LazyOp {
    return getOrMake(this.#done, u, () => this.#replaced(u));
  }

  #replaced(u: LazyOp): LazyOp {
    if (u.op === "STORE" && u.dtype.isPacked) return this.#store(u);
    const srcs = u.srcs.map((s) => this.of(s));
    if (!u.dtype.isPacked) {
      const from = u.srcs[0]?.dtype;
      if (u.op === "BITCAST" && from?.isPacked) throw sizes(from, u.dtype);
      return srcs.every((s, i) => s === u.srcs[i]) ? u : lazyOp(u.op, srcs, u.arg as never, u.dtype, u.shape);
    }
    return this.#packed(u, srcs);
  }

  /** A node whose values are of a packed type, in the wide type. */
  #packed(u: LazyOp, srcs: readonly LazyOp[]): LazyOp {
    const type = u.dtype;
    const wide = wideOf(type);
    const a = nodes(u.shape, this.#ieee);
    if (u.op === "LOAD") return this.#load(u);
    if (u.op === "CONST") {
      const value = wrap(type, u.arg.val);
      return lazyOp("CONST", [], new ConstBuffer(value, wide, u.arg.st), wide, u.shape);
    }
    const [x] = srcs as [LazyOp];
    if (u.op === "CAST") return fitPacked(a, type, a.cast(x, wide));
    if (u.op === "BITCAST") {
      const from = (u.srcs[0] as LazyOp).dtype;
      if (!from.isPacked) throw sizes(from, type);
      return reinterpretPacked(a, type, from, x);
    }
    if (u.op === "VIEW") return lazyOp("VIEW", srcs, u.arg, wide, u.shape);
    if (u.op === "MULACC" && type.isFloat) {
      const [, y, z] = srcs as [LazyOp, LazyOp, LazyOp];
      return fitPacked(a, type, a.alu("ADD", fitPacked(a, type, a.alu("MUL", x, y)), z));
    }
    if (isAluOp(u.op)) return this.#alu(u.op, type, srcs, a);
    const made = lazyOp(u.op, srcs, u.arg as never, wide, u.shape);
    // a running sum wraps or rounds at its end only; the largest of some elements is one of them
    return isReduceOp(u.op) && u.op !== "REDUCE_MAX" ? fitPacked(a, type, made) : made;
  }

  #alu(op: AluOp, type: DType, srcs: readonly LazyOp[], a: Algebra<LazyOp>): LazyOp {
    const isShift = op === "SHL" || op === "SHR";
    // counts are taken modulo the width of the type
    const [x, y] = srcs as [LazyOp, LazyOp];
    const counted = isShift ? [x, a.alu("AND", y, a.constant(y.dtype, type.bits - 1))] : srcs;
    const made = a.alu(op, ...counted);
    const stays = type.isFloat ? STAYS_FLOAT.has(op) : !opRecord(op).leavesRange;
    return stays ? made : fitPacked(a, type, made);
  }

  /**
   * The number of an element, divided by the elements of a word, is its word; the remainder is its place
   * there.
   */
  #load(u: LazyOp<"LOAD">): LazyOp {
    const { idx, dtype, st } = u.arg;
    const perWord = this.#word.bits / dtype.bits;
    const words = Math.ceil(st.realSize() / perWord);
    const all = ShapeTracker.fromShape([words, 1])
      .expand([words, perWord])
      .reshape([words * perWord]);
    const at = all.add(st);
    const a = nodes(u.shape, this.#ieee);
    const word = lazyOp("LOAD", [], new MemBuffer(idx, this.#word, at), this.#word, u.shape);
    const element = lazyOp("ARANGE", [], st, int32, u.shape);
    const place = a.alu("AND", element, a.constant(int32, perWord - 1));
    const shift = a.alu("MUL", place, a.constant(int32, dtype.bits));
    return unpackElement(a, dtype, a.cast(word, uint32), a.cast(shift, uint32));
  }

  /**
   * One word of elements at a time, so that no two threads write to the same byte: along the last dim where
   * words divide it, else along all dims as one, with zeros after the last element.
   */
  #store(u: LazyOp<"STORE">): LazyOp {
    const { idx, dtype, st } = u.arg;
    if (!st.contiguous) {
      throw new DTypeError(
        `STORE: ${dtype.name} can only be stored as a whole tensor in order, not through ${st}; call contiguous() first`,
      );
    }
    const value = this.of(u.srcs[0] as LazyOp);
    const perWord = this.#word.bits / dtype.bits;
    const { shape, views } = wordsOf(u.shape, perWord, dtype);
    const a = nodes(shape, this.#ieee);
    const elements = views.map((v) => lazyOp("VIEW", [value], v, value.dtype, shape));
    const word = a.cast(packElements(a, dtype, elements), this.#word);
    const memory = new MemBuffer(idx, this.#word, ShapeTracker.fromShape(shape));
    return lazyOp("STORE", [word], memory, this.#word, shape);
  }
}

const sizes = (from: DType, to: DType): DTypeError =>
  new DTypeError(`BITCAST: ${from.name} has ${from.bits} bits, ${to.name} has ${to.bits}; expected the same`);

/** The shape of the words of a tensor, and for each element of a word how the tensor is seen there. */
function wordsOf(shape: Shape, perWord: number, dtype: DType): { shape: Shape; views: ShapeTracker[] } {
  const last = shape.at(-1) ?? 1;
  const whole = ShapeTracker.fromShape(shape);
  let apart: ShapeTracker;
  if (typeof last === "number" && last % perWord === 0) {
    apart = whole.reshape([...shape.slice(0, -1), last / perWord, perWord]);
  } else {
    const size = sprod(shape);
    if (typeof size !== "number") {
      throw new DTypeError(
        `STORE: ${dtype.name} of shape [${shape.join(", ")}]: the last dim of a tensor with a symbolic size must be a ` +
          `multiple of ${perWord}, so that words of elements divide it; pad it or use int8`,
      );
    }
    const words = Math.ceil(size / perWord);
    apart = whole
      .reshape([size])
      .pad([[0, words * perWord - size]])
      .reshape([words, perWord]);
  }
  const outer: readonly Sint[] = apart.shape.slice(0, -1);
  const views = range(perWord).map((i) =>
    apart.shrink([...outer.map((n): [Sint, Sint] => [0, n]), [i, i + 1]]).reshape(outer),
  );
  return { shape: outer, views };
}
