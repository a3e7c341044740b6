// The reference: interprets a program on plain arrays in double precision and big integers, knowing nothing
// of src/. `expected` also says how far a device may be from each element, by running the program again with
// noise of the size of rounding. Gradients are differences of the program itself.

import { type Call, fromJson, type Program, resolve } from "../language.ts";
import type { Op, Value } from "./args.ts";
import { type Arr, array, isArr, noise, Unsuitable } from "./array.ts";
import { ELEMENTWISE } from "./elementwise.ts";
import { INDEXING } from "./indexing.ts";
import { MOVEMENT } from "./movement.ts";
import { NETWORKS } from "./networks.ts";
import { PRODUCTS } from "./products.ts";
import { REDUCE } from "./reduce.ts";
import { isFloat, tiny, unit } from "./types.ts";

/** Every method that programs may call. */
export const METHODS: Readonly<Record<string, Op>> = {
  ...ELEMENTWISE,
  ...MOVEMENT,
  ...REDUCE,
  ...PRODUCTS,
  ...INDEXING,
  ...NETWORKS,
};

/** What an output must be: each element within `bound` of `v`; 0 means exactly. */
export interface Expected extends Arr {
  readonly bound: readonly number[];
}

export const inputsOf = (p: Program): Arr[] => p.in.map(([d, s, v]) => array(d, s, v.map(fromJson)));

/** A write changes its receiver under all its names: `assign` and `setitem` return the receiver itself. */
function write(nodes: Arr[], receiver: number, value: Arr): void {
  const target = nodes[receiver];
  nodes.forEach((n, i) => {
    if (n === target) nodes[i] = value;
  });
  nodes.push(value);
}
/** Performs a call on the nodes so far; nodes are added, or replaced by `assign` and `setitem`. */
export function perform(nodes: Arr[], [method, receiver, ...args]: Call): void {
  if (method === "realize") return;
  const values = args.map((a): Value => resolve(a, (i) => nodes[i] as Arr));
  if (method === "assign") {
    const [value] = values;
    const target = nodes[receiver] as Arr;
    if (!isArr(value) || value.d !== target.d || value.s.join() !== target.s.join())
      throw new Unsuitable("assign");
    write(nodes, receiver, { ...value });
    return;
  }
  const op = METHODS[method];
  if (op === undefined) throw new Unsuitable(`the reference does not know ${method}`);
  // a static method takes its formula first and all its tensors after it
  const made =
    receiver >= 0
      ? op(nodes[receiver] as Arr, ...values)
      : op(values[1] as Arr, values[0], ...values.slice(2));
  if (method === "setitem") write(nodes, receiver, made as Arr);
  // an object of its own for each node, also for the result of a method that has nothing to do
  else nodes.push(...[made].flat().map((x) => ({ ...(x as Arr) })));
}
/** All nodes, for these inputs. */
export function interpret(p: Program, inputs: readonly Arr[] = inputsOf(p)): Arr[] {
  const nodes = [...inputs];
  p.ops.forEach((call, at) => {
    if (call[0] === "backward") nodes.push(...gradients(p, at, inputs));
    else perform(nodes, call);
  });
  return nodes;
}

// ---- gradients ----

/** The step of a difference, halved twice: what remains of the error is of the sixth order. */
const STEP = 2 ** -8;

/** The gradients of the scalar that call `at` starts from, by differences of the program before it. */
function gradients(p: Program, at: number, inputs: readonly Arr[]): Arr[] {
  const [, loss, leaves] = p.ops[at] as Call;
  const before: Program = { ...p, ops: p.ops.slice(0, at), out: [] };
  const { state } = noise;
  const seen: number[] = [];
  const lossOf = (xs: readonly Arr[], mode: "record" | "replay"): number => {
    // the same noise everywhere: differences would enlarge it
    if (noise.on) Object.assign(noise, { state, tape: { mode, seen, at: 0 } });
    const out = interpret(before, xs)[loss] as Arr;
    if (out.v.length !== 1) throw new Unsuitable("a loss is one number");
    return Number(out.v[0]);
  };
  const middle = lossOf(inputs, "record");
  const moved = (x: Arr, i: number, by: number): Arr => array(x.d, x.s, x.v.with(i, Number(x.v[i]) + by));
  return (leaves as number[]).map((leaf) => {
    const x = inputs[leaf] as Arr;
    const slope = noise.on ? quick : derivative;
    const along = (i: number) => (by: number) =>
      by === 0 ? middle : lossOf(inputs.with(leaf, moved(x, i, by)), "replay");
    return array(
      x.d,
      x.s,
      x.v.map((_, i) => slope(along(i))),
    );
  });
}
const central = (f: (by: number) => number, h: number): number => (f(h) - f(-h)) / (2 * h);
/** Good enough to see what noise does. */
const quick = (f: (by: number) => number): number => central(f, STEP / 4);
/** Richardson's extrapolation of central differences; refused where the function has a corner. */
function derivative(f: (by: number) => number): number {
  const seen = new Map<number, number>();
  const once = (by: number): number => {
    const known = seen.get(by) ?? f(by);
    seen.set(by, known);
    return known;
  };
  const [a, b, c] = [STEP, STEP / 2, STEP / 4].map((h) => central(once, h)) as [number, number, number];
  const [ab, bc] = [(4 * b - a) / 3, (4 * c - b) / 3];
  const best = (16 * bc - ab) / 15;
  // how far the slopes of the two sides are apart: half as far for half the step, unless there is a corner
  const bend = (h: number): number => Math.abs(once(h) + once(-h) - 2 * once(0)) / h;
  const size = Math.max(1, Math.abs(best));
  if (
    !Number.isFinite(best) ||
    Math.abs(best - bc) > 1e-8 * size ||
    bend(STEP / 4) > 0.7 * bend(STEP / 2) + 1e-9 * size
  )
    throw new Unsuitable("not differentiable here, or too curved");
  return best;
}

// ---- bounds ----

/** Pairs of noisy runs, and how many times the largest deviation a device may be off. */
const PAIRS = 3;
const MARGIN = 16;
/** How far a difference may be from the derivative, for it is computed in float64. */
const DIFFERENCE_ERROR = 1e-9;
/** A bound wider than this, relative to the largest element, would let a wrong element pass. */
const WIDEST: Readonly<Record<string, number>> = {
  float16: 2 ** -3,
  bfloat16: 0.5,
  float32: 2 ** -9,
  float64: 2 ** -36,
};

function noisy(p: Program, seed: number, sign: number): Arr[] {
  Object.assign(noise, { on: true, state: seed, sign });
  try {
    return interpret(p);
  } finally {
    Object.assign(noise, { on: false, tape: undefined });
  }
}

/** The outputs and their bounds. Throws Unsuitable where rounding decides what the result is. */
export function expected(p: Program): Expected[] {
  noise.rounds = p.z === 1;
  const exact = interpret(p);
  const plain = p.ops.some(([m]) => m === "backward") ? noisy(p, 1, 0) : exact;
  const runs: Arr[][] = [];
  const needs = p.out.some((i) => isFloat((exact[i] as Arr).d)) || p.ops.some(([m]) => DECIDES.has(m));
  for (let k = 0; needs && k < PAIRS; k++)
    for (const sign of [1, -1]) runs.push(noisy(p, 12345 + 977 * k, sign));
  return p.out.map((i) =>
    withBounds(
      exact[i] as Arr,
      plain[i] as Arr,
      runs.map((r) => r[i] as Arr),
    ),
  );
}
/** Ops that make exact results of floats. */
const DECIDES: ReadonlySet<string> = new Set([
  ..."lt gt le ge eq ne floor ceil trunc round cast sort argsort topk argmax argmin median kthvalue cummax cummin".split(
    " ",
  ),
  ..."maxWithIndices minWithIndices searchsorted bucketize any all countNonzero logicalNot isnan signbit".split(
    " ",
  ),
  ..."logicalAnd logicalOr logicalXor maxPool1dWithIndices maxPool2dWithIndices bitcast isinf isfinite".split(
    " ",
  ),
]);
/** `plain` is what runs without noise give: less exact than `x` where gradients are differences. */
function withBounds(x: Arr, plain: Arr, runs: readonly Arr[]): Expected {
  if (!isFloat(x.d)) {
    if (runs.some((r) => r.v.some((e, i) => e !== x.v[i]))) throw new Unsuitable("rounding decides");
    return { ...x, bound: x.v.map(() => 0) };
  }
  const finite = x.v.map(Number).filter(Number.isFinite).map(Math.abs);
  const largest = Math.max(0, ...finite);
  // a derivative such as 1 - tanh(x)^2 is the difference of numbers around 1
  const floor =
    plain === x ? 2 * tiny(x.d) : Math.max(DIFFERENCE_ERROR, 32 * unit(x.d)) * Math.max(1, largest);
  const bound = x.v.map((e, i) => {
    const off = Math.max(0, ...runs.map((r) => difference(Number(r.v[i]), Number(plain.v[i]))));
    if (off === 0 && plain === x) return 0;
    const b = MARGIN * off + 4 * unit(x.d) * Math.abs(Number(e)) + floor;
    if (!(b <= (WIDEST[x.d] as number) * Math.max(largest, 2 ** -20)))
      throw new Unsuitable("ill-conditioned");
    return b;
  });
  return { ...x, bound };
}
const difference = (a: number, b: number): number => {
  if (Object.is(a, b) || (Number.isNaN(a) && Number.isNaN(b))) return 0;
  return Number.isFinite(a) && Number.isFinite(b) ? Math.abs(a - b) : Infinity;
};
