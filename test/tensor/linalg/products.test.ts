// Products of vectors and matrices: against plain numbers and against each other, and their gradients.

import { Tensor } from "gradloom";
import { beforeEach, describe, expect, test } from "vitest";
import { deviceTest } from "../../device/harness.ts";
import { f64, gradcheck, near, rows } from "../gradcheck.ts";

beforeEach(() => Tensor.manualSeed(3));

describe("products", () => {
  const a = new Tensor(rows("1 2; 3 4"));
  const b = new Tensor(rows("5 6; 7 8"));
  deviceTest("the matmul family", async (device) => {
    const [x, y] = [a.to(device), b.to(device)];
    const v = new Tensor([1, -1], { device });
    const product = rows("19 22; 43 50");
    expect(await x.mm(y).tolist()).toEqual(product);
    expect(await x.unsqueeze(0).bmm(y.unsqueeze(0)).tolist()).toEqual([product]);
    expect(await x.mv(v).tolist()).toEqual([-1, -1]);
    expect(await v.vdot(v).item()).toBe(2);
    expect(await x.inner(y).tolist()).toEqual(rows("17 23; 39 53"));
    expect(await v.outer(new Tensor([2, 3, 4], { device })).tolist()).toEqual(rows("2 3 4; -2 -3 -4"));
    expect(await x.addmm(x, y, { alpha: 2, beta: 3 }).tolist()).toEqual(rows("41 50; 95 112"));
    expect(await v.addmv(x, v, { beta: 10 }).tolist()).toEqual([9, -11]);
    expect(await x.baddbmm(x.unsqueeze(0), y.unsqueeze(0)).tolist()).toEqual([rows("20 24; 46 54")]);
    expect(await x.addbmm(x.expand(2, 2, 2), y.expand(2, 2, 2)).tolist()).toEqual(rows("39 46; 89 104"));
    expect(await x.addr(v, v, { alpha: 5 }).tolist()).toEqual(rows("6 -3; -2 9"));
    // integers scale by integers, and what is scaled by 0 is not looked at
    expect(await x.addmm(x, y, { alpha: 1.9, beta: 0.5 }).tolist()).toEqual(product);
    const nan = Tensor.full([2, 2], Number.NaN, { device });
    expect(await nan.addmm(x.cast("float32"), y.cast("float32"), { beta: 0 }).tolist()).toEqual(product);
  });
  test("kron, cross, trace, powers, chains", async () => {
    expect(await a.kron(new Tensor([[0, 1]])).tolist()).toEqual(rows("0 1 0 2; 0 3 0 4"));
    const [e0, e1] = [new Tensor(rows("1 0 0; 0 2 0")), new Tensor(rows("0 1 0; 0 0 3"))];
    expect(await e0.cross(e1).tolist()).toEqual(rows("0 0 1; 6 0 0"));
    expect(await e0.T.cross(e1.T, 0).T.tolist()).toEqual(rows("0 0 1; 6 0 0"));
    expect(await a.trace().item()).toBe(5);
    expect(await a.matrixPower(3).tolist()).toEqual(rows("37 54; 81 118"));
    expect(await a.matrixPower(0).tolist()).toEqual(rows("1 0; 0 1"));
    await near(a.matrixPower(-2), a.matmul(a).inverse());
    const [p, q, r] = [f64(3, 7), f64(7, 2), f64(2, 5)];
    await near(Tensor.multiDot([p, q, r]), p.matmul(q).matmul(r), 10);
    await near(
      p.select(0, 0).chainMatmul(q, r.select(1, 1)),
      p.matmul(q).matmul(r).select(0, 0).select(0, 1),
      10,
    );
  });
  test("tensordot pairs dims, and one of size 1 stands for many", async () => {
    const [x, y] = [f64(2, 3, 4), f64(3, 4, 5)];
    await near(x.tensordot(y), x.reshape(2, 12).matmul(y.reshape(12, 5)), 10);
    await near(x.tensordot(y, [[2], [1]]), Tensor.einsum("abc,dce->abde", x, y), 10);
    await near(x.tensordot(y, 0), x.reshape(24, 1).mul(y.reshape(1, 60)).reshape(2, 3, 4, 3, 4, 5), 10);
    await near(
      f64(2, 1)
        .tensordot(Tensor.ones([3, 2], { dtype: "float64" }), 1)
        .mul(0),
      Tensor.zeros(2, 2),
      10,
    );
  });
  test("einsum: contraction, diagonals, ellipsis, implicit results, broadcasting", async () => {
    const [x, y, m] = [f64(2, 3, 4), f64(4, 3), f64(3, 3)];
    await near(Tensor.einsum("aij,jk->aik", x, y), x.matmul(y), 10);
    await near(Tensor.einsum("ii->i", m), m.diagonal(), 10);
    await near(Tensor.einsum("ii", m), m.diagonal().sum(), 10);
    await near(Tensor.einsum("ji", y), y.T, 10);
    await near(Tensor.einsum("i...->...", y), y.sum(0), 10);
    await near(Tensor.einsum("...ij,...jk", x, y), x.matmul(y), 10);
    await near(Tensor.einsum("...i,...i->...", x, x), x.square().sum(-1), 10);
    await near(Tensor.einsum("ab...,b...->a...", x, f64(1, 4).expand(3, 4).mul(0).add(1)), x.sum(1), 10);
    await near(
      Tensor.einsum("ij,kj->ki", f64(2, 1).mul(0).add(2), y),
      y.sum(1, true).mul(2).expand(4, 2),
      10,
    );
    await near(
      Tensor.einsum("i,j,k->kij", y.select(1, 0), m.select(0, 0), m.select(0, 1)).sum(),
      y.select(1, 0).sum().mul(m.select(0, 0).sum()).mul(m.select(0, 1).sum()),
      10,
    );
    await near(Tensor.einsum("bA,Ac -> cb", x.select(0, 0), y), x.select(0, 0).matmul(y).T, 10);
    await gradcheck((p, q) => Tensor.einsum("ij,jii->j", p, q), [f64(2, 3), f64(3, 2, 2)]);
  });
  test("einsum: operands of several types, and small integers, which multiply as wide as they add up", async () => {
    const [a, b] = [
      [126, 7],
      [3, -128],
    ].map((x) => new Tensor(x, { dtype: "int8" })) as [Tensor, Tensor];
    expect(await Tensor.einsum("i,i->", a, b).item()).toBe(-518);
    expect(await Tensor.einsum("i,j,ij->", a, b, Tensor.ones([2, 2], { dtype: "int8" })).item()).toBe(
      133 * -125,
    );
    expect(Tensor.einsum("i,j->ij", a, b).dtype.name).toBe("int8");
    expect(Tensor.einsum("i,i->", a.half(), b.float()).dtype.name).toBe("float32");
    expect(Tensor.einsum("i,i->", a.half(), b.bfloat16()).dtype.name).toBe("float32");
  });
  test("gradients of products", async () => {
    await gradcheck((x, y, z) => x.addmm(y, z, { alpha: 0.5, beta: 2 }), [f64(3), f64(2, 2), f64(2, 3)]);
    await gradcheck((x, y) => x.kron(y), [f64(2, 2), f64(1, 2)]);
    await gradcheck((x, y) => x.cross(y), [f64(2, 3), f64(2, 3)]);
    await gradcheck((x, y) => x.tensordot(y, [[0], [1]]), [f64(2, 2), f64(2, 2)]);
    await gradcheck((x) => x.matrixPower(3), [f64(2, 2)]);
    await gradcheck((x) => x.matrixPower(-1), [f64(2, 2)]);
    await gradcheck((x, y) => x.inner(y), [f64(2, 3), f64(3)]);
  });
});
