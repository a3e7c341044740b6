// The naive model that the ShapeTracker is checked against: an array that really moves its values.
// A value is the position in the original buffer; -1 stands for padding.
import { expect } from "vitest";
import type { ShapeTracker } from "../../src/shape/shapetracker.ts";
import { evaluate, Variable } from "../../src/shape/symbolic.ts";
import type { Random } from "./random.ts";

export interface Model {
  readonly shape: readonly number[];
  readonly values: readonly number[];
}

const count = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);

/** Every index of a shape, row-major. */
export function* indexes(shape: readonly number[]): Generator<number[]> {
  const total = count(shape);
  for (let flat = 0; flat < total; flat++) {
    const at: number[] = [];
    let rest = flat;
    for (let i = shape.length - 1; i >= 0; i--) {
      at.unshift(rest % (shape[i] as number));
      rest = Math.floor(rest / (shape[i] as number));
    }
    yield at;
  }
}

export function plainModel(shape: readonly number[]): Model {
  return { shape, values: Array.from({ length: count(shape) }, (_, i) => i) };
}

/** A new array of that shape, each value taken from where `from` says, -1 where it says nothing. */
function gather(m: Model, shape: readonly number[], from: (at: number[]) => number[] | undefined): Model {
  const values: number[] = [];
  for (const at of indexes(shape)) {
    const source = from(at);
    if (source === undefined) values.push(-1);
    else values.push(m.values[source.reduce((flat, x, i) => flat * (m.shape[i] as number) + x, 0)] as number);
  }
  return { shape, values };
}

export type Move =
  | { op: "reshape"; arg: number[] }
  | { op: "permute"; arg: number[] }
  | { op: "expand"; arg: number[] }
  | { op: "pad"; arg: [number, number][] }
  | { op: "shrink"; arg: [number, number][] }
  | { op: "stride"; arg: number[] }
  | { op: "flip"; arg: number[] };

export function moveModel(m: Model, move: Move): Model {
  switch (move.op) {
    case "reshape":
      return { shape: move.arg, values: m.values };
    case "permute":
      return gather(
        m,
        move.arg.map((a) => m.shape[a] as number),
        (at) => m.shape.map((_, i) => at[move.arg.indexOf(i)] as number),
      );
    case "expand":
      return gather(m, move.arg, (at) => at.map((x, i) => (m.shape[i] === 1 ? 0 : x)));
    case "pad": {
      const shape = m.shape.map((s, i) => s + (move.arg[i]?.[0] as number) + (move.arg[i]?.[1] as number));
      return gather(m, shape, (at) => {
        const from = at.map((x, i) => x - (move.arg[i]?.[0] as number));
        return from.every((x, i) => x >= 0 && x < (m.shape[i] as number)) ? from : undefined;
      });
    }
    case "shrink":
      return gather(
        m,
        move.arg.map(([a, b]) => b - a),
        (at) => at.map((x, i) => x + (move.arg[i]?.[0] as number)),
      );
    case "stride": {
      const shape = m.shape.map((s, i) => Math.ceil(s / Math.abs(move.arg[i] as number)));
      return gather(m, shape, (at) =>
        at.map((x, i) => {
          const by = move.arg[i] as number;
          return by > 0 ? x * by : (m.shape[i] as number) - 1 + x * by;
        }),
      );
    }
    case "flip":
      return gather(m, m.shape, (at) =>
        at.map((x, i) => (move.arg.includes(i) ? (m.shape[i] as number) - 1 - x : x)),
      );
  }
}

export function moveTracker(st: ShapeTracker, move: Move): ShapeTracker {
  switch (move.op) {
    case "reshape":
    case "permute":
    case "expand":
    case "stride":
    case "flip":
      return st[move.op](move.arg);
    case "pad":
    case "shrink":
      return st[move.op](move.arg);
  }
}

/** Another shape with as many elements: dims joined, split and padded with ones. */
export function randomReshape(r: Random, shape: readonly number[]): number[] {
  const dims = [...shape];
  for (let i = 0; i < 3; i++) {
    if (dims.length > 1 && r.chance(50)) {
      const at = r.int(0, dims.length - 2);
      dims.splice(at, 2, (dims[at] as number) * (dims[at + 1] as number));
    }
    const at = r.int(0, dims.length - 1);
    const size = dims[at] ?? 1;
    const by = [2, 3, 4, 5].filter((f) => size > 0 && size % f === 0);
    if (dims.length > 0 && dims.length < 5 && by.length > 0 && r.chance(70)) {
      const f = r.pick(by);
      dims.splice(at, 1, ...(r.chance(50) ? [f, size / f] : [size / f, f]));
    }
    if (dims.length < 5 && r.chance(15)) dims.splice(r.int(0, dims.length), 0, 1);
    const one = dims.indexOf(1);
    if (one >= 0 && r.chance(30)) dims.splice(one, 1);
  }
  return dims;
}

/** A movement that fits the shape and does not let it grow beyond what is quick to check. */
export function randomMove(r: Random, shape: readonly number[]): Move {
  const op = r.pick([
    "reshape",
    "reshape",
    "reshape",
    "permute",
    "expand",
    "pad",
    "shrink",
    "stride",
    "flip",
  ] as const);
  const small = count(shape) <= 60;
  switch (op) {
    case "reshape":
      return { op, arg: randomReshape(r, shape) };
    case "permute":
      return { op, arg: r.shuffled(shape.map((_, i) => i)) };
    case "expand":
      return {
        op,
        arg: shape.map((s) => (s === 1 && small && r.chance(60) ? r.int(r.chance(5) ? 0 : 1, 3) : s)),
      };
    case "pad":
      return { op, arg: shape.map(() => (small && r.chance(40) ? [r.int(0, 2), r.int(0, 2)] : [0, 0])) };
    case "shrink":
      return {
        op,
        arg: shape.map((s) => {
          if (s === 0 || r.chance(40)) return [0, s];
          const from = r.int(0, s - 1);
          return [from, r.chance(5) ? from : r.int(from + 1, s)];
        }),
      };
    case "stride":
      return { op, arg: shape.map(() => (r.chance(50) ? 1 : r.pick([-3, -2, -1, 2, 3]))) };
    case "flip":
      return { op, arg: shape.map((_, i) => i).filter(() => r.chance(50)) };
  }
}

/** What the tracker says about every element, with the index expression worked out once for variables. */
export function readTracker(st: ShapeTracker, shape: readonly number[]): number[] {
  const idxs = shape.map((s, i) => (s <= 1 ? 0 : Variable(`ridx${i}`, 0, s - 1)));
  const { index, valid } = st.expr(idxs);
  const values: number[] = [];
  for (const at of indexes(shape)) {
    const env = new Map(at.map((x, i) => [`ridx${i}`, x] as const));
    values.push(evaluate(valid, env) === 1 ? evaluate(index, env) : -1);
  }
  return values;
}

export function expectSame(st: ShapeTracker, m: Model, hint: string): void {
  expect(st.shape, hint).toEqual(m.shape);
  const got = readTracker(st, m.shape);
  if (got.length !== m.values.length || got.some((x, i) => x !== m.values[i])) {
    expect(got, `${hint}\n${st}`).toEqual(m.values);
  }
}
