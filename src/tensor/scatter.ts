// Writing along a dim by an index as large as the source: scatter and its reductions. A result element asks which
// sources go to it: sums run over all of them, the last one stays where they replace each other. Gradients are
// indexed loads.

import { bounds, type DType, dtypes } from "../dtype.ts";
import { ArgumentError, ShapeError } from "../errors.ts";
import type { Interval } from "../shape/view.ts";
import { type Element, showShape } from "./base.ts";
import { GetTensor } from "./getitem.ts";
import { requireTensors } from "./movement.ts";
import { operandValue } from "./promotion.ts";

export type ScatterReduce = "sum" | "prod" | "mean" | "amax" | "amin";
const REDUCTIONS: readonly string[] = ["sum", "prod", "mean", "amax", "amin"] satisfies ScatterReduce[];

export abstract class ScatterTensor extends GetTensor {
  // ---- scatter: one place for each element of an index as large as the source ----

  /**
   * A copy in which `src[i][j]` (or one value) stands at `[index[i][j]][j]` for dim 0, and so on; where several go to
   * one place the last one stays. `reduce` "add" or "multiply" combines them with what is there.
   * @example
   * await new Tensor([0, 0, 0]).scatter(0, new Tensor([2, 0]), new Tensor([5, 6])).tolist() // => [6, 0, 5]
   */
  scatter(
    dim: number,
    index: this,
    src: this | Element,
    { reduce }: { reduce?: "add" | "multiply" } = {},
  ): this {
    requireTensors("scatter", { index });
    const source = src instanceof ScatterTensor ? src : this.filled(index.shape, src);
    if (reduce === "add") return this.scatterAdd(dim, index, source as this);
    if (reduce === "multiply") return this.scatterReduce(dim, index, source as this, "prod");
    if (reduce !== undefined) {
      throw new ArgumentError(
        `scatter: reduce "${reduce}" is not known; expected add or multiply (scatterReduce has more)`,
      );
    }
    return this.#along("scatter", dim, index, source as this, (self, at, i, from) =>
      self.#overwritten(at, i, from),
    );
  }
  /** One value, in this tensor's type unless another is named. */
  protected filled(shape: readonly number[], value: Element, dtype: DType = this.dtype): this {
    return this.constant(shape, dtype, operandValue("fill", value, dtype));
  }
  /** Checks the arguments of a scatter; scalars become vectors; the source gets the shape of the index. */
  #along(
    method: string,
    dim: number,
    index: this,
    src: this,
    write: (self: this, at: number, index: this, src: this) => this,
  ): this {
    this.indexed(method, index);
    if (index.size === 0) return this;
    if (this.ndim === 0) {
      return this.reshape(1).#along(method, dim, index.reshape(-1), src.reshape(-1), write).reshape([]);
    }
    const at = this.axis(method, dim);
    const i = index.ndim === 0 ? index.reshape(1) : index;
    const from = src.ndim === 0 ? src.reshape(1) : src;
    const fits =
      i.ndim === this.ndim &&
      from.ndim === this.ndim &&
      i.shape.every((s, d) => s <= (from.shape[d] as number) && (d === at || s <= (this.shape[d] as number)));
    if (!fits || src.dtype !== this.dtype) {
      throw new ShapeError(
        `${method}: cannot write ${showShape(src.shape)} ${src.dtype.name} by an index of shape ${showShape(index.shape)} ` +
          `along dim ${dim} of ${showShape(this.shape)} ${this.dtype.name}; the index must be no larger than the source and, ` +
          "but for that dim, than the tensor, and the types equal",
      );
    }
    return write(this, at, i, from.shrink(i.shape.map((s): Interval => [0, s])));
  }
  /** Whether a source goes to a place: the index with its dim `at` as two, places and sources. */
  #goes(at: number, index: this): [goes: this, full: number[]] {
    const n = this.shape[at] as number;
    const full = index.shape.toSpliced(at, 0, n);
    const places = this.counting(n).reshape([n, ...full.slice(at + 1).map(() => 1)]);
    return [index.unsqueeze(at).expand(full).eq(places.expand(full)), full];
  }
  /** The sources as `goes` has them. */
  #facing(at: number, src: this, full: readonly number[]): this {
    return src.unsqueeze(at).expand(full);
  }
  /** What was computed where the index reaches, in this tensor's shape; zeros beyond. */
  #grown(part: this): this {
    return part.pad(this.shape.map((s, d): Interval => [0, s - (part.shape[d] as number)]));
  }
  /** The part of this tensor that an index of other sizes reaches. */
  #reached(shape: readonly number[]): this {
    return this.shrink(shape.map((s): Interval => [0, s]));
  }
  /** `part`, where the index reaches, laid over `under`. */
  #pasted(part: this, under: this): this {
    if (showShape(part.shape) === showShape(under.shape)) return part;
    const there = this.filled(part.shape, true, dtypes.bool);
    return this.#grown(there).where(this.#grown(part), under);
  }
  /** The number of the last source that goes to each place the index reaches; -1 where none does. */
  #last(at: number, index: this): this {
    const [goes, full] = this.#goes(at, index);
    const k = index.shape[at] as number;
    const numbers = this.counting(k).reshape([k, ...full.slice(at + 2).map(() => 1)]);
    // stored, so that whoever looks a source up by it does one indexed load
    return goes
      .where(numbers.expand(full), -1)
      .max(at + 1)
      .contiguous();
  }
  /** How many sources go to each place. */
  #counts(at: number, index: this): this {
    return this.#grown(
      this.#goes(at, index)[0]
        .cast(dtypes.int32)
        .sum(at + 1),
    );
  }
  /** The sum of the sources that go to each place. */
  #sums(at: number, index: this, src: this): this {
    const [goes, full] = this.#goes(at, index);
    const terms = goes.where(this.#facing(at, src, full), src.nought);
    return this.#grown(terms.reduceSum([at + 1]).squeeze(at + 1));
  }
  #overwritten(at: number, index: this, src: this): this {
    const last = this.#last(at, index);
    const self = this.detach();
    const value = last.ge(0).where(src.detach().gather(at, last), self.#reached(last.shape));
    return this.wrap(this.#pasted(value, self).lazydata, [this, src], (g) => {
      const k = index.shape[at] as number;
      const numbers = this.counting(k).reshape([k, ...index.shape.slice(at + 1).map(() => 1)]);
      const stays = last.gather(at, index).eq(numbers.expand(index.shape));
      return [this.#grown(last.ge(0)).where(0, g), stays.where(g.gather(at, index), 0)];
    });
  }
  /**
   * A copy with `src[i][j]` added at `[index[i][j]][j]` for dim 0, and so on.
   * @example
   * await new Tensor([1, 1]).scatterAdd(0, new Tensor([0, 0]), new Tensor([2, 3])).tolist() // => [6, 1]
   */
  scatterAdd(dim: number, index: this, src: this): this {
    requireTensors("scatterAdd", { index, src });
    return this.#along("scatterAdd", dim, index, src, (self, at, i, from) =>
      self.add(self.#sums(at, i, from)),
    );
  }
  /**
   * A copy in which each place holds the sum, prod, mean, amax or amin of the sources that go there, and of what was
   * there before unless `includeSelf` is false.
   * @example
   * await new Tensor([1, 1]).scatterReduce(0, new Tensor([0, 0]), new Tensor([2, 3]), "prod").tolist() // => [6, 1]
   */
  scatterReduce(
    dim: number,
    index: this,
    src: this,
    reduce: ScatterReduce,
    { includeSelf = true } = {},
  ): this {
    requireTensors("scatterReduce", { index, src });
    if (!REDUCTIONS.includes(reduce)) {
      throw new ArgumentError(`scatterReduce: "${reduce}" is not known; expected ${REDUCTIONS.join(", ")}`);
    }
    return this.#along("scatterReduce", dim, index, src, (self, at, i, from) => {
      if (reduce === "prod") return self.#scatterProd(at, i, from, includeSelf);
      if (reduce === "amax" || reduce === "amin") return self.#scatterBest(at, i, from, includeSelf, reduce);
      const sums = self.#sums(at, i, from);
      const written = () => self.#counts(at, i);
      const total = includeSelf ? self.add(sums) : written().gt(0).where(sums, self);
      if (reduce === "sum") return total;
      const count = includeSelf ? written().add(1) : written().maximum(1);
      if (self.dtype.isFloat) return total.div(count.cast(self.dtype));
      const by = count.cast(self.dtype);
      const quotient = total.idiv(by);
      return total.lt(quotient.mul(by)).where(quotient.sub(1), quotient); // torch rounds down
    });
  }
  #scatterProd(at: number, index: this, src: this, includeSelf: boolean): this {
    /** the product of `x` over the sources of each place, times `self` */
    const product = (x: this, self: this): this => {
      const [goes, full] = this.#goes(at, index);
      const terms = goes.where(this.#facing(at, x, full), this.dtype.kind === "bool" ? true : 1);
      const places = this.wrap(terms.lazydata.r("PROD", [at + 1])).squeeze(at + 1);
      return this.#pasted(self.#reached(places.shape).mul(places), self);
    };
    const written = this.#counts(at, index).gt(0);
    const ones = this.filled(this.shape, 1);
    const [x, s] = [src.detach(), this.detach()];
    const out = includeSelf ? product(x, s) : written.where(product(x, ones), s);
    return this.wrap(out.lazydata, [this, src], (g) => {
      // an element's derivative is the product of the others: all, or where a zero is among them all that are not zero
      const isZero = (t: this): this => t.eq(0).cast(dtypes.int32);
      const solid = (t: this): this => t.eq(0).where(1, t);
      const zeros = this.#sums(at, index, isZero(src)).add(includeSelf ? isZero(this) : 0);
      const rest = product(solid(src), includeSelf ? solid(this) : ones);
      const others = (t: this, z: this, p: this): this =>
        z
          .sub(isZero(t))
          .eq(0)
          .where(p.div(solid(t)), 0);
      const own = includeSelf ? g.mul(others(this, zeros, rest)) : written.where(0, g);
      const look = (t: this): this => t.gather(at, index);
      return [own, look(g).mul(others(src, look(zeros), look(rest)))];
    });
  }
  #scatterBest(at: number, index: this, src: this, includeSelf: boolean, reduce: "amax" | "amin"): this {
    const [low, high] = bounds(this.dtype);
    const worst = reduce === "amax" ? low : high;
    const [goes, full] = this.#goes(at, index);
    const terms = goes.where(
      this.#facing(at, src.detach(), full),
      this.dtype.kind === "bool" ? worst !== 0 : worst,
    );
    const best = reduce === "amax" ? terms.max(at + 1) : terms.min(at + 1);
    const s = this.detach();
    const inside = s.#reached(best.shape);
    const written = this.#counts(at, index).gt(0);
    const both = reduce === "amax" ? best.maximum(inside) : best.minimum(inside);
    const out = includeSelf ? this.#pasted(both, s) : written.where(this.#pasted(best, s), s);
    return this.wrap(out.lazydata, [this, src], (g, made) => {
      const result = made.detach();
      const look = (t: this): this => t.gather(at, index);
      // all that equal the result share its gradient; what was there before counts where it took part
      const own = this.detach().eq(result);
      const mine = (includeSelf ? own : own.bitwiseAnd(written.logicalNot())).cast(g.dtype);
      const theirs = src.detach().eq(look(result)).cast(g.dtype);
      const share = g.div(mine.add(this.#sums(at, index, theirs)));
      return [mine.mul(share), theirs.mul(look(share))];
    });
  }
}
