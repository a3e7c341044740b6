// Symbolic integers: each simplification by its text, then thousands of random
// expressions against plain arithmetic.
import { describe, expect, test } from "vitest";
import { SymbolicError } from "../../src/errors.ts";
import {
  add,
  and,
  boundValue,
  coefficients,
  eq,
  evaluate,
  fold,
  ge,
  gt,
  idiv,
  internedCount,
  intervals,
  keyOf,
  le,
  lt,
  mod,
  mul,
  neg,
  render,
  type Sint,
  type Sym,
  smax,
  smin,
  sprod,
  sub,
  substitute,
  unbind,
  Variable,
  vars,
} from "../../src/shape/symbolic.ts";
import { Random } from "./random.ts";

const a = Variable("a", 0, 9);
const b = Variable("b", 0, 3);
const c = Variable("c", 0, 100);
const n = Variable("n", -5, 5);
const v = Variable("v", 1, 10);

const CASES: [name: string, got: Sint, text: string][] = [
  ["a sum keeps like terms together", add(add(a, b), a), "((a*2)+b)"],
  ["a sum sorts its terms", add(b, add(c, a)), "((a+b)+c)"],
  ["names sort by number", add(Variable("r10", 0, 3), Variable("r2", 0, 3)), "(r2+r10)"],
  ["a loop index", add(mul(Variable("ridx0", 0, 3), 4), Variable("ridx1", 0, 3)), "((ridx0*4)+ridx1)"],
  ["a term cancels", sub(add(a, 3), a), "3"],
  ["constants gather at the end", add(add(a, 3), 4), "(a+7)"],
  ["positive terms come first", sub(b, add(a, 1)), "((b-a)-1)"],
  ["a negative alone", neg(a), "(-a)"],
  ["times zero", mul(a, 0), "0"],
  ["a product distributes", mul(add(a, 1), add(v, 2)), "((((a*2)+v)+(a*v))+2)"],
  ["products commute", sub(mul(a, v), mul(v, a)), "0"],
  ["div and mod join again", add(mul(idiv(c, 4), 4), mod(c, 4)), "c"],
  ["div and mod join, scaled", add(mul(idiv(c, 4), 20), mul(mod(c, 4), 5)), "(c*5)"],
  [
    "div, mod of div and mod join",
    add(add(mul(idiv(c, 12), 12), mul(mod(idiv(c, 4), 3), 4)), mod(c, 4)),
    "c",
  ],
  ["two mods join", add(mul(mod(idiv(c, 4), 3), 4), mod(c, 4)), "(c%12)"],
  ["a sum's div and mod join", add(mul(idiv(add(a, c), 6), 6), mod(add(a, c), 6)), "(a+c)"],
  ["a split index, div", idiv(add(mul(a, 4), b), 4), "a"],
  ["a split index, mod", mod(add(mul(a, 4), b), 4), "b"],
  ["div splits off what divides", idiv(add(mul(a, 12), mul(b, 3)), 4), "((a*3)+((b*3)//4))"],
  ["div splits off a multiple", idiv(add(mul(a, 8), c), 4), "((a*2)+(c//4))"],
  ["div splits off part of a coefficient", idiv(add(mul(a, 5), c), 4), "(a+((a+c)//4))"],
  ["div takes out the gcd", idiv(add(mul(c, 6), mul(a, 4)), 8), "(((a*2)+(c*3))//4)"],
  ["div drops what cannot carry", idiv(add(mul(c, 6), Variable("x", 0, 5)), 12), "(c//2)"],
  ["mod keeps what cannot carry", mod(add(mul(c, 6), Variable("x", 0, 5)), 12), "(x+((c%2)*6))"],
  ["mod takes out the gcd", mod(mul(c, 6), 8), "(((c*3)%4)*2)"],
  ["mod drops multiples", mod(add(mul(a, 8), c), 4), "(c%4)"],
  ["div of div", idiv(idiv(c, 3), 4), "(c//12)"],
  ["div of div plus a constant", idiv(add(idiv(c, 3), 2), 4), "((c+6)//12)"],
  ["mod of mod", mod(mod(c, 12), 4), "(c%4)"],
  ["div of mod is kept as mod of div", idiv(mod(c, 12), 4), "((c//4)%3)"],
  ["mod of div", mod(idiv(c, 4), 3), "((c//4)%3)"],
  ["div by one", idiv(c, 1), "c"],
  ["mod by one", mod(c, 1), "0"],
  ["div of a small value", idiv(a, 10), "0"],
  ["mod of a small value", mod(a, 10), "a"],
  ["div of a small negative", idiv(sub(a, 10), 10), "-1"],
  ["mod of a small negative", mod(sub(a, 10), 10), "a"],
  ["a flipped index, div", idiv(sub(b, add(mul(a, 4), 4)), 4), "((-a)-1)"],
  ["less than with a common factor", lt(mul(a, 4), 13), "(a<4)"],
  ["less than with a rest that cannot carry", lt(add(mul(a, 4), b), 8), "(a<2)"],
  ["less than of a quotient", lt(idiv(c, 4), 3), "(c<12)"],
  ["more than of a quotient", gt(idiv(c, 4), 3), "(15<c)"],
  ["less than, always", lt(a, 10), "1"],
  ["less than, never", lt(a, 0), "0"],
  ["at least", ge(a, 3), "(2<a)"],
  ["at least with a negative limit", ge(n, -2), "(0<(n+3))"],
  ["both sides", lt(add(a, 2), add(c, 1)), "((a+1)<c)"],
  ["and of ranges", and(ge(a, 3), lt(a, 8)), "((a<8) and (2<a))"],
  ["and of constants", and(1, 1), "1"],
  ["and with a zero", and(lt(a, 3), 0), "0"],
  ["and with a one", and(lt(a, 3), 1), "(a<3)"],
  ["and of the same", and(lt(a, 3), lt(a, 3)), "(a<3)"],
  ["and keeps the tighter", and(lt(a, 5), lt(a, 3)), "(a<3)"],
  ["and of a contradiction", and(lt(a, 3), ge(a, 3)), "0"],
  ["a symbolic divisor splits", idiv(add(mul(a, v), mul(v, 3)), v), "(a+3)"],
  ["a symbolic divisor joins again", add(mul(idiv(c, v), v), mod(c, v)), "c"],
  ["a symbolic sum as divisor", idiv(mul(a, add(v, 1)), add(v, 1)), "a"],
  ["div by a number, then a symbol", idiv(idiv(c, 3), v), "(c//(v*3))"],
  ["a bound variable", add(v.bind(3), 1), "(v[3]+1)"],
];

describe("simplification", () => {
  test.each(CASES)("%s", (_, got, text) => {
    expect(render(got)).toBe(text);
  });

  test("a constant is a plain number", () => {
    expect([add(2, 3), sub(2, 3), mul(2, 3), idiv(-7, 2), mod(-7, 2), lt(2, 3), ge(2, 3)]).toEqual([
      5, -1, 6, -4, 1, 1, 0,
    ]);
    expect([mul(0, -3), neg(0), mul(a, 0), sub(a, a)]).toEqual([0, 0, 0, 0]);
  });

  test("a loop over a symbolic size", () => {
    const i = Variable("i", 0, sub(v, 1));
    const j = Variable("j", 0, 2);
    const flat = add(mul(j, v), i);
    expect(i.max).toBe(9);
    expect(idiv(flat, v)).toBe(j);
    expect(mod(flat, v)).toBe(i);
    expect(lt(i, v)).toBe(1);
    expect(ge(i, v)).toBe(0);
    expect(lt(flat, mul(v, 3))).toBe(1);
  });

  test("equal structure is the same object, whatever the way it was built", () => {
    expect(add(mul(a, 2), mul(b, 2))).toBe(mul(add(b, a), 2));
    expect(Variable("a", 0, 9)).toBe(a);
    expect(Variable("a", 0, 8)).not.toBe(a);
    expect(and(lt(a, 3), lt(b, 2))).toBe(and(lt(b, 2), lt(a, 3)));
  });

  test("methods are the functions", () => {
    expect(a.add(1)).toBe(add(a, 1));
    expect((a.add(1) as Sym).mul(2)).toBe(mul(add(a, 1), 2));
    expect([a.sub(b), a.neg(), a.idiv(2), a.mod(2)]).toEqual([sub(a, b), neg(a), idiv(a, 2), mod(a, 2)]);
    expect([a.lt(3), a.le(3), a.gt(3), a.ge(3), a.eq(3)]).toEqual([
      lt(a, 3),
      le(a, 3),
      gt(a, 3),
      ge(a, 3),
      eq(a, 3),
    ]);
  });
});

describe("walks", () => {
  test("substitute simplifies again", () => {
    const x = idiv(add(mul(a, 4), c), 4);
    expect(substitute(x, new Map([[c, b]]))).toBe(a);
    expect(
      substitute(
        x,
        new Map([
          [c, 8],
          [a, 1],
        ]),
      ),
    ).toBe(3);
    expect(substitute(x, new Map([[idiv(c, 4) as Sym, n as Sint]]))).toBe(add(a, n));
    expect(substitute(5, new Map([[a, 1]]))).toBe(5);
  });

  test("evaluate takes variables, names and bound values", () => {
    expect(
      evaluate(
        add(mul(a, 4), b),
        new Map<Sym | string, number>([
          [a, 2],
          ["b", 3],
        ]),
      ),
    ).toBe(11);
    expect(evaluate(add(v.bind(3), 1))).toBe(4);
    expect(evaluate(add(v.bind(3), 1), new Map([["v", 7]]))).toBe(8);
    expect(() => evaluate(a)).toThrow("evaluate: no value for variable a");
  });

  test("bind, unbind, vars", () => {
    const bound = v.bind(5);
    expect(v.bind(5)).toBe(bound);
    expect([smin(bound), smax(bound)]).toEqual([1, 10]);
    const [bare, values] = unbind(add(mul(bound, a), 1));
    expect(bare).toBe(add(mul(v, a), 1));
    expect([...values]).toEqual([[v, 5]]);
    expect(unbind(7)).toEqual([7, new Map()]);
    expect(vars(add(mul(bound, a), idiv(c, 3)))).toEqual(new Set([v, a, c]));
    expect(boundValue(mul(bound, 3))).toBe(15);
    expect(boundValue(add(bound, a))).toBeUndefined();
  });

  test("sprod", () => {
    expect(sprod([])).toBe(1);
    expect(sprod([2, 3, 4])).toBe(24);
    expect(render(sprod([2, v, 3]))).toBe("(v*6)");
  });

  test("fold shares subexpressions and writes positive terms first", () => {
    const calls: string[] = [];
    const say = (op: string) => (x: string, y: string) => {
      calls.push(op);
      return `${op}(${x},${y})`;
    };
    const q = idiv(add(c, n), 7);
    const text = fold<string>(sub(mul(q, 3), mul(mul(a, q), 2)), {
      const: (x) => `${x}`,
      variable: (x) => x.name,
      add: say("add"),
      mul: say("mul"),
      idiv: say("idiv"),
      mod: say("mod"),
      lt: say("lt"),
      and: say("and"),
    });
    expect(text).toBe("add(mul(idiv(add(c,n),7),3),mul(mul(a,idiv(add(c,n),7)),-2))");
    expect(calls.filter((op) => op === "idiv")).toHaveLength(1);
  });

  test("coefficients and intervals", () => {
    const x = add(add(mul(a, 12), mul(b, v)), 3);
    expect(coefficients(x, [a, b])).toEqual({ coefs: [12, v], offset: 3 });
    expect(coefficients(add(a, idiv(c, 3)), [a])).toEqual({ coefs: [1], offset: idiv(c, 3) });
    expect(coefficients(idiv(c, 3), [c])).toBeUndefined();
    expect(coefficients(mul(a, b), [a, b])).toBeUndefined();
    expect(intervals(and(ge(a, 3), lt(a, 8)), [a, b])).toEqual([[3, 8], []]);
    expect(intervals(lt(add(a, b), 5), [a, b])).toBeUndefined();
  });

  test("keys tell apart what text does not", () => {
    expect(keyOf(add(a, 1))).not.toBe(keyOf(add(Variable("a", 0, 8), 1)));
    expect(keyOf(v)).not.toBe(keyOf(v.bind(2)));
    expect(keyOf(add(a, 1))).toBe(keyOf(add(1, a)));
  });
});

describe("errors", () => {
  const THROWS: [() => unknown, string][] = [
    [() => v.bind(11), "bind: v cannot be 11; it was declared as an integer from 1 to 10"],
    [() => v.bind(1.5), "bind: v cannot be 1.5"],
    [() => Variable("x", 3, 2), 'Variable: "x" from 3 to 2 is not a range'],
    [() => Variable("", 0, 2), "give a name"],
    [() => idiv(a, 0), "idiv: cannot divide a by 0"],
    [() => mod(a, n), "mod: cannot divide a by n, which can be -5; the divisor must be positive"],
    [() => and(a, 1), "and: a ranges from 0 to 9; expected 0/1 values"],
    [() => unbind(add(v.bind(2), v.bind(3))), "unbind: v is bound to both 2 and 3"],
  ];
  test.each(THROWS.map(([run, message]) => [message, run] as const))("%s", (message, run) => {
    expect(run).toThrow(message);
    expect(run).toThrow(SymbolicError);
  });
});

test("the intern table does not grow with the number of expressions ever built", async () => {
  const gc = (globalThis as { gc?: () => void }).gc;
  const kept = mul(add(a, 123456), 7);
  for (let round = 0; round < 6; round++) {
    for (let i = 0; i < 40_000; i++) add(mul(a, i + 2), round);
    await new Promise((resolve) => setTimeout(resolve)); // weak references are only dropped between jobs
    gc?.();
  }
  expect(mul(add(a, 123456), 7)).toBe(kept);
  if (gc !== undefined) expect(internedCount()).toBeLessThan(120_000);
});

interface Case {
  readonly x: Sint;
  readonly value: (env: readonly number[]) => number;
  readonly text: string;
}

const floorMod = (x: number, y: number): number => x - Math.floor(x / y) * y + 0;

/** A random expression, the plain arithmetic it must agree with, and how it was built. */
function randomCase(r: Random, variables: readonly Variable[], depth: number): Case {
  if (depth === 0 || r.chance(15)) {
    const k = r.int(-9, 20),
      i = r.int(0, variables.length - 1);
    if (r.chance(20)) return { x: k, value: () => k, text: `${k}` };
    return { x: variables[i]!, value: (env) => env[i]!, text: variables[i]!.name };
  }
  const p = randomCase(r, variables, depth - 1);
  const op = r.pick(["+", "+", "-", "*", "*", "//", "//", "%", "%"]);
  let q: Case;
  if (op === "+" || op === "-") q = randomCase(r, variables, depth - 1);
  else {
    const k = r.pick([2, 3, 4, 5, 6, 8, 12]),
      last = variables.length - 1;
    const bySymbol = variables[last]!.min > 0 && r.chance(25);
    q = bySymbol
      ? { x: variables[last]!, value: (env) => env[last]!, text: variables[last]!.name }
      : { x: k, value: () => k, text: `${k}` };
  }
  const text = `(${p.text}${op}${q.text})`;
  switch (op) {
    case "+":
      return { x: add(p.x, q.x), value: (env) => p.value(env) + q.value(env), text };
    case "-":
      return { x: sub(p.x, q.x), value: (env) => p.value(env) - q.value(env), text };
    case "*":
      return { x: mul(p.x, q.x), value: (env) => p.value(env) * q.value(env), text };
    case "//":
      return { x: idiv(p.x, q.x), value: (env) => Math.floor(p.value(env) / q.value(env)), text };
    default:
      return { x: mod(p.x, q.x), value: (env) => floorMod(p.value(env), q.value(env)), text };
  }
}

function randomComparison(r: Random, variables: readonly Variable[]): Case {
  const p = randomCase(r, variables, 3),
    q = randomCase(r, variables, 2);
  const [op, f, holds] = r.pick<[string, (x: Sint, y: Sint) => Sint, (x: number, y: number) => boolean]>([
    ["<", lt, (x, y) => x < y],
    ["<=", le, (x, y) => x <= y],
    [">", gt, (x, y) => x > y],
    [">=", ge, (x, y) => x >= y],
    ["==", eq, (x, y) => x === y],
    ["in 3 above", (x, y) => and(ge(x, y), lt(x, add(y, 3))), (x, y) => x >= y && x < y + 3],
  ]);
  return {
    x: f(p.x, q.x),
    value: (env) => (holds(p.value(env), q.value(env)) ? 1 : 0),
    text: `${p.text}${op}${q.text}`,
  };
}

function* environments(variables: readonly Variable[]): Generator<number[]> {
  if (variables.length === 0) return yield [];
  const last = variables[variables.length - 1]!;
  for (const env of environments(variables.slice(0, -1)))
    for (let x = last.min; x <= last.max; x++) yield [...env, x];
}

test("6000 random expressions agree with plain arithmetic for every value of their variables", () => {
  for (let seed = 0; seed < 6000; seed++) {
    const r = new Random(seed);
    const variables = Array.from({ length: r.int(1, 3) }, (_, i) => {
      const min = r.chance(70) ? 0 : r.int(-5, 5);
      return Variable(`x${i}`, min, min + r.int(0, 8));
    });
    if (r.chance(25)) variables.push(Variable("p", 1, r.int(1, 4)));
    const { x, value, text } = r.chance(30)
      ? randomComparison(r, variables)
      : randomCase(r, variables, r.int(1, 5));
    const hint = (): string => `seed ${seed}: ${text} became ${render(x)} in ${smin(x)}..${smax(x)}`;
    for (const env of environments(variables)) {
      const want = value(env);
      const got = evaluate(x, new Map(variables.map((y, i) => [y, env[i]!])));
      if (got !== want) expect(got, `${hint()} at ${env}`).toBe(want);
      if (want < smin(x) || want > smax(x)) expect(want, `${hint()} at ${env}, bounds`).toBeNaN();
    }
    // What was simplified once must not change when it is built again.
    const again = substitute(x, new Map([[variables[0]!, variables[0]!]]));
    if (again !== x) expect(render(again), hint()).toBe(render(x));
  }
});

test("3000 random expressions of loops over a symbolic size hold for every size", () => {
  for (let seed = 0; seed < 3000; seed++) {
    const r = new Random(seed + 2_000_000);
    const size = Variable("v", 1, r.int(2, 5));
    const i = Variable("i", 0, sub(size, 1));
    const j = Variable("j", 0, sub(mul(size, r.int(1, 3)), 1));
    const variables = [i, j, Variable("x", 0, r.int(0, 3)), size];
    const { x, value, text } = r.chance(50)
      ? randomComparison(r, variables)
      : randomCase(r, variables, r.int(2, 5));
    for (const env of environments(variables)) {
      const values = new Map(variables.map((y, at) => [y, env[at]!]));
      if (env[0]! > evaluate(i.limit!, values) || env[1]! > evaluate(j.limit!, values)) continue;
      const want = value(env);
      const got = evaluate(x, values);
      if (got !== want) expect(got, `seed ${seed}: ${text} became ${render(x)} at ${env}`).toBe(want);
      if (want < smin(x) || want > smax(x))
        expect(want, `seed ${seed}: bounds of ${text} at ${env}`).toBeNaN();
    }
  }
});

test("3000 random expressions: fold computes the same, and substitution is evaluation", () => {
  for (let seed = 0; seed < 3000; seed++) {
    const r = new Random(seed + 1_000_000);
    const variables = [Variable("x", 0, r.int(1, 20)), Variable("y", -3, r.int(0, 9)), Variable("p", 1, 5)];
    const { x, text } = randomCase(r, variables, 4);
    const env = variables.map((y) => r.int(y.min, y.max));
    const values = new Map(variables.map((y, i) => [y, env[i]!]));
    const want = evaluate(x, values) + 0;
    const folded = fold<number>(x, {
      const: (k) => k,
      variable: (y) => values.get(y)!,
      add: (p, q) => p + q,
      mul: (p, q) => p * q,
      idiv: (p, q) => Math.floor(p / q),
      mod: floorMod,
      lt: (p, q) => (p < q ? 1 : 0),
      and: (p, q) => p & q,
    });
    expect(folded + 0, `seed ${seed}: fold of ${text}`).toBe(want);
    expect(substitute(x, new Map<Sym, Sint>(values)), `seed ${seed}: substitute in ${text}`).toBe(want);
  }
});

test("a quotient by a symbolic size stays below what its dividend allows", () => {
  const [b, s] = [Variable("b", 1, 8), Variable("s", 1, 9)];
  const i = Variable("i", 0, sub(mul(b, s), 1));
  expect(mod(idiv(i, s), b)).toBe(idiv(i, s));
  // the places of a [b, s] matrix, put together again
  expect(add(mul(mod(idiv(i, s), b), s), mod(i, s))).toBe(i);
  expect(lt(idiv(i, s), b)).toBe(1);
  expect(lt(idiv(i, s), sub(b, 1))).not.toBe(1);
});
