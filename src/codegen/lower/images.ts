// Kernels on images, before they are lowered. In goes an AST in which some types are images (src/images.ts),
// out comes the graph of one that computes in float32: only the buffers still are images, or, on a target
// that has none, arrays of float32 or float16. The axes along which elements are neighbours in an image are
// divided into pixels of four, whatever OptOps follow.

import { type DType, dtypes } from "../../dtype.ts";
import { DTypeError } from "../../errors.ts";
import { getOrMake } from "../../helpers.ts";
import { ImageDType } from "../../images.ts";
import { astNodes, type LazyOp, lazyOp, MemBuffer } from "../../schedule/lazyop.ts";
import { strideOf } from "../analysis/strides.ts";
import { type OptOp, splitBy } from "../opt/opts.ts";
import type { Target } from "../target.ts";
import type { KernelGraph } from "./lower.ts";

type Ast = readonly LazyOp[];
type Lower = (ast: Ast, opts: readonly OptOp[], target: Target) => KernelGraph;

const isImage = (d: unknown): d is ImageDType => d instanceof ImageDType;
const typeOf = (d: DType): DType => (isImage(d) ? d.base : d);

/** Values of a pixel. */
const LANES = 4;

/** The results so far, for targets with images and without: a kernel is lowered more than once. */
const known = [new WeakMap<Ast, Ast>(), new WeakMap<Ast, Ast>()] as const;

/** The graph of a kernel on images; undefined: it has none. `lower`: how what is translated is lowered. */
export function lowerImages(
  ast: Ast,
  opts: readonly OptOp[],
  target: Target,
  lower: Lower,
): KernelGraph | undefined {
  // what is translated has no such node any more, though its buffers may be images
  if (!astNodes(ast).some((u) => isImage(u.dtype))) return undefined;
  const keeps = target.images !== undefined;
  const plain = getOrMake(known[keeps ? 1 : 0], ast, () => new Translation(keeps).run(ast));
  if (!keeps) return lower(plain, opts, target);
  return lower(plain, [...pixelAxes(lower(plain, [], target)), ...opts], target);
}
class Translation {
  readonly #keeps: boolean;
  readonly #done = new Map<LazyOp, LazyOp>();

  /** `keeps`: the target has images */
  constructor(keeps: boolean) {
    this.#keeps = keeps;
  }
  run(ast: Ast): Ast {
    return ast.map((u) => this.#of(u));
  }
  #of(u: LazyOp): LazyOp {
    return getOrMake(this.#done, u, () => this.#one(u));
  }

  #one(u: LazyOp): LazyOp {
    const dtype = typeOf(u.dtype);
    switch (u.op) {
      case "LOAD": {
        const memory = this.#memory(u.arg);
        const value = lazyOp("LOAD", [], memory, isImage(memory.dtype) ? dtype : memory.dtype, u.shape);
        return cast(value, dtype);
      }
      case "STORE": {
        const memory = this.#memory(u.arg);
        const stored = isImage(memory.dtype) ? dtype : memory.dtype;
        return lazyOp("STORE", [cast(this.#of(u.srcs[0]), stored)], memory, stored, u.shape);
      }
      case "CAST":
        return cast(this.#of(u.srcs[0]), dtype);
      case "BITCAST":
        if (isImage(u.dtype) || isImage(u.srcs[0].dtype)) {
          throw new DTypeError(
            `bitcast: from ${u.srcs[0].dtype.name} to ${u.dtype.name}: the bits of an image are not to be had; cast it ` +
              'to "float32" or "float16" first',
          );
        }
    }
    const srcs = u.srcs.map((s) => this.#of(s));
    const isSame = dtype === u.dtype && srcs.every((s, i) => s === u.srcs[i]);
    return isSame ? u : Object.assign({}, u, { srcs, dtype });
  }
  #memory({ idx, dtype, st }: MemBuffer): MemBuffer {
    return new MemBuffer(idx, isImage(dtype) && !this.#keeps ? dtype.memory : dtype, st);
  }
}
const cast = (u: LazyOp, dtype: DType): LazyOp =>
  u.dtype === dtype ? u : lazyOp("CAST", [u], dtype, dtype, u.shape);

/** The OptOps that make lanes of the axes along which neighbours are the values of a pixel. */
function pixelAxes({ sink, arena }: KernelGraph): OptOp[] {
  const found = new Map<number, OptOp>();
  const nodes = arena.nodes(sink);
  const ranges = nodes.filter((u) => u.op === "RANGE");
  for (const u of nodes) {
    if ((u.op !== "LOAD" && u.op !== "STORE") || u.buffer.dtype.image === undefined) continue;
    for (const r of ranges) {
      const { size, kind, of } = r.axis;
      if (typeof size !== "number" || size % LANES !== 0 || r.dtype !== dtypes.int32) continue;
      if (strideOf(u.index, r) === 1)
        found.set(of, splitBy(kind === "reduce" ? "UNROLL" : "UPCAST", of, LANES));
    }
  }
  return [...found.values()].sort((a, b) => Number("axis" in a && a.axis) - Number("axis" in b && b.axis));
}
