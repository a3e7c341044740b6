// Ops on floats that WGSL's compilers may take for others, since the language lets them assume that NaN and
// infinities do not occur, and that sums may be regrouped: x * 0, x - x, x / x, -0 + 0, or a choice by a
// comparison that looks like a minimum. They are spelt in ways that compilers leave alone, most
// of them by bits.

import { type DType, dtypes } from "../dtype.ts";
import type { Alu, Expr, UOp } from "../uop/node.ts";
import type { WgslHelper } from "./wgslhelpers.ts";
import { literal, type Need } from "./wgslops.ts";

interface Spelling {
  readonly need: Need;
  perLane(d: DType, operands: readonly Expr[], spell: (...xs: string[]) => string): string;
}

/** undefined: the op may be spelt as it is. */
export function carefulFloat(u: Alu, d: DType, k: Spelling): string | undefined {
  const { dtype, operands } = u;
  const [a, b] = operands;
  const helped =
    (name: WgslHelper) =>
    (x = ""): string =>
      d === dtypes.float16 ? `f16(${k.need(name)}(f32(${x})))` : `${k.need(name)}(${x})`;
  switch (u.fn) {
    case "MUL": {
      const product = oddProduct(operands, helped);
      return product && k.perLane(dtype, [product.factor], product.spell);
    }
    case "MULACC": {
      const [product, addend] = [oddProduct(operands.slice(0, 2), helped), operands[2]];
      if (product === undefined || addend === undefined) return undefined;
      return k.perLane(dtype, [product.factor, addend], (x, y) => `(${product.spell(x)}+${y})`);
    }
    case "DIV":
      if (a !== undefined && a === b) return k.perLane(dtype, [a], helped("div_same"));
      return isZero(a) ? k.perLane(dtype, operands.slice(1), helped("div_zero")) : undefined;
    case "ADD": {
      // x + -0 is x
      const zero = constantOf(operands, (x) => isZero(x) && Object.is(Number(x.value), 0));
      if (zero !== undefined)
        return k.perLane(dtype, [other(operands, zero)], (x = "") => plusZero(d, k.need, x));
      return regroups(u, d) ? k.perLane(dtype, operands, sumOf(u)) : undefined;
    }
    case "SUB":
      if (a !== undefined && a === b) return k.perLane(dtype, [a], helped("zero_of"));
      return regroups(u, d) ? k.perLane(dtype, operands, sumOf(u)) : undefined;
    case "WHERE":
      return looksLikeExtreme(u)
        ? k.perLane(dtype, [...u.operands, ...comparedIn(u)], chosen(d, k))
        : undefined;
    default:
      return undefined;
  }
}

type Constant = UOp<"CONST">;
const isConstant = (x: Expr | undefined): x is Constant => x?.op === "CONST";
const isZero = (x: Expr | undefined): boolean => isConstant(x) && Number(x.value) === 0;
const isInfinite = (x: Constant): boolean => Math.abs(Number(x.value)) === Infinity;
const constantOf = (operands: readonly Expr[], is: (x: Constant) => boolean): Constant | undefined =>
  operands.filter(isConstant).find(is);
const other = (operands: readonly Expr[], constant: Constant): Expr =>
  operands.find((x) => x !== constant) ?? constant;

/** A product with 0 or infinity: its other factor, and the text of it. */
function oddProduct(
  factors: readonly Expr[],
  helped: (name: WgslHelper) => (x?: string) => string,
): { readonly factor: Expr; spell(x?: string): string } | undefined {
  const [zero, infinite] = [constantOf(factors, isZero), constantOf(factors, isInfinite)];
  if (zero !== undefined) return { factor: other(factors, zero), spell: helped("zero_of") };
  if (infinite === undefined) return undefined;
  const sign = Number(infinite.value) < 0 ? "-" : "";
  return { factor: other(factors, infinite), spell: (x) => `(${sign}${helped("mul_inf")(x)})` };
}

/** -0 + 0 is 0, which a compiler that takes x + 0 for x would lose. */
function plusZero(d: DType, need: Need, x: string): string {
  const single = d === dtypes.float16 ? `f32(${x})` : x;
  return `select(${x},${literal(d, 0, need)},(bitcast<u32>(${single})<<1u)==0u)`;
}

const isSum = (u: UOp): u is Alu => u.op === "ALU" && (u.fn === "ADD" || u.fn === "SUB");
const hasConstant = (u: Alu): boolean => u.operands.some(isConstant);
/** (x + c) + d: compilers may make it x + (c + d), but what x + c rounded off is meant to be lost. */
const regroups = (u: Alu, d: DType): boolean =>
  d === dtypes.float32 && hasConstant(u) && u.operands.some((x) => isSum(x) && hasConstant(x));
/** The same sum as a product with 1, which they leave alone. */
const sumOf =
  ({ fn, operands: [first] }: Alu) =>
  (x = "", y = ""): string => {
    if (fn === "ADD") return first?.op === "CONST" ? `fma(${y},1.0f,${x})` : `fma(${x},1.0f,${y})`;
    // a constant may have a minus of its own: -- would be another operator
    return first?.op === "CONST" ? `fma(${y},-1.0f,${x})` : `fma(${x},1.0f,-(${y}))`;
  };

/** A choice between what its condition compares becomes a minimum or maximum, which loses NaN. */
const comparedIn = (u: Alu<"WHERE">): readonly Expr[] => {
  const [condition] = u.operands;
  return condition.op === "ALU" && condition.fn === "CMPLT" ? condition.operands : [];
};
const looksLikeExtreme = (u: Alu<"WHERE">): boolean => {
  const [, yes, no] = u.operands;
  const compared = comparedIn(u);
  return yes !== no && compared.includes(yes) && compared.includes(no);
};
/** What is compared with NaN is not less: the second branch is taken. */
const chosen =
  (d: DType, { need }: Spelling) =>
  (condition = "", yes = "", no = "", ...compared: string[]): string => {
    const checks = compared
      .filter((x) => !/^[-\d.e+]+f$/.test(x))
      .map((x) => `${need("is_nan")}(${d === dtypes.float16 ? `f32(${x})` : x})`);
    const choice = `select(${no},${yes},${condition})`;
    return checks.length === 0 ? choice : `select(${choice},${no},${checks.join("||")})`;
  };
