import { expect, test } from "vitest";
import { dtypes } from "../../src/dtype.ts";
import { UOpArena } from "../../src/uop/arena.ts";
import type { Const } from "../../src/uop/node.ts";
import { Parameter } from "../../src/uop/parameter.ts";

const { float32 } = dtypes;
const made = (a: UOpArena, p: Parameter): Const => a.constant(float32, p) as Const;

test("a parameter is bound by whoever reads its value", () => {
  const p = new Parameter(2.5);
  const c = made(new UOpArena(), p);
  expect([c.is(0), c.is(-0), c.is(1), c.sign, p.isFree]).toEqual([false, false, false, 1, true]);
  expect(c.value).toBe(2.5);
  expect(p.isFree).toBe(false);
});

test("comparing it with another ordinary number binds it", () => {
  const p = new Parameter(2.5);
  expect([p.is(2.5), p.isFree]).toEqual([true, false]);
});

test("rules that look for special constants leave it free", () => {
  const a = new UOpArena();
  const p = new Parameter(2.5);
  const x = a.load(a.global(float32, 0, false), a.int(0));
  for (const fn of ["ADD", "SUB", "MUL", "DIV", "MAX"] as const) a.alu(fn, x, made(a, p));
  const wide = a.withType(made(a, p), float32.vec(4), []);
  expect(a.gep(wide, 2)).toBe(made(a, p));
  expect(p.isFree).toBe(true);
});

test("folding it with another constant, or casting it, binds it", () => {
  for (const use of [
    (a: UOpArena, c: Const) => a.alu("MUL", c, a.constant(float32, 3)),
    (a: UOpArena, c: Const) => a.cast(c, dtypes.int32),
    (a: UOpArena, c: Const) => a.bitcast(c, dtypes.uint32),
  ]) {
    const a = new UOpArena();
    const p = new Parameter(2.5);
    expect(use(a, made(a, p)).op).toBe("CONST");
    expect(p.isFree).toBe(false);
  }
});

test("a parameter that is the same node as a constant is bound", () => {
  for (const isFirst of [true, false]) {
    const a = new UOpArena();
    const p = new Parameter(2.5);
    const before = isFirst ? made(a, p) : a.constant(float32, 2.5);
    expect(isFirst ? a.constant(float32, 2.5) : made(a, p)).toBe(before);
    expect(p.isFree).toBe(false);
  }
});
