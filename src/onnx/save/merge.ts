// The graphs of a function traced at several sizes of its open dims, as one. They must be the same but for
// numbers, and each number that differs must follow from the sizes. In: the results of each trace. Out: one
// graph, whose numbers may be formulas.

import type { Value } from "../../dtype.ts";
import { range } from "../../helpers.ts";
import type { LazyBuffer } from "../../lazy/lazybuffer.ts";
import { OnnxError } from "../errors.ts";
import type { ExportBody, ExportNode } from "./graph.ts";
import { fitted, type SizeFormula, type TraceSizes } from "./sizes.ts";

/** Where traces differ. */
export class SizeMismatch extends OnnxError {}

/** A node whose numbers may be formulas of open dims. */
export interface MergedNode extends ExportNode {
  readonly inputs: readonly MergedNode[];
  readonly formulas: readonly (SizeFormula | undefined)[];
  readonly sizes: readonly (SizeFormula | undefined)[];
  readonly body?: { readonly parameters: readonly MergedNode[]; readonly results: readonly MergedNode[] };
}
export interface Merged {
  readonly results: readonly MergedNode[];
  /** weights that are different nodes in different traces: they must hold the same */
  readonly twins: readonly (readonly [LazyBuffer, LazyBuffer])[];
}

type Tuple = readonly ExportNode[];

export function merge(traces: readonly (readonly ExportNode[])[], sizes: TraceSizes): Merged {
  return new Merger(sizes).run(traces);
}

class Merger {
  readonly #sizes: TraceSizes;
  readonly #made = new Map<string, MergedNode>();
  readonly #twins: (readonly [LazyBuffer, LazyBuffer])[] = [];

  constructor(sizes: TraceSizes) {
    this.#sizes = sizes;
  }
  run(traces: readonly (readonly ExportNode[])[]): Merged {
    const [first] = traces as [readonly ExportNode[]];
    if (traces.some((t) => t.length !== first.length))
      throw new SizeMismatch("save: the number of outputs differs");
    const roots = range(first.length).map((i) => traces.map((t) => t[i] as ExportNode));
    return { results: this.#all(roots), twins: this.#twins };
  }
  #key(t: Tuple): string {
    return t.map((n) => n.id).join();
  }
  #all(roots: readonly Tuple[]): MergedNode[] {
    const stack: (readonly [Tuple, boolean])[] = [...roots].reverse().map((t) => [t, false] as const);
    for (let top = stack.pop(); top !== undefined; top = stack.pop()) {
      const [tuple, isReady] = top;
      const key = this.#key(tuple);
      if (this.#made.has(key)) continue;
      if (isReady) {
        this.#made.set(key, this.#one(tuple));
        continue;
      }
      stack.push([tuple, true]);
      for (const s of this.#below(tuple)) if (!this.#made.has(this.#key(s))) stack.push([s, false]);
    }
    return roots.map((t) => this.#get(t));
  }
  #get(t: Tuple): MergedNode {
    return this.#made.get(this.#key(t)) as MergedNode;
  }
  #below(tuple: Tuple): Tuple[] {
    const [first] = tuple as [ExportNode];
    const isSame = tuple.every(
      (n) =>
        n.op === first.op &&
        n.inputs.length === first.inputs.length &&
        n.dtype === first.dtype &&
        n.values.length === first.values.length &&
        n.shape.length === first.shape.length &&
        JSON.stringify(n.attributes) === JSON.stringify(first.attributes) &&
        n.body?.parameters.length === first.body?.parameters.length &&
        n.body?.results.length === first.body?.results.length,
    );
    if (!isSame) throw new SizeMismatch(`save: ${differing(tuple)}`);
    const along = (list: (n: ExportNode) => readonly ExportNode[]): Tuple[] =>
      range(list(first).length).map((i) => tuple.map((n) => list(n)[i] as ExportNode));
    const body = (part: keyof ExportBody) => (n: ExportNode) => n.body?.[part] ?? [];
    return [...along((n) => n.inputs), ...along(body("parameters")), ...along(body("results"))];
  }
  #one(tuple: Tuple): MergedNode {
    const [first] = tuple as [ExportNode];
    const below = this.#below(tuple).map((t) => this.#get(t));
    const n = first.inputs.length;
    const p = first.body?.parameters.length ?? 0;
    const body = { parameters: below.slice(n, n + p), results: below.slice(n + p) };
    if (first.weight !== undefined) this.#weight(tuple, first.weight);
    return {
      ...first,
      id: this.#made.size,
      inputs: below.slice(0, n),
      formulas: this.#formulas(tuple, (x) => x.values, first.dtype.isFloat),
      sizes: this.#formulas(tuple, (x) => x.shape, false),
      ...(first.body === undefined ? {} : { body }),
    } as MergedNode;
  }
  #weight(tuple: Tuple, first: LazyBuffer): void {
    for (const { weight, shape } of tuple) {
      if (weight === undefined || weight === first) continue;
      if (shape.join() !== tuple[0]?.shape.join())
        throw new SizeMismatch(
          `save: a constant has shape [${tuple[0]?.shape.join(", ")}] at one size and [${shape.join(", ")}] at another`,
        );
      this.#twins.push([first, weight]);
    }
  }
  #formulas(
    tuple: Tuple,
    list: (n: ExportNode) => readonly Value[],
    isFloat: boolean,
  ): (SizeFormula | undefined)[] {
    const [first] = tuple as [ExportNode];
    return list(first).map((value, i) => {
      const all = tuple.map((n) => Number(list(n)[i]));
      if (all.every((v) => Object.is(v, Number(value)))) return undefined;
      const formula = fitted(all, this.#sizes, isFloat);
      if (formula === undefined) {
        throw new SizeMismatch(
          `save: a number of ${first.op} is ${all.join(", ")} at the sizes tried, and they are not a formula of the sizes`,
        );
      }
      return formula;
    });
  }
}

function differing(tuple: Tuple): string {
  const [first] = tuple as [ExportNode];
  const other =
    tuple.find((n) => n.op !== first.op) ??
    tuple.find((n) => JSON.stringify(n.attributes) !== JSON.stringify(first.attributes));
  const show = (n: ExportNode | undefined): string =>
    n === undefined ? "other inputs" : `${n.op} [${n.shape.join(", ")}]`;
  return `${show(first)} at one size is ${show(other)} at another`;
}
