// Losses as objects, with torch's names: options once, then `forward(input, target)` in every step. In:
// predictions and targets. Out: what the method of Tensor gives.

import type { KlDivOptions } from "../tensor/losses/likelihood.ts";
import type {
  BceOptions,
  ClassLossOptions,
  CrossEntropyOptions,
  LossOptions,
  WeightedLossOptions,
} from "../tensor/losses/loss.ts";
import type { Tensor } from "../tensor/tensor.ts";
import * as loss from "./operations.ts";
import { checkOptions } from "./options.ts";

type SmoothL1LossOptions = LossOptions & { readonly beta?: number };
type HuberLossOptions = LossOptions & { readonly delta?: number };
type KLDivLossOptions = KlDivOptions;

/**
 * The mean of the squared differences.
 * @example
 * await new nn.MSELoss().forward(new Tensor([1.0, 2]), new Tensor([1.0, 4])).item() // => 2
 */
export class MSELoss {
  readonly options: WeightedLossOptions<Tensor>;
  constructor(options: WeightedLossOptions<Tensor> = {}) {
    this.options = checkOptions("MSELoss", options, ["reduction", "weight"]);
  }
  forward(input: Tensor, target: Tensor): Tensor {
    return loss.mseLoss(input, target, this.options);
  }
}
/**
 * The mean of the absolute differences.
 * @example
 * await new nn.L1Loss().forward(new Tensor([1.0, 2]), new Tensor([1.0, 4])).item() // => 1
 */
export class L1Loss {
  readonly options: WeightedLossOptions<Tensor>;
  constructor(options: WeightedLossOptions<Tensor> = {}) {
    this.options = checkOptions("L1Loss", options, ["reduction", "weight"]);
  }
  forward(input: Tensor, target: Tensor): Tensor {
    return loss.l1Loss(input, target, this.options);
  }
}
/**
 * Squared below `beta`, absolute above.
 * @example
 * await new nn.SmoothL1Loss().forward(new Tensor([1.0, 2]), new Tensor([1.0, 4])).item() // => 0.75
 */
export class SmoothL1Loss {
  readonly options: SmoothL1LossOptions;
  constructor(options: SmoothL1LossOptions = {}) {
    this.options = checkOptions("SmoothL1Loss", options, ["reduction", "beta"]);
  }
  forward(input: Tensor, target: Tensor): Tensor {
    return loss.smoothL1Loss(input, target, this.options);
  }
}
/**
 * Squared below `delta`, delta times absolute above.
 * @example
 * await new nn.HuberLoss().forward(new Tensor([1.0, 2]), new Tensor([1.0, 4])).item() // => 0.75
 */
export class HuberLoss {
  readonly options: HuberLossOptions;
  constructor(options: HuberLossOptions = {}) {
    this.options = checkOptions("HuberLoss", options, ["reduction", "delta"]);
  }
  forward(input: Tensor, target: Tensor): Tensor {
    return loss.huberLoss(input, target, this.options);
  }
}
/**
 * How surprised logits are by classes (integers), or by probabilities of classes.
 * @example
 * await new nn.CrossEntropyLoss().forward(new Tensor([[0.0, 0]]), new Tensor([1])).item() // => 0.6931
 */
export class CrossEntropyLoss {
  readonly options: CrossEntropyOptions<Tensor>;
  constructor(options: CrossEntropyOptions<Tensor> = {}) {
    this.options = checkOptions("CrossEntropyLoss", options, [
      "reduction",
      "weight",
      "ignoreIndex",
      "labelSmoothing",
    ]);
  }
  forward(input: Tensor, target: Tensor): Tensor {
    return loss.crossEntropy(input, target, this.options);
  }
}
/**
 * As CrossEntropyLoss, of log-probabilities instead of logits.
 * @example
 * await new nn.NLLLoss().forward(new Tensor([[-0.5, -2]]), new Tensor([1])).item() // => 2
 */
export class NLLLoss {
  readonly options: ClassLossOptions<Tensor>;
  constructor(options: ClassLossOptions<Tensor> = {}) {
    this.options = checkOptions("NLLLoss", options, ["reduction", "weight", "ignoreIndex"]);
  }
  forward(input: Tensor, target: Tensor): Tensor {
    return loss.nllLoss(input, target, this.options);
  }
}
/**
 * How surprised probabilities are by targets 0 and 1.
 * @example
 * await new nn.BCELoss().forward(new Tensor([0.5]), new Tensor([1.0])).item() // => 0.6931
 */
export class BCELoss {
  readonly options: WeightedLossOptions<Tensor>;
  constructor(options: WeightedLossOptions<Tensor> = {}) {
    this.options = checkOptions("BCELoss", options, ["reduction", "weight"]);
  }
  forward(input: Tensor, target: Tensor): Tensor {
    return loss.binaryCrossEntropy(input, target, this.options);
  }
}
/**
 * As BCELoss, of logits instead of probabilities; exact also for large ones.
 * @example
 * await new nn.BCEWithLogitsLoss().forward(new Tensor([0.0]), new Tensor([1.0])).item() // => 0.6931
 */
export class BCEWithLogitsLoss {
  readonly options: BceOptions<Tensor>;
  constructor(options: BceOptions<Tensor> = {}) {
    this.options = checkOptions("BCEWithLogitsLoss", options, ["reduction", "weight", "posWeight"]);
  }
  forward(input: Tensor, target: Tensor): Tensor {
    return loss.bceWithLogits(input, target, this.options);
  }
}
/**
 * How far log-probabilities are from target probabilities.
 * @example
 * await new nn.KLDivLoss({ reduction: "sum" }).forward(new Tensor([-1.0]), new Tensor([1.0])).item() // => 1
 */
export class KLDivLoss {
  readonly options: KLDivLossOptions;
  constructor(options: KLDivLossOptions = {}) {
    this.options = checkOptions("KLDivLoss", options, ["reduction", "logTarget"]);
  }
  forward(input: Tensor, target: Tensor): Tensor {
    return loss.klDiv(input, target, this.options);
  }
}
