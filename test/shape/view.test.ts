// One view: canonical form, each movement, which reshapes and merges a single view can say.
import { describe, expect, test } from "vitest";
import { ShapeTracker } from "../../src/shape/shapetracker.ts";
import { Variable } from "../../src/shape/symbolic.ts";
import { merge, stridesFor, unflatten, View } from "../../src/shape/view.ts";
import { expectSame, type Move, moveModel, plainModel, randomMove } from "./model.ts";
import { Random } from "./random.ts";

const plain = (...shape: number[]): View => View.create(shape);

describe("create", () => {
  test("row-major strides, 0 for size 1", () => {
    expect(stridesFor([2, 3, 4])).toEqual([12, 4, 1]);
    expect(stridesFor([2, 1, 4])).toEqual([4, 0, 1]);
    expect(stridesFor([])).toEqual([]);
    expect(View.create([1, 5], [99, 1]).contiguous).toBe(true);
  });

  test("a mask that hides nothing is dropped", () => {
    const view = View.create([2, 3], undefined, 0, [
      [0, 2],
      [0, 3],
    ]);
    expect(view.mask).toBeUndefined();
    expect(view.contiguous).toBe(true);
  });

  test("a mask that hides everything has one form", () => {
    const p = View.create([2, 3], [7, 5], 3, [
      [0, 2],
      [2, 2],
    ]);
    const q = View.create([2, 3], [1, 1], 0, [
      [1, 1],
      [0, 3],
    ]);
    expect(p.hidesAll).toBe(true);
    expect(p.key).toBe(q.key);
    expect(p.expr([0, 0]).valid).toBe(0);
  });

  test("where one index is there, its stride moves into the offset", () => {
    const view = View.create([4, 3], [3, 1], 0, [
      [2, 3],
      [0, 3],
    ]);
    expect(view.strides).toEqual([0, 1]);
    expect(view.offset).toBe(6);
  });

  test("a shape without elements is contiguous", () => {
    expect(View.create([3, 0], [5, 7], 2).contiguous).toBe(true);
  });

  test("keys and text", () => {
    expect(plain(2, 3).toString()).toBe("View([2, 3])");
    expect(plain(2, 3).permute([1, 0]).toString()).toBe("View([3, 2], strides=[1, 3], offset=0)");
    expect(
      plain(2)
        .pad([[1, 0]])
        .toString(),
    ).toBe("View([3], strides=[1], offset=-1, mask=[1:3])");
    expect(plain(2, 3).key).not.toBe(plain(3, 2).key);
    expect(plain(2, 3).key).toBe(View.create([2, 3], [3, 1]).key);
  });
});

describe("reshape", () => {
  const fits = (view: View | undefined, to: number[], strides: number[] | undefined): void => {
    expect(view?.reshape(to)?.strides).toEqual(strides);
  };
  test("a permuted view splits but does not join across the permutation", () => {
    const view = plain(6, 4).permute([1, 0]);
    fits(view, [2, 2, 6], [2, 1, 4]);
    fits(view, [4, 2, 3], [1, 12, 4]);
    fits(view, [24], undefined);
  });
  test("dims that lie side by side join", () => {
    fits(plain(5, 2, 3).permute([1, 2, 0]), [6, 5], [1, 6]);
    fits(plain(4, 6).flip([0, 1]), [24], [-1]);
    fits(plain(4, 6).flip([1]), [24], undefined);
  });
  test("expanded dims join and split", () => {
    const view = plain(1, 1, 3).expand([4, 5, 3]);
    fits(view, [20, 3], [0, 1]);
    fits(view, [2, 10, 3], [0, 0, 1]);
    fits(view, [60], undefined);
  });
  test("size 1 comes and goes", () => {
    fits(plain(6, 4).permute([1, 0]), [1, 4, 1, 6, 1], [0, 1, 0, 4, 0]);
    fits(plain(6, 1, 4).permute([2, 1, 0]), [4, 6], [1, 4]);
    fits(plain(5).shrink([[2, 3]]), [], []);
  });
  test("a mask goes along where it stays a box", () => {
    const rows = plain(3, 4).pad([
      [1, 2],
      [0, 0],
    ]);
    expect(rows.reshape([24])?.mask).toEqual([[4, 16]]);
    expect(rows.reshape([6, 2, 2])?.mask).toEqual([
      [1, 4],
      [0, 2],
      [0, 2],
    ]);
    const columns = plain(3, 4).pad([
      [0, 0],
      [1, 1],
    ]);
    expect(columns.reshape([18])).toBeUndefined();
    expect(columns.reshape([3, 1, 6])?.mask).toEqual([
      [0, 3],
      [0, 1],
      [1, 5],
    ]);
    expect(columns.reshape([3, 2, 3])).toBeUndefined();
    expect(
      plain(2)
        .pad([[4, 2]])
        .reshape([2, 4])?.mask,
    ).toEqual([
      [1, 2],
      [0, 2],
    ]);
    expect(
      plain(1, 3)
        .pad([
          [2, 1],
          [1, 0],
        ])
        .reshape([16])?.mask,
    ).toEqual([[9, 12]]);
  });
});

describe("merge", () => {
  test("a contiguous view on either side disappears", () => {
    const view = plain(6, 4).permute([1, 0]);
    expect(merge(view, plain(24))).toBe(view);
    expect(merge(plain(4, 6), view)?.key).toBe(view.key);
    expect(merge(plain(24), view)).toBeUndefined();
  });
  test("a permutation is undone through a flat view", () => {
    const inner = plain(6, 4).permute([1, 0]);
    const outer = plain(4, 6).permute([1, 0]);
    expect(merge(outer, inner)?.contiguous).toBe(true);
  });
  test("a cut through rows of a padded view", () => {
    const inner = plain(3, 4).pad([
      [0, 0],
      [1, 1],
    ]);
    const outer = plain(18).shrink([[1, 5]]) as View;
    expect(merge(outer, inner)?.key).toBe(View.create([4]).key);
    const crossing = plain(18).shrink([[4, 9]]) as View;
    expect(merge(crossing, inner)).toBeUndefined();
  });
  test("the masks of both meet", () => {
    const inner = plain(4).pad([[2, 2]]);
    const outer = plain(8)
      .flip([0])
      .pad([[1, 0]]);
    const one = merge(outer, inner);
    expect(one?.mask).toEqual([[3, 7]]);
    expect(one?.strides).toEqual([-1]);
  });
});

test("unflatten", () => {
  expect(unflatten(17, [2, 3, 4])).toEqual([1, 1, 1]);
  expect(unflatten(0, [])).toEqual([]);
  const i = Variable("i", 0, 23);
  expect(unflatten(i, [2, 3, 4]).map(String)).toEqual(["(i//12)", "((i//4)%3)", "(i%4)"]);
  expect(unflatten(3, [2, 0]).length).toBe(2);
});

test("3000 random pairs of views: where they merge, the merged one means the same", () => {
  let merged = 0;
  for (let seed = 0; seed < 3000; seed++) {
    const r = new Random(seed + 5_000_000);
    const shape = Array.from({ length: r.int(1, 3) }, () => r.int(1, 4));
    const log: Move[] = [];
    let model = plainModel(shape);
    const wander = (view: View): View => {
      for (let step = r.int(1, 4); step > 0; step--) {
        const move = randomMove(r, model.shape);
        const next = applyTo(view, move);
        if (next === undefined) continue;
        log.push(move);
        model = moveModel(model, move);
        view = next;
      }
      return view;
    };
    const inner = wander(View.create(shape));
    const cut: Move = { op: "reshape", arg: [model.values.length] };
    model = moveModel(model, cut);
    log.push(cut);
    const outer = wander(View.create([model.values.length]));
    const one = merge(outer, inner);
    if (one === undefined) continue;
    merged++;
    expectSame(ShapeTracker.fromViews([one]), model, `seed ${seed}: ${JSON.stringify([shape, ...log])}`);
  }
  expect(merged).toBeGreaterThan(1500);
});

function applyTo(view: View, move: Move): View | undefined {
  if (move.op === "pad" || move.op === "shrink") return view[move.op](move.arg);
  return view[move.op](move.arg);
}
