// What the suites of linear algebra share: closeness, gradients against central
// differences in float64, short matrices.

import { Tensor } from "gradloom";
import { expect } from "vitest";
import { range } from "../../src/helpers.ts";
import { read } from "../device/harness.ts";

/** Rows of numbers: `rows("1 2; 3 4")`. */
export const rows = (text: string): number[][] =>
  text.split(";").map((r) => r.trim().split(/\s+/).map(Number));
export const numbers = async (t: Tensor): Promise<number[]> => (await read(t)).map(Number);
export const f64 = (...shape: number[]): Tensor => Tensor.randn(shape, { dtype: "float64" });
export const T = (t: Tensor): Tensor => t.transpose(-2, -1);

export async function near(got: Tensor, want: Tensor, digits = 5): Promise<void> {
  expect(got.shape).toEqual(want.shape);
  const [a, b] = [await numbers(got), await numbers(want)];
  for (const [i, x] of a.entries())
    expect(x, `element ${i} of [${a}] and [${b}]`).toBeCloseTo(b[i] as number, digits);
}
/** A sum that weighs every element of every result differently. */
export function weighed(outs: Tensor | readonly Tensor[]): Tensor {
  const list = outs instanceof Tensor ? [outs] : outs;
  return list
    .map((o) => {
      const w = Float64Array.from({ length: o.size }, (_, i) => (((i * 7) % 11) - 5) / 5);
      return o.reshape(o.size).mul(new Tensor(w)).sum();
    })
    .reduce((a, b) => a.add(b));
}
/** The gradient of `f` at float64 tensors against central differences, element by element. */
export async function gradcheck(
  f: (...xs: Tensor[]) => Tensor | readonly Tensor[],
  inputs: readonly Tensor[],
  digits = 5,
): Promise<void> {
  const values = await Promise.all(inputs.map(numbers));
  const make = (given: readonly (readonly number[])[]) =>
    given.map((v, i) => new Tensor(Float64Array.from(v)).reshape((inputs[i] as Tensor).shape));
  const leaves = make(values);
  for (const l of leaves) l.requiresGrad = true;
  weighed(f(...leaves)).backward();
  const step = 1e-5;
  for (const [i, leaf] of leaves.entries()) {
    const got = await numbers(leaf.grad as Tensor);
    const want = await Promise.all(
      range(leaf.size).map(async (at) => {
        const moved = (by: number) =>
          values.map((v, k) => (k === i ? v.with(at, (v[at] as number) + by) : v));
        const [up, down] = [weighed(f(...make(moved(step)))), weighed(f(...make(moved(-step))))];
        return (Number(await up.item()) - Number(await down.item())) / (2 * step);
      }),
    );
    for (const [k, w] of want.entries()) {
      expect(got[k], `gradient of input ${i}, element ${k}: [${got}] and [${want}]`).toBeCloseTo(w, digits);
    }
  }
}
