// Loads and stores of neighbours become one of a vector, where the target moves several elements at once
// (Target.gpu). Between expand, which writes lanes out one by one, and linearize. On the way indexes get one
// form, an affine sum with its constant last, so that loads from the same address are the same node.

import type { DType } from "../../dtype.ts";
import { getOrMake, range } from "../../helpers.ts";
import type { UOpArena } from "../../uop/arena.ts";
import { elementOf } from "../../uop/list.ts";
import { type Expr, type Load, type Sink, type Store, type UOp, withIndex } from "../../uop/node.ts";
import { mapGraph } from "../../uop/rewrite.ts";
import { type Affine, affine, toIndex } from "../analysis/affine.ts";
import type { Gpu } from "../target.ts";

export function coalesce(sink: Sink, arena: UOpArena, { vectorBytes }: Gpu): Sink {
  const forms: Forms = new Map();
  const even = mapGraph(sink, arena, (u) => {
    if (u.op !== "LOAD" && u.op !== "STORE") return undefined;
    const index = toIndex(affine(u.index, forms), arena);
    return index === u.index
      ? undefined
      : arena.withSrcs(
          u,
          withIndex(u.srcs, () => index),
        );
  });
  const loads = coalescedLoads(even, forms, arena, vectorBytes);
  const read = mapGraph(even, arena, (u) => loads.get(u));
  return arena.sink(coalescedStores(read, forms, arena, vectorBytes));
}

// ---- which of them are neighbours ----

/** The indexes seen so far, as affine sums. */
type Forms = Map<Expr, Affine>;
interface OffsetAccess<U> {
  readonly u: U;
  /** the constant at the end of its index */
  readonly offset: number;
}
/** Accesses that differ only in that constant. */
interface AccessRow<U> {
  readonly base: Affine;
  readonly type: DType;
  readonly accesses: OffsetAccess<U>[];
}

function rows<U extends Load | Store>(accesses: readonly U[], forms: Forms, a: UOpArena): AccessRow<U>[] {
  const found = new Map<string, AccessRow<U>>();
  for (const u of accesses) {
    const form = affine(u.index, forms);
    const base = { terms: form.terms, k: 0 };
    const otherwise = u.op === "LOAD" ? u.otherwise : undefined;
    const key = [u.buffer, toIndex(base, a), u.gate, otherwise].map((s) => s?.id).join();
    const row = getOrMake(found, key, (): AccessRow<U> => ({ base, type: elementOf(u), accesses: [] }));
    row.accesses.push({ u, offset: form.k });
  }
  return [...found.values()];
}

type Run<U> = readonly [U, ...U[]];
/** The runs of neighbours in a row that one access can move; single accesses are left out. */
function runs<U>({ base, type, accesses }: AccessRow<U>, vectorBytes: number): Run<U>[] {
  const at = new Map(accesses.map((x) => [x.offset, x.u]));
  const found: Run<U>[] = [];
  for (let width = vectorBytes / type.itemsize; width >= 2; width /= 2) {
    if ([...base.terms.values()].some((c) => c % width !== 0)) continue;
    for (const { offset } of accesses) {
      if (offset % width !== 0) continue;
      const [first, ...others] = range(width).map((i) => at.get(offset + i));
      if (first === undefined || !others.every((x) => x !== undefined)) continue;
      found.push([first, ...others]);
      for (let i = 0; i < width; i++) at.delete(offset + i);
    }
  }
  return found;
}

/** Nodes that read memory, or depend on one that does. */
function reading(sink: Sink, arena: UOpArena): ReadonlySet<UOp> {
  const found = new Set<UOp>();
  for (const u of arena.nodes(sink)) {
    if (u.op === "LOAD" || u.op === "REDUCE" || u.srcs.some((s) => found.has(s))) found.add(u);
  }
  return found;
}

/** Maps each coalesced load to its lane of the vector load. */
function coalescedLoads(sink: Sink, forms: Forms, a: UOpArena, vectorBytes: number): ReadonlyMap<UOp, Expr> {
  const deep = reading(sink, a);
  const loads = [...deep].filter((u) => u.op === "LOAD").filter((u) => !u.srcs.some((s) => deep.has(s)));
  const lanes = new Map<UOp, Expr>();
  for (const row of rows(loads, forms, a)) {
    for (const run of runs(row, vectorBytes)) {
      const [{ buffer, index, gate, otherwise }] = run;
      if (otherwise !== undefined && otherwise.op !== "CONST") continue;
      const wide = otherwise && a.constant(row.type.vec(run.length), otherwise.value);
      const vector = a.load(buffer, index, { gate, otherwise: wide, lanes: run.length });
      run.forEach((u, i) => void lanes.set(u, a.gep(vector, i)));
    }
  }
  return lanes;
}

/** The stores of the sink, with neighbours coalesced; a vector store is where the first of its lanes was. */
function coalescedStores({ stores }: Sink, forms: Forms, a: UOpArena, vectorBytes: number): Store[] {
  const scalars = stores.filter((u) => u.value.dtype.count === 1);
  const replaced = new Map<Store, Store | undefined>();
  for (const row of rows(scalars, forms, a)) {
    for (const run of runs(row, vectorBytes)) {
      const [{ buffer, index, gate, value }, ...others] = run;
      const vector = a.vectorize([value, ...others.map((u) => u.value)]);
      for (const u of run) replaced.set(u, undefined);
      const first = stores.find((u) => run.includes(u)) ?? run[0];
      replaced.set(first, a.store(buffer, index, vector, gate));
    }
  }
  return stores.flatMap((u) => (replaced.has(u) ? (replaced.get(u) ?? []) : [u]));
}
