// Optimisers: their common part, and SGD, Adam, AdamW. A step is lazy until it realises everything that
// changed at once. Parameters and state are updated in place by `assign`. Learning rates are small tensors on
// the device that the kernels read, so that changing one compiles nothing.

import { camel, describe } from "../arguments.ts";
import { type DType, dtypes } from "../dtype.ts";
import { ArgumentError, DeviceError } from "../errors.ts";
import { getOrMake, isPlain } from "../helpers.ts";
import { area } from "../tensor/areas.ts";
import type { NarrowOptions } from "../tensor/autocast/index.ts";
import { showShape } from "../tensor/show.ts";
import { Tensor } from "../tensor/tensor.ts";
import { getParameters } from "./state.ts";
import { takeUpdates } from "./updates.ts";

/** The tensors that an optimiser keeps for one parameter. */
export type State = Record<string, Tensor>;
/** The options that every optimiser has for each group. */
export interface CommonOptions extends NarrowOptions {
  /** the learning rate */
  readonly lr: number;
  /** maximise the loss instead of minimising it; default: false */
  readonly maximize?: boolean;
}
/** Parameters with options of their own; missing options are those of the optimiser. */
export type Group<O extends CommonOptions> = { readonly params: readonly Tensor[] | Model } & Partial<O>;
/** What has parameters: a model, or a list of models. */
export type Model = { forward(...args: never[]): unknown };
export type Params<O extends CommonOptions> =
  | readonly Tensor[]
  | readonly Group<O>[]
  | Model
  | readonly Model[];

/** The dtype in which updates are computed: half-width floats would lose small steps. */
const workType = (d: DType): DType => (d === dtypes.float64 ? d : dtypes.float32);

/** Copied from the host: a constant would become part of the kernel. */
const hostScalar = (x: number, dtype: DType, device: string): Tensor =>
  new Tensor([x], { dtype, device }).reshape([]);

/** A number for the kernels of parameter `p`, one of its `key` for each device and dtype. */
function scalarFor(known: Map<string, Tensor>, { dtype, device }: Tensor, key: string, x: number): Tensor {
  const type = workType(dtype);
  return getOrMake(known, `${device}|${type.name}|${key}`, () => hostScalar(x, type, device));
}

/**
 * Parameters that share options. `lr` may be set at any time; it applies from the next step.
 * @example
 * const w = Tensor.ones(2, { requiresGrad: true });
 * const opt = new nn.optim.SGD([w], { lr: 0.1 });
 * opt.groups[0].params.length // => 1
 */
export class ParamGroup<O extends CommonOptions> {
  readonly options: O;
  readonly #params: readonly Tensor[];
  #lr: number;
  /** the rate, which kernels read from memory: one tensor for each device and dtype that needs it */
  readonly #rates = new Map<string, Tensor>();

  constructor(params: readonly Tensor[], options: O) {
    this.#params = params;
    this.options = options;
    this.#lr = options.lr;
  }
  get params(): readonly Tensor[] {
    return this.#params;
  }
  get lr(): number {
    return this.#lr;
  }
  set lr(x: number) {
    checkRange("lr", x, 0, Infinity);
    if (x === this.#lr) return;
    this.#lr = x;
    for (const t of this.#rates.values()) t.assign(hostScalar(x, t.dtype, t.device));
  }
  /** The learning rate tensor for the kernels of parameter `p`. */
  lrFor(p: Tensor): Tensor {
    return scalarFor(this.#rates, p, "", this.#lr);
  }
  get tensors(): Iterable<Tensor> {
    return this.#rates.values();
  }
}

/** One parameter's part of a step. */
export interface Update<O extends CommonOptions> {
  readonly param: Tensor;
  /** the parameter's value and gradient in the dtype in which updates are computed */
  readonly value: Tensor;
  readonly grad: Tensor;
  readonly state: State;
  readonly options: O;
  readonly lr: Tensor;
}

/**
 * The common part of all optimisers: groups of parameters with options of their own, `zeroGrad` and `step`.
 * @example
 * const [a, b] = [Tensor.ones(2, { requiresGrad: true }), Tensor.ones(3, { requiresGrad: true })];
 * const opt = new nn.optim.SGD([{ params: [a] }, { params: [b], lr: 0.5 }], { lr: 0.1 });
 * opt.groups.map((g) => g.lr) // => [0.1, 0.5]
 */
export abstract class Optimizer<O extends CommonOptions = CommonOptions> {
  readonly #groups: readonly ParamGroup<O>[];
  /** by parameter, in the given order: what `nn.getStateDict(optimizer)` saves */
  readonly state: readonly State[];

  constructor(params: Params<O>, defaults: O) {
    const name = this.constructor.name;
    requireGroups(name, params);
    const list = isGroups([params]) ? ([params] as unknown as Params<O>) : params; // a group by itself
    this.#groups = (isGroups(list) ? list : [{ params: list }]).map(
      ({ params: some, ...own }) =>
        new ParamGroup(tensorsOf(some), ownOptions(name, { maximize: false, ...defaults }, own)),
    );
    const all = this.params;
    if (all.length === 0) throw new ArgumentError(`${name}: got no parameters; give a model or its tensors`);
    checkParams(name, all);
    for (const g of this.#groups) {
      checkRange("lr", g.lr, 0, Infinity, name);
      this.check(g.options);
    }
    this.state = this.#groups.flatMap((g) => g.params.map((p) => this.fresh(p, g.options)));
    if ((defaults.masterWeights ?? defaults.stateDtype) != null) area("autocast").keep(this);
  }

  get groups(): readonly ParamGroup<O>[] {
    return this.#groups;
  }
  get params(): Tensor[] {
    return this.#groups.flatMap((g) => g.params);
  }
  /** The learning rate of the first group; setting it sets all groups. */
  get lr(): number {
    return (this.#groups[0] as ParamGroup<O>).lr;
  }
  set lr(x: number) {
    for (const g of this.#groups) g.lr = x;
  }

  /** Drops the gradients; otherwise `backward` adds to them. */
  zeroGrad(): void {
    for (const p of this.params) p.grad = undefined;
  }

  /**
   * Updates every parameter that has a gradient and realises everything now: the updates, pending updates of
   * layers (running statistics), and the tensors `also`. A loss that is printed costs nothing extra that way.
   * The parameters have their new values from this call on, also where it is not awaited; `await` waits until
   * they are computed.
   */
  async step(...also: readonly Tensor[]): Promise<void> {
    const active = this.#active();
    const first = allocated(active.flatMap(({ param, state }) => [param, ...Object.values(state)]));
    Tensor.noGrad(() => {
      this.prepare(active);
      for (const u of active) this.update(u);
    });
    const own = active.flatMap(({ param, state }) => [param, param.grad as Tensor, ...Object.values(state)]);
    const scalars = this.#groups.flatMap((g) => [...g.tensors]);
    await Promise.all([first, Tensor.realize(...new Set([...own, ...scalars, ...takeUpdates(), ...also]))]);
  }

  /** The tensors to keep for a parameter: names and initial values. */
  protected fresh(_param: Tensor, _options: O): State {
    return {};
  }
  /** Refuses options outside their range. */
  protected check(_options: O): void {}
  /** Runs once per step, before the updates: counting. */
  protected prepare(_active: readonly Update<O>[]): void {}
  protected abstract update(u: Update<O>): void;

  /** Initial zeros, in memory of their own. */
  protected zeros(like: Tensor, shape = like.lazydata.shape): Tensor {
    const dtype = workType(like.dtype);
    if (shape === like.lazydata.shape) return new Tensor(like.lazydata.const(0, dtype).contiguous());
    return Tensor.full(shape, 0, { dtype, device: like.device }).contiguous();
  }
  /**
   * An initial number, shared by all parameters of one device, dtype and `key` until one of them skips a
   * step.
   */
  protected shared(like: Tensor, key: string, value: number): Tensor {
    return scalarFor(this.#shared, like, key, value);
  }
  readonly #shared = new Map<string, Tensor>();

  /**
   * Replaces the shared numbers `name` by `next` of them, once each. A parameter that skips this step keeps
   * the old one.
   */
  protected advance(
    active: readonly Update<O>[],
    name: string,
    next: (old: Tensor, options: O, state: State) => Tensor,
  ): void {
    const states = new Set(active.map((u) => u.state));
    const idle = new Set(this.state.filter((s) => !states.has(s)).map((s) => s[name]));
    const made = new Map<Tensor, Tensor>();
    for (const { state, options } of active) {
      const old = state[name] as Tensor;
      state[name] = getOrMake(made, old, () => {
        const own = idle.has(old) ? copyOf(old) : old;
        return own.assign(next(own, options, state));
      });
    }
  }

  #active(): Update<O>[] {
    const found: Update<O>[] = [];
    let i = 0;
    for (const g of this.#groups) {
      for (const param of g.params) {
        const state = this.state[i++] as State;
        const { grad } = param;
        if (grad === undefined) continue;
        requireTogether(this.constructor.name, param, state);
        const work = workType(param.dtype);
        const value = param.detach().cast(work);
        const { options } = g;
        const down = grad.detach().cast(work);
        const own = options.maximize ? down.neg() : down;
        found.push({ param, value, grad: own, state, options, lr: g.lrFor(param) });
      }
    }
    if (found.length > 0) return found;
    throw new ArgumentError(
      `${this.constructor.name}.step: no parameter has a gradient; call loss.backward() first`,
    );
  }
}

const isGroups = <O extends CommonOptions>(
  params: Params<O> | readonly unknown[],
): params is readonly Group<O>[] =>
  Array.isArray(params) && params.length > 0 && params.every((p) => isPlain(p) && "params" in p);

/** A list of groups in which `params` is missing or spelt otherwise would be taken for a model. */
function requireGroups(name: string, params: Params<never> | readonly unknown[]): void {
  if (!Array.isArray(params)) return;
  const wrong = params.find(
    (p) => isPlain(p) && !("params" in p) && Object.keys(p).some((k) => /^(?:param|lr$)/.test(k)),
  );
  if (wrong === undefined) return;
  const keys = Object.keys(wrong as object).join(", ");
  throw new ArgumentError(`${name}: a group has { ${keys} } and no params; write [{ params: …, lr: … }]`);
}

/** The tensors of a list, or the parameters of a model. */
export const tensorsOf = (params: readonly Tensor[] | Model | readonly Model[]): readonly Tensor[] =>
  Array.isArray(params) && params.every((p) => p instanceof Tensor) ? params : getParameters(params);

/** The options of a group: those of the optimiser, and its own, which must be among them. */
function ownOptions<O extends object>(name: string, defaults: O, own: object): O {
  const entries = Object.entries(own).map(([given, x]) => {
    const key = given in defaults ? given : camel(given);
    if (key in defaults) return [key, x];
    const known = Object.keys(defaults).join(", ");
    throw new ArgumentError(`${name}: unknown option ${given} of a group; write { params, ${known} }`);
  });
  return { ...defaults, ...Object.fromEntries(entries) };
}

/**
 * Before the first step parameters and state have no memory, and assign needs some to write to. They are
 * computed before anything that is asked for later, so that assigns need not wait for it.
 */
function allocated(tensors: readonly Tensor[]): Promise<void> | undefined {
  const bare = tensors.filter((t) => !t.lazydata.hasMemory);
  if (bare.length === 0) return undefined;
  const done = Tensor.realize(...bare);
  for (const { lazydata } of bare) {
    if (lazydata.isUnrealizedConst) continue;
    for (const part of lazydata.parts) if (part.isWhole) part.base.promised = true;
  }
  return done;
}

const copyOf = (t: Tensor): Tensor => new Tensor(t.lazydata.duplicate());

function checkParams(name: string, params: readonly Tensor[]): void {
  const seen = new Set<Tensor>();
  for (const p of params) {
    if (!(p instanceof Tensor))
      throw new ArgumentError(`${name}: a parameter is a ${typeof p}, expected a Tensor`);
    const fault =
      (seen.has(p) && "is given twice; give each parameter once") ||
      (!p.dtype.isFloat && "cannot be trained; expected a float dtype") ||
      (!p.requiresGrad && "gets no gradient; set requiresGrad, or leave it out") ||
      (p.context && "was computed from others; train those, or detach() it first");
    if (fault)
      throw new ArgumentError(
        `${name}: a parameter of shape ${showShape(p.shape)} and dtype ${p.dtype.name} ${fault}`,
      );
    seen.add(p);
  }
}

function requireTogether(name: string, param: Tensor, state: State): void {
  const apart = Object.values(state).find((t) => t.device !== param.device);
  if (apart !== undefined)
    throw new DeviceError(
      `${name}.step: a parameter of shape ${showShape(param.shape)} is on ${param.device}, its state on ${apart.device}; ` +
        "create the optimizer after moving or sharding the parameters",
    );
}

/** Refuses an option outside `low` to `high`. */
export function checkRange(option: string, x: number, low: number, high: number, who = "optimizer"): void {
  if (typeof x === "number" && x >= low && x <= high) return;
  throw new ArgumentError(`${who}: ${option} is ${describe(x)}, expected a number from ${low} to ${high}`);
}

// ---- SGD ----

export interface SGDOptions extends CommonOptions {
  readonly momentum: number;
  /** how much less a gradient contributes to the momentum */
  readonly dampening: number;
  readonly weightDecay: number;
  readonly nesterov: boolean;
}

/**
 * Stochastic gradient descent, as torch.optim.SGD.
 * @example
 * new nn.optim.SGD([Tensor.ones(2, { requiresGrad: true })], { lr: 0.1, momentum: 0.9 }).lr // => 0.1
 */
export class SGD extends Optimizer<SGDOptions> {
  static override readonly name: string = "SGD";
  constructor(params: Params<SGDOptions>, options: Partial<SGDOptions> = {}) {
    super(params, { lr: 1e-3, momentum: 0, dampening: 0, weightDecay: 0, nesterov: false, ...options });
  }
  protected override check({ momentum, weightDecay, nesterov, dampening }: SGDOptions): void {
    checkRange("momentum", momentum, 0, Infinity, "SGD");
    checkRange("weightDecay", weightDecay, 0, Infinity, "SGD");
    if (!nesterov || (momentum > 0 && dampening === 0)) return;
    throw new ArgumentError("SGD: nesterov needs a momentum above 0 and no dampening");
  }
  protected override fresh(p: Tensor, { momentum, dampening }: SGDOptions): State {
    if (momentum === 0) return {};
    // the first gradient enters with full weight; only a dampened momentum needs to know
    return { momentum: this.zeros(p), ...(dampening === 0 ? {} : { started: this.zeros(p, []) }) };
  }
  protected update({ param, value, grad, state, options, lr }: Update<SGDOptions>): void {
    const { momentum, dampening, weightDecay, nesterov } = options;
    let d = weightDecay === 0 ? grad : grad.add(value.mul(weightDecay));
    const buffer = state.momentum;
    if (buffer !== undefined) {
      const { started } = state;
      const part = started === undefined ? d : d.mul(started.expand(d.shape).mul(-dampening).add(1));
      buffer.assign(buffer.mul(momentum).add(part));
      started?.assign(new Tensor(started.lazydata.const(1)));
      d = nesterov ? d.add(buffer.mul(momentum)) : buffer;
    }
    param.assign(value.sub(d.mul(lr)).cast(param.dtype));
  }
}

// ---- Adam ----

export interface AdamOptions extends CommonOptions {
  readonly betas: readonly [number, number];
  readonly eps: number;
  readonly weightDecay: number;
}
export interface AmsgradOptions extends AdamOptions {
  /** divide by the largest mean square so far instead of the current one */
  readonly amsgrad: boolean;
}

/**
 * Adam and its relatives: running means of the gradient and of its square, with bias correction.
 * @example
 * const w = Tensor.ones(2, { requiresGrad: true });
 * new nn.optim.Adam([w]) instanceof nn.optim.Moments // => true
 */
export abstract class Moments<O extends AdamOptions> extends Optimizer<O> {
  protected override check({ betas, eps, weightDecay }: O): void {
    const name = this.constructor.name;
    if (betas.length !== 2) {
      throw new ArgumentError(`${name}: betas is [${betas}], expected two numbers: [0.9, 0.999]`);
    }
    for (const b of betas) checkRange("betas", b, 0, 1 - Number.EPSILON, name);
    checkRange("eps", eps, 0, Infinity, name);
    checkRange("weightDecay", weightDecay, 0, Infinity, name);
  }
  protected override fresh(p: Tensor, options: O): State {
    const [b1, b2] = options.betas;
    const [c1, c2] = [this.shared(p, `c1|${b1}`, 0), this.shared(p, `c2|${b2}`, 0)];
    const most = "amsgrad" in options && options.amsgrad === true && { vMax: this.zeros(p) };
    return { m: this.zeros(p), v: this.zeros(p), ...most, c1, c2 };
  }
  /** c = 1 - beta^t, computed so that the difference from 1 is never rounded away. */
  protected override prepare(active: readonly Update<O>[]): void {
    this.advance(active, "c1", (c, { betas: [b] }) => c.mul(b).add(1 - b));
    this.advance(active, "c2", (c, { betas: [, b] }) => c.mul(b).add(1 - b));
  }
  /** Adds a gradient; returns the corrected mean divided by the root of the corrected mean square. */
  protected direction(grad: Tensor, state: State, { betas: [b1, b2], eps }: O): Tensor {
    const { m, v, c1, c2 } = state as { m: Tensor; v: Tensor; c1: Tensor; c2: Tensor };
    m.assign(m.mul(b1).add(grad.mul(1 - b1)));
    v.assign(v.mul(b2).add(grad.square().mul(1 - b2)));
    const { vMax } = state;
    const size = vMax === undefined ? v : vMax.assign(vMax.maximum(v));
    return m.div(c1).div(size.div(c2).sqrt().add(eps));
  }
}

const ADAM = { lr: 1e-3, betas: [0.9, 0.999], eps: 1e-8, weightDecay: 0, amsgrad: false } as const;

/**
 * Adam, as torch.optim.Adam: weight decay is added to the gradient.
 * @example
 * new nn.optim.Adam([Tensor.ones(2, { requiresGrad: true })]).lr // => 0.001
 */
export class Adam extends Moments<AmsgradOptions> {
  static override readonly name: string = "Adam";
  constructor(params: Params<AmsgradOptions>, options: Partial<AmsgradOptions> = {}) {
    super(params, { ...ADAM, ...options });
  }
  protected update({ param, value, grad, state, options, lr }: Update<AmsgradOptions>): void {
    const { weightDecay } = options;
    const g = weightDecay === 0 ? grad : grad.add(value.mul(weightDecay));
    param.assign(value.sub(this.direction(g, state, options).mul(lr)).cast(param.dtype));
  }
}

/**
 * Adam with decoupled weight decay, as torch.optim.AdamW.
 * @example
 * new nn.optim.AdamW([Tensor.ones(2, { requiresGrad: true })], { lr: 3e-4 }).lr // => 0.0003
 */
export class AdamW extends Moments<AmsgradOptions> {
  static override readonly name: string = "AdamW";
  constructor(params: Params<AmsgradOptions>, options: Partial<AmsgradOptions> = {}) {
    super(params, { ...ADAM, weightDecay: 0.01, ...options });
  }
  protected update({ param, value, grad, state, options, lr }: Update<AmsgradOptions>): void {
    const { weightDecay } = options;
    const kept = weightDecay === 0 ? value : value.mul(lr.expand(value.shape).mul(-weightDecay).add(1));
    param.assign(kept.sub(this.direction(grad, state, options).mul(lr)).cast(param.dtype));
  }
}
