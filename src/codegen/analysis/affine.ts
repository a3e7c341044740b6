// An index as an affine expression: a sum of multiples of nodes, and a constant. In this form neighbours in
// memory are found (coalesce.ts) and parts of buffers are described (shared.ts). `toIndex` makes nodes of it
// again.

import { getOrMake } from "../../helpers.ts";
import type { UOpArena } from "../../uop/arena.ts";
import type { Expr } from "../../uop/node.ts";

export interface Affine {
  /** the factor of each node */
  readonly terms: ReadonlyMap<Expr, number>;
  /** what is added to them */
  readonly k: number;
}

export function affine(u: Expr, known: Map<Expr, Affine> = new Map()): Affine {
  return getOrMake(known, u, () => {
    if (u.op === "CONST") return { terms: new Map(), k: Number(u.value) };
    if (u.op === "ALU" && u.fn === "ADD") {
      const [x, y] = [affine(u.operands[0], known), affine(u.operands[1], known)];
      const terms = new Map(x.terms);
      for (const [t, c] of y.terms) terms.set(t, (terms.get(t) ?? 0) + c);
      return { terms, k: x.k + y.k };
    }
    if (u.op === "ALU" && u.fn === "MUL" && u.operands[1].op === "CONST") {
      const x = affine(u.operands[0], known);
      const factor = Number(u.operands[1].value);
      return { terms: new Map([...x.terms].map(([t, c]) => [t, c * factor])), k: x.k * factor };
    }
    return { terms: new Map([[u, 1]]), k: 0 };
  });
}

/** The sum as nodes, always in the same order, with the constant last. */
export function toIndex({ terms, k }: Affine, a: UOpArena): Expr {
  const sorted = [...terms].filter(([, c]) => c !== 0).sort(([x], [y]) => x.id - y.id);
  const products = sorted.map(([t, c]) => a.alu("MUL", t, a.int(c)));
  const [first, ...rest] = products;
  const constant = a.int(k);
  if (first === undefined) return constant;
  return a.alu(
    "ADD",
    rest.reduce((x, y) => a.alu("ADD", x, y), first),
    constant,
  );
}
