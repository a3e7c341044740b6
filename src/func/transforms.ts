// Functions of functions, as torch.func and torch.autograd.functional have them: gradients, Jacobians,
// Hessians, and vmap, which maps a function over a dim of its arguments. In: functions of Tensors. Out:
// Tensors, lazy as all others. The function and its backward pass are built once, and run as a loop over rows
// (scan).

import { ArgumentError, ShapeError } from "../errors.ts";
import { isPromise, prod } from "../helpers.ts";
import { gradients, withRecording } from "../tensor/autograd.ts";
import { add } from "../tensor/math/arithmetic.ts";
import { movedim } from "../tensor/movement/arrange.ts";
import { scan } from "../tensor/scan.ts";
import { showShape } from "../tensor/show.ts";
import { Tensor } from "../tensor/tensor.ts";

export interface DerivativeOptions {
  /** the result can be differentiated again; default: false */
  readonly createGraph?: boolean;
}
/** A list of Tensors for a list of inputs, one for one. */
type OnePerInput<A extends Tensor | readonly Tensor[]> = A extends readonly Tensor[]
  ? { -readonly [K in keyof A]: Tensor }
  : Tensor;

const kindOf = (x: unknown): string => {
  if (isPromise(x)) return "a Promise";
  return Array.isArray(x) ? "an array" : x === null ? "null" : typeof x;
};
function inputsOf(who: string, f: unknown, given: unknown): Tensor[] {
  if (typeof f !== "function")
    throw new ArgumentError(`${who}: got ${kindOf(f)}, expected a function: ${who}(f, x)`);
  const list = Array.isArray(given) ? given : [given];
  const bad = list.findIndex((x) => !(x instanceof Tensor) || !x.dtype.isFloat);
  if (bad < 0 && list.length > 0) return list as Tensor[];
  const got =
    list[bad] instanceof Tensor ? `an ${(list[bad] as Tensor).dtype.name} Tensor` : kindOf(list[bad]);
  throw new ArgumentError(`${who}: input ${bad} is ${got}, expected a Tensor of floats`);
}
function resultOf(who: string, y: unknown): Tensor {
  if (y instanceof Tensor) return y;
  throw new ArgumentError(`${who}: the function returned ${kindOf(y)}, expected one Tensor, not async`);
}
/**
 * Inputs that gradients flow to. With a graph they keep what they were made of; without one they are leaves
 * of their own.
 */
function leaves(inputs: readonly Tensor[], createGraph: boolean): Tensor[] {
  return inputs.map((x) => {
    if (createGraph && x.requiresGrad) return x.mul(1);
    const own = x.detach();
    own.requiresGrad = true;
    return own;
  });
}
/** The gradients of `y` at the inputs, zeros where it does not depend on them. */
function pull(y: Tensor, seed: Tensor, inputs: readonly Tensor[], createGraph: boolean): Tensor[] {
  if (!y.requiresGrad) return inputs.map((x) => x.zerosLike());
  return withRecording(createGraph, () => {
    const found = gradients(y, seed, (a, b) => add(a, b), new Set(inputs));
    return inputs.map((x) => found.get(x) ?? x.detach().zerosLike());
  });
}
const recorded = <T>(fn: () => T): T => withRecording(true, fn);

/**
 * The gradient of a scalar function at its input, or a list of them at a list of inputs.
 * @example
 * await func.grad((x) => x.square().sum(), new Tensor([1.0, 2.5])).tolist() // => [2, 5]
 */
export function grad<const A extends Tensor | readonly Tensor[]>(
  f: (...inputs: Tensor[]) => Tensor,
  inputs: A,
  { createGraph = false }: DerivativeOptions = {},
): OnePerInput<A> {
  const xs = leaves(inputsOf("grad", f, inputs), createGraph);
  const y = resultOf(
    "grad",
    recorded(() => f(...xs)),
  );
  if (y.size !== 1) {
    throw new ShapeError(
      `grad: the function gives shape ${showShape(y.shape)}, expected a scalar; use jacobian`,
    );
  }
  const found = pull(y, y.detach().onesLike(), xs, createGraph);
  return (Array.isArray(inputs) ? found : found[0]) as OnePerInput<A>;
}

/**
 * All derivatives of a function at its input: shape [...output, ...input]. For a list of inputs, a list.
 * @example
 * await func.jacobian((x) => x.square(), new Tensor([1.0, 2.5])).tolist() // => [[2, 0], [0, 5]]
 */
export function jacobian<const A extends Tensor | readonly Tensor[]>(
  f: (...inputs: Tensor[]) => Tensor,
  inputs: A,
  { createGraph = false }: DerivativeOptions = {},
): OnePerInput<A> {
  const xs = leaves(inputsOf("jacobian", f, inputs), createGraph);
  const y = resultOf(
    "jacobian",
    recorded(() => f(...xs)),
  );
  const rows = rowsOf(y, xs, createGraph);
  const shaped = rows.map((r, i) => r.reshape([...y.shape, ...(xs[i] as Tensor).shape]));
  return (Array.isArray(inputs) ? shaped : shaped[0]) as OnePerInput<A>;
}
/** The gradient of each element of `y`, as rows: the backward pass is traced once. */
function rowsOf(y: Tensor, xs: readonly Tensor[], createGraph: boolean): Tensor[] {
  const m = prod(y.shape);
  if (m === 0) return xs.map((x) => Tensor.zeros([0, ...x.shape], { dtype: x.dtype, device: x.device }));
  const seeds = Tensor.eye(m, { dtype: y.dtype, device: y.device }).reshape([m, ...y.shape]);
  if (m === 1) return pull(y, seeds.reshape(y.shape), xs, createGraph).map((g) => g.unsqueeze(0));
  const start = Tensor.zeros([1], { dtype: y.dtype, device: y.device });
  const [, rows] = withRecording(createGraph, () =>
    scan((c: Tensor, seed: Tensor) => [c, pull(y, seed, xs, createGraph)] as const, start, seeds),
  );
  return rows as Tensor[];
}

/**
 * All second derivatives of a scalar function: shape [...input, ...input]. For a list of inputs, a list of
 * lists: `result[i][j]` has the derivatives by input i and input j.
 * @example
 * await func.hessian((x) => x.pow(3).sum(), new Tensor([1.5, 2])).tolist() // => [[9, 0], [0, 12]]
 */
export function hessian<const A extends Tensor | readonly Tensor[]>(
  f: (...inputs: Tensor[]) => Tensor,
  inputs: A,
  { createGraph = false }: DerivativeOptions = {},
): A extends readonly Tensor[] ? Tensor[][] : Tensor {
  const given = inputsOf("hessian", f, inputs);
  const all = given.map((_, i) =>
    jacobian((...xs: Tensor[]) => (grad(f, xs, { createGraph: true }) as Tensor[])[i] as Tensor, given, {
      createGraph,
    }),
  );
  return (Array.isArray(inputs) ? all : all[0]?.[0]) as A extends readonly Tensor[] ? Tensor[][] : Tensor;
}

/**
 * The value of a function, and a function from the gradient of the output to those of the inputs.
 * @example
 * const [y, pullback] = func.vjp((x) => x.mul(3), new Tensor([1.5, 2]));
 * await pullback(new Tensor([1.0, 10])).tolist() // => [3, 30]
 */
export function vjp<const A extends Tensor | readonly Tensor[]>(
  f: (...inputs: Tensor[]) => Tensor,
  inputs: A,
): [output: Tensor, pullback: (cotangent: Tensor) => OnePerInput<A>] {
  const xs = leaves(inputsOf("vjp", f, inputs), false);
  const y = resultOf(
    "vjp",
    recorded(() => f(...xs)),
  );
  const pullback = (cotangent: Tensor): OnePerInput<A> => {
    if (!(cotangent instanceof Tensor) || showShape(cotangent.shape) !== showShape(y.shape)) {
      throw new ShapeError(
        `vjp: the gradient must be a Tensor of the output's shape ${showShape(y.shape)}, got ` +
          `${cotangent instanceof Tensor ? showShape(cotangent.shape) : kindOf(cotangent)}`,
      );
    }
    const found = pull(y, cotangent.cast(y.dtype), xs, false);
    return (Array.isArray(inputs) ? found : found[0]) as OnePerInput<A>;
  };
  return [y.detach(), pullback];
}

export interface VmapOptions {
  /** the dim that is mapped, one for all arguments or one for each; null: the argument is the same for all */
  readonly inDims?: number | null | readonly (number | null)[];
  /** where the mapped dim is in the results; default: 0 */
  readonly outDims?: number;
}

/**
 * Maps a function over a dim of its arguments, as if it were called for each and the results were stacked.
 * The function is traced once and runs as a loop. It gets Tensors without that dim, and gives Tensors, or
 * arrays and objects of them.
 * @example
 * const dot = func.vmap((a, b) => a.mul(b).sum());
 * await dot(new Tensor([[1, 2], [3, 4]]), new Tensor([[1, 1], [2, 2]])).tolist() // => [3, 14]
 */
export function vmap<R>(
  f: (...args: Tensor[]) => R,
  { inDims = 0, outDims = 0 }: VmapOptions = {},
): (...args: Tensor[]) => R {
  if (typeof f !== "function")
    throw new ArgumentError(`vmap: got ${kindOf(f)}, expected a function: vmap(f)(x)`);
  return (...args) => {
    const dims = args.map(
      (_, i) => (Array.isArray(inDims) ? inDims[i] : inDims) as number | null | undefined,
    );
    if (Array.isArray(inDims) && inDims.length !== args.length) {
      throw new ArgumentError(`vmap: there are ${inDims.length} inDims for ${args.length} arguments`);
    }
    const mapped = args.flatMap((a, i) => (dims[i] === null ? [] : [first(a, i, dims[i] as number)]));
    requireEqual(mapped);
    const body = (c: Tensor, rows: Tensor[]): readonly [Tensor, never] => {
      let next = 0;
      const own = args.map((a, i) => (dims[i] === null ? a : (rows[next++] as Tensor)));
      const made = f(...own);
      if (made === undefined)
        throw new ArgumentError("vmap: the function returned undefined, expected Tensors");
      return [c, made as never];
    };
    const device = (mapped[0] as Tensor).device;
    const [, out] = scan(body, Tensor.zeros([1], { device }), mapped);
    return moved(out, outDims) as R;
  };
}
function first(x: unknown, i: number, dim: number): Tensor {
  if (!(x instanceof Tensor)) {
    throw new ArgumentError(
      `vmap: argument ${i} is ${kindOf(x)}, expected a Tensor; for others say inDims: null`,
    );
  }
  if (x.ndim === 0) throw new ShapeError(`vmap: argument ${i} has no dims; say inDims: null for it`);
  return movedim(x, dim, 0);
}
function requireEqual(mapped: readonly Tensor[]): void {
  const sizes = mapped.map((t) => t.shape[0]);
  if (sizes.length > 0 && sizes.every((s) => s === sizes[0])) return;
  throw new ShapeError(
    sizes.length === 0
      ? "vmap: no argument is mapped; give at least one dim in inDims"
      : `vmap: the mapped dims have sizes ${sizes.join(", ")}; they must be equal`,
  );
}
function moved(x: unknown, to: number): unknown {
  if (x instanceof Tensor) return to === 0 ? x : movedim(x, 0, to);
  if (Array.isArray(x)) return x.map((y) => moved(y, to));
  if (typeof x !== "object" || x === null) return x;
  return Object.fromEntries(Object.entries(x).map(([k, y]) => [k, moved(y, to)]));
}
