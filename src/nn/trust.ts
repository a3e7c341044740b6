// Optimisers that treat a parameter as a whole: LARS and LAMB scale each update by the norm of the parameter
// (for large batches), Muon makes the update of a matrix orthogonal. Also clipping by the norm of all
// gradients.

import { ArgumentError } from "../errors.ts";
import { prod } from "../helpers.ts";
import { showShape } from "../tensor/show.ts";
import { Tensor } from "../tensor/tensor.ts";
import {
  type AdamOptions,
  type CommonOptions,
  checkRange,
  type Model,
  Moments,
  Optimizer,
  type Params,
  type State,
  tensorsOf,
  type Update,
} from "./optim.ts";

const norm = (t: Tensor): Tensor => t.square().sum().sqrt();

// ---- LARS ----

export interface LARSOptions extends CommonOptions {
  readonly momentum: number;
  readonly weightDecay: number;
  readonly nesterov: boolean;
  /** how far a parameter may move, relative to its norm */
  readonly trustCoefficient: number;
  readonly eps: number;
}

/**
 * SGD whose rate is scaled for every parameter by |w| / (|g| + weightDecay |w|) (You, Gitman, Ginsburg 2017).
 * @example
 * new nn.optim.LARS([Tensor.ones(2, { requiresGrad: true })], { lr: 1 }).lr // => 1
 */
export class LARS extends Optimizer<LARSOptions> {
  static override readonly name: string = "LARS";
  constructor(params: Params<LARSOptions>, options: Partial<LARSOptions> = {}) {
    const rest = { weightDecay: 1e-4, nesterov: false, trustCoefficient: 0.001, eps: 1e-8 };
    super(params, { lr: 1e-3, momentum: 0.9, ...rest, ...options });
  }
  protected override check({ momentum, weightDecay, nesterov, trustCoefficient }: LARSOptions): void {
    checkRange("momentum", momentum, 0, Infinity, "LARS");
    checkRange("weightDecay", weightDecay, 0, Infinity, "LARS");
    checkRange("trustCoefficient", trustCoefficient, 0, Infinity, "LARS");
    if (nesterov && momentum === 0) throw new ArgumentError("LARS: nesterov needs a momentum above 0");
  }
  protected override fresh(p: Tensor, { momentum }: LARSOptions): State {
    return momentum === 0 ? {} : { momentum: this.zeros(p) };
  }
  protected update({ param, value, grad, state, options, lr }: Update<LARSOptions>): void {
    const { momentum, weightDecay, nesterov, trustCoefficient, eps } = options;
    const [w, g] = [norm(value), norm(grad)];
    const ratio = w.mul(trustCoefficient).div(g.add(w.mul(weightDecay)).add(eps));
    const trust = w.gt(0).bitwiseAnd(g.gt(0)).where(ratio, 1);
    let d = grad.add(value.mul(weightDecay)).mul(trust);
    const buffer = state.momentum;
    if (buffer !== undefined) {
      buffer.assign(buffer.mul(momentum).add(d));
      d = nesterov ? d.add(buffer.mul(momentum)) : buffer;
    }
    param.assign(value.sub(d.mul(lr)).cast(param.dtype));
  }
}

// ---- LAMB ----

/**
 * AdamW whose step is scaled for every parameter by |w| / |step| (You et al. 2019).
 * @example
 * new nn.optim.LAMB([Tensor.ones(2, { requiresGrad: true })]).lr // => 0.001
 */
export class LAMB extends Moments<AdamOptions> {
  static override readonly name: string = "LAMB";
  constructor(params: Params<AdamOptions>, options: Partial<AdamOptions> = {}) {
    super(params, { lr: 1e-3, betas: [0.9, 0.999], eps: 1e-6, weightDecay: 0, ...options });
  }
  protected update({ param, value, grad, state, options, lr }: Update<AdamOptions>): void {
    const { weightDecay } = options;
    const pure = this.direction(grad, state, options);
    const d = weightDecay === 0 ? pure : pure.add(value.mul(weightDecay));
    const [w, u] = [norm(value), norm(d)];
    const trust = w.gt(0).bitwiseAnd(u.gt(0)).where(w.div(u), 1);
    param.assign(value.sub(d.mul(trust).mul(lr)).cast(param.dtype));
  }
}

// ---- Muon ----

export interface MuonOptions extends CommonOptions {
  readonly momentum: number;
  readonly nesterov: boolean;
  /** decoupled, as in AdamW */
  readonly weightDecay: number;
  /** the number of iterations that make a matrix orthogonal, and the three coefficients */
  readonly nsSteps: number;
  readonly nsCoefficients: readonly [number, number, number];
  readonly eps: number;
}

/**
 * Momentum made orthogonal by a Newton-Schulz iteration (Jordan et al. 2024), for the matrices of a model;
 * filters of convolutions count as matrices [out, rest]. Give vectors, embeddings and the last layer to
 * AdamW.
 * @example
 * new nn.optim.Muon([Tensor.ones(2, 2, { requiresGrad: true })], { lr: 0.02 }).lr // => 0.02
 */
export class Muon extends Optimizer<MuonOptions> {
  static override readonly name: string = "Muon";
  constructor(params: Params<MuonOptions>, options: Partial<MuonOptions> = {}) {
    const iteration = { nsSteps: 5, nsCoefficients: [3.4445, -4.775, 2.0315] as const, eps: 1e-7 };
    super(params, { lr: 1e-3, momentum: 0.95, nesterov: true, weightDecay: 0.1, ...iteration, ...options });
    const flat = this.params.find((p) => p.ndim < 2);
    if (flat === undefined) return;
    throw new ArgumentError(
      `Muon: a parameter has shape ${showShape(flat.shape)}, expected at least two dims; give vectors to AdamW`,
    );
  }
  protected override check({ momentum, weightDecay, nsSteps }: MuonOptions): void {
    checkRange("momentum", momentum, 0, 1, "Muon");
    checkRange("weightDecay", weightDecay, 0, Infinity, "Muon");
    checkRange("nsSteps", nsSteps, 1, 100, "Muon");
  }
  protected override fresh(p: Tensor): State {
    return { momentum: this.zeros(p) };
  }
  protected update({ param, value, grad, state, options, lr }: Update<MuonOptions>): void {
    const { momentum, nesterov, weightDecay } = options;
    const buffer = state.momentum as Tensor;
    buffer.assign(buffer.mul(momentum).add(grad.mul(1 - momentum)));
    const d = nesterov ? grad.mul(1 - momentum).add(buffer.mul(momentum)) : buffer;
    const [rows, columns] = [param.shape[0] as number, prod(param.shape.slice(1))];
    const turned = orthogonal(d.reshape(rows, columns), options).reshape(param.shape);
    const step = turned.mul(Math.sqrt(Math.max(1, rows / columns)));
    const kept = value.mul(lr.expand(value.shape).mul(-weightDecay).add(1));
    param.assign(kept.sub(step.mul(lr)).cast(param.dtype));
  }
}

/** Moves the singular values close to 1 and keeps the singular vectors. */
function orthogonal(g: Tensor, { nsSteps, nsCoefficients: [a, b, c], eps }: MuonOptions): Tensor {
  const tall = (g.shape[0] as number) > (g.shape[1] as number);
  // the smaller of the two square matrices is cheaper
  let x = tall ? g.T : g;
  x = x.div(norm(x).maximum(eps)).contiguous();
  for (let i = 0; i < nsSteps; i++) {
    const s = x.matmul(x.T).contiguous();
    x = s.mul(b).add(s.matmul(s).mul(c)).matmul(x).add(x.mul(a)).contiguous();
  }
  return tall ? x.T : x;
}

// ---- clipping ----

/**
 * Scales the gradients of `params` (tensors, or a model) so that their joint norm is at most `maxNorm`;
 * returns the norm before.
 * Call it between `backward()` and `step()`.
 * @example
 * const w = new Tensor([3.0, 4.5], { requiresGrad: true });
 * w.mul(new Tensor([3.0, 4.0])).sum().backward();
 * await nn.optim.clipGradNorm([w], 1).item() // => 5
 */
export function clipGradNorm(params: readonly Tensor[] | Model, maxNorm: number): Tensor {
  checkRange("maxNorm", maxNorm, 0, Infinity, "clipGradNorm");
  const given = tensorsOf(params).filter((p) => p.grad !== undefined);
  const [first, ...rest] = given.map((p) => (p.grad as Tensor).cast("float32").square().sum());
  if (first === undefined) {
    throw new ArgumentError("clipGradNorm: no parameter has a gradient; call loss.backward() first");
  }
  const total = rest.reduce((a, b) => a.add(b), first).sqrt();
  const factor = new Tensor(maxNorm).div(total.add(1e-6)).minimum(1);
  for (const p of given) {
    const g = p.grad as Tensor;
    p.grad = g.mul(factor.cast(g.dtype));
  }
  return total;
}
