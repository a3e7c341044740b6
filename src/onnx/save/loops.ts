// A scan as a Loop. What passes from step to step is carried, rows of stacks are gathered by the number of
// the step, and what a step stacks is a scan output. A loop to the first row counts down. In: a result of a
// scan. Out: a node for it; the Loop is made once for all of them.

import { dtypes } from "../../dtype.ts";
import type { Body, Place, ScanLoop } from "../../engine/scan/loop.ts";
import { getOrMake } from "../../helpers.ts";
import type { LazyBuffer } from "../../lazy/lazybuffer.ts";
import { OnnxError } from "../errors.ts";
import { writtenAs } from "./elementwise.ts";
import type { ExportNode } from "./graph.ts";
import { GraphReader } from "./lower.ts";
import { through, whole } from "./views.ts";

const { int64 } = dtypes;

const results = new WeakMap<GraphReader, Map<ScanLoop, readonly ExportNode[]>>();

/** The node of this result of a scan. */
export function loopResult(l: GraphReader, base: LazyBuffer): ExportNode {
  const loop = base.arg as unknown as ScanLoop;
  const known = getOrMake(results, l, () => new Map<ScanLoop, readonly ExportNode[]>());
  const all = getOrMake(known, loop, () => new LoopWriter(l, base, loop.body).write());
  return all[loop.results.indexOf(base)] as ExportNode;
}

/** A value that passes from step to step. */
interface Carried {
  readonly parameter: ExportNode;
  readonly init: ExportNode;
  /** the result that has its last value, or all of its values */
  readonly result: number;
  readonly isKept: boolean;
}

class LoopWriter {
  readonly #l: GraphReader;
  readonly #base: LazyBuffer;
  readonly #body: Body;
  readonly #step: ExportNode;
  readonly #at: ExportNode;
  readonly #carried: readonly Carried[];

  constructor(l: GraphReader, base: LazyBuffer, body: Body) {
    const { b } = l;
    this.#l = l;
    this.#base = base;
    this.#body = body;
    this.#step = b.node("Parameter", { shape: [], dtype: int64 });
    const last = b.number(BigInt(body.length - 1), int64);
    this.#at = body.reverse ? b.map("Sub", [last, this.#step], int64) : this.#step;
    const outside = new GraphReader(b, l.since, new Map(), (node) => this.#source(node));
    this.#carried = body.inits.map((init): Carried => {
      const place = this.#placeOf(init);
      const isKept = place.kind === "result";
      return {
        parameter: b.node("Parameter", { shape: init.shape.map(whole), dtype: writtenAs(init.dtype) }),
        init: outside.full(init.sources[0] as LazyBuffer),
        result: isKept ? place.index : (body.swapped[place.index] as number),
        isKept,
      };
    });
  }
  #placeOf(node: LazyBuffer): Place {
    const place = this.#body.places.get(node.base.buffer);
    if (place === undefined) throw new OnnxError("save: internal: a value of a scan has no place");
    return place;
  }

  /** What the body reads from outside, or a carry. */
  #source(node: LazyBuffer): ExportNode | undefined {
    const place = node.realized === undefined ? undefined : this.#body.places.get(node.buffer);
    if (place === undefined) return undefined;
    if (place.kind !== "source") {
      const isOf = (c: Carried): boolean =>
        place.kind === "result"
          ? c.isKept && c.result === place.index
          : !c.isKept && c.result === this.#body.swapped[place.index];
      const found = this.#carried.find(isOf);
      if (found === undefined) throw new OnnxError("save: internal: a scan reads a value that no step has");
      return found.parameter;
    }
    const { b } = this.#l;
    const stored = this.#base.sources[place.index] as LazyBuffer;
    const value = this.#l.value(stored.base);
    const shape = stored.base.shape.map(whole);
    const { stack } = place;
    if (place.row === undefined || stack === undefined) return value;
    const sizes = stack.shape.map(whole);
    const rows = b.expand(through(b, value, shape, stack), sizes);
    return b.node("Gather", {
      inputs: [rows, this.#at],
      attributes: { axis: 0 },
      shape: sizes.slice(1),
      dtype: rows.dtype,
    });
  }

  write(): readonly ExportNode[] {
    const { b, since } = this.#l;
    const { stored, length, results: facts, reverse } = this.#body;
    const inside = new GraphReader(b, since, new Map(), (node) => this.#source(node));
    const values = stored.map((node) => inside.full(node));
    const nexts = values.slice(0, this.#carried.length);
    // a carry that is kept is stacked, too
    const stacks = new Map<number, ExportNode>();
    for (const [i, c] of this.#carried.entries()) if (c.isKept) stacks.set(c.result, nexts[i] as ExportNode);
    for (const [i, node] of stored.slice(nexts.length).entries())
      stacks.set(this.#placeOf(node).index, values[nexts.length + i] as ExportNode);
    const loop = b.node("Loop", {
      inputs: [b.number(BigInt(length), int64), ...this.#carried.map((c) => c.init)],
      body: {
        parameters: [this.#step, ...this.#carried.map((c) => c.parameter)],
        results: [...nexts, ...stacks.values()],
      },
      shape: [],
      dtype: int64,
    });
    const result = (index: number, x: ExportNode, isStack: boolean): ExportNode =>
      b.node("Result", {
        inputs: [loop],
        attributes: { index },
        shape: isStack ? [length, ...x.shape] : x.shape,
        dtype: x.dtype,
      });
    const all: ExportNode[] = [];
    for (const [i, c] of this.#carried.entries()) if (!c.isKept) all[c.result] = result(i, c.init, false);
    for (const [i, [index, x]] of [...stacks].entries()) {
      const made = result(nexts.length + i, x, true);
      const ordered = reverse ? b.flip(made, [0]) : made;
      const carry = this.#carried.find((c) => c.isKept && c.result === index);
      const first = carry === undefined ? [] : [b.reshape(carry.init, [1, ...x.shape])];
      all[index] = b.concat(reverse ? [ordered, ...first] : [...first, ordered], 0);
    }
    return facts.map(({ shape }, i) => b.reshape(all[i] as ExportNode, shape.map(whole)));
  }
}
