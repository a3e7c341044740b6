// Loads and stores of neighbours become one of a vector, where the target moves several elements at once (Target.gpu). Between
// expand, which writes lanes out one by one, and linearize. Indexes get one form on the way, a sum of multiples with its number
// last, so that the same place in memory is the same node wherever it was read.

import type { DType } from "../../dtype.ts";
import { getOrMake, range, toposort } from "../../helpers.ts";
import { mapGraph } from "../../uop/rewrite.ts";
import { elementOf, type UOp, type UOpArena, valueType } from "../../uop/uops.ts";
import { type Affine, affine, toIndex } from "../analysis/affine.ts";
import type { Gpu } from "../target.ts";

export function pack(sink: UOp, arena: UOpArena, { vectorBytes }: Gpu): UOp {
  const forms = new Map<UOp, Affine>();
  const even = mapGraph(sink, arena, (u) => {
    if (u.op !== "LOAD" && u.op !== "STORE") return undefined;
    const [buffer, index, ...rest] = u.srcs as [UOp, UOp, ...UOp[]];
    const sum = toIndex(affine(index, forms), arena);
    return sum === index ? undefined : arena.make(u.op, u.dtype, [buffer, sum, ...rest], undefined);
  });
  const loads = vectorLoads(even, forms, arena, vectorBytes);
  const read = mapGraph(even, arena, (u) => loads.get(u));
  return arena.make("SINK", undefined, vectorStores(read, forms, arena, vectorBytes), undefined);
}

// ---- which of them are neighbours ----

interface Access {
  readonly u: UOp;
  readonly k: number;
}
/** Accesses that differ in nothing but the number at the end of their index. */
interface Row {
  readonly base: Affine;
  readonly accesses: Access[];
}

function rows(accesses: readonly UOp[], forms: Map<UOp, Affine>, a: UOpArena): Row[] {
  const found = new Map<string, Row>();
  for (const u of accesses) {
    const form = affine(u.srcs[1] as UOp, forms);
    const base = { terms: form.terms, k: 0 };
    const others = u.op === "LOAD" ? u.srcs.slice(2) : u.srcs.slice(3);
    const key = [u.srcs[0] as UOp, toIndex(base, a), ...others].map((s) => s.id).join();
    getOrMake(found, key, () => ({ base, accesses: [] })).accesses.push({ u, k: form.k });
  }
  return [...found.values()];
}

/** The accesses of a row in runs of a width that memory can be asked for at once; single ones are left out. */
function runs({ base, accesses }: Row, type: DType, vectorBytes: number): Access[][] {
  const at = new Map(accesses.map((x) => [x.k, x]));
  const found: Access[][] = [];
  for (let width = vectorBytes / type.itemsize; width >= 2; width /= 2) {
    if ([...base.terms.values()].some((c) => c % width !== 0)) continue;
    for (const { k } of accesses) {
      if (k % width !== 0) continue;
      const run = range(width).map((i) => at.get(k + i));
      if (!run.every((x) => x !== undefined)) continue;
      found.push(run);
      for (const x of run) at.delete(x.k);
    }
  }
  return found;
}

/** Nodes that read memory, or need one that does. */
function reading(sink: UOp): ReadonlySet<UOp> {
  const found = new Set<UOp>();
  for (const u of toposort([sink], (x) => x.srcs)) {
    if (u.op === "LOAD" || u.op === "REDUCE" || u.srcs.some((s) => found.has(s))) found.add(u);
  }
  return found;
}

function vectorLoads(
  sink: UOp,
  forms: Map<UOp, Affine>,
  a: UOpArena,
  vectorBytes: number,
): ReadonlyMap<UOp, UOp> {
  const deep = reading(sink);
  const loads = [...deep].filter((u) => u.op === "LOAD" && !u.srcs.some((s) => deep.has(s)));
  const lanes = new Map<UOp, UOp>();
  for (const row of rows(loads, forms, a)) {
    const type = elementOf((row.accesses[0] as Access).u);
    for (const run of runs(row, type, vectorBytes)) {
      const [buffer, index, gate, alt] = (run[0] as Access).u.srcs as [UOp, UOp, UOp?, UOp?];
      const wide = type.vec(run.length);
      if (alt !== undefined && alt.op !== "CONST") continue;
      const rest = gate === undefined || alt === undefined ? [] : [gate, a.constant(wide, alt.arg)];
      const vector = a.make("LOAD", wide, [buffer, index, ...rest], undefined);
      run.forEach(({ u }, i) => void lanes.set(u, a.make("GEP", type, [vector], i)));
    }
  }
  return lanes;
}

/** The stores of the sink, neighbours as one, each where the first of its lanes was. */
function vectorStores(sink: UOp, forms: Map<UOp, Affine>, a: UOpArena, vectorBytes: number): UOp[] {
  const stores = sink.srcs.filter((u) => valueType(u.srcs[2] as UOp).count === 1);
  const replaced = new Map<UOp, UOp | undefined>();
  for (const row of rows(stores, forms, a)) {
    const type = elementOf((row.accesses[0] as Access).u);
    for (const run of runs(row, type, vectorBytes)) {
      const [buffer, index, , ...gate] = (run[0] as Access).u.srcs as [UOp, UOp, UOp, ...UOp[]];
      const values = run.map(({ u }) => u.srcs[2] as UOp);
      const value = a.make("VECTORIZE", type.vec(run.length), values, undefined);
      for (const { u } of run) replaced.set(u, undefined);
      const first = sink.srcs.find((u) => run.some((x) => x.u === u)) as UOp;
      replaced.set(first, a.make("STORE", undefined, [buffer, index, value, ...gate], undefined));
    }
  }
  return sink.srcs.flatMap((u) => (replaced.has(u) ? (replaced.get(u) ?? []) : [u]));
}
