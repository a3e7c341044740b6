// Attention and the transformer block made of it. Batches come first: [batch, length, width]. Parameters are
// named and laid out as in torch, so that its weights load.

import { dtypes } from "../dtype.ts";
import { ArgumentError, ShapeError } from "../errors.ts";
import { glorotUniform } from "../tensor/random/distributions.ts";
import { showShape } from "../tensor/show.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { type BiasOptions, Dropout, filled, Linear, parameter, positive } from "./layers.ts";
import { Module, trains } from "./module.ts";
import { LayerNorm } from "./norms.ts";
import { asFactor, linear, scaledDotProductAttention } from "./operations.ts";

export interface AttentionMask {
  /** bool: true where a query (row) may look at a key (column); float: added to the scores */
  readonly mask?: Tensor;
  /** a query sees only keys up to its own position */
  readonly isCausal?: boolean;
}
export interface MultiHeadAttentionOptions extends BiasOptions {
  /** the probability that an attention weight is dropped in training */
  readonly dropout?: number;
}

/**
 * Attention with several heads: of `query` to `key` and `value`, or of a sequence to itself.
 * @example
 * new nn.MultiHeadAttention(8, 2).forward(Tensor.ones(1, 5, 8)).shape // => [1, 5, 8]
 */
export class MultiHeadAttention extends Module {
  training: boolean | undefined = undefined;
  /** the three projections stacked: query, key, value */
  inProjWeight: Tensor;
  inProjBias: Tensor | undefined;
  outProj: Linear;
  readonly embedDim: number;
  readonly numHeads: number;
  readonly dropout: number;

  constructor(embedDim: number, numHeads: number, options: MultiHeadAttentionOptions = {}) {
    super();
    positive("MultiHeadAttention", { embedDim, numHeads });
    if (embedDim % numHeads !== 0) {
      throw new ArgumentError(
        `MultiHeadAttention: ${numHeads} heads do not divide a width of ${embedDim}; choose a divisor`,
      );
    }
    this.embedDim = embedDim;
    this.numHeads = numHeads;
    this.dropout = options.dropout ?? 0;
    const { device, dtype = dtypes.float32 } = options;
    const place = { dtype, ...(device !== undefined && { device }) };
    this.inProjWeight = parameter(glorotUniform([3 * embedDim, embedDim], place));
    this.outProj = new Linear(embedDim, embedDim, options);
    if (options.bias === false) return;
    this.inProjBias = filled([3 * embedDim], 0, options);
    this.outProj.bias = filled([embedDim], 0, options);
  }

  forward(query: Tensor, key: Tensor = query, value: Tensor = key, mask: AttentionMask = {}): Tensor {
    const [q, k, v] = [query, key, value].map((x, i) => this.#heads(this.#project(x, i))) as [
      Tensor,
      Tensor,
      Tensor,
    ];
    const y = scaledDotProductAttention(q, k, v, {
      ...(mask.mask !== undefined && { attnMask: mask.mask }),
      isCausal: mask.isCausal ?? false,
      dropoutP: this.dropout > 0 && trains(this) ? this.dropout : 0,
    });
    return this.outProj.forward(y.transpose(-3, -2).flatten(-2));
  }
  /** Projection 0, 1 or 2. */
  #project(x: Tensor, i: number): Tensor {
    const e = this.embedDim;
    if (x.ndim < 2 || x.shape.at(-1) !== e) {
      throw new ShapeError(`MultiHeadAttention: shape ${showShape(x.shape)} is not [..., length, ${e}]`);
    }
    const rows = [i * e, (i + 1) * e] as const;
    return linear(x, asFactor(this.inProjWeight).shrink([rows, null]), this.inProjBias?.shrink([rows]));
  }
  /** [..., length, width] -> [..., heads, length, width / heads]. */
  #heads(x: Tensor): Tensor {
    return x
      .reshape([...x.shape.slice(0, -1), this.numHeads, this.embedDim / this.numHeads])
      .transpose(-3, -2);
  }
}

export interface TransformerBlockOptions extends MultiHeadAttentionOptions {
  /** width of the hidden layer; default: 4 times the width */
  readonly dimFeedforward?: number;
  readonly activation?: (x: Tensor) => Tensor;
  /** normalise before attention and feed-forward (usual today) instead of after; default: true */
  readonly normFirst?: boolean;
  readonly layerNormEps?: number;
}

/**
 * Self-attention and two linear layers, each with a normalisation and a residual connection.
 * @example
 * new nn.TransformerBlock(8, 2).forward(Tensor.ones(1, 5, 8), { isCausal: true }).shape // => [1, 5, 8]
 */
export class TransformerBlock extends Module {
  selfAttn: MultiHeadAttention;
  linear1: Linear;
  linear2: Linear;
  norm1: LayerNorm;
  norm2: LayerNorm;
  readonly dropout: Dropout;
  readonly activation: (x: Tensor) => Tensor;
  readonly normFirst: boolean;

  constructor(width: number, numHeads: number, options: TransformerBlockOptions = {}) {
    super();
    const { dimFeedforward = 4 * width, layerNormEps = 1e-5 } = options;
    this.selfAttn = new MultiHeadAttention(width, numHeads, options);
    this.linear1 = new Linear(width, dimFeedforward, options);
    this.linear2 = new Linear(dimFeedforward, width, options);
    this.norm1 = new LayerNorm(width, { ...options, eps: layerNormEps });
    this.norm2 = new LayerNorm(width, { ...options, eps: layerNormEps });
    this.dropout = new Dropout(options.dropout ?? 0);
    this.activation = options.activation ?? ((x) => x.relu());
    this.normFirst = options.normFirst ?? true;
  }
  forward(x: Tensor, mask: AttentionMask = {}): Tensor {
    const attend = (y: Tensor): Tensor => this.dropout.forward(this.selfAttn.forward(y, y, y, mask));
    if (this.normFirst) {
      const seen = x.add(attend(this.norm1.forward(x)));
      return seen.add(this.#feed(this.norm2.forward(seen)));
    }
    const seen = this.norm1.forward(x.add(attend(x)));
    return this.norm2.forward(seen.add(this.#feed(seen)));
  }
  #feed(x: Tensor): Tensor {
    const inner = this.dropout.forward(this.activation(this.linear1.forward(x)));
    return this.dropout.forward(this.linear2.forward(inner));
  }
}
