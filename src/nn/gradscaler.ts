// Loss scaling for float16, whose small gradients would be zero: the loss is multiplied before `backward`,
// the gradients are divided after it, and a step whose gradients overflowed changes nothing. In: a loss, and
// optimisers. Out: their steps. Whether a step counts is a tensor that never comes to the host, so that all
// of it can be captured by TinyJit.

import { ArgumentError } from "../errors.ts";
import { area } from "../tensor/areas.ts";
import { Tensor } from "../tensor/tensor.ts";
import { checkRange, type Optimizer } from "./optim.ts";

export interface GradScalerOptions {
  /** default: 65536 */
  readonly initScale?: number;
  /** the factor after `growthInterval` steps without overflow; default: 2 */
  readonly growthFactor?: number;
  /** the factor after a step that overflowed; default: 0.5 */
  readonly backoffFactor?: number;
  /** default: 2000 */
  readonly growthInterval?: number;
  /** false: the loss, gradients and steps are left as they are; default: true */
  readonly enabled?: boolean;
  /** where the scale is; default: Device.DEFAULT */
  readonly device?: string;
}

/**
 * Scales a loss for float16, and skips the steps whose gradients are infinite or NaN, as
 * torch.amp.GradScaler. `growthTracker` counts the steps since the scale changed. `nn.save` and `nn.load`
 * take a scaler as they take a model.
 * @example
 * const w = Tensor.ones(2, { requiresGrad: true });
 * const [opt, scaler] = [new nn.optim.SGD([w], { lr: 0.5 }), new nn.GradScaler()];
 * scaler.scale(w.sum()).backward();
 * await scaler.step(opt);
 * await scaler.update();
 * [await w.tolist(), await scaler.scaling.item()] // => [[0.5, 0.5], 65536]
 */
export class GradScaler {
  /** what losses are multiplied by */
  readonly scaling: Tensor;
  readonly growthTracker: Tensor;
  readonly growthFactor: number;
  readonly backoffFactor: number;
  readonly growthInterval: number;
  readonly enabled: boolean;
  /** of each optimiser since the last `update`: whether its gradients are finite, whether it has stepped */
  readonly #seen = new Map<Optimizer, { readonly finite: Tensor; stepped: boolean }>();

  constructor(options: GradScalerOptions = {}) {
    const { initScale = 2 ** 16, growthFactor = 2, backoffFactor = 0.5, growthInterval = 2000 } = options;
    checkRange("initScale", initScale, Number.MIN_VALUE, Infinity, "GradScaler");
    checkRange("growthFactor", growthFactor, 1 + Number.EPSILON, Infinity, "GradScaler");
    checkRange("backoffFactor", backoffFactor, Number.MIN_VALUE, 1 - Number.EPSILON, "GradScaler");
    if (!Number.isInteger(growthInterval) || growthInterval < 1)
      throw new ArgumentError(`GradScaler: growthInterval is ${growthInterval}, expected an integer >= 1`);
    const place = options.device === undefined ? {} : { device: options.device };
    this.scaling = new Tensor([initScale], { dtype: "float32", ...place }).reshape([]);
    this.growthTracker = new Tensor([0], { dtype: "int32", ...place }).reshape([]);
    this.growthFactor = growthFactor;
    this.backoffFactor = backoffFactor;
    this.growthInterval = growthInterval;
    this.enabled = options.enabled ?? true;
  }

  /** The loss to call `backward()` on. */
  scale(loss: Tensor): Tensor {
    return this.enabled ? loss.cast("float32").mul(this.scaling.to(loss.device)) : loss;
  }

  /** Divides the gradients by the scale, to clip them before `step`, which calls it otherwise. */
  unscale_(optimizer: Optimizer): void {
    if (!this.enabled) return;
    if (this.#seen.has(optimizer))
      throw new ArgumentError(
        "GradScaler.unscale_: called twice for an optimizer; call update() after its step",
      );
    const params = optimizer.params.filter((p) => p.grad !== undefined);
    if (params.length === 0) {
      throw new ArgumentError(
        "GradScaler.unscale_: no parameter has a gradient; call scaler.scale(loss).backward() first",
      );
    }
    const { device } = this.scaling;
    const finite = Tensor.noGrad(() =>
      Tensor.autocast(false, () =>
        params.map((p) => {
          // not in float16, where what was scaled up for would be lost again
          const g = (p.grad as Tensor).cast(p.dtype.itemsize < 4 ? "float32" : p.dtype);
          p.grad = g.mul(this.scaling.to(p.device).reciprocal());
          return p.grad.isfinite().all().to(device);
        }),
      ),
    ).reduce((a, b) => a.logicalAnd(b));
    this.#seen.set(optimizer, { finite, stepped: false });
  }

  /** The step of an optimiser, with its arguments: it changes nothing if a gradient is infinite or NaN. */
  async step(optimizer: Optimizer, ...also: readonly Tensor[]): Promise<void> {
    if (!this.enabled) return optimizer.step(...also);
    if (!this.#seen.has(optimizer)) this.unscale_(optimizer);
    const seen = this.#seen.get(optimizer) as { readonly finite: Tensor; stepped: boolean };
    if (seen.stepped)
      throw new ArgumentError("GradScaler.step: called twice for an optimizer; call update() after its step");
    seen.stepped = true;
    const { onlyIf } = area("autocast");
    onlyIf(optimizer, seen.finite);
    try {
      // it makes its updates before it waits
      return optimizer.step(seen.finite, ...also);
    } finally {
      onlyIf(optimizer, undefined);
    }
  }

  /** After the steps: a smaller scale if a gradient overflowed, a larger one after many without that. */
  async update(): Promise<void> {
    if (!this.enabled) return;
    const all = [...this.#seen.values()];
    if (all.length === 0)
      throw new ArgumentError(
        "GradScaler.update: no optimizer has stepped since the last call; call step() first",
      );
    this.#seen.clear();
    const { scaling, growthTracker, growthFactor, backoffFactor, growthInterval } = this;
    const next = Tensor.noGrad(() => {
      const finite = all.map((s) => s.finite).reduce((a, b) => a.logicalAnd(b));
      const count = finite.where(growthTracker.add(1), 0);
      const isDue = count.ge(growthInterval);
      const grown = scaling.mul(growthFactor);
      const larger = isDue.logicalAnd(grown.isfinite()).where(grown, scaling);
      return [finite.where(larger, scaling.mul(backoffFactor)), isDue.where(0, count)] as const;
    });
    await Tensor.realize(scaling.assign(next[0]), growthTracker.assign(next[1]));
  }
}
