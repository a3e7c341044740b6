// Who shares memory with whom: a result of an op that copies in torch never changes with its operand, whether
// it was computed or only rearranged; results of ops that give views there are views here.

import { GlobalCounters, nn, StaleError, Tensor, TinyJit } from "gradloom";
import { describe, expect, test } from "vitest";

/** Methods whose result is a view of its operand, or the operand itself, in torch too. */
const VIEWS = new Set(
  (
    "detach to placedLike cast bitcast contiguous dropout shard shard_ reshape view flatten unflatten unsqueeze " +
    "permute transpose expand shrink stride squeeze movedim moveaxis swapaxes swapdims t atleast1d atleast2d " +
    "atleast3d expandAs reshapeAs viewAs ravel unfold diagonal split splitWithSizes chunk tensorSplit unbind " +
    "narrow select get broadcastTo positive chainMatmul float double half int long bool"
  ).split(" "),
);
/** Methods that change, free or read their receiver, and factorisations, whose graphs take long to build. */
const OTHERS = new Set(
  "constructor assign setitem realize realizeSync dispose backward data dataSync tolist tolistSync item itemSync svd svdvals eigh eigvalsh matrixRank pinv logdet".split(
    " ",
  ),
);

const filled = (...shape: number[]): Tensor =>
  new Tensor(Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => i + 1)).reshape(shape);
/** Operands on which many methods have nothing to do. */
const OPERANDS: readonly (() => Tensor)[] = [
  () => filled(2, 2),
  () => filled(2, 2).cast("int32").clone(),
  () => filled(1, 1, 1, 1),
  () => filled(1, 4, 2, 2),
  () => filled(1),
  () => new Tensor([true, false]),
];
/** Arguments to try; a method refuses those that do not fit. */
function argumentsFor(x: Tensor): unknown[][] {
  const none = new Tensor(new Int32Array(0));
  const noRows = filled(0, ...x.shape.slice(1)).cast(x.dtype);
  return [
    [],
    [0],
    [1],
    [0, 0],
    [[]],
    [[1, 1]],
    [x.shape.map(() => [0, 0])],
    [x.shape.map(() => [1, 0])],
    [x.shape],
    [0, none, 1],
    [0, none, noRows],
    [none, none.cast(x.dtype)],
    [x.shape.slice(2)],
    [{ size: x.shape.slice(2) }],
    [{ scaleFactor: 1 }],
    [[1, 1], 1],
  ];
}
function tensorsIn(x: unknown): Tensor[] {
  if (x instanceof Tensor) return [x];
  return Array.isArray(x) ? x.flatMap(tensorsIn) : [];
}
type Method = (...args: unknown[]) => unknown;
interface Call {
  readonly name: string;
  readonly operand: () => Tensor;
  readonly args: (x: Tensor) => unknown[];
}
/** The calls of all methods that give tensors, of which some are views of the operand or the operand. */
function calls(): { names: Set<string>; views: Call[] } {
  const names = new Set<string>();
  const views: Call[] = [];
  for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(Tensor.prototype))) {
    if (typeof value !== "function" || OTHERS.has(name)) continue;
    for (const operand of OPERANDS) {
      for (let i = 0; i < argumentsFor(operand()).length; i++) {
        const x = operand();
        const args = (of: Tensor): unknown[] => argumentsFor(of)[i] as unknown[];
        const results = resultsOf(x, name, args(x));
        if (results.length > 0) names.add(name);
        if (results.some((r) => r.lazydata.base === x.lazydata.base)) views.push({ name, operand, args });
      }
    }
  }
  return { names, views };
}
function resultsOf(x: Tensor, name: string, args: unknown[]): Tensor[] {
  try {
    const result = ((x as unknown as Record<string, Method>)[name] as Method)(...args);
    if (result instanceof Promise) result.catch(() => {});
    return tensorsIn(result);
  } catch {
    return [];
  }
}
const read = (ts: readonly Tensor[]): Promise<unknown[]> => Promise.all(ts.map((t) => t.tolist()));

describe("an assign to the operand", () => {
  const { names, views } = calls();
  const copies = views.filter((c) => !VIEWS.has(c.name));
  test("no result of a method that copies in torch is its operand, or a plain view of it", () => {
    expect(names.size).toBeGreaterThan(280);
    expect(new Set(copies.map((c) => c.name)).size).toBeGreaterThan(50);
    for (const { name, operand, args } of copies) {
      const x = operand();
      const shared = resultsOf(x, name, args(x)).filter((r) => r.lazydata.base === x.lazydata.base);
      expect(
        shared.map((r) => r !== x && r.lazydata.copied),
        name,
      ).toEqual(shared.map(() => "unread"));
    }
  });
  test.each(["before it is computed", "after it was computed"])(
    "leaves such a result as it is: %s",
    async (when) => {
      const firsts = new Map(copies.toReversed().map((c) => [c.name, c]));
      for (const { name, operand, args } of firsts.values()) {
        const like = operand();
        const want = await read(resultsOf(like, name, args(like)));
        const x = await operand().realize();
        const results = resultsOf(x, name, args(x));
        if (when === "after it was computed") await Tensor.realize(...results);
        await x.assign(x.zerosLike()).realize();
        expect(await read(results), name).toEqual(want);
      }
    },
  );
  test("static methods of one tensor copy it", async () => {
    for (const name of [
      "cat",
      "stack",
      "hstack",
      "vstack",
      "dstack",
      "columnStack",
      "blockDiag",
      "cartesianProd",
    ]) {
      const x = await filled(2).realize();
      const made = (Tensor as unknown as Record<string, (ts: Tensor[]) => Tensor>)[name]?.([x]) as Tensor;
      await x.assign(x.zerosLike()).realize();
      expect((await made.data()).toString(), name).toMatch(/^1,(0,0,)?2$/);
    }
  });
  test("leaves views of a copy, copies of views, and copies of several devices", async () => {
    const x = await filled(4).realize();
    const sharded = await filled(4).shard(["WASM", "WASM:1"], 0).realize();
    const made = [x.flip(0).reshape(2, 2), x.reshape(2, 2).flip(0), x.flip(0).flip(0), sharded.flip(0)];
    for (const t of [x, sharded]) await t.assign(t.zerosLike()).realize();
    expect(await read(made)).toEqual([
      [
        [4, 3],
        [2, 1],
      ],
      [
        [3, 4],
        [1, 2],
      ],
      [1, 2, 3, 4],
      [4, 3, 2, 1],
    ]);
  });
  test("refuses views, which would have to show the new value", async () => {
    const x = await filled(4).realize();
    const view = x.reshape(2, 2);
    await x.assign(x.zerosLike()).realize();
    await expect(view.data()).rejects.toThrow(StaleError);
  });
  test("of a replayed function leaves them, too", async () => {
    const x = await filled(2).realize();
    const step = new TinyJit(() => x.assign(x.add(1)));
    for (let i = 0; i < 4; i++) {
      const turned = x.flip(0);
      await step();
      expect(await turned.tolist()).toEqual([2 + i, 1 + i]);
    }
  });
});

test("an assign to a copy, and its dispose, leave the operand", async () => {
  for (const copy of [(x: Tensor) => x.roll(0, 0), (x: Tensor) => x.flip(0)]) {
    const x = await filled(2).realize();
    await copy(x).assign(filled(2).mul(5)).realize();
    copy(x).dispose();
    expect(await x.tolist()).toEqual([1, 2]);
  }
});
test("gradients flow through a copy that had nothing to do", async () => {
  const x = nn.parameter(filled(2));
  x.roll(0, 0)
    .square()
    .pad([[0, 0]])
    .sum()
    .backward();
  expect(await x.grad?.tolist()).toEqual([2, 4]);
});
test("copies are still fused into the kernel that reads them", async () => {
  const x = await filled(8).realize();
  const before = GlobalCounters.kernelCount;
  await x
    .flip(0)
    .pad([[1, 1]])
    .repeat(2)
    .mul(x.roll(1).sum())
    .realize();
  await x.assign(x.roll(1).add(x.flip(0))).realize();
  expect(GlobalCounters.kernelCount - before).toBe(4);
});
