// The record of one call of a jitted function: what the CacheCollector was told while the function ran. With
// it comes what only a record needs to hear of: runners that are executed by hand.

import { type LazyBuffer, nodesMade } from "../../lazy/lazybuffer.ts";
import { BufferCopy, onExec } from "../../runtime/runner.ts";
import { scopes } from "../scope.ts";
import {
  type Assigned,
  CacheCollector,
  type Draw,
  type HostRead,
  type Setting,
  type TensorLike,
  type TraceItem,
} from "./collector.ts";

/** The record of what is done in one call; the CacheCollector fills it. */
export class Trace {
  static readonly name: string = "Trace";
  /** what promises made inside remember, long after the call: nothing that has memory */
  readonly token = {};
  /** nodes from here on were made by this call */
  readonly firstNode = nodesMade();
  endNode = Infinity;
  readonly items: TraceItem[] = [];
  readonly draws: Draw[] = [];
  /** what of the stream of random numbers the call took */
  readonly stream = { from: 0, to: 0 };
  readonly assigned = new Map<TensorLike, Assigned>();
  /** by what the function was given instead of the array */
  readonly reads = new Map<object, HostRead>();
  /** where the function was called: scopes that it opens itself are the same in every call */
  readonly entry = scopes.current;
  /** what the function looked at besides, by whom it belongs to */
  readonly settings = new Map<object, Setting>([
    [this, { name: "autocast", value: this.entry.autocast, read: () => scopes.get("autocast") }],
  ]);
  /** the nodes of the call before, for a capture: from the first up to below the second */
  readonly earlier: readonly [number, number] | undefined;
  /** values from before a capture that it reads; those that are not stored are computed by its kernels */
  readonly older = new Set<LazyBuffer>();

  constructor(earlier?: readonly [number, number]) {
    this.earlier = earlier;
  }
  /** What is part of a capture: built in this call, and something to run. */
  get captured(): TraceItem[] {
    return this.items.filter(isCaptured);
  }
}
export const isCaptured = (x: TraceItem): boolean => x.isNew && x.runner !== undefined;

/** Of a kernel or a function nobody knows which buffers it writes. */
onExec((runner, buffers, varVals) => {
  const written = runner instanceof BufferCopy ? 1 : buffers.length;
  const [outputs, inputs] = [buffers.slice(0, written), buffers.slice(written)];
  const item = { ast: [], outputs, inputs, varVals, lazies: [] };
  CacheCollector.push({ runner, item, isNew: true, byHand: true });
});
