// EmbeddingBag: looks up vectors of a table and combines those of each bag; and Bilinear, a product of two
// inputs. Initial values are those of torch.

import { ArgumentError, ShapeError } from "../errors.ts";
import { showShape } from "../tensor/show.ts";
import { Tensor } from "../tensor/tensor.ts";
import { requireRange } from "../tensor/wholes.ts";
import { type BiasOptions, Embedding, type EmbeddingOptions, positive, uniform } from "./layers.ts";

export interface EmbeddingBagOptions extends EmbeddingOptions {
  /** how the vectors of a bag are combined; default: "mean" */
  readonly mode?: "sum" | "mean" | "max";
}

/**
 * Looks up rows of a table and gives the sum, the mean or the maximum of each bag. Bags are rows of indexes
 * [bags, length], or one list of indexes with `offsets` where each bag begins. Rows of `paddingIdx` do not
 * count; an empty bag is zero.
 * @example
 * const bag = new nn.EmbeddingBag(10, 4, { mode: "sum" });
 * bag.forward(new Tensor([1, 2, 3]), new Tensor([0, 2])).shape // => [2, 4]
 */
export class EmbeddingBag extends Embedding {
  static override readonly name: string = "EmbeddingBag";
  readonly mode: "sum" | "mean" | "max";

  constructor(numEmbeddings: number, embeddingDim: number, options: EmbeddingBagOptions = {}) {
    const { mode = "mean", ...rest } = options;
    if (!["sum", "mean", "max"].includes(mode))
      throw new ArgumentError(`EmbeddingBag: mode is ${mode}, expected "sum", "mean" or "max"`);
    super(numEmbeddings, embeddingDim, rest);
    this.mode = mode;
  }
  override forward(x: Tensor, offsets?: Tensor, perSampleWeights?: Tensor): Tensor {
    if (x.ndim !== (offsets === undefined ? 2 : 1)) {
      throw new ShapeError(
        `EmbeddingBag: shape ${showShape(x.shape)} ${offsets === undefined ? "without" : "with"} offsets; expected ` +
          "[bags, length] without, or [length] with offsets",
      );
    }
    if (perSampleWeights !== undefined && this.mode !== "sum")
      throw new ArgumentError(`EmbeddingBag: perSampleWeights are for mode "sum", not "${this.mode}"`);
    if (offsets !== undefined) requireRange("EmbeddingBag: offsets", offsets, { size: x.size + 1 });
    const found = super.forward(x);
    const rows = perSampleWeights === undefined ? found : found.mul(perSampleWeights.unsqueeze(-1));
    const counts = this.paddingIdx === undefined ? undefined : x.ne(this.paddingIdx);
    return offsets === undefined
      ? this.#together(rows, counts ?? x.eq(x))
      : this.#together(rows.unsqueeze(0), belongs(x, offsets, counts));
  }
  /** `rows` [bags or 1, length, width] by `member` [bags, length]. */
  #together(rows: Tensor, member: Tensor): Tensor {
    const which = member.unsqueeze(-1);
    const size = which.cast(rows.dtype).sum(1);
    if (this.mode === "max") {
      const most = which.where(rows, -Infinity).max(1);
      return size.gt(0).where(most, 0);
    }
    const total = which.where(rows, 0).sum(1);
    return this.mode === "sum" ? total : total.div(size.maximum(1));
  }
}
/** Which of the indexes are in which bag: those from its offset up to the next one. */
function belongs(x: Tensor, offsets: Tensor, counts: Tensor | undefined): Tensor {
  const n = x.shape[0] as number;
  const bags = offsets.shape[0] as number;
  const place = Tensor.arange(n, { device: x.device }).reshape(1, n);
  const begun = place.ge(offsets.cast("int32").reshape(bags, 1)).cast("int32").sum(0);
  const own = begun.sub(1).eq(Tensor.arange(bags, { device: x.device }).reshape(bags, 1));
  return counts === undefined ? own : own.logicalAnd(counts);
}

/**
 * A product of two inputs: for each output o the sum over i and j of x1[i] weight[o, i, j] x2[j], plus bias.
 * @example
 * new nn.Bilinear(3, 4, 5).forward(Tensor.ones(2, 3), Tensor.ones(2, 4)).shape // => [2, 5]
 */
export class Bilinear {
  weight: Tensor;
  bias: Tensor | undefined;

  constructor(in1Features: number, in2Features: number, outFeatures: number, options: BiasOptions = {}) {
    positive("Bilinear", { in1Features, in2Features, outFeatures });
    const bound = 1 / Math.sqrt(in1Features);
    this.weight = uniform([outFeatures, in1Features, in2Features], bound, options);
    this.bias = options.bias === false ? undefined : uniform([outFeatures], bound, options);
  }
  forward(x1: Tensor, x2: Tensor): Tensor {
    const [out, in1, in2] = this.weight.shape as [number, number, number];
    const sizes = x1.shape.slice(0, -1);
    if (
      x1.shape.at(-1) !== in1 ||
      x2.shape.at(-1) !== in2 ||
      String(sizes) !== String(x2.shape.slice(0, -1))
    ) {
      throw new ShapeError(
        `Bilinear: got ${showShape(x1.shape)} and ${showShape(x2.shape)}, expected [..., ${in1}] and [..., ${in2}]`,
      );
    }
    const left = x1
      .matmul(this.weight.permute(1, 0, 2).reshape(in1, out * in2))
      .reshape([...sizes, out, in2]);
    const product = left.mul(x2.unsqueeze(-2)).sum(-1);
    return this.bias === undefined ? product : product.add(this.bias);
  }
}
