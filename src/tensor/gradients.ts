// Gradients as the user asks for them: backward, functions with a gradient of their own, and checkpoints,
// whose steps are computed again. How a gradient flows through the records is in autograd.ts.

import { scopes } from "../engine/scope.ts";
import { ArgumentError, ShapeError } from "../errors.ts";
import { isPromise } from "../helpers.ts";
import { nodesMade } from "../lazy/lazybuffer.ts";
import { abandon, gradients, leavesOf, withRecording } from "./autograd.ts";
import { cast, make, placedLike, TensorHandle, wrap } from "./core.ts";
import { add } from "./math/arithmetic.ts";
import { state as randomState } from "./random/threefry.ts";
import { showShape } from "./show.ts";
import type { Tensor } from "./tensor.ts";

/** A function of tensors and how a gradient passes it back; see `Tensor.custom`. */
export interface CustomGradient<A extends readonly Tensor[]> {
  /** the value; nothing in it is recorded */
  forward(...inputs: A): Tensor;
  /**
   * The gradient of each input, undefined for none, given that of the output. Where it is to be
   * differentiated again it must be made of `gradient`, `inputs` and `output`.
   */
  backward(gradient: Tensor, inputs: A, output: Tensor): Tensor | readonly (Tensor | undefined)[];
}

export interface BackwardOptions {
  /** whether the gradients can be differentiated again; default: false */
  readonly createGraph?: boolean;
}

export function custom<A extends readonly Tensor[]>(op: CustomGradient<A>): (...inputs: A) => Tensor {
  for (const name of ["forward", "backward"] as const) {
    if (typeof op[name] === "function") continue;
    const has = Object.keys(op).join(", ") || "nothing";
    throw new ArgumentError(
      `custom: ${name} is ${kindOf(op[name])}, expected a function; the object has ${has}`,
    );
  }
  return (...inputs) => {
    requireInputs("custom", inputs);
    const made = withRecording(false, () => op.forward?.(...inputs));
    requireResult("custom: forward", made);
    return wrap(made.lazydata, inputs, (g, out) => {
      const result = op.backward?.(g, inputs, out);
      const flows = result instanceof TensorHandle ? [result] : result;
      if (!Array.isArray(flows) || flows.length !== inputs.length) {
        const got = Array.isArray(flows) ? `${flows.length} gradients` : kindOf(flows);
        throw new ArgumentError(
          `custom: backward returned ${got} for ${inputs.length} inputs; return an array with a tensor or undefined for each`,
        );
      }
      return inputs.map((x, i) => {
        const flow = flows[i] as Tensor | undefined;
        return flow === undefined ? undefined : cast(flow, x.dtype);
      });
    });
  };
}

export function checkpoint<A extends readonly Tensor[]>(
  fn: (...inputs: NoInfer<A>) => Tensor,
  inputs: A,
): Tensor {
  requireInputs("checkpoint", inputs);
  const scope = scopes.current;
  const random = { ...randomState };
  const made = fn(...inputs);
  requireResult("checkpoint: the function", made);
  if (made.context === undefined) return made;
  // the record of the steps served to find what they read; it goes, and with it what the steps store
  const stops = new Set<Tensor>(inputs);
  const parents = [...stops, ...leavesOf(made, stops)];
  return wrap(made.lazydata, parents, (g) => {
    const before = nodesMade();
    const again = withRandom(random, () => scopes.sync({ ...scope, recording: true }, () => fn(...inputs)));
    const found = gradients(again, g, (a, b) => add(a, b), stops);
    const flows = parents.map((p) => found.get(p));
    abandon([again], flows, before); // its value is known already
    return flows;
  });
}

export function backward(
  self: Tensor,
  gradient?: Tensor,
  { createGraph = false }: BackwardOptions = {},
): void {
  if (gradient === undefined && self.size !== 1) {
    throw new ShapeError(
      `backward: shape ${showShape(self.shape)} is not a scalar; reduce it first (t.sum()), or pass its gradient`,
    );
  }
  if (!self.requiresGrad) {
    throw new ArgumentError(
      "backward: nothing below this tensor has requiresGrad; set it on the leaves first",
    );
  }
  if (gradient !== undefined && showShape(gradient.shape) !== showShape(self.shape)) {
    throw new ShapeError(
      `backward: the gradient has shape ${showShape(gradient.shape)}, the tensor ${showShape(self.shape)}; ` +
        "the shapes must be equal",
    );
  }
  const seed = gradient === undefined ? make(self.lazydata.const(1)) : cast(gradient, self.dtype);
  withRecording(createGraph, () => {
    for (const [t, g] of gradients(self, seed, (a, b) => add(a, b))) {
      if (t.context !== undefined || !t.requiresGrad) continue;
      const own = placedLike(g, t);
      t.grad = t.grad === undefined ? own : add(t.grad, own);
    }
  });
}

const kindOf = (x: unknown): string =>
  isPromise(x) ? "a Promise" : Array.isArray(x) ? "an array" : x === null ? "null" : typeof x;
function requireInputs(method: string, inputs: readonly unknown[]): void {
  const bad = inputs.findIndex((x) => !(x instanceof TensorHandle));
  if (bad < 0) return;
  throw new ArgumentError(
    `${method}: input ${bad} is ${kindOf(inputs[bad])}, expected a Tensor; other values go in by the closure`,
  );
}
function requireResult(what: string, result: unknown): void {
  if (result instanceof TensorHandle) return;
  throw new ArgumentError(`${what} returned ${kindOf(result)}, expected one Tensor, not async`);
}

/** Runs `fn` with the stream of random numbers as it once was. */
function withRandom<R>(then: typeof randomState, fn: () => R): R {
  const now = { ...randomState };
  Object.assign(randomState, then);
  try {
    return fn();
  } finally {
    Object.assign(randomState, now);
  }
}
