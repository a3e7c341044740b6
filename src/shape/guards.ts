// Decisions that were made for the values that symbolic sizes are bound to: two sizes that are equal now, a
// comparison that holds now, a size that was read as a number. A graph with symbolic sizes is right for other
// values as long as these decisions would be the same. In: the decisions, where they are made. Out: each as a
// Guard, for whoever watches.

import { boundValue, evaluate, type Sint, type Variable } from "./symbolic.ts";

/** An expression that must have this value with other bindings, too. */
export interface Guard {
  readonly x: Sint;
  readonly value: number;
  /** it was read as a number, which may be anywhere by now; otherwise only the decision counts */
  readonly isNumber: boolean;
}
type Watcher = (guard: Guard) => void;
const watchers = new Set<Watcher>();

/** Tells of every decision until the function that it returns is called. */
export function watchSizes(watcher: Watcher): () => void {
  watchers.add(watcher);
  return () => void watchers.delete(watcher);
}
/** Whether somebody wants to hear: what was remembered of earlier movements does not tell again. */
export const areSizesWatched = (): boolean => watchers.size > 0;
function tell(x: Sint, value: number, isNumber: boolean): void {
  if (typeof x !== "number") for (const watcher of watchers) watcher({ x, value, isNumber });
}

/** The value of x for a decision that is about this value alone; undefined where a variable has none. */
export function decided(x: Sint): number | undefined {
  if (typeof x === "number") return x;
  const value = boundValue(x);
  if (value !== undefined) tell(x, value, false);
  return value;
}

/** A size as a number, as `shape` of a Tensor shows it; NaN where a variable has no value. */
export function plainSize(x: Sint): number {
  if (typeof x === "number") return x;
  const value = boundValue(x) ?? Number.NaN;
  tell(x, value, true);
  return value;
}

/** Whether the decision would be the same with these values. */
export const isMet = ({ x, value }: Guard, values: ReadonlyMap<Variable, number>): boolean =>
  evaluate(x, values) === value;
