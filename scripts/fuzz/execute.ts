// Runs a program on a device under a setting, and compares what comes out with what is expected.
// In: a program, a device, a setting. Out: the outputs as arrays, or what is wrong with them.

import { DTypeError, JitError, StaleError, Tensor, TinyJit, type TypedArray, withEnv } from "gradloom";
import {
  type Call,
  fromJson,
  type Input,
  nodesIn,
  type Program,
  resolve,
  resultCount,
  type Scalar,
} from "./language.ts";
import type { Expected } from "./reference/interpreter.ts";
import { TYPES } from "./reference/types.ts";
import { keepsZeros } from "./suited.ts";

/** A way to run a program: settings of the environment, and whether a jit is around it. */
export interface Setting {
  readonly name: string;
  readonly env: Readonly<Record<string, number>>;
  readonly jit?: true;
}
const setting = (name: string, env: Readonly<Record<string, number>>, jit?: true): Setting =>
  jit === undefined ? { name, env } : { name, env, jit };
export const SETTINGS: readonly Setting[] = [
  setting("default", { SPEC: 0 }),
  setting("NOOPT=1", { SPEC: 0, NOOPT: 1 }),
  setting("FUSE=0", { SPEC: 0, FUSE: 0 }),
  setting("BEAM=2", { SPEC: 0, BEAM: 2, BEAM_SECONDS: 0.05 }),
  setting("THREADS=1", { SPEC: 0, THREADS: 1 }),
  setting("THREADS=2", { SPEC: 0, THREADS: 2 }),
  setting("JIT=0", { SPEC: 0, JIT: 0 }, true),
  setting("JIT=1", { SPEC: 0, JIT: 1 }, true),
  setting("JIT=2", { SPEC: 0, JIT: 2 }, true),
  setting("SPEC=1", { SPEC: 1 }),
];
export const settingOf = (name: string): Setting => {
  const found = SETTINGS.find((s) => s.name === name);
  if (found !== undefined) return found;
  throw new Error(`fuzz: unknown setting ${name}; expected one of ${SETTINGS.map((s) => s.name).join(", ")}`);
};

/** What a device gave for one output. */
export interface Got {
  readonly d: string;
  readonly s: readonly number[];
  readonly v: readonly Scalar[];
}

function tensorOf([d, s, v]: Input, device: string): Tensor {
  const values = v.map(fromJson);
  const big = TYPES[d].bits === 64 && d !== "float64";
  const data = big ? values.map(BigInt) : values.map(Number);
  return new Tensor(data as number[], { dtype: d, device }).reshape([...s]);
}
const methodOf = (of: object, name: string): ((...args: unknown[]) => unknown) => {
  const f = (of as Record<string, unknown>)[name];
  if (typeof f !== "function") throw new Error(`fuzz: Tensor has no method ${name}`);
  return f.bind(of) as (...args: unknown[]) => unknown;
};

/** Methods that write into their receiver. */
const WRITERS: readonly string[] = ["assign", "setitem"];
/** Builds the program on tensors and returns its outputs, not yet computed. */
export async function build(p: Program, inputs: readonly Tensor[]): Promise<Tensor[]> {
  const leaves = new Set(p.ops.flatMap((op) => (op[0] === "backward" ? (op[2] as number[]) : [])));
  const nodes: Tensor[] = inputs.map((t, i) => {
    if (!leaves.has(i)) return t;
    const leaf = t.detach();
    leaf.requiresGrad = true;
    return leaf;
  });
  const writes = p.ops.some(([m]) => WRITERS.includes(m));
  for (const [method, receiver, ...args] of p.ops as readonly Call[]) {
    if (method === "realize") await Tensor.realize(nodes[receiver] as Tensor);
    else if (method === "backward") {
      const loss = nodes[receiver] as Tensor;
      if (loss.requiresGrad) loss.backward(); // otherwise all gradients are 0
      for (const i of args[0] as number[])
        nodes.push((nodes[i] as Tensor).grad ?? Tensor.zerosLike(nodes[i] as Tensor));
    } else {
      const values = args.map((a) => resolve(a, (i) => nodes[i] as Tensor));
      const made = methodOf(receiver < 0 ? Tensor : (nodes[receiver] as Tensor), method)(...values);
      nodes.push(...(Array.isArray(made) ? (made as Tensor[]) : [made as Tensor]));
      // a method that has nothing to do may return its receiver; what is assigned to that later is another
      // value
      const last = nodes.length - 1;
      if (writes && made === nodes[receiver] && !WRITERS.includes(method))
        nodes[last] = (made as Tensor).detach();
    }
  }
  return p.out.map((i) => nodes[i] as Tensor);
}
const got = (t: Tensor, data: TypedArray): Got => ({
  d: t.dtype.name,
  s: t.shape,
  v: Array.from<Scalar>(data),
});
export async function read(outs: readonly Tensor[]): Promise<Got[]> {
  await Tensor.realize(...outs);
  const results: Got[] = [];
  for (const t of outs) results.push(got(t, await t.data()));
  return results;
}

export const place = (inputs: readonly Input[], device: string): Tensor[] =>
  inputs.map((i) => tensorOf(i, device));
/** The elements of each input in another order: other values that the program takes as well. */
const turned = (p: Program): Input[] => p.in.map(([d, s, v]) => [d, s, [...v].reverse()]);

/** The inputs that outputs depend on, or what is computed on the way. */
function usedInputs(p: Program): number[] {
  const needed = new Set(p.out);
  for (const call of p.ops) if (WRITERS.includes(call[0]) || call[0] === "realize") needed.add(call[1]);
  let last = p.in.length + p.ops.reduce((n, [m, , ...args]) => n + resultCount(m, args), 0);
  for (const [method, receiver, ...args] of [...p.ops].reverse()) {
    const made = resultCount(method, args);
    last -= made;
    const wanted = made === 0 || Array.from({ length: made }, (_, k) => last + k).some((k) => needed.has(k));
    if (wanted || WRITERS.includes(method))
      for (const i of [receiver, ...args.flatMap(nodesIn)]) needed.add(i);
  }
  return p.in.flatMap((_, i) => (needed.has(i) ? [i] : []));
}
/** Runs the program. With a jit it is called three times, the first two with other values. */
export function execute(p: Program, device: string, { env, jit }: Setting): Promise<Got[]> {
  return withEnv(env, async () => {
    if (!jit) return read(await build(p, place(p.in, device)));
    // a jit refuses inputs that nothing depends on: those stay outside
    const used = usedInputs(p);
    const idle = place(p.in, device);
    const pick = (ts: readonly Tensor[]): Tensor[] => used.map((i) => ts[i] as Tensor);
    const step = new TinyJit((...inputs: Tensor[]) =>
      build(
        p,
        idle.map((t, i) => inputs[used.indexOf(i)] ?? t),
      ),
    );
    for (let call = 0; call < 2; call++) await step(...pick(place(turned(p), device)));
    return read((await step(...pick(place(p.in, device)))) as Tensor[]);
  });
}

// ---- comparison ----

const show = (x: Scalar | undefined): string =>
  Object.is(x, -0) ? "-0" : typeof x === "bigint" ? `${x}n` : String(x);
function agrees(a: Scalar, b: Scalar, bound: number, zeros: boolean): boolean {
  if (typeof a === "bigint" || typeof b === "bigint") return a === b;
  if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) && Number.isNaN(b);
  if (bound > 0 && Number.isFinite(b)) return Math.abs(a - b) <= bound;
  return zeros ? Object.is(a, b) : a === b;
}
/** What is wrong with the outputs, or undefined; a zero has a sign if the program and the device say so. */
export function wrong(
  p: Program,
  results: readonly Got[],
  want: readonly Expected[],
  keepsZeros = true,
): string | undefined {
  for (const [k, w] of want.entries()) {
    const r = results[k] as Got;
    if (r.d !== w.d || r.s.join() !== w.s.join())
      return `node ${p.out[k]}: got ${r.d} [${r.s}], expected ${w.d} [${w.s}]`;
    if (r.v.length !== w.v.length)
      return `node ${p.out[k]}: got ${r.v.length} elements, expected ${w.v.length}`;
    const bad = w.v.findIndex(
      (e, i) => !agrees(r.v[i] as Scalar, e, w.bound[i] as number, keepsZeros && p.z === 1),
    );
    if (bad >= 0) {
      const bound = w.bound[bad] as number;
      return `node ${p.out[k]} element ${bad}: got ${show(r.v[bad])}, expected ${show(w.v[bad])}${bound > 0 ? ` within ${bound.toPrecision(3)}` : ""}`;
    }
  }
  return undefined;
}
/** What a jit refuses rightly. */
const REFUSALS = /never used|didn't JIT anything|is a view of memory that the function assigns to/;
/** Integers of the host whose sum, product or square is known to wrap are refused; the reference wraps. */
const WRAPPED = /^\w+: -?[\d.e+]+ does not fit int(32|64)\b/;
/**
 * Runs and compares; an exception is a failure too. A StaleError is an honest answer to an assign, and so is
 * a JitError where folding left nothing of an input, or where a result is a view of what is written.
 */
export async function check(
  p: Program,
  device: string,
  how: Setting,
  want: readonly Expected[],
): Promise<string | undefined> {
  try {
    return wrong(p, await execute(p, device, how), want, keepsZeros(device));
  } catch (e) {
    if (e instanceof StaleError && p.ops.some(([m]) => WRITERS.includes(m))) return undefined;
    if (e instanceof JitError && REFUSALS.test(e.message)) return undefined;
    if (e instanceof DTypeError && WRAPPED.test(e.message)) return undefined;
    return e instanceof Error ? `${e.name}: ${e.message}` : String(e);
  }
}
