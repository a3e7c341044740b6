// Losses of margins, rankings and distributions as objects, and distances: options once, then `forward` in
// every step. losses.ts has the usual ones. Out: what the function of src/tensor/losses gives.

import type { PairwiseOptions } from "../tensor/losses/distance.ts";
import type { GaussianOptions, PoissonOptions } from "../tensor/losses/likelihood.ts";
import type {
  LossOptions,
  MarginOptions,
  TripletOptions,
  WeightedLossOptions,
} from "../tensor/losses/loss.ts";
import type { MultiMarginOptions } from "../tensor/losses/margin.ts";
import type { Tensor } from "../tensor/tensor.ts";
import * as operations from "./operations.ts";
import { checkOptions } from "./options.ts";

type CosineOptions = { readonly dim?: number; readonly eps?: number };

/**
 * 1 minus the cosine for pairs with target 1; for pairs with target -1, by how much the cosine exceeds
 * `margin`.
 * @example
 * const [a, b] = [new Tensor([[1.0, 0]]), new Tensor([[0.0, 1]])];
 * await new nn.CosineEmbeddingLoss().forward(a, b, new Tensor([1])).item() // => 1
 */
export class CosineEmbeddingLoss {
  readonly options: MarginOptions;
  constructor(options: MarginOptions = {}) {
    this.options = checkOptions("CosineEmbeddingLoss", options, ["reduction", "margin"]);
  }
  forward(input1: Tensor, input2: Tensor, target: Tensor): Tensor {
    return operations.cosineEmbeddingLoss(input1, input2, target, this.options);
  }
}
/**
 * By how much the first falls short of exceeding the second by `margin`; with target -1 the other way round.
 * @example
 * const [a, b] = [new Tensor([1.0]), new Tensor([3.0])];
 * await new nn.MarginRankingLoss().forward(a, b, new Tensor([1.0])).item() // => 2
 */
export class MarginRankingLoss {
  readonly options: MarginOptions;
  constructor(options: MarginOptions = {}) {
    this.options = checkOptions("MarginRankingLoss", options, ["reduction", "margin"]);
  }
  forward(input1: Tensor, input2: Tensor, target: Tensor): Tensor {
    return operations.marginRankingLoss(input1, input2, target, this.options);
  }
}
/**
 * By how much an anchor falls short of being nearer to the positive than to the negative by `margin`.
 * @example
 * const [a, b] = [Tensor.zeros(1, 2), Tensor.ones(1, 2)];
 * (await new nn.TripletMarginLoss().forward(a, a, b.mul(9)).item()) // => 0
 */
export class TripletMarginLoss {
  readonly options: TripletOptions;
  constructor(options: TripletOptions = {}) {
    this.options = checkOptions("TripletMarginLoss", options, ["reduction", "margin", "p", "eps", "swap"]);
  }
  forward(anchor: Tensor, positive: Tensor, negative: Tensor): Tensor {
    return operations.tripletMarginLoss(anchor, positive, negative, this.options);
  }
}
/**
 * The distance where the target is 1; where it is -1, by how much it falls short of `margin`.
 * @example
 * await new nn.HingeEmbeddingLoss().forward(new Tensor([0.25, 0.25]), new Tensor([1, -1])).item() // => 0.5
 */
export class HingeEmbeddingLoss {
  readonly options: MarginOptions;
  constructor(options: MarginOptions = {}) {
    this.options = checkOptions("HingeEmbeddingLoss", options, ["reduction", "margin"]);
  }
  forward(input: Tensor, target: Tensor): Tensor {
    return operations.hingeEmbeddingLoss(input, target, this.options);
  }
}
/**
 * The logistic loss of scores with targets 1 and -1: log(1 + exp(-target * input)).
 * @example
 * await new nn.SoftMarginLoss().forward(new Tensor([0.0]), new Tensor([1.0])).item() // => 0.6931
 */
export class SoftMarginLoss {
  readonly options: LossOptions;
  constructor(options: LossOptions = {}) {
    this.options = checkOptions("SoftMarginLoss", options, ["reduction"]);
  }
  forward(input: Tensor, target: Tensor): Tensor {
    return operations.softMarginLoss(input, target, this.options);
  }
}
/**
 * By how much the score of the class falls short of exceeding each of the others by `margin`.
 * @example
 * await new nn.MultiMarginLoss().forward(new Tensor([[0.0, 1]]), new Tensor([0])).item() // => 1
 */
export class MultiMarginLoss {
  readonly options: MultiMarginOptions<Tensor>;
  constructor(options: MultiMarginOptions<Tensor> = {}) {
    this.options = checkOptions("MultiMarginLoss", options, ["reduction", "margin", "p", "weight"]);
  }
  forward(input: Tensor, target: Tensor): Tensor {
    return operations.multiMarginLoss(input, target, this.options);
  }
}
/**
 * As MultiMarginLoss, for several classes in each row; -1 ends their list.
 * @example
 * await new nn.MultiLabelMarginLoss().forward(new Tensor([[0.0, 1]]), new Tensor([[0, -1]])).item() // => 1
 */
export class MultiLabelMarginLoss {
  readonly options: LossOptions;
  constructor(options: LossOptions = {}) {
    this.options = checkOptions("MultiLabelMarginLoss", options, ["reduction"]);
  }
  forward(input: Tensor, target: Tensor): Tensor {
    return operations.multilabelMarginLoss(input, target, this.options);
  }
}
/**
 * The mean over classes of the binary cross-entropy of logits with targets 0 and 1.
 * @example
 * await new nn.MultiLabelSoftMarginLoss().forward(Tensor.zeros(1, 2), Tensor.ones(1, 2)).item() // => 0.6931
 */
export class MultiLabelSoftMarginLoss {
  readonly options: WeightedLossOptions<Tensor>;
  constructor(options: WeightedLossOptions<Tensor> = {}) {
    this.options = checkOptions("MultiLabelSoftMarginLoss", options, ["reduction", "weight"]);
  }
  forward(input: Tensor, target: Tensor): Tensor {
    return operations.multilabelSoftMarginLoss(input, target, this.options);
  }
}
/**
 * The negative log-likelihood of counts under Poisson distributions, given by the logarithms of their means.
 * @example
 * await new nn.PoissonNLLLoss().forward(new Tensor([0.0]), new Tensor([2.0])).item() // => 1
 */
export class PoissonNLLLoss {
  readonly options: PoissonOptions;
  constructor(options: PoissonOptions = {}) {
    this.options = checkOptions("PoissonNLLLoss", options, ["reduction", "logInput", "full", "eps"]);
  }
  forward(input: Tensor, target: Tensor): Tensor {
    return operations.poissonNllLoss(input, target, this.options);
  }
}
/**
 * The negative log-likelihood of targets under normal distributions, given by means and variances.
 * @example
 * const ones = Tensor.ones(1);
 * await new nn.GaussianNLLLoss().forward(ones, ones.mul(3), ones).item() // => 2
 */
export class GaussianNLLLoss {
  readonly options: GaussianOptions;
  constructor(options: GaussianOptions = {}) {
    this.options = checkOptions("GaussianNLLLoss", options, ["reduction", "full", "eps"]);
  }
  forward(input: Tensor, target: Tensor, variance: Tensor): Tensor {
    return operations.gaussianNllLoss(input, target, variance, this.options);
  }
}
/**
 * The cosine of the angle between vectors along `dim`.
 * @example
 * await new nn.CosineSimilarity().forward(new Tensor([[3.0, 4]]), new Tensor([[4.0, 3]])).tolist() // => [0.96]
 */
export class CosineSimilarity {
  readonly options: CosineOptions;
  constructor(options: CosineOptions = {}) {
    this.options = checkOptions("CosineSimilarity", options, ["dim", "eps"]);
  }
  forward(x1: Tensor, x2: Tensor): Tensor {
    return operations.cosineSimilarity(x1, x2, this.options);
  }
}
/**
 * The distance between vectors along the last dim.
 * @example
 * await new nn.PairwiseDistance({ p: 1 }).forward(new Tensor([[3.0, 4]]), new Tensor([[4.0, 3]])).tolist() // => [2]
 */
export class PairwiseDistance {
  readonly options: PairwiseOptions;
  constructor(options: PairwiseOptions = {}) {
    this.options = checkOptions("PairwiseDistance", options, ["p", "eps", "keepdim"]);
  }
  forward(x1: Tensor, x2: Tensor): Tensor {
    return operations.pairwiseDistance(x1, x2, this.options);
  }
}
