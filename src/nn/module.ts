// Whether the layers of a model train. Layers that behave differently then (dropout, batch norm) have a
// property `training`: undefined means where gradients are recorded. `train` and `evaluate` set it for a
// whole model, which is any object; `Module` has them as methods.

import { CacheCollector } from "../engine/jit/collector.ts";
import { partsOf } from "../helpers.ts";
import { Tensor } from "../tensor/tensor.ts";
import { requireModel } from "./options.ts";

/** A layer that behaves differently in training. */
interface Trainable {
  training: boolean | undefined;
}

/** Whether a layer trains: as its model was set, otherwise where gradients are recorded. */
export function trains(layer: Trainable): boolean {
  const own = CacheCollector.depend(`training of ${layer.constructor.name}`, layer, () => layer.training);
  return own ?? Tensor.training;
}

/**
 * Sets the layers of a model to train, or with `on` false to evaluate, whether gradients are recorded or not:
 * every object in it that has a property `training`.
 * @example
 * nn.train(new nn.Sequential(new nn.Dropout(0.5)))[0].training // => true
 */
export function train<M>(model: M, on = true): M {
  requireModel("train", model);
  set(model, on, new Set());
  return model;
}
/**
 * Sets the layers of a model to evaluate: dropout keeps all, batch norm takes its running statistics.
 * @example
 * nn.evaluate(new nn.Sequential(new nn.Dropout(0.5)))[0].training // => false
 */
export function evaluate<M>(model: M): M {
  return train(model, false);
}

function set(x: unknown, on: boolean, seen: Set<unknown>): void {
  if (typeof x !== "object" || x === null || seen.has(x) || x instanceof Tensor || ArrayBuffer.isView(x))
    return;
  seen.add(x);
  if ("training" in x) (x as Trainable).training = on;
  for (const [, part] of partsOf(x)) set(part, on, seen);
}

/**
 * A model with the methods of torch's; a model may be any other object as well.
 * @example
 * class Net extends nn.Module {
 *   drop = new nn.Dropout(0.5);
 * }
 * new Net().eval().drop.training // => false
 */
export class Module {
  /** The layers inside train from now on, or with `on` false evaluate. */
  train(on = true): this {
    return train(this, on);
  }
  /** The layers inside evaluate from now on. */
  eval(): this {
    return train(this, false);
  }
}
