// Bad input, family by family: the error has a class of ours and names the method, what came (shapes, types,
// values) and the rule that was broken. And for all methods at once: an argument that is not a tensor
// is said to be none, by its name.

import { ArgumentError, DTypeError, GradloomError, nn, ShapeError, Tensor } from "gradloom";
import { describe, expect, test, vi } from "vitest";
import { allEntries } from "../../scripts/reference.ts";

const z = (...shape: number[]): Tensor => Tensor.zeros(shape);
const i = (...shape: number[]): Tensor => Tensor.zeros(shape, { dtype: "int32" });
const m = z(2, 3);

type Row = readonly [call: () => unknown, kind: typeof GradloomError, message: RegExp];
const FAMILIES: Readonly<Record<string, readonly Row[]>> = {
  creation: [
    [() => Tensor.zeros(-1), ShapeError, /^zeros: .*-1.*/],
    [
      () => Tensor.full([2], 300, { dtype: "uint8" }),
      ArgumentError,
      /^full: 300 does not fit uint8 \(0 to 255\)/,
    ],
    [() => Tensor.arange(0, 5, -1), ArgumentError, /^arange: from 0 to 5 in steps of -1 never gets there/],
    [() => Tensor.linspace(0, 1, -3), ArgumentError, /^linspace: steps is -3, expected an integer from 0 up/],
    [() => Tensor.randint(5, 5, [2]), ArgumentError, /^randint: /],
    [() => z(2, 2, 2).multinomial(1), ShapeError, /^multinomial: .*\[2, 2, 2\]/],
    [() => m.dropout(1.5, true), ArgumentError, /^dropout: p is 1.5, expected .*0 .*1/],
  ],
  movement: [
    [
      () => m.reshape(4, 2),
      ShapeError,
      /^reshape: cannot view shape \[2,3\] \(6 elements\) as \[4,2\] \(8 elements\)/,
    ],
    [() => m.permute(0, 0), ShapeError, /^permute: a dim is named twice in \[0,0\] for shape \[2, 3\]/],
    [
      () => m.transpose(0, 2),
      ShapeError,
      /^transpose: dim 2 is out of range for shape \[2, 3\]; expected -2 to 1/,
    ],
    [
      () => m.expand(2, 5),
      ShapeError,
      /^expand: dim 1 of shape \[2, 3\] has size 3 and cannot become 5; only size 1/,
    ],
    [() => m.shrink([[0, 1]]), ShapeError, /^shrink: .*\[2, 3\]/],
    [() => m.pad([[1, 1]]), ShapeError, /^pad: .*\[2, 3\]/],
    [() => m.squeeze(4), ShapeError, /^squeeze: dim 4 is out of range for shape \[2, 3\]/],
    [() => m.cat(z(4, 5)), ShapeError, /^cat: .*\[2, 3\].*\[4, 5\]/],
    [() => Tensor.stack([m, z(4, 5)]), ShapeError, /^stack: .*\[2, 3\].*\[4, 5\]/],
    [() => m.splitWithSizes([1, 1], 1), ShapeError, /^splitWithSizes: .*\[2, 3\]/],
    [() => m.repeat(2), ShapeError, /^repeat: got counts \[2\] for shape \[2, 3\]/],
    [() => m.unfold(1, 4, 1), ShapeError, /^unfold: windows of 4, 1 apart, do not fit dim 1 of \[2, 3\]/],
  ],
  indexing: [
    [() => m.get(2), ShapeError, /^get: index 2 is out of range for dim 0 of \[2, 3\]; expected -2 to 1/],
    [() => m.get(0, 0, 0), ArgumentError, /^get: 3 indices for shape \[2, 3\]; expected at most 2/],
    [() => m.gather(0, i(3, 4)), ShapeError, /^gather: an index of shape \[3, 4\] does not fit \[2, 3\]/],
    [() => m.gather(0, m), DTypeError, /^gather: the index is float32, expected integers/],
    [
      () => m.indexSelect(0, i(2, 2)),
      ShapeError,
      /^indexSelect: the index has shape \[2, 2\], expected a vector/,
    ],
    [() => m.scatterAdd(0, i(2, 3), z(1, 1)), ShapeError, /^scatterAdd: cannot write \[1, 1\] .* \[2, 3\]/],
    [() => m.maskedFill(m, 0), DTypeError, /^maskedFill: the mask is float32, expected bool/],
    [() => m.select(1, 9), ShapeError, /^select: index 9 is out of range for dim 1 of \[2, 3\]/],
    [
      () => i(3).embedding(z(4)),
      ShapeError,
      /^embedding: the weight has shape \[4\], expected \[rows, width\]/,
    ],
  ],
  math: [
    [
      () => m.add(z(2, 4)),
      ShapeError,
      /^add: shapes \[2, 3\] and \[2, 4\] do not broadcast; dim -1 has sizes 3 and 4/,
    ],
    [() => m.where(1, 2), DTypeError, /^where: the condition is float32, expected bool/],
    [() => m.bitwiseAnd(1), DTypeError, /^bitwiseAnd: takes integers or bools, got float32/],
    [() => m.ne(0).sub(m.ne(0)), DTypeError, /^sub: bool has no such operation/],
    [() => m.clamp(), ArgumentError, /^clamp: neither min nor max is given/],
    [
      () => m.add("1" as unknown as number),
      ArgumentError,
      /^add: x is the string "1", expected a number or a Tensor/,
    ],
    [() => m.polygamma(-1), ArgumentError, /^polygamma: n is -1, expected an integer from 0 up/],
    [() => m.gcd(2), DTypeError, /^gcd: takes integers, got float32/],
    [() => m.prelu(z(2)), ShapeError, /^prelu: the weight has shape \[2\] for an input of shape \[2, 3\]/],
    [() => z(3).glu(), ShapeError, /^glu: dim -1 of shape \[3\] has size 3, expected an even one/],
  ],
  reduce: [
    [() => m.sum(2), ShapeError, /^sum: dim 2 is out of range for shape \[2, 3\]/],
    [() => m.std([0, 0]), ShapeError, /^std: a dim is named twice in \[0,0\] for shape \[2, 3\]/],
    [() => z(0, 3).max(0), ShapeError, /^max: shape \[0, 3\] has no elements along dim 0/],
    [() => z(0, 3).amin(0), ShapeError, /^amin: shape \[0, 3\] has no elements along dim 0/],
    [() => m.topk(4), ArgumentError, /^topk: k is 4 for dim -1 of shape \[2, 3\], expected 0 to 3/],
    [() => m.kthvalue(0), ArgumentError, /^kthvalue: k is 0 for dim -1 of shape \[2, 3\], expected 1 to 3/],
    [() => m.quantile(1.5), ArgumentError, /^quantile: q is 1.5, expected a number from 0 to 1/],
    [() => m.cumsum(3), ShapeError, /^cumsum: dim 3 is out of range for shape \[2, 3\]/],
    [() => m.softmax(2), ShapeError, /^softmax: dim 2 is out of range for shape \[2, 3\]/],
  ],
  "linear algebra": [
    [() => m.dot(m), ShapeError, /^dot: cannot multiply \[2, 3\] by \[2, 3\]; dim -1 of the first is 3/],
    [() => m.matmul(m), ShapeError, /^matmul: cannot multiply \[2, 3\] by \[2, 3\]/],
    [() => m.mm(z(3)), ShapeError, /^mm: takes a matrix and a matrix, got \[2, 3\] and \[3\]/],
    [() => z(2, 2, 3).bmm(z(3, 3, 2)), ShapeError, /^bmm: batches differ: \[2, 2, 3\] and \[3, 3, 2\]/],
    [() => m.inv(), ShapeError, /^inv: takes square matrices, got shape \[2, 3\]/],
    [() => m.cholesky(), ShapeError, /^cholesky: takes square matrices, got shape \[2, 3\]/],
    [() => m.det(), ShapeError, /^det: takes square matrices, got shape \[2, 3\]/],
    [() => z(2, 2).solve(z(3, 1)), ShapeError, /^solve: \[3, 1\] is not a right-hand side for \[2, 2\]/],
    [() => Tensor.einsum("ij,jk->ik", m, m), ShapeError, /^einsum: .*\[2, 3\]|^einsum: .*sizes/],
  ],
  convolution: [
    [() => z(1, 3, 8, 8).conv2d(z(4, 2, 3, 3)), ShapeError, /^conv2d: .*\[1, 3, 8, 8\].*\[4, 2, 3, 3\]/],
    [
      () => z(1, 3, 2, 2).conv2d(z(4, 3, 3, 3)),
      ShapeError,
      /^conv2d: a kernel of 3 with dilation 1 does not fit into 2 elements \(input \[1, 3, 2, 2\]/,
    ],
    [() => z(1, 3, 8).maxPool2d(9), ShapeError, /^maxPool2d: /],
    [() => m.conv1d(z(1, 2, 2), z(5)), ShapeError, /^conv1d: .*\[5\]/],
    [
      () => z(1, 1, 4).interpolate({ size: 2, scaleFactor: 2 }),
      ArgumentError,
      /^interpolate: give either size or/,
    ],
    [
      () => z(1, 2, 4).maxUnpool1d(i(1, 2, 3), 2),
      ShapeError,
      /^maxUnpool1d: indices \[1, 2, 3\] and input \[1, 2, 4\]/,
    ],
  ],
  losses: [
    [
      () => m.crossEntropy(i(3)),
      ShapeError,
      /^crossEntropy: input \[2, 3\] has its classes along dim 1, so .* \[2\]/,
    ],
    [() => m.crossEntropy(z(2)), DTypeError, /^crossEntropy: class numbers are integers, got float32/],
    [() => m.mseLoss(z(2, 4)), ShapeError, /^mseLoss: shapes \[2, 3\] and \[2, 4\] do not broadcast/],
    [
      () => m.binaryCrossEntropy(z(3)),
      ShapeError,
      /^binaryCrossEntropy: input \[2, 3\] and target \[3\] must have the same shape/,
    ],
    [
      () => m.l1Loss(m, { reduction: "avg" as "mean" }),
      ArgumentError,
      /^l1Loss: reduction is "avg", expected "mean"/,
    ],
    [
      () => m.multiMarginLoss(i(3)),
      ShapeError,
      /^multiMarginLoss: input \[2, 3\] and target \[3\] do not fit/,
    ],
    [() => m.huberLoss(m, { delta: 0 }), ArgumentError, /^huberLoss: delta is 0, expected a number above 0/],
    [
      () => m.nllLoss(i(2), { weight: z(2) }),
      ShapeError,
      /^nllLoss: weight has shape \[2\], expected .* 3 classes/,
    ],
  ],
  networks: [
    [
      () => new nn.optim.CosineAnnealingLR(new nn.Linear(2, 2) as never, { tMax: 3 }),
      ArgumentError,
      /^LRScheduler: got a Linear, expected an optimiser/,
    ],
    [() => m.linear(z(4, 2)), ShapeError, /^linear: input \[2, 3\] and weight \[4, 2\] do not fit/],
    [() => m.layerNorm(4), ShapeError, /^layerNorm: .*\[2, 3\]/],
    [() => m.groupNorm(2), ShapeError, /^groupNorm: .*\[2, 3\]/],
    [() => m.batchNorm(z(2), z(2)), ShapeError, /^batchNorm: .*\[2\].*3/],
    [
      () => m.scaledDotProductAttention(z(2, 4), z(2, 4)),
      ShapeError,
      /^scaledDotProductAttention: .*\[2, 3\].*\[2, 4\]/,
    ],
  ],
};

describe.each(Object.entries(FAMILIES))("%s", (_, rows) => {
  test.each(rows.map(([call, kind, message]) => [String(call).slice(6), call, kind, message] as const))(
    "%s",
    (_, call, kind, message) => {
      expect(call).toThrow(kind);
      expect(call).toThrow(message);
    },
  );
});

describe("an argument that is not a tensor", () => {
  const own = allEntries().filter((e) => /^Tensor(Handle)?$/.test(e.owner ?? "") && e.kind === "method");
  /** The first parameter, where it must be a tensor or a list of them. */
  const takers = own.filter((e) =>
    /^[^(]*\(\w+: (?:Tensor|readonly Tensor\[\])[,)]/.test(e.signatures[0] ?? ""),
  );
  test("there are many that take one", () => expect(takers.length).toBeGreaterThan(60));
  test.each(takers.map((e) => [e.isStatic ? `Tensor.${e.name}` : e.name, e] as const))("%s", async (_, e) => {
    for (const bad of [["a"], 5, null, undefined, "x"]) {
      const target = (e.isStatic ? Tensor : Tensor.ones(2, 3)) as unknown as Record<
        string,
        (x: unknown) => unknown
      >;
      const error = await Promise.resolve()
        .then(() => target[e.name]?.(bad))
        .then(
          () => undefined,
          (error: unknown) => error,
        );
      expect(error, `${e.name} of ${String(bad)}`).toBeInstanceOf(GradloomError);
      expect((error as Error).message).toMatch(new RegExp(`^${e.name}: .*expected`));
    }
  });
});

test("losses that compare [n, 1] and [n] each with each warn, once", async () => {
  const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
  try {
    const [x, y] = [Tensor.ones(4, 1), Tensor.zeros(4)];
    for (const loss of ["mseLoss", "l1Loss", "smoothL1Loss", "huberLoss"] as const) {
      warn.mockClear();
      expect(x[loss](y, { reduction: "none" }).shape).toEqual([4, 4]);
      x[loss](y);
      expect(warn).toHaveBeenCalledTimes(1);
      const said = /input \[4, 1\] and target \[4\] are compared as \[4, 4\]; expand or reshape one/;
      expect(warn.mock.calls[0]?.[0]).toMatch(said);
      expect(y[loss](y).shape).toEqual([]);
    }
  } finally {
    warn.mockRestore();
  }
});
