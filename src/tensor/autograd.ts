// Reverse mode: how a gradient flows from a tensor back to those it was made of. Every primitive records its
// parents and a function from the gradient of the result to theirs; `backward` walks these records, users
// before sources. Gradients are tensors themselves: lazy, and differentiable where asked.

import { scopes } from "../engine/scope.ts";
import { ShapeError } from "../errors.ts";
import { arraysEqual, toposort } from "../helpers.ts";
import { type LazyBuffer, nodesMade } from "../lazy/lazybuffer.ts";

import { showShape } from "./show.ts";
import type { Tensor } from "./tensor.ts";

/**
 * `out` is the tensor the record belongs to; the result has one entry for each parent, undefined where
 * nothing flows. `found` has the gradients of all tensors that were made of it, for an op of several results.
 */
export type Backward<T> = (gradient: T, out: T, found: ReadonlyMap<T, T>) => readonly (T | undefined)[];

export interface Context {
  readonly parents: readonly Tensor[];
  run(gradient: Tensor, out: Tensor, found: ReadonlyMap<Tensor, Tensor>): readonly (Tensor | undefined)[];
}

export const isRecording = (): boolean => scopes.get("recording");

/** Runs a synchronous `fn` with recording on or off; layers inside of it train as they do outside. */
export const withRecording = <T>(recording: boolean, fn: () => T): T =>
  scopes.sync({ recording, training: scopes.training }, fn);

/** The nodes with an id of at least `first` that these gradients are computed from, and `others` are not. */
function nodesOf(
  flows: Iterable<Tensor | undefined>,
  first: number,
  others?: ReadonlySet<LazyBuffer>,
): Set<LazyBuffer> {
  const found = new Set([...flows].flatMap((f) => f?.lazydata.parts.map((part) => part.base) ?? []));
  // iterating over a Set also visits what is added meanwhile
  for (const b of found) {
    if (b.id < first || others?.has(b)) found.delete(b);
    else for (const s of b.srcs ?? []) found.add(s.base);
  }
  return found;
}

/** A flow to a parent that wants none is garbage: an assign to what it reads must not compute it first. */
export function abandon(
  unwanted: readonly Tensor[],
  wanted: Iterable<Tensor | undefined>,
  before: number,
): void {
  if (unwanted.length === 0) return;
  for (const b of nodesOf(unwanted, before, nodesOf(wanted, before))) b.consumed = true;
}

/** All that `roots` were made of, sources first; what `stops` were made of does not count. */
function ancestry(roots: readonly Tensor[], stops: ReadonlySet<Tensor>): Tensor[] {
  return toposort<Tensor>(roots, (x) =>
    stops.has(x) ? [] : ((x.context?.parents ?? []) as readonly Tensor[]),
  );
}
/** The leaves with `requiresGrad` that `root` was made of, not by way of `stops`. */
export const leavesOf = (root: Tensor, stops: ReadonlySet<Tensor>): Tensor[] =>
  ancestry([root], stops).filter((t) => t.context === undefined && t.requiresGrad && !stops.has(t));

/** The gradient of every tensor below `root` that the gradient reaches; it does not pass `stops`. */
export function gradients(
  root: Tensor,
  seed: Tensor,
  add: (a: Tensor, b: Tensor) => Tensor,
  stops: ReadonlySet<Tensor> = new Set(),
): Map<Tensor, Tensor> {
  return gradientsOf(new Map([[root, seed]]), add, stops);
}

/** The same for several roots, each with the gradient that flows into it. */
export function gradientsOf(
  seeds: ReadonlyMap<Tensor, Tensor>,
  add: (a: Tensor, b: Tensor) => Tensor,
  stops: ReadonlySet<Tensor>,
): Map<Tensor, Tensor> {
  const found = new Map(seeds);
  for (const t of ancestry([...seeds.keys()], stops).reverse()) {
    const g = found.get(t);
    if (g === undefined || t.context === undefined || stops.has(t)) continue;
    const before = nodesMade();
    const flows = t.context.run(g, t, found) as readonly (Tensor | undefined)[];
    const parents = t.context.parents as readonly Tensor[];
    const wanted = new Set(flows.filter((_, i) => parents[i]?.requiresGrad));
    const unwanted = flows.filter((flow) => flow !== undefined && !wanted.has(flow)) as Tensor[];
    abandon(unwanted, wanted, before);
    parents.forEach((parent, i) => {
      const flow = flows[i];
      if (flow === undefined || !parent.requiresGrad) return;
      if (!arraysEqual(flow.lazydata.shape, parent.lazydata.shape)) {
        throw new ShapeError(
          `backward: a gradient has shape ${showShape(flow.shape)}, the tensor it belongs to ${showShape(parent.shape)}; ` +
            "a custom backward must return gradients in the shapes of its inputs",
        );
      }
      const other = found.get(parent);
      found.set(parent, other === undefined ? flow : add(other, flow));
    });
  }
  return found;
}
