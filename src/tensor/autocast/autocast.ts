// Mixed precision: inside of `Tensor.autocast`, what a method is given is cast as its class says, and the
// method runs as it always does. In: the name of a method, its object and arguments, on their way through the
// check of arguments. Out: the same with other Tensors. Casts are recorded as all ops are, so that a gradient
// comes back in the type of what was cast.

import { setAdapt } from "../../arguments.ts";
import { type DType, type DTypeLike, dtypes } from "../../dtype.ts";
import { CacheCollector } from "../../engine/jit/collector.ts";
import { scopes, type Within } from "../../engine/scope.ts";
import { ArgumentError } from "../../errors.ts";
import { isPlain } from "../../helpers.ts";
import type { LazyBuffer } from "../../lazy/lazybuffer.ts";
import { isRecording } from "../autograd.ts";
import { cast, TensorHandle } from "../core.ts";
import { isNarrow } from "../math/promotion.ts";
import type { Tensor } from "../tensor.ts";
import { bodyStart } from "../tracing.ts";
import { type AutocastClass, CLASSES } from "./classes.ts";

export function autocast<T>(dtype: DTypeLike | false, fn: (within: Within) => T): T {
  const to = dtype === false ? undefined : narrowType(dtype);
  setAdapt(adapted);
  return scopes.run({ autocast: to }, fn);
}
function narrowType(given: DTypeLike): DType {
  const type = typeof given === "string" ? dtypes[given] : given;
  if (type === dtypes.bfloat16 || type === dtypes.float16) return type;
  throw new ArgumentError(
    `autocast: dtype is ${typeof given === "string" ? `"${given}"` : String(given)}, expected "bfloat16" or "float16", ` +
      "or false to switch it off",
  );
}

/** The operands of a method as they should be here. */
function adapted(method: string, operands: readonly unknown[]): readonly unknown[] {
  const known = CLASSES.get(method);
  const to = known && scopes.get("autocast");
  return known === undefined || to === undefined ? operands : OPERANDS[known](operands, to);
}
const OPERANDS: Readonly<
  Record<AutocastClass, (operands: readonly unknown[], to: DType) => readonly unknown[]>
> = {
  // with a float64 among them the product is one of float64, which rounds nothing
  narrow: (operands, to) =>
    tensorsIn(operands).some((t) => t.dtype === dtypes.float64)
      ? operands
      : mapTensors(operands, (t) => (t.dtype.isFloat ? narrowed(t, to) : t)),
  float32: (operands) => mapTensors(operands, (t) => (isNarrow(t.dtype) ? cast(t, dtypes.float32) : t)),
};

/** Arguments have Tensors in lists and options, too. */
function mapTensors(xs: readonly unknown[], f: (t: Tensor) => Tensor): readonly unknown[] {
  return xs.map((x) => {
    if (x instanceof TensorHandle) return f(x as Tensor);
    if (Array.isArray(x)) return mapTensors(x, f);
    if (!isPlain(x)) return x;
    const values = mapTensors(Object.values(x), f);
    return Object.fromEntries(Object.keys(x).map((key, i) => [key, values[i]]));
  });
}
function tensorsIn(xs: readonly unknown[]): Tensor[] {
  const found: Tensor[] = [];
  mapTensors(xs, (t) => {
    found.push(t);
    return t;
  });
  return found;
}

// ---- weights, which are cast once ----

interface WeightCast {
  readonly weight: Tensor;
  readonly made: Tensor;
  /** the jitted call and the body of a scan that it was made in: it is not theirs alone if these are 0 */
  readonly call: number;
  readonly body: number;
}
/** By what a weight is: an assign, or a step that is replayed, gives it another node. */
const casts = new WeakMap<LazyBuffer, WeightCast[]>();

/** A Tensor as `to`; a weight is the leaf of a gradient. */
function narrowed(t: Tensor, to: DType): Tensor {
  if (t.dtype === to) return t;
  if (!t.requiresGrad || t.context !== undefined) return cast(t, to);
  const call = CacheCollector.firstNode;
  const list = casts.get(t.lazydata) ?? [];
  const known = list.find(
    (c) =>
      c.weight === t &&
      c.made.dtype === to &&
      c.call === call &&
      (c.body === 0 || c.body === bodyStart()) &&
      (c.made.requiresGrad || !isRecording()),
  );
  if (known !== undefined) return known.made;
  const made = cast(t, to);
  casts.set(t.lazydata, [...list, { weight: t, made, call, body: bodyStart() }]);
  return made;
}
