// Systems of equations by what defines them, determinants, triangles, and gradients,
// also where a determinant is 0.

import { Tensor } from "gradloom";
import { beforeEach, describe, expect, test } from "vitest";
import { deviceTest, read } from "../../device/harness.ts";
import { f64, gradcheck, near, numbers, rows, T } from "../gradcheck.ts";

beforeEach(() => Tensor.manualSeed(3));

describe("systems of equations", () => {
  deviceTest("solve and inverse, batched, with a pivot that is zero", async (device) => {
    const a = new Tensor([rows("0 2; 1 1"), rows("3 0; 1 1")], { device, dtype: "float32" });
    await near(a.matmul(a.inverse()), Tensor.eye(2, { device }).expand(2, 2, 2));
    await near(
      a.solve(new Tensor([4, 3], { device })),
      new Tensor(
        [
          [1, 2],
          [4 / 3, 5 / 3],
        ],
        { device },
      ),
    );
  });
  test("right-hand sides: vectors, matrices, batches, from the right", async () => {
    const a = f64(2, 3, 4, 4);
    for (const [shape, want] of [
      rows("2 3 4; 2 3 4"),
      rows("4 5; 2 3 4 5"),
      rows("3 4 1; 2 3 4 1"),
      rows("4; 2 3 4"),
    ]) {
      const b = f64(...(shape as number[]));
      const x = a.solve(b);
      expect(x.shape).toEqual(want);
      const isVector = x.ndim === 3;
      const back = isVector ? a.matmul(x.unsqueeze(-1)).squeeze(-1) : a.matmul(x);
      await near(back, b.expand(back.shape), 8);
    }
    const b = f64(2, 3, 5, 4);
    await near(a.solve(b, { left: false }).matmul(a), b, 8);
    const v = f64(4);
    await near(a.solve(v, { left: false }).unsqueeze(-2).matmul(a).squeeze(-2), v.expand(2, 3, 4), 8);
  });
  test("determinants, their sign and logarithm", async () => {
    const upper = f64(3, 5, 5).triu();
    const want = upper.diagonal(0, 1, 2).prod(-1);
    await near(upper.det(), want, 8);
    await near(upper.flip(1).det(), want, 8); // two swaps of rows
    await near(upper.roll(1, 1).det(), want, 8); // a cycle of five is even
    await near(
      upper.narrow(1, 0, 4).narrow(2, 0, 4).roll(1, 1).det(),
      upper.diagonal(0, 1, 2).narrow(1, 0, 4).prod(-1).neg(),
      8,
    );
    const [sign, log] = upper.slogdet();
    await near(sign.mul(log.exp()), want, 8);
    await near(new Tensor(rows("1 2; 2 4")).det(), new Tensor(0, { dtype: "float32" }));
    expect(await read(new Tensor(rows("1 2; 2 4")).slogdet()[1])).toEqual([-Infinity]);
    expect(await read(new Tensor(rows("0 1; 1 0")).logdet())).toEqual([Number.NaN]);
    expect(await Tensor.zeros(2, 0, 0).det().tolist()).toEqual([1, 1]);
  });
  test("a singular matrix gives infinities or NaN, and no error", async () => {
    const x = await numbers(new Tensor(rows("1 2; 2 4")).inverse());
    expect(x.some((v) => !Number.isFinite(v))).toBe(true);
    const l = await numbers(new Tensor(rows("1 2; 2 1")).cholesky());
    expect(l.some(Number.isNaN)).toBe(true);
  });
  test("triangles", async () => {
    const a = f64(2, 4, 4).add(Tensor.eye(4).mul(3));
    const b = f64(2, 4, 3);
    await near(a.tril().matmul(a.solveTriangular(b)), b, 8);
    await near(a.triu().matmul(a.solveTriangular(b, { upper: true })), b, 8);
    await near(a.solveTriangular(T(b), { upper: true, left: false }).matmul(a.triu()), T(b), 8);
    const unit = a.tril(-1).add(Tensor.eye(4));
    await near(unit.matmul(a.solveTriangular(b, { unitriangular: true })), b, 8);
    const spd = a.matmul(T(a));
    const l = spd.cholesky();
    await near(l.matmul(T(l)), spd, 8);
    await near(l.tril(), l, 12);
    await near(spd.cholesky({ upper: true }), T(l), 10);
    // only the lower triangle is looked at
    await near(spd.tril().cholesky(), l, 12);
  });
  test("gradients", async () => {
    const a = f64(3, 3).add(Tensor.eye(3).mul(2));
    await gradcheck((x) => x.inverse(), [a]);
    await gradcheck((x, y) => x.solve(y), [a, f64(3, 2)]);
    await gradcheck((x, y) => x.solve(y, { left: false }), [a, f64(3)]);
    await gradcheck((x) => x.det(), [a]);
    await gradcheck((x) => x.det(), [f64(2, 2, 2)]);
    await gradcheck((x) => x.slogdet()[1], [a]);
    await gradcheck((x, y) => x.solveTriangular(y), [a, f64(3, 2)]);
    await gradcheck((x, y) => x.solveTriangular(y, { upper: true, unitriangular: true }), [a, f64(3, 2)]);
    await gradcheck((x) => x.matmul(x.T).cholesky(), [a]);
    await gradcheck((x) => x.matmul(x.T).cholesky({ upper: true }), [a]);
  });
  test("the determinant has a gradient where it is 0", async () => {
    const rank = (cut: number) => f64(3, cut).matmul(f64(cut, 3));
    await gradcheck((x) => x.det(), [rank(2)]);
    await gradcheck((x) => x.det(), [rank(1)]);
    await gradcheck((x) => x.det(), [new Tensor(rows("0 1 2; 0 3 4; 0 5 7"), { dtype: "float64" })]);
    await gradcheck((x) => x.det(), [Tensor.zeros([2, 2], { dtype: "float64" })]);
  });
});
