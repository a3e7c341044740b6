// An index as a sum of multiples of nodes and a number: the form in which neighbours in memory are found (pack.ts) and parts of
// buffers are described (shared.ts). And ranges replaced by other indexes.

import { dtypes } from "../../dtype.ts";
import { getOrMake } from "../../helpers.ts";
import { changedSrcs } from "../../uop/rewrite.ts";
import type { UOp, UOpArena } from "../../uop/uops.ts";

const { int32 } = dtypes;

export interface Affine {
  readonly terms: ReadonlyMap<UOp, number>;
  readonly k: number;
}

export function affine(u: UOp, known: Map<UOp, Affine> = new Map()): Affine {
  return getOrMake(known, u, () => {
    if (u.op === "CONST") return { terms: new Map(), k: Number(u.arg) };
    const [a, b] = u.srcs as [UOp, UOp];
    if (u.op === "ALU" && u.arg === "ADD") {
      const [x, y] = [affine(a, known), affine(b, known)];
      const terms = new Map(x.terms);
      for (const [t, c] of y.terms) terms.set(t, (terms.get(t) ?? 0) + c);
      return { terms, k: x.k + y.k };
    }
    if (u.op === "ALU" && u.arg === "MUL" && b.op === "CONST") {
      const x = affine(a, known);
      const factor = Number(b.arg);
      return { terms: new Map([...x.terms].map(([t, c]) => [t, c * factor])), k: x.k * factor };
    }
    return { terms: new Map([[u, 1]]), k: 0 };
  });
}

/** The sum as nodes, in one order whatever it was made from, the number last. */
export function toIndex({ terms, k }: Affine, a: UOpArena): UOp {
  const sorted = [...terms].filter(([, c]) => c !== 0).sort(([x], [y]) => x.id - y.id);
  const products = sorted.map(([t, c]) => a.alu("MUL", t, a.constant(int32, c)));
  const [first, ...rest] = products;
  const constant = a.constant(int32, k);
  if (first === undefined) return constant;
  return a.alu(
    "ADD",
    rest.reduce((x, y) => a.alu("ADD", x, y), first),
    constant,
  );
}

/** The graph with other nodes in the place of some. */
export function replace(root: UOp, by: ReadonlyMap<UOp, UOp>, arena: UOpArena): UOp {
  const done = new Map<UOp, UOp>(by);
  const visit = (u: UOp): UOp => {
    const known = done.get(u);
    if (known !== undefined) return known;
    const srcs = changedSrcs(u, visit);
    const made = srcs === undefined ? u : arena.withSrcs(u, srcs);
    done.set(u, made);
    return made;
  };
  return visit(root);
}
