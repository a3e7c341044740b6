// Makes a failing program smaller while it still fails: fewer outputs, fewer calls, smaller inputs, plainer
// values. In: a program and a question, whether a program fails. Out: the smallest one that was found.

import {
  type Arg,
  type Call,
  fromJson,
  type Input,
  nodesIn,
  type Program,
  renumber,
  resultCount,
  toJson,
} from "./language.ts";
import { type Arr, isArr } from "./reference/array.ts";
import { interpret } from "./reference/interpreter.ts";
import { castScalar } from "./reference/types.ts";

/** Whether a program fails; one that is not a program at all does not. */
export type Fails = (p: Program) => Promise<boolean>;

/** The most programs that one search tries: a failure that is slow to repeat must not take all night. */
const MOST_TRIES = 600;

export async function shrink(program: Program, fails: Fails): Promise<Program> {
  let best = program;
  let tries = 0;
  for (let moved = true; moved && tries < MOST_TRIES; ) {
    moved = false;
    for (const next of smaller(best)) {
      if (++tries > MOST_TRIES) break;
      if (next === undefined || !(await fails(next))) continue;
      best = next;
      moved = true;
      break;
    }
  }
  return best;
}

/** Programs that are a step smaller, the largest steps first. */
function* smaller(p: Program): Generator<Program | undefined> {
  const nodes = nodesOf(p);
  if (nodes === undefined) return;
  for (let i = 0; p.out.length > 1 && i < p.out.length; i++) yield tidy({ ...p, out: [p.out[i] as number] });
  yield* earlierOutputs(p);
  for (let k = p.ops.length - 1; k >= 0; k--) yield withoutCall(p, k, nodes);
  for (let k = p.ops.length - 1; k >= 0; k--) yield cutAt(p, k, nodes);
  for (const [i, input] of p.in.entries())
    for (const next of smallerInputs(input)) yield withInput(p, i, next);
  for (const [i, input] of p.in.entries())
    for (const next of plainerInputs(input)) yield withInput(p, i, next);
}
function nodesOf(p: Program): Arr[] | undefined {
  try {
    return interpret(p);
  } catch {
    return undefined;
  }
}
/** The first node that call k adds. */
const firstOf = (p: Program, k: number): number =>
  p.in.length + p.ops.slice(0, k).reduce((n, [m, , ...args]) => n + resultCount(m, args), 0);

/** The program that ends at an earlier call. */
function* earlierOutputs(p: Program): Generator<Program | undefined> {
  if (p.ops.some(([m]) => m === "backward")) return;
  for (let k = 0; k < p.ops.length - 1; k++) {
    const first = firstOf(p, k);
    if (firstOf(p, k + 1) === first) continue;
    yield tidy({ ...p, ops: p.ops.slice(0, k + 1), out: [first] });
  }
}
/** Call k left out: what used its result uses its receiver, or another node of the same shape and type. */
function withoutCall(p: Program, k: number, nodes: readonly Arr[]): Program | undefined {
  const [method, receiver, ...args] = p.ops[k] as Call;
  if (method === "backward") return undefined;
  const made = resultCount(method, args);
  const first = firstOf(p, k);
  const like = nodes[first];
  const before = [receiver, ...args.flatMap(nodesIn), ...p.in.keys()].filter((i) => i >= 0);
  const same = before.find(
    (i) => like === undefined || (nodes[i]?.d === like.d && nodes[i]?.s.join() === like.s.join()),
  );
  const instead = same ?? (receiver >= 0 ? receiver : before[0]);
  if (instead === undefined) return undefined;
  const to = (i: number): number => (i < first ? i : i < first + made ? instead : i - made);
  const ops = p.ops.toSpliced(k, 1).map((call, j) => (j < k ? call : renumbered(call, to)));
  return tidy({ ...p, ops, out: [...new Set(p.out.map(to))] });
}
/** The results of call k as inputs: what led to them is gone. */
function cutAt(p: Program, k: number, nodes: readonly Arr[]): Program | undefined {
  const [method, , ...args] = p.ops[k] as Call;
  const first = firstOf(p, k);
  const made = resultCount(method, args);
  const value = nodes[first];
  if (made !== 1 || method === "backward" || !isArr(value) || value.v.length > 64) return undefined;
  // the new input comes after the others, and every node between moves up by one
  const n = p.in.length;
  const to = (i: number): number => (i < n ? i : i === first ? n : i < first ? i + 1 : i);
  // the reference computes in float64: an input is a number that the type has
  const stored = value.v.map((x) => castScalar(value.d, x, value.d));
  const input: Input = [value.d, value.s, stored.map(toJson)];
  const ops = p.ops.toSpliced(k, 1).map((call) => renumbered(call, to));
  return tidy({ ...p, in: [...p.in, input], ops, out: p.out.map(to) });
}
const renumbered = ([method, receiver, ...args]: Call, to: (i: number) => number): Call => [
  method,
  receiver < 0 ? receiver : to(receiver),
  ...(method === "backward" ? [(args[0] as number[]).map(to)] : args.map((a): Arg => renumber(a, to))),
];

/** Without the calls and inputs that nothing needs. */
export function tidy(p: Program): Program {
  const needed = new Set(p.out);
  const keep = p.ops.map(() => true);
  for (let k = p.ops.length - 1; k >= 0; k--) {
    const [method, receiver, ...args] = p.ops[k] as Call;
    const first = firstOf(p, k);
    const mine = Array.from({ length: resultCount(method, args) }, (_, i) => first + i);
    const writes = method === "assign" || method === "setitem" || method === "realize";
    keep[k] = mine.some((i) => needed.has(i)) || (writes && needed.has(receiver));
    if (!keep[k]) continue;
    const leaves = method === "backward" ? (args[0] as number[]) : [];
    for (const i of [receiver, ...leaves, ...args.flatMap(nodesIn)]) needed.add(i);
  }
  const map = new Map<number, number>();
  p.in.forEach((_, i) => {
    if (needed.has(i)) map.set(i, map.size);
  });
  p.ops.forEach(([method, , ...args], k) => {
    if (!keep[k]) return;
    for (let i = 0; i < resultCount(method, args); i++) map.set(firstOf(p, k) + i, map.size);
  });
  const to = (i: number): number => map.get(i) ?? 0;
  const ops = p.ops.filter((_, k) => keep[k]).map((call) => renumbered(call, to));
  return { ...p, in: p.in.filter((_, i) => needed.has(i)), ops, out: p.out.map(to) };
}

// ---- inputs ----

const withInput = (p: Program, i: number, input: Input): Program => ({ ...p, in: p.in.with(i, input) });
/** A dim left out or halved. */
function* smallerInputs([d, s, v]: Input): Generator<Input> {
  for (const [k, n] of s.entries()) {
    if (n === 1) yield [d, s.toSpliced(k, 1), v];
    for (const m of new Set([1, Math.floor(n / 2), n - 1])) {
      if (m < 1 || m >= n) continue;
      const inner = s.slice(k + 1).reduce((a, b) => a * b, 1);
      yield [d, s.with(k, m), v.filter((_, i) => Math.floor(i / inner) % n < m)];
    }
  }
}
/** All elements alike, or one of them plainer. */
function* plainerInputs([d, s, v]: Input): Generator<Input> {
  const big = d === "int64" || d === "uint64";
  const plain = [0, 1].map((x) => toJson(big ? BigInt(x) : x));
  const [zero, one] = plain as [string | number, string | number];
  if (v.some((e) => e !== zero)) yield [d, s, v.map(() => zero)];
  if (v.some((e) => e !== zero && e !== one)) yield [d, s, v.map(() => one)];
  if (v.length > 24) return;
  for (const [i, e] of v.entries()) {
    const x = fromJson(e);
    if (x === 0 || x === 0n) continue;
    yield [d, s, v.with(i, zero)];
    if (typeof x === "number" && Math.trunc(x) !== x) yield [d, s, v.with(i, Math.trunc(x))];
  }
}
