// Stand-ins: what an optimiser works on in the place of its parameters and state, where these are kept in a
// narrower type, or change only if a condition holds. A stand-in has the value in the type that updates are
// computed in and no memory of its own, so that an assign to it only says what its next value is. In: the
// updates of one step. Out: the same updates on stand-ins, whose values are then written back.

import { type DType, dtypes } from "../../dtype.ts";
import { ArgumentError } from "../../errors.ts";
import { getOrMake } from "../../helpers.ts";
import { bitcast, cast, contiguous, detach, make, placedLike, to } from "../core.ts";
import { add, bitwiseAnd, ne, where } from "../math/arithmetic.ts";
import { isNarrow } from "../math/promotion.ts";
import { randint } from "../random/random.ts";
import { showShape } from "../show.ts";
import type { Tensor } from "../tensor.ts";
import { assign } from "../values.ts";

/** The tensors that an optimiser keeps for one parameter. */
type Kept = Record<string, Tensor>;
export interface NarrowOptions {
  /** keep a float32 copy of each parameter of a narrower type, which takes the updates; default: false */
  readonly masterWeights?: boolean;
  /**
   * The type of what is kept for each element of a parameter; default: "float32". As bfloat16 it is rounded
   * up or down at random, so that it is right on average: small steps would be lost otherwise.
   */
  readonly stateDtype?: "bfloat16" | "float32";
}
/** What stand-ins need of one parameter's part of a step. */
interface Change {
  param: Tensor;
  value: Tensor;
  readonly state: Kept;
  readonly options: NarrowOptions;
}

/** Whether a tensor of the state has something for each element of its parameter, and is kept narrower. */
const isKept = (t: Tensor, param: Tensor, { stateDtype }: NarrowOptions): boolean =>
  stateDtype === "bfloat16" && t.dtype.isFloat && t.ndim > 0 && showShape(t.shape) === showShape(param.shape);

/** What this file needs of an optimiser; `prepare` and `update` are called by its `step`. */
interface Stepped {
  readonly groups: readonly { readonly params: readonly Tensor[]; readonly options: NarrowOptions }[];
  readonly state: readonly Kept[];
}
interface Stepping extends Stepped {
  prepare: (active: readonly Change[]) => void;
  update: (u: Change) => void;
}

// ---- where stand-ins come in ----

/** Of each optimiser that works on stand-ins: what must be true for its next step to change something. */
const conditions = new WeakMap<object, Tensor | undefined>();

/** The next step of an optimiser changes something only where `condition`, a bool, is true. */
export function onlyIf(optimizer: object, condition: Tensor | undefined): void {
  if (!conditions.has(optimizer)) useStandIns(optimizer as Stepping);
  conditions.set(optimizer, condition);
}
/** From now on stand-ins are in place from before `prepare` until after the last `update` of each step. */
function useStandIns(optimizer: Stepping): void {
  const { prepare, update } = optimizer;
  let standing: StandIns | undefined;
  const guarded = (run: () => void): void => {
    try {
      run();
    } catch (e) {
      standing?.takeBack();
      throw e;
    }
  };
  optimizer.prepare = (active) => {
    standing = new StandIns(active, conditions.get(optimizer));
    guarded(() => prepare.call(optimizer, active));
  };
  optimizer.update = (u) => {
    guarded(() => update.call(optimizer, u));
    if (u === standing?.last) standing.writeBack(optimizer.state);
  };
}
/** Keeps the state of a new optimiser as its options say, from now on. */
export function keep(optimizer: Stepped): void {
  const { groups, state } = optimizer;
  const all = groups.flatMap(({ params, options }) => params.map((p) => [p, options] as const));
  for (const [i, [param, options]] of all.entries()) {
    const own = state[i] as Kept;
    Object.assign(own, narrowState(optimizer.constructor.name, own, param, options));
  }
  onlyIf(optimizer, undefined);
}

/** The state of a parameter as its options want it kept, and its master weights. */
function narrowState(who: string, state: Kept, param: Tensor, options: NarrowOptions): Kept {
  const { masterWeights, stateDtype } = options;
  if (stateDtype !== undefined && stateDtype !== "bfloat16" && stateDtype !== "float32") {
    const got = typeof stateDtype === "string" ? `"${stateDtype}"` : String(stateDtype);
    throw new ArgumentError(`${who}: stateDtype is ${got}, expected "bfloat16" or "float32"`);
  }
  if (masterWeights !== undefined && typeof masterWeights !== "boolean")
    throw new ArgumentError(`${who}: masterWeights is ${String(masterWeights)}, expected true or false`);
  const kept = Object.entries(state).map(([name, t]) => {
    return [name, isKept(t, param, options) ? contiguous(cast(t, dtypes.bfloat16)) : t] as const;
  });
  const master = masterWeights === true && isNarrow(param.dtype);
  return {
    ...Object.fromEntries(kept),
    ...(master && { master: contiguous(cast(detach(param), dtypes.float32)) }),
  };
}

const masterOf = ({ options, state }: Change): Tensor | undefined =>
  options.masterWeights === true ? state.master : undefined;
const workType = (d: DType): DType => (isNarrow(d) ? dtypes.float32 : d);

/** The stand-ins of one step. */
class StandIns {
  readonly #active: readonly Change[];
  readonly #condition: Tensor | undefined;
  /** parameters and states as they are kept */
  readonly #kept: readonly { readonly param: Tensor; readonly state: Kept }[];
  readonly #made = new Map<Tensor, Tensor>();

  constructor(active: readonly Change[], condition: Tensor | undefined) {
    this.#active = active;
    this.#condition = condition;
    this.#kept = active.map(({ param, state }) => ({ param, state: { ...state } }));
    for (const u of active) {
      const master = masterOf(u);
      for (const [name, t] of Object.entries(u.state)) if (t !== master) u.state[name] = this.#for(t);
      u.param = this.#for(master ?? u.param);
      u.value = detach(u.param);
    }
  }
  get last(): Change | undefined {
    return this.#active.at(-1);
  }
  #for(t: Tensor): Tensor {
    return getOrMake(this.#made, t, () => {
      const own = detach(t);
      if (workType(t.dtype) !== t.dtype) return cast(own, workType(t.dtype));
      // what is chosen has no memory, whatever the choice
      return this.#condition === undefined ? t : where(to(this.#condition, t.device), own, own);
    });
  }

  /** The tensors that are kept take their places again. */
  takeBack(): void {
    this.#active.forEach((u, i) => {
      const { param, state } = this.#kept[i] as { param: Tensor; state: Kept };
      u.param = param;
      Object.assign(u.state, state);
    });
  }
  /** They take the values of the stand-ins, too. `all` has the states of parameters that skip this step. */
  writeBack(all: readonly Kept[]): void {
    this.takeBack();
    const states = new Set(this.#active.map((u) => u.state));
    const idle = new Set(all.filter((s) => !states.has(s)).flatMap((s) => Object.values(s)));
    const written = new Map<Tensor, Tensor>();
    for (const u of this.#active) {
      const { param, state, options } = u;
      for (const [name, t] of Object.entries(state)) {
        const isRandom = options.stateDtype === "bfloat16" && t.dtype === dtypes.bfloat16;
        state[name] = getOrMake(written, t, () => this.#write(t, idle.has(t) ? copyOf(t) : t, isRandom));
      }
      const master = masterOf(u);
      if (master === undefined) this.#write(param, param, false);
      else assign(param, cast(detach(master), param.dtype));
    }
  }
  /** Puts the value of the stand-in of `t` into `target`, which is `t` or a copy of it. */
  #write(t: Tensor, target: Tensor, isRandom: boolean): Tensor {
    const standing = this.#made.get(t);
    if (standing === undefined || standing === t) return t;
    const next = detach(standing);
    const rounded = isRandom ? roundedAtRandom(next) : cast(next, t.dtype);
    const holds = this.#condition;
    assign(target, holds === undefined ? rounded : where(to(holds, t.device), rounded, detach(t)));
    return target;
  }
}
const copyOf = (t: Tensor): Tensor => make(t.lazydata.duplicate());

/** As bfloat16, up or down, the more likely the nearer: the bits that go are added to random ones before. */
function roundedAtRandom(x: Tensor): Tensor {
  const wide = cast(x, dtypes.float32);
  const random = randint([0, 2 ** 16, x.shape, { dtype: dtypes.uint32, device: x.device }]);
  const bits = add(bitcast(wide, dtypes.uint32), placedLike(random, wide));
  const cut = bitcast(bitwiseAnd(bits, 0xffff0000), dtypes.float32);
  return cast(where(ne(wide, wide), wide, cut), dtypes.bfloat16);
}
