// Learning rate schedules. A rule gives the rate of a step; a scheduler applies it to the groups of an
// optimiser. The rate is a tensor that the kernels read, so that a change costs a copy of four bytes and
// compiles nothing.

import { ArgumentError } from "../errors.ts";

/** Something with learning rates to set: an optimiser. */
export type Scheduled = { readonly groups: readonly { lr: number }[] };
/** The rate at `step` (0, 1, …) of a group whose base rate is `base`. */
export type RateRule = (step: number, base: number) => number;

/**
 * Sets the rate of every group by a rule: immediately for step 0, then with every `step()` for the next one.
 * @example
 * const opt = new nn.optim.SGD([Tensor.ones(1, { requiresGrad: true })], { lr: 1 });
 * new nn.optim.LRScheduler(opt, (_, base) => base / 4).lr // => 0.25
 */
export class LRScheduler {
  readonly #groups: readonly { lr: number }[];
  readonly #rule: RateRule;
  #bases: readonly number[];
  #step = 0;

  constructor(optimizer: Scheduled, rule: RateRule, lastStep = 0) {
    if (!Array.isArray(optimizer.groups)) {
      throw new ArgumentError(`LRScheduler: got a ${optimizer.constructor.name}, expected an optimiser`);
    }
    this.#groups = optimizer.groups;
    this.#rule = rule;
    this.#bases = optimizer.groups.map((g) => g.lr);
    this.step(lastStep);
  }
  /** The number of steps taken; pass it to a new scheduler to continue from there. */
  get lastStep(): number {
    return this.#step;
  }
  /** The current rate of the first group. */
  get lr(): number {
    return this.#groups[0]?.lr ?? NaN;
  }
  /** What `nn.save` keeps. */
  stateDict(): { readonly lastStep: number; readonly bases: readonly number[] } {
    return { lastStep: this.#step, bases: [...this.#bases] };
  }
  /** Goes on from a saved step, with the saved base rates. */
  loadStateDict(state: { readonly lastStep: number; readonly bases: readonly number[] }): void {
    if (
      !Number.isInteger(state?.lastStep) ||
      !Array.isArray(state.bases) ||
      state.bases.some((x) => typeof x !== "number")
    ) {
      throw new ArgumentError("LRScheduler: the state is not one of stateDict(): { lastStep, bases }");
    }
    if (state.bases.length !== this.#bases.length) {
      throw new ArgumentError(
        `LRScheduler: the state has rates of ${state.bases.length} groups, the optimizer has ${this.#bases.length}`,
      );
    }
    this.#bases = [...state.bases];
    this.step(state.lastStep);
  }
  /** Call it after each step of the optimiser. */
  step(to = this.#step + 1): void {
    this.#step = to;
    this.#groups.forEach((g, i) => {
      g.lr = this.#rule(to, this.#bases[i] as number);
    });
  }
}

function positive(who: string, name: string, n: number): void {
  if (n > 0) return;
  throw new ArgumentError(`${who}: ${name} is ${n}, expected a number above 0`);
}
const between = (from: number, to: number, part: number): number => from + (to - from) * part;
const halfCosine = (from: number, to: number, part: number): number =>
  to + ((from - to) / 2) * (1 + Math.cos(Math.PI * part));

/**
 * From the base rate down to `min` along half a cosine in `steps` steps; after them up again, as in torch.
 * @example
 * nn.optim.cosine({ steps: 10 })(5, 1).toFixed(3) // => "0.500"
 */
export function cosine({ steps, min = 0 }: { steps: number; min?: number }): RateRule {
  positive("cosine", "steps", steps);
  return (step, base) => {
    if (min <= base) return halfCosine(base, min, step / steps);
    throw new ArgumentError(
      `cosine: min ${min} is above the base rate ${base}; it is a rate, not a part of it; write { min: ${base / 10} } or leave it out`,
    );
  };
}

/**
 * Linear from `start` times the base rate to `end` times in `steps` steps, then constant.
 * @example
 * nn.optim.linear({ steps: 4, start: 0 })(1, 1) // => 0.25
 */
export function linear({
  steps,
  start = 1 / 3,
  end = 1,
}: {
  steps: number;
  start?: number;
  end?: number;
}): RateRule {
  positive("linear", "steps", steps);
  return (step, base) => base * between(start, end, Math.min(1, step / steps));
}

/**
 * A linear rise over `steps` steps, the first at 1/steps of the rate; then the rule `after`, which counts
 * from 0.
 * @example
 * [0, 1, 2].map((i) => nn.optim.warmup(2, nn.optim.cosine({ steps: 8 }))(i, 1)) // => [0.5, 1, 1]
 */
export function warmup(steps: number, after: RateRule = (_, base) => base): RateRule {
  positive("warmup", "steps", steps);
  return (step, base) => (step < steps ? (after(0, base) * (step + 1)) / steps : after(step - steps, base));
}

/**
 * Multiplies the rate by `gamma` after every `size` steps.
 * @example
 * nn.optim.stepDecay({ size: 10, gamma: 0.5 })(20, 1) // => 0.25
 */
export function stepDecay({ size, gamma = 0.1 }: { size: number; gamma?: number }): RateRule {
  positive("stepDecay", "size", size);
  return (step, base) => base * gamma ** Math.floor(step / size);
}

export interface OneCycleOptions {
  readonly maxLr: number;
  readonly totalSteps: number;
  /** the fraction of the steps in which the rate rises */
  readonly pctStart?: number;
  /** the first rate is maxLr / divFactor */
  readonly divFactor?: number;
  /** the last rate is the first / finalDivFactor */
  readonly finalDivFactor?: number;
  readonly annealStrategy?: "cos" | "linear";
}

/**
 * Up to `maxLr` and down again within `totalSteps` (Smith and Topin 2018), as torch's OneCycleLR.
 * @example
 * nn.optim.oneCycle({ maxLr: 1, totalSteps: 11, pctStart: 0.5 })(0, 1) // => 0.04
 */
export function oneCycle(options: OneCycleOptions): RateRule {
  const { maxLr, totalSteps, pctStart = 0.3, divFactor = 25, finalDivFactor = 1e4 } = options;
  positive("oneCycle", "totalSteps", totalSteps);
  const anneal = options.annealStrategy === "linear" ? between : halfCosine;
  const first = maxLr / divFactor;
  const last = first / finalDivFactor;
  const top = pctStart * totalSteps - 1;
  const end = totalSteps - 1;
  return (step) => {
    if (step > end + 1) {
      throw new ArgumentError(
        `oneCycle: step ${step} is after the last of ${totalSteps} steps; raise totalSteps`,
      );
    }
    if (step <= top) return anneal(first, maxLr, top === 0 ? 1 : step / top);
    return anneal(maxLr, last, end === top ? 1 : Math.min(1, (step - top) / (end - top)));
  };
}

// torch's names for the same rules

/**
 * `cosine` under torch's name: `new CosineAnnealingLR(opt, { tMax: 100, etaMin: 0 })`.
 * @example
 * const w = Tensor.ones(2, { requiresGrad: true });
 * const opt = new nn.optim.SGD([w], { lr: 0.1 });
 * const rates = new nn.optim.CosineAnnealingLR(opt, { tMax: 2 });
 * for (let i = 0; i < 2; i++) rates.step();
 * opt.lr // => 0
 */
export class CosineAnnealingLR extends LRScheduler {
  constructor(optimizer: Scheduled, { tMax, etaMin = 0 }: { tMax: number; etaMin?: number }, lastStep = 0) {
    super(optimizer, cosine({ steps: tMax, min: etaMin }), lastStep);
  }
}
/**
 * `oneCycle` as a scheduler.
 * @example
 * const w = Tensor.ones(2, { requiresGrad: true });
 * const opt = new nn.optim.SGD([w], { lr: 0.1 });
 * new nn.optim.OneCycleLR(opt, { maxLr: 1, totalSteps: 10 });
 * opt.lr // => 0.04
 */
export class OneCycleLR extends LRScheduler {
  constructor(optimizer: Scheduled, options: OneCycleOptions, lastStep = 0) {
    super(optimizer, oneCycle(options), lastStep);
  }
}
/**
 * `linear` under torch's name: warm-up from `startFactor` of the rate to `endFactor` of it in `totalIters`
 * steps.
 * @example
 * const w = Tensor.ones(2, { requiresGrad: true });
 * const opt = new nn.optim.SGD([w], { lr: 0.1 });
 * new nn.optim.LinearLR(opt, { startFactor: 0.5, totalIters: 4 });
 * opt.lr // => 0.05
 */
export class LinearLR extends LRScheduler {
  constructor(
    optimizer: Scheduled,
    {
      startFactor = 1 / 3,
      endFactor = 1,
      totalIters = 5,
    }: { startFactor?: number; endFactor?: number; totalIters?: number } = {},
    lastStep = 0,
  ) {
    super(optimizer, linear({ steps: totalIters, start: startFactor, end: endFactor }), lastStep);
  }
}
/**
 * `stepDecay` under torch's name.
 * @example
 * const w = Tensor.ones(2, { requiresGrad: true });
 * const opt = new nn.optim.SGD([w], { lr: 0.1 });
 * new nn.optim.StepLR(opt, { stepSize: 1 }).step();
 * opt.lr // => 0.01
 */
export class StepLR extends LRScheduler {
  constructor(
    optimizer: Scheduled,
    { stepSize, gamma = 0.1 }: { stepSize: number; gamma?: number },
    lastStep = 0,
  ) {
    super(optimizer, stepDecay({ size: stepSize, gamma }), lastStep);
  }
}
/**
 * A rule given as a factor of the base rate: `new LambdaLR(opt, (step) => 0.95 ** step)`.
 * @example
 * const w = Tensor.ones(2, { requiresGrad: true });
 * const opt = new nn.optim.SGD([w], { lr: 0.1 });
 * new nn.optim.LambdaLR(opt, (step) => 0.5 ** step).step();
 * opt.lr // => 0.05
 */
export class LambdaLR extends LRScheduler {
  constructor(optimizer: Scheduled, factor: (step: number) => number, lastStep = 0) {
    super(optimizer, (step, base) => base * factor(step), lastStep);
  }
}
