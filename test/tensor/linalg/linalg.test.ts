// Factorizations by what defines them, gradients against finite differences, gradients of gradients, norms,
// what it all costs, and what bad input is told.

import { ArgumentError, dtypes, GlobalCounters, ShapeError, Tensor } from "gradloom";
import { beforeEach, describe, expect, test } from "vitest";
import { nodesMade } from "../../../src/lazy/lazybuffer.ts";
import { deviceTest } from "../../device/harness.ts";
import { kernels, ready } from "../../schedule/count.ts";
import { f64, gradcheck, near, numbers, rows, T, weighed } from "../gradcheck.ts";

beforeEach(() => Tensor.manualSeed(3));

describe("QR", () => {
  test("Q is orthogonal, R is triangular, their product is the matrix, in every mode", async () => {
    for (const [m, n] of [
      [4, 4],
      [5, 3],
      [3, 5],
      [1, 1],
      [4, 1],
      [1, 4],
    ] as const) {
      const a = f64(2, m, n);
      for (const mode of ["reduced", "complete"] as const) {
        const [q, r] = a.qr(mode);
        const k = mode === "complete" ? m : Math.min(m, n);
        expect([q.shape, r.shape]).toEqual([
          [2, m, k],
          [2, k, n],
        ]);
        await near(q.matmul(r), a, 8);
        await near(T(q).matmul(q), Tensor.eye(k).expand(2, k, k), 8);
        await near(r.triu(), r, 12);
      }
      await near(a.qr("r")[1], a.qr()[1], 12);
      expect(a.qr("r")[0].size).toBe(0);
    }
  });
  test("the signs are those of Householder's reflections in LAPACK", async () => {
    const [q, r] = new Tensor(rows("3 1; 4 2"), { dtype: "float64" }).qr();
    await near(q, new Tensor(rows("-0.6 -0.8; -0.8 0.6"), { dtype: "float64" }), 8);
    await near(r, new Tensor(rows("-5 -2.2; 0 0.4"), { dtype: "float64" }), 8);
    // a column that has nothing to reflect keeps its sign
    expect(await new Tensor(rows("2 1; 0 -3")).qr()[1].tolist()).toEqual(rows("2 1; 0 -3"));
  });
  test("gradients", { timeout: 120_000 }, async () => {
    for (const [m, n] of [
      [3, 3],
      [4, 2],
      [2, 4],
    ] as const)
      await gradcheck((x) => x.qr(), [f64(m, n)]);
    await gradcheck((x) => x.qr("complete"), [f64(2, 3)]);
    const tall = f64(4, 2);
    tall.requiresGrad = true;
    expect(() => tall.qr("complete")[0].sum().backward()).toThrow(
      'qr("complete") of a tall matrix has no gradient',
    );
  });
});

describe("singular values and eigenvalues", () => {
  async function expectSvd(a: Tensor, digits = 8): Promise<void> {
    const [m, n] = a.shape.slice(-2) as [number, number];
    const k = Math.min(m, n);
    for (const full of [true, false]) {
      const [u, s, vh] = a.svd(full);
      const lead = a.shape.slice(0, -2);
      expect([u.shape, s.shape, vh.shape]).toEqual([
        [...lead, m, full ? m : k],
        [...lead, k],
        [...lead, full ? n : k, n],
      ]);
      const back = u
        .narrow(-1, 0, k)
        .mul(s.unsqueeze(-2))
        .matmul(vh.narrow(-2, 0, k));
      await near(back, a, digits);
      for (const q of [T(u).matmul(u), vh.matmul(T(vh))])
        await near(q, Tensor.eye(q.shape.at(-1) as number).expand(q.shape), digits);
      const values = await numbers(s.reshape(-1, k));
      for (const [i, x] of values.entries()) {
        expect(x).toBeGreaterThanOrEqual(0);
        if (i % k > 0) expect(x).toBeLessThanOrEqual((values[i - 1] as number) * (1 + 1e-6));
      }
    }
  }
  deviceTest("svd of float32", async (device) => {
    await expectSvd(Tensor.randn([4, 3], { device }).to("WASM"), 4);
    const [, s] = new Tensor(rows("3 0; 4 5"), { device }).svd();
    await near(s, new Tensor([Math.sqrt(45), Math.sqrt(5)], { device }), 4);
  });
  test("svd of every shape, of batches, of larger matrices", async () => {
    for (const [m, n] of [
      [1, 1],
      [4, 4],
      [6, 3],
      [3, 6],
      [5, 1],
      [1, 5],
      [7, 6],
    ] as const)
      await expectSvd(f64(m, n));
    await expectSvd(f64(2, 3, 4, 3));
    await expectSvd(f64(24, 20));
  });
  test("svd and qr of a larger matrix are loops, and graphs of as few nodes", () => {
    const made = (n: number, factor: (a: Tensor) => unknown): number => {
      const first = nodesMade();
      factor(Tensor.ones(n, n));
      return nodesMade() - first;
    };
    for (const factor of [(a: Tensor) => a.svd(), (a: Tensor) => a.qr()])
      expect(made(32, factor)).toBeLessThan(1.2 * made(8, factor));
  });
  test("svd of what several devices hold", async () => {
    const a = f64(4, 3);
    const [u, s, vh] = a.shard(["WASM", "WASM:1"]).svd(false);
    await near(u.mul(s.unsqueeze(-2)).dot(vh).to("WASM"), a, 8);
  });
  test("svd of what is hard: zero, rank one, equal values, great and small numbers", async () => {
    await expectSvd(Tensor.zeros([3, 3], { dtype: "float64" }));
    await expectSvd(f64(4, 1).matmul(f64(1, 3)));
    await expectSvd(Tensor.eye(4, { dtype: "float64" }));
    await expectSvd(Tensor.ones([4, 4], { dtype: "float64" }));
    await expectSvd(new Tensor(rows("1 1; 1 -1"), { dtype: "float64" }));
    const a = f64(3, 3);
    await near(a.mul(1e150).svdvals().div(1e150), a.svdvals(), 8);
    await near(a.mul(1e-150).svdvals().mul(1e150), a.svdvals(), 8);
    const graded = new Tensor(rows("1 1; 0 1e-9"), { dtype: "float64" });
    const [, small] = await numbers(graded.svdvals());
    expect((small as number) / 1e-9).toBeCloseTo(Math.SQRT1_2, 5);
  });
  test("eigh: vectors, values in order, either triangle, both signs of a value", async () => {
    for (const a of [
      f64(2, 5, 5),
      Tensor.zeros([3, 3], { dtype: "float64" }),
      new Tensor(rows("0 1; 1 0"), { dtype: "float64" }),
    ]) {
      const whole = a.add(T(a));
      const n = a.shape.at(-1) as number;
      for (const [UPLO, given] of [
        ["L", whole.tril()],
        ["U", whole.triu()],
      ] as const) {
        const [values, vectors] = given.eigh(UPLO);
        await near(whole.matmul(vectors), vectors.mul(values.unsqueeze(-2)), 7);
        await near(T(vectors).matmul(vectors), Tensor.eye(n).expand(whole.shape), 7);
        const list = await numbers(values);
        for (const [i, x] of list.entries())
          if (i % n > 0) expect(x).toBeGreaterThanOrEqual(list[i - 1] as number);
      }
    }
    await near(new Tensor(rows("2 1; 1 2")).eigvalsh(), new Tensor([1, 3]), 5);
  });
  test("gradients", { timeout: 120_000 }, async () => {
    for (const [m, n] of [
      [3, 3],
      [4, 2],
      [2, 3],
    ] as const)
      await gradcheck((x) => x.svd(false), [f64(m, n)], 4);
    await gradcheck((x) => x.svdvals(), [f64(3, 4)]);
    await gradcheck((x) => x.add(x.T).eigh(), [f64(3, 3)], 4);
    await gradcheck((x) => x.pinv(), [f64(3, 2)], 4);
    await gradcheck((x) => x.pinv(), [f64(2, 3)], 4);
    await gradcheck((x, y) => x.lstsq(y).solution, [f64(4, 2), f64(4, 1)], 4);
  });
  test("gradients of gradients", { timeout: 120_000 }, async () => {
    const square = (f: (x: Tensor) => Tensor) => (x: Tensor) => {
      const leaf = x.requiresGrad ? x : x.detach();
      leaf.requiresGrad = true;
      weighed(f(leaf)).backward(undefined, { createGraph: true });
      const g = leaf.grad as Tensor;
      leaf.grad = undefined;
      return g;
    };
    await gradcheck(
      square((x) => x.inverse()),
      [f64(2, 2)],
      3,
    );
    await gradcheck(
      square((x) => x.svdvals()),
      [f64(2, 2)],
      3,
    );
    await gradcheck(
      square((x) => x.det()),
      [f64(2, 2)],
      3,
    );
    await gradcheck(
      square((x) => x.matmul(x.T).add(Tensor.eye(2)).cholesky()),
      [f64(2, 2)],
      3,
    );
  });
});

describe("norms, ranks, pseudo-inverses", () => {
  test("the norms of a matrix", async () => {
    const a = new Tensor(rows("1 -2; 3 4"), { dtype: "float64" });
    const s = await numbers(a.svdvals());
    const want: readonly [number | "fro" | "nuc", number][] = [
      ["fro", Math.sqrt(30)],
      ["nuc", (s[0] as number) + (s[1] as number)],
      [1, 6],
      [-1, 4],
      [2, s[0] as number],
      [-2, s[1] as number],
      [Infinity, 7],
      [-Infinity, 3],
    ];
    for (const [ord, value] of want) {
      expect(await a.matrixNorm(ord).item()).toBeCloseTo(value, 8);
      expect(await a.linalgNorm(ord).item()).toBeCloseTo(value, 8);
      const batch = a.expand(3, 2, 2).permute(1, 0, 2);
      expect(batch.matrixNorm(ord, [0, 2]).shape).toEqual([3]);
      expect(batch.matrixNorm(ord, [0, 2], true).shape).toEqual([1, 3, 1]);
      await near(batch.matrixNorm(ord, [0, 2]), Tensor.full([3], value, { dtype: "float64" }), 8);
      await gradcheck((x) => x.matrixNorm(ord), [a], 4);
    }
    expect(await a.linalgNorm().item()).toBeCloseTo(Math.sqrt(30), 8);
    expect(await a.linalgNorm(3, 0).tolist()).toEqual([
      expect.closeTo(28 ** (1 / 3), 6),
      expect.closeTo(72 ** (1 / 3), 6),
    ]);
    expect(await a.norm(1).item()).toBe(10); // torch.norm takes the matrix for a vector
  });
  test("rank and pseudo-inverse", async () => {
    const a = f64(5, 2).matmul(f64(2, 4));
    expect(await a.matrixRank().item()).toBe(2);
    expect(await new Tensor(rows("1 0; 0 1e-3")).matrixRank({ atol: 0.01 }).item()).toBe(1);
    expect(await Tensor.zeros(2, 3, 3).matrixRank().tolist()).toEqual([0, 0]);
    const p = a.pinv();
    await near(a.matmul(p).matmul(a), a, 7);
    await near(p.matmul(a).matmul(p), p, 7);
    await near(T(a.matmul(p)), a.matmul(p), 7);
    const [m, b] = [f64(5, 3), f64(5, 2)];
    const { solution, residuals, rank } = m.lstsq(b);
    await near(solution, m.T.matmul(m).solve(m.T.matmul(b)), 7);
    await near(residuals, m.matmul(solution).sub(b).square().sum(0), 7);
    expect(await rank.item()).toBe(3);
  });
});

describe("cost and bad input", () => {
  test("a product is one kernel, a step of an elimination a few", async () => {
    const [a, b] = [ready([4, 5]), ready([5, 3])];
    expect(kernels(Tensor.einsum("ij,jk->ki", a, b))).toBe(1);
    expect(kernels(a.tensordot(b, 1))).toBe(1);
    expect(kernels(a.kron(b))).toBe(1);
    // substitution: one kernel a row, and what puts the inputs in place
    const [l, r] = [ready([6, 6]), ready([6, 2])];
    expect(kernels(l.solveTriangular(r))).toBe(6);
    expect(kernels(l.cholesky())).toBe(7);
    // elimination: largest, its place, its row, update; then the rows in their order
    expect(kernels(l.inverse())).toBeLessThanOrEqual(4 * 6 + 3);
  });
  test("the rounds of a Jacobi sweep are the same few kernels", async () => {
    const a = await Tensor.randn(6, 4).contiguous().realize();
    await a.svdvals().realize();
    const before = GlobalCounters.kernelCount;
    await a.add(1).svdvals().realize();
    expect(GlobalCounters.kernelCount - before).toBeLessThan(3 * 4 * 8 + 40);
  });
  test("integers are taken for floats, half-width floats for float32", () => {
    expect(new Tensor(rows("1 2; 3 4")).inverse().dtype).toBe(dtypes.float32);
    expect(Tensor.ones([2, 2], { dtype: "float16" }).qr()[1].dtype).toBe(dtypes.float32);
  });
  test("matrices without elements", async () => {
    const empty = Tensor.zeros([2, 0, 0], { requiresGrad: true });
    expect(empty.inverse().shape).toEqual([2, 0, 0]);
    expect(empty.solve(Tensor.zeros(2, 0, 3)).shape).toEqual([2, 0, 3]);
    expect(
      Tensor.zeros(0, 3)
        .svd()
        .map((t) => t.shape),
    ).toEqual(rows("0 0; 0; 3 3"));
    expect(await Tensor.zeros(0, 3).svd()[2].tolist()).toEqual(rows("1 0 0; 0 1 0; 0 0 1"));
    expect(Tensor.zeros(3, 0).qr("complete")[0].shape).toEqual([3, 3]);
    expect(await Tensor.zeros(3, 0).matmul(Tensor.zeros(0, 1)).tolist()).toEqual(rows("0; 0; 0"));
  });
  test("says what came and what was expected", () => {
    const [m, v] = [Tensor.ones(2, 3), Tensor.ones(3)];
    expect(() => m.mm(v)).toThrow(ShapeError);
    expect(() => m.mm(v)).toThrow("mm: takes a matrix and a matrix, got [2, 3] and [3]");
    expect(() => m.unsqueeze(0).bmm(Tensor.ones(2, 3, 1))).toThrow("bmm: batches differ");
    expect(() => m.inverse()).toThrow("inverse: takes square matrices, got shape [2, 3]");
    expect(() => v.det()).toThrow("det: shape [3] is not a matrix");
    expect(() => Tensor.eye(3).solve(Tensor.ones(4))).toThrow(
      "solve: [4] is not a right-hand side for [3, 3]",
    );
    expect(() => Tensor.ones(2, 3, 3).solve(Tensor.ones(4, 3, 1))).toThrow("do not broadcast");
    expect(() => Tensor.einsum("ij,jk->ik", m)).toThrow(ArgumentError);
    expect(() => Tensor.einsum("ij,jk->ik", m)).toThrow('einsum: "ij,jk->ik" names 2 operands, got 1');
    expect(() => Tensor.einsum("ij->ijk", m)).toThrow('"k" is in the result but in no operand');
    expect(() => Tensor.einsum("ii->i", m)).toThrow('"i" names dims of sizes 2 and 3');
    expect(() => Tensor.einsum("ij,jk", m, m)).toThrow('"j" names dims of sizes 3 and 2');
    expect(() => Tensor.einsum("i.j->i", m)).toThrow("expected letters and at most one ...");
    expect(() => Tensor.einsum("ijk->i", m)).toThrow('gives operand 0 the dims "ijk", its shape is [2, 3]');
    expect(() => m.tensordot(m, 1)).toThrow("tensordot: dims of [2, 3] and [2, 3]");
    expect(() => m.cross(m, 0)).toThrow("cross: dim 0 of [2, 3] and [2, 3] must be 3 in both");
    expect(() => m.matrixNorm(3)).toThrow("matrixNorm: a matrix has no norm of ord 3");
    expect(() => Tensor.ones(2, 2, 2).linalgNorm(2)).toThrow(
      "linalgNorm: ord 2 over 3 dims of shape [2, 2, 2]",
    );
    expect(() => m.qr("full" as "r")).toThrow('qr: mode "full" is not known');
    expect(() => m.trace().trace()).toThrow("trace: takes a matrix");
    expect(() => Tensor.multiDot([m])).toThrow("multiDot: got 1 tensor");
    expect(() => Tensor.eye(2).matrixPower(0.5)).toThrow(
      "matrixPower: the power is 0.5, expected an integer",
    );
  });
});
