// ShapeTrackers: the checks of arguments, how strongly stacks of views simplify, symbolic sizes, and
// thousands of random chains of movements against an array that really moves its values.
import { describe, expect, test } from "vitest";
import { ShapeError } from "../../src/errors.ts";
import { ShapeTracker } from "../../src/shape/shapetracker.ts";
import { add, evaluate, idiv, mod, mul, type Sint, sub, Variable } from "../../src/shape/symbolic.ts";
import {
  expectSame,
  indexes,
  type Model,
  type Move,
  moveModel,
  moveTracker,
  plainModel,
  randomMove,
  readTracker,
} from "./model.ts";
import { Random } from "./random.ts";

const plain = (...shape: Sint[]): ShapeTracker => ShapeTracker.fromShape(shape);
const loops = (...sizes: number[]): Variable[] => sizes.map((s, i) => Variable(`ridx${i}`, 0, s - 1));
const text = (st: ShapeTracker, idxs: readonly Sint[]): string[] => {
  const { index, valid } = st.expr(idxs);
  return [String(index), String(valid)];
};

interface Chain {
  readonly st: ShapeTracker;
  readonly model: Model;
  readonly hint: string;
}

function chain(seed: number, from: Model & { st?: ShapeTracker }, steps: number, r: Random): Chain {
  let st = from.st ?? plain(...from.shape);
  let model: Model = from;
  const log: Move[] = [];
  for (let i = 0; i < steps; i++) {
    const move = randomMove(r, model.shape);
    log.push(move);
    st = moveTracker(st, move);
    model = moveModel(model, move);
  }
  return { st, model, hint: `seed ${seed}: ${JSON.stringify([from.shape, ...log])}` };
}

const randomShape = (r: Random): number[] =>
  Array.from({ length: r.int(0, 5) }, () => (r.chance(3) ? 0 : r.chance(25) ? 1 : r.int(2, 4)));

describe("random chains of movements", () => {
  test("8000 chains say where every element is, before and after simplify", () => {
    let stacked = 0;
    for (let seed = 0; seed < 8000; seed++) {
      const r = new Random(seed);
      const { st, model, hint } = chain(seed, plainModel(randomShape(r)), r.int(1, 9), r);
      expectSame(st, model, hint);
      const simple = st.simplify();
      if (simple !== st) expectSame(simple, model, `simplified, ${hint}`);
      if (simple.views.length > 1) stacked++;
      const last = model.values.reduce((top, x) => Math.max(top, x), -1);
      if (st.realSize() < last + 1) expect(st.realSize(), `realSize, ${hint}`).toBeGreaterThan(last);
      if (simple.views.length === 1) expect(st.realSize(), `realSize, ${hint}`).toBe(last + 1);
    }
    expect(stacked).toBeGreaterThan(300);
  });

  test("2000 chains: plain numbers as indexes, strides and masks agree with the values", () => {
    for (let seed = 0; seed < 2000; seed++) {
      const r = new Random(seed + 100_000);
      const { st, model, hint } = chain(seed, plainModel(randomShape(r)), r.int(1, 8), r);
      const strides = st.realStrides();
      let flat = 0;
      for (const at of indexes(model.shape)) {
        const { index, valid } = st.expr(at);
        const want = model.values[flat++]!;
        if ((valid === 1 ? index : -1) !== want) expect([index, valid], hint).toEqual([want, 1]);
        for (let axis = 0; axis < at.length; axis++) {
          if (strides[axis] === undefined || at[axis] === 0 || want < 0) continue;
          const before = st.expr(at.map((x, i) => (i === axis ? x - 1 : x)));
          if (before.valid === 1)
            expect(sub(index, before.index), `stride ${axis}, ${hint}`).toBe(strides[axis]);
          else expect(st.axisIsMasked(axis), `axisIsMasked ${axis}, ${hint}`).toBe(true);
        }
      }
    }
  });

  test("2000 pairs of chains: add stacks one on the other", () => {
    for (let seed = 0; seed < 2000; seed++) {
      const r = new Random(seed + 200_000);
      const first = chain(seed, plainModel(randomShape(r)), r.int(0, 5), r);
      const second = chain(seed, plainModel(first.model.shape), r.int(0, 5), r);
      const both: Model = {
        shape: second.model.shape,
        values: second.model.values.map((x) => (x < 0 ? -1 : first.model.values[x]!)),
      };
      const hint = `add, ${first.hint} then ${second.hint}`;
      const st = first.st.add(second.st);
      expectSame(st, both, hint);
      expectSame(st.simplify(), both, `simplified ${hint}`);
    }
  });

  test("1000 reversible chains: invert undoes them", () => {
    let undone = 0;
    for (let seed = 0; seed < 1000; seed++) {
      const r = new Random(seed + 300_000);
      const shape = Array.from({ length: r.int(1, 4) }, () => r.int(1, 4));
      const { st, model, hint } = chain(seed, plainModel(shape), r.int(1, 6), r);
      const back = st.invert(shape);
      if (back === undefined) {
        const inner = st.views.every(
          (v) => v.mask === undefined && v.strides.every((s, i) => s !== 0 || v.shape[i] === 1),
        );
        const whole = model.values.length === plainModel(shape).values.length;
        expect(
          inner && whole && new Set(model.values).size === model.values.length && st.views.length === 1,
          hint,
        ).toBe(false);
        continue;
      }
      undone++;
      expectSame(st.add(back), plainModel(shape), `invert, ${hint}`);
    }
    expect(undone).toBeGreaterThan(200);
  });
});

describe("strength", () => {
  test("contiguous reshapes stay one contiguous view without symbolic work", () => {
    const st = plain(2, 3, 4).reshape([6, 4]).reshape([24]).reshape([4, 3, 2]).reshape([1, 24, 1]);
    expect(st.contiguous).toBe(true);
    expect(st.views).toHaveLength(1);
    expect(st.key).toBe("[1,24,1]");
  });

  test("merged dims index without div or mod", () => {
    const [i, j] = loops(6, 4);
    expect(text(plain(2, 3, 4).reshape([6, 4]), [i!, j!])).toEqual(["((ridx0*4)+ridx1)", "1"]);
    const k = Variable("k", 0, 23);
    const { index } = plain(2, 3, 4).expr([idiv(k, 12), mod(idiv(k, 4), 3), mod(k, 4)]);
    expect(index).toBe(k);
  });

  test("a reshape that does not fit stacks a view, and simplify takes it back when it can", () => {
    const there = plain(2, 3, 4).permute([2, 0, 1]).reshape([24]);
    expect(there.views).toHaveLength(2);
    const back = there.reshape([4, 2, 3]).permute([1, 2, 0]);
    expect(back.simplify().contiguous).toBe(true);
    expect(there.reshape([4, 6]).simplify().views).toHaveLength(1);
  });

  test("an index through stacked views simplifies for the loops that match", () => {
    const st = plain(2, 3, 4).permute([2, 0, 1]).reshape([24]);
    const [i, j] = loops(4, 6);
    expect(text(st, [add(mul(i!, 6), j!)])).toEqual(["(ridx0+(ridx1*4))", "1"]);
  });

  test("padding and cutting it off again leaves nothing behind", () => {
    const st = plain(3, 4)
      .pad([
        [1, 2],
        [3, 1],
      ])
      .shrink([
        [1, 4],
        [3, 7],
      ]);
    expect(st.contiguous).toBe(true);
    expect(st.key).toBe(plain(3, 4).key);
  });

  test("an index below a mask is taken to be inside it", () => {
    // Padded after a reshape that joined dims: (i-2)//4 and (i-2)%4 need no care for i < 2.
    const st = plain(3, 4)
      .permute([1, 0])
      .reshape([12])
      .pad([[2, 2]]);
    const [i] = loops(16);
    const { index, valid } = st.expr([i!]);
    expect(String(valid)).toBe("((ridx0<14) and (1<ridx0))");
    for (let x = 2; x < 14; x++) {
      expect(evaluate(index, new Map([["ridx0", x]]))).toBe(((x - 2) % 3) * 4 + Math.floor((x - 2) / 3));
    }
  });

  /** Windows of k every s along the last axis, made of movements alone: repeat, cut, reshape. */
  function windows(st: ShapeTracker, k: number, s: number, d: number): ShapeTracker {
    const rank = st.shape.length;
    const n = st.shape[rank - 1] as number;
    const lead = st.shape.slice(0, -1);
    const keep = lead.map((x): [Sint, Sint] => [0, x]);
    const out = Math.ceil((n - d * (k - 1)) / s);
    const f = Math.max(1, Math.ceil((s * out - d) / n));
    const times = Math.ceil((k * (n * f + d)) / n);
    return st
      .reshape([...lead, 1, n])
      .expand([...lead, times, n])
      .reshape([...lead, times * n])
      .shrink([...keep, [0, k * (n * f + d)]])
      .reshape([...lead, k, n * f + d])
      .shrink([...keep, [0, k], [0, s * out]])
      .reshape([...lead, k, out, s])
      .shrink([...keep, [0, k], [0, out], [0, 1]])
      .reshape([...lead, k, out]);
  }

  test.each([
    [9, 3, 1, 1],
    [9, 3, 2, 1],
    [10, 2, 2, 1],
    [11, 3, 1, 2],
    [12, 4, 3, 2],
    [7, 1, 1, 1],
  ])("windows over %i: kernel %i, stride %i, dilation %i", (n, k, s, d) => {
    const st = windows(plain(2, n), k, s, d);
    const out = st.shape[2] as number;
    const got = readTracker(st, [2, k, out]);
    expect(got).toEqual([...indexes([2, k, out])].map(([b, i, o]) => b! * n + o! * s + i! * d));
    const simple = st.simplify();
    expect(simple.views).toHaveLength(1);
    expect(st.realStrides()).toEqual([n, k === 1 ? 0 : d, out === 1 ? 0 : s]);
  });

  test("a padded two-dimensional convolution is one masked view", () => {
    const padded = plain(1, 2, 5, 5).pad([
      [0, 0],
      [0, 0],
      [1, 1],
      [1, 1],
    ]);
    const rows = windows(padded.permute([0, 1, 3, 2]), 3, 1, 1); // [1, 2, x 7, ky 3, oy 5]
    const st = windows(rows.permute([0, 1, 3, 4, 2]), 3, 1, 1); // [1, 2, ky, oy, kx, ox]
    expect(st.shape).toEqual([1, 2, 3, 5, 3, 5]);
    const want = [...indexes([1, 2, 3, 5, 3, 5])].map(([, c, ky, oy, kx, ox]) => {
      const y = oy! + ky! - 1,
        x = ox! + kx! - 1;
      return y < 0 || y > 4 || x < 0 || x > 4 ? -1 : c! * 25 + y * 5 + x;
    });
    expect(readTracker(st, [1, 2, 3, 5, 3, 5])).toEqual(want);
    const { index, valid } = st.expr([0, ...loops(2, 3, 5, 3, 5)]);
    expect(String(index)).not.toMatch(/[/%]/);
    expect(String(valid)).not.toMatch(/[/%]/);
  });
});

describe("symbolic sizes", () => {
  const v = Variable("v", 1, 8);

  test("a shrink to a bound size, read for every value", () => {
    const st = plain(8, 3)
      .shrink([
        [0, v.bind(5)],
        [0, 3],
      ])
      .permute([1, 0]);
    expect(st.shape.map(String)).toEqual(["3", "v[5]"]);
    expect(st.vars()).toEqual(new Set([v]));
    const [bare, values] = st.unbind();
    expect([...values]).toEqual([[v, 5]]);
    expect(bare.key).toBe(
      plain(8, 3)
        .shrink([
          [0, v.bind(2)],
          [0, 3],
        ])
        .permute([1, 0])
        .unbind()[0].key,
    );
    const [i, j] = [Variable("i", 0, 2), Variable("j", 0, sub(v, 1))];
    const { index, valid } = bare.expr([i, j]);
    expect(valid).toBe(1);
    for (let n = 1; n <= 8; n++) {
      for (let y = 0; y < n; y++)
        for (let x = 0; x < 3; x++) {
          expect(
            evaluate(
              index,
              new Map([
                ["v", n],
                ["i", x],
                ["j", y],
              ]),
            ),
          ).toBe(y * 3 + x);
        }
    }
  });

  test("a reshape with a symbolic size is contiguous, and joins without div or mod", () => {
    const [bare] = plain(v.bind(4), 6)
      .reshape([v.bind(4), 2, 3])
      .unbind();
    expect(bare.contiguous).toBe(true);
    const joined = bare.permute([1, 0, 2]).reshape([2, mul(v, 3)]);
    expect(joined.simplify().views).toHaveLength(1 + 1);
    const [i, j] = [Variable("i", 0, 1), Variable("j", 0, sub(mul(v, 3), 1))];
    const { index } = joined.expr([i, j]);
    for (let n = 1; n <= 8; n++) {
      for (let x = 0; x < 2; x++)
        for (let y = 0; y < 3 * n; y++) {
          const want = Math.floor(y / 3) * 6 + x * 3 + (y % 3);
          expect(
            evaluate(
              index,
              new Map([
                ["v", n],
                ["i", x],
                ["j", y],
              ]),
            ),
          ).toBe(want);
        }
    }
  });

  test("a symbolic inner size divides symbolically", () => {
    const flat = plain(3, v)
      .permute([1, 0])
      .reshape([mul(v, 3)]);
    const k = Variable("k", 0, sub(mul(v, 3), 1));
    const { index } = flat.expr([k]);
    for (let n = 1; n <= 8; n++) {
      for (let x = 0; x < 3 * n; x++) {
        expect(
          evaluate(
            index,
            new Map([
              ["v", n],
              ["k", x],
            ]),
          ),
        ).toBe((x % 3) * n + Math.floor(x / 3));
      }
    }
    const joined = plain(3, v).reshape([mul(v, 3)]);
    expect(joined.expr([k]).index).toBe(k);
    const again = flat.reshape([v, 3]).permute([1, 0]).simplify();
    expect(again.contiguous).toBe(true);
  });

  test("a bound size and its value count as the same", () => {
    const st = plain(5, 3).reshape([v.bind(5), 3]);
    expect(st.shape[0]).toBe(v.bind(5));
    expect(() => plain(5, 3).reshape([v.bind(4), 3])).toThrow("the element counts must match");
    const turned = plain(3, 5)
      .permute([1, 0])
      .reshape([v.bind(5), 3]);
    expect(turned.views).toHaveLength(1);
    expect(turned.views[0]?.strides).toEqual([1, 5]);
  });

  test("expand to and pad by a symbolic size", () => {
    const wide = plain(1, 3).expand([v.bind(2), 3]);
    expect(wide.views[0]?.strides).toEqual([0, 1]);
    const [bare] = plain(4)
      .pad([[v.bind(2), sub(8, v.bind(2))]])
      .unbind();
    expect(bare.shape).toEqual([12]);
    const i = Variable("i", 0, 11);
    const { index, valid } = bare.expr([i]);
    for (let n = 1; n <= 8; n++)
      for (let x = 0; x < 12; x++) {
        const env = new Map([
          ["v", n],
          ["i", x],
        ]);
        expect(evaluate(valid, env)).toBe(x >= n && x < n + 4 ? 1 : 0);
        if (evaluate(valid, env)) expect(evaluate(index, env)).toBe(x - n);
      }
  });

  test("a symbolic offset: one row of a cache", () => {
    const row = plain(8, 3).shrink([
      [v.bind(2), add(v.bind(2), 1)],
      [0, 3],
    ]);
    expect(row.shape).toEqual([1, 3]);
    const [bare, values] = row.unbind();
    expect(values.get(v)).toBe(2);
    expect(String(bare.expr([0, Variable("i", 0, 2)]).index)).toBe("(i+(v*3))");
  });

  test("a masked view cut at a symbolic place", () => {
    const st = plain(4)
      .pad([[2, 2]])
      .shrink([[0, v.bind(3)]]);
    const [bare] = st.unbind();
    const i = Variable("i", 0, sub(v, 1));
    const { index, valid } = bare.expr([i]);
    for (let n = 1; n <= 8; n++)
      for (let x = 0; x < n; x++) {
        const env = new Map([
          ["v", n],
          ["i", x],
        ]);
        expect(evaluate(valid, env)).toBe(x >= 2 && x < 6 ? 1 : 0);
        if (evaluate(valid, env)) expect(evaluate(index, env)).toBe(x - 2);
      }
  });
});

describe("small facts", () => {
  test("contiguous and consecutive", () => {
    expect(
      plain(4, 3).shrink([
        [1, 3],
        [0, 3],
      ]).contiguous,
    ).toBe(false);
    expect(
      plain(4, 3).shrink([
        [1, 3],
        [0, 3],
      ]).consecutive,
    ).toBe(true);
    expect(
      plain(4, 3).shrink([
        [0, 4],
        [0, 2],
      ]).consecutive,
    ).toBe(false);
    expect(plain(2).pad([[0, 1]]).consecutive).toBe(false);
    expect(plain().contiguous).toBe(true);
    expect(plain().expr([])).toEqual({ index: 0, valid: 1 });
  });
  test("a movement that does nothing gives the same tracker", () => {
    const st = plain(2, 3).permute([1, 0]);
    expect(st.reshape([3, 2])).toBe(st);
    expect(st.permute([0, 1])).toBe(st);
    expect(st.expand([3, 2])).toBe(st);
    expect(
      st.pad([
        [0, 0],
        [0, 0],
      ]),
    ).toBe(st);
    expect(
      st.shrink([
        [0, 3],
        [0, 2],
      ]),
    ).toBe(st);
    expect(st.stride([1, 1])).toBe(st);
    expect(st.flip([])).toBe(st);
    expect(st.unbind()[0]).toBe(st);
  });
  test("realSize and axisIsMasked", () => {
    expect(
      plain(4, 3)
        .shrink([
          [1, 3],
          [0, 2],
        ])
        .realSize(),
    ).toBe(8);
    expect(plain(0, 3).realSize()).toBe(0);
    expect(plain(1).expand([100]).realSize()).toBe(1);
    const st = plain(3, 3).pad([
      [1, 0],
      [0, 0],
    ]);
    expect([st.axisIsMasked(0), st.axisIsMasked(1), st.realSize()]).toEqual([true, false, 9]);
  });
  test("text", () => {
    expect(plain(2, 3).toString()).toBe("ShapeTracker(View([2, 3]))");
  });
});

describe("errors say what came and what was expected", () => {
  const st = plain(2, 3);
  const THROWS: [() => unknown, string][] = [
    [
      () => st.reshape([4, 2]),
      "reshape: cannot view shape [2,3] (6 elements) as [4,2] (8 elements); the element counts must match",
    ],
    [() => st.reshape([-1, 6]), "reshape: got shape [-1,6]; each size must be an integer >= 0"],
    [() => plain(2.5), "fromShape: got shape [2.5]"],
    [
      () => st.permute([0, 0]),
      "permute: got axes [0,0] for shape [2,3]; give each of its 2 axes exactly once",
    ],
    [() => st.permute([0]), "permute: got axes [0]"],
    [() => st.expand([2, 4]), "expand: cannot expand shape [2,3] to [2,4]"],
    [() => st.expand([1, 2, 3]), "the ranks must match"],
    [() => st.pad([[1, 0]]), "pad: got [[1,0]] for shape [2,3]; give one pair per axis"],
    [
      () =>
        st.pad([
          [-1, 0],
          [0, 0],
        ]),
      "[before, after] amounts >= 0",
    ],
    [
      () =>
        st.shrink([
          [0, 3],
          [0, 3],
        ]),
      "shrink: got [[0,3],[0,3]] for shape [2,3]",
    ],
    [
      () =>
        st.shrink([
          [1, 0],
          [0, 3],
        ]),
      "0 <= from <= to <= size",
    ],
    [() => st.stride([0, 1]), "stride: got steps [0,1] for shape [2,3]; give one nonzero integer per axis"],
    [() => st.flip([2]), "flip: got axes [2] for shape [2,3]; give distinct axes from 0 to 1"],
    [() => st.expr([0]), "expr: got 1 indexes for shape [2,3]"],
    [() => st.axisIsMasked(2), "axisIsMasked: got axis 2"],
    [() => plain(2).add(plain(3).flip([0])), "add: ShapeTracker"],
    [() => ShapeTracker.fromViews([]), "fromViews: got no views"],
  ];
  test.each(THROWS.map(([run, message]) => [message, run] as const))("%s", (message, run) => {
    expect(run).toThrow(message);
    expect(run).toThrow(ShapeError);
  });
});
