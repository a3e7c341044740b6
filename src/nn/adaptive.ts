// Optimisers that scale each element by the size of its past gradients: RMSprop, Adagrad, Adadelta and NAdam,
// with the formulas and the defaults of torch.optim. In: parameters and their gradients. Out: parameters and
// state that are updated in place, as in optim.ts.

import { ArgumentError } from "../errors.ts";
import type { Tensor } from "../tensor/tensor.ts";
import {
  type AdamOptions,
  type CommonOptions,
  checkRange,
  Moments,
  Optimizer,
  type Params,
  type State,
  type Update,
} from "./optim.ts";

/** The gradient with weight decay added, as torch does it where decay is not decoupled. */
const decayed = ({ grad, value }: Update<CommonOptions>, weightDecay: number): Tensor =>
  weightDecay === 0 ? grad : grad.add(value.mul(weightDecay));
/** A running mean, in place: `old * rate + x * (1 - rate)`. */
const running = (old: Tensor, x: Tensor, rate: number): Tensor =>
  old.assign(old.mul(rate).add(x.mul(1 - rate)));

// ---- RMSprop ----

export interface RMSpropOptions extends CommonOptions {
  /** how much of the running mean of squares is kept in each step */
  readonly alpha: number;
  readonly eps: number;
  readonly weightDecay: number;
  readonly momentum: number;
  /** divide by the standard deviation of the gradient instead of the root of its mean square */
  readonly centered: boolean;
}

/**
 * Divides the gradient by the root of a running mean of its square, as torch.optim.RMSprop.
 * @example
 * new nn.optim.RMSprop([Tensor.ones(2, { requiresGrad: true })], { momentum: 0.9 }).lr // => 0.01
 */
export class RMSprop extends Optimizer<RMSpropOptions> {
  static override readonly name: string = "RMSprop";
  constructor(params: Params<RMSpropOptions>, options: Partial<RMSpropOptions> = {}) {
    const rest = { eps: 1e-8, weightDecay: 0, momentum: 0, centered: false };
    super(params, { lr: 1e-2, alpha: 0.99, ...rest, ...options });
  }
  protected override check({ alpha, eps, weightDecay, momentum }: RMSpropOptions): void {
    checkRange("alpha", alpha, 0, 1, "RMSprop");
    checkRange("eps", eps, 0, Infinity, "RMSprop");
    checkRange("weightDecay", weightDecay, 0, Infinity, "RMSprop");
    checkRange("momentum", momentum, 0, Infinity, "RMSprop");
  }
  protected override fresh(p: Tensor, { momentum, centered }: RMSpropOptions): State {
    return {
      squareAvg: this.zeros(p),
      ...(centered && { gradAvg: this.zeros(p) }),
      ...(momentum > 0 && { momentumBuffer: this.zeros(p) }),
    };
  }
  protected update(u: Update<RMSpropOptions>): void {
    const { param, value, state, lr } = u;
    const { alpha, eps, weightDecay, momentum } = u.options;
    const { squareAvg, gradAvg, momentumBuffer } = state as { squareAvg: Tensor } & State;
    const g = decayed(u, weightDecay);
    let size = running(squareAvg, g.square(), alpha);
    // rounding must not take the variance of a constant gradient below zero
    if (gradAvg !== undefined) size = size.sub(running(gradAvg, g, alpha).square()).maximum(0);
    let d = g.div(size.sqrt().add(eps));
    if (momentumBuffer !== undefined) d = momentumBuffer.assign(momentumBuffer.mul(momentum).add(d));
    param.assign(value.sub(d.mul(lr)).cast(param.dtype));
  }
}

// ---- Adagrad ----

export interface AdagradOptions extends CommonOptions {
  /** the rate of step t, counted from 0, is lr / (1 + t * lrDecay) */
  readonly lrDecay: number;
  readonly weightDecay: number;
  readonly initialAccumulatorValue: number;
  readonly eps: number;
}

/**
 * Divides the gradient by the root of the sum of all its squares so far, as torch.optim.Adagrad.
 * @example
 * new nn.optim.Adagrad([Tensor.ones(2, { requiresGrad: true })], { lrDecay: 0.1 }).lr // => 0.01
 */
export class Adagrad extends Optimizer<AdagradOptions> {
  static override readonly name: string = "Adagrad";
  constructor(params: Params<AdagradOptions>, options: Partial<AdagradOptions> = {}) {
    const rest = { weightDecay: 0, initialAccumulatorValue: 0, eps: 1e-10 };
    super(params, { lr: 1e-2, lrDecay: 0, ...rest, ...options });
  }
  protected override check(options: AdagradOptions): void {
    for (const name of ["lrDecay", "weightDecay", "initialAccumulatorValue", "eps"] as const) {
      checkRange(name, options[name], 0, Infinity, "Adagrad");
    }
  }
  protected override fresh(p: Tensor, { lrDecay, initialAccumulatorValue: first }: AdagradOptions): State {
    const zeros = this.zeros(p);
    const sum = first === 0 ? zeros : zeros.add(first).contiguous();
    return { sum, ...(lrDecay !== 0 && { step: this.shared(p, "step", -1) }) };
  }
  protected override prepare(active: readonly Update<AdagradOptions>[]): void {
    const counting = active.filter((u) => u.state.step !== undefined);
    this.advance(counting, "step", (step) => step.add(1));
  }
  protected update(u: Update<AdagradOptions>): void {
    const { param, value, state, options, lr } = u;
    const { sum, step } = state as { sum: Tensor } & State;
    const g = decayed(u, options.weightDecay);
    sum.assign(sum.add(g.square()));
    const rate = step === undefined ? lr : lr.div(step.mul(options.lrDecay).add(1));
    param.assign(value.sub(g.div(sum.sqrt().add(options.eps)).mul(rate)).cast(param.dtype));
  }
}

// ---- Adadelta ----

export interface AdadeltaOptions extends CommonOptions {
  /** how much of the two running means is kept in each step */
  readonly rho: number;
  readonly eps: number;
  readonly weightDecay: number;
}

/**
 * Steps in the units of the parameter: the gradient times the ratio of two running root mean squares, of past
 * steps and of gradients, as torch.optim.Adadelta.
 * @example
 * new nn.optim.Adadelta([Tensor.ones(2, { requiresGrad: true })]).lr // => 1
 */
export class Adadelta extends Optimizer<AdadeltaOptions> {
  static override readonly name: string = "Adadelta";
  constructor(params: Params<AdadeltaOptions>, options: Partial<AdadeltaOptions> = {}) {
    super(params, { lr: 1, rho: 0.9, eps: 1e-6, weightDecay: 0, ...options });
  }
  protected override check({ rho, eps, weightDecay }: AdadeltaOptions): void {
    checkRange("rho", rho, 0, 1, "Adadelta");
    checkRange("eps", eps, 0, Infinity, "Adadelta");
    checkRange("weightDecay", weightDecay, 0, Infinity, "Adadelta");
  }
  protected override fresh(p: Tensor): State {
    return { squareAvg: this.zeros(p), accDelta: this.zeros(p) };
  }
  protected update(u: Update<AdadeltaOptions>): void {
    const { param, value, state, lr } = u;
    const { rho, eps, weightDecay } = u.options;
    const { squareAvg, accDelta } = state as { squareAvg: Tensor; accDelta: Tensor };
    const g = decayed(u, weightDecay);
    const size = running(squareAvg, g.square(), rho).add(eps).sqrt();
    const delta = accDelta.detach().add(eps).sqrt().div(size).mul(g);
    running(accDelta, delta.square(), rho);
    param.assign(value.sub(delta.mul(lr)).cast(param.dtype));
  }
}

// ---- NAdam ----

export interface NAdamOptions extends AdamOptions {
  /** how fast the momentum of early steps rises to betas[0] */
  readonly momentumDecay: number;
  /** true: weight decay as in AdamW */
  readonly decoupledWeightDecay: boolean;
}

/**
 * Adam with Nesterov momentum (Dozat 2016), as torch.optim.NAdam.
 * @example
 * new nn.optim.NAdam([Tensor.ones(2, { requiresGrad: true })]).lr // => 0.002
 */
export class NAdam extends Moments<NAdamOptions> {
  static override readonly name: string = "NAdam";
  constructor(params: Params<NAdamOptions>, options: Partial<NAdamOptions> = {}) {
    const rest = { eps: 1e-8, weightDecay: 0, momentumDecay: 4e-3, decoupledWeightDecay: false };
    super(params, { lr: 2e-3, betas: [0.9, 0.999], ...rest, ...options });
  }
  protected override check(options: NAdamOptions): void {
    super.check(options);
    checkRange("momentumDecay", options.momentumDecay, 0, Infinity, "NAdam");
    if (typeof options.decoupledWeightDecay === "boolean") return;
    throw new ArgumentError("NAdam: decoupledWeightDecay is not true or false");
  }
  protected override fresh(p: Tensor, options: NAdamOptions): State {
    const { betas, momentumDecay } = options;
    const { m, v, c2 } = super.fresh(p, options) as { m: Tensor; v: Tensor; c2: Tensor };
    const key = `${betas[0]}|${momentumDecay}`;
    const step = this.shared(p, `step|${key}`, 0);
    return { m, v, c2, step, muProduct: this.shared(p, `mu|${key}`, 1) };
  }
  protected override prepare(active: readonly Update<NAdamOptions>[]): void {
    this.advance(active, "c2", (c, { betas: [, b] }) => c.mul(b).add(1 - b));
    this.advance(active, "step", (step) => step.add(1));
    this.advance(active, "muProduct", (product, options, { step }) =>
      product.mul(momentumAt(step as Tensor, options)),
    );
  }
  protected update(u: Update<NAdamOptions>): void {
    const { param, value, state, options, lr } = u;
    const { m, v, c2, step, muProduct } = state as Record<"m" | "v" | "c2" | "step" | "muProduct", Tensor>;
    const { betas, eps, weightDecay, decoupledWeightDecay } = options;
    const kept = decoupledWeightDecay ? value.mul(lr.expand(value.shape).mul(-weightDecay).add(1)) : value;
    const g = decoupledWeightDecay ? u.grad : decayed(u, weightDecay);
    running(m, g, betas[0]);
    running(v, g.square(), betas[1]);
    const size = v.div(c2).sqrt().add(eps);
    const [mu, next] = [momentumAt(step, options), momentumAt(step.add(1), options)];
    const now = lr.mul(mu.neg().add(1)).div(muProduct.neg().add(1));
    const later = lr.mul(next).div(muProduct.mul(next).neg().add(1));
    param.assign(kept.sub(g.mul(now).add(m.mul(later)).div(size)).cast(param.dtype));
  }
}

/** The momentum of a step: beta1 * (1 - 0.96^(step * momentumDecay) / 2). */
const momentumAt = (step: Tensor, { betas: [b1], momentumDecay }: NAdamOptions): Tensor =>
  step
    .mul(momentumDecay * Math.log2(0.96))
    .exp2()
    .mul(-0.5 * b1)
    .add(b1);
