// Room for larger values of Variables. Memory whose size has exact variables (shape/symbolic.ts) is as large
// as the values of the capturing call need. A call that needs more gets a new plan of the same values with
// the same lives: memory is made anew, kernels stay as they are.

import { JitError } from "../../errors.ts";
import type { Buffer } from "../../runtime/buffer.ts";
import { evaluate, isExact, type Sint, unbind, type Variable } from "../../shape/symbolic.ts";
import type { TraceItem } from "./collector.ts";
import { type Growth, type Life, type Placement, planner, type Room } from "./placement.ts";

/** A value in a slot, and its size in variables. */
interface SizedSlot extends Room {
  readonly slot: number;
  readonly elements: Sint;
}

/** Variables with more than there is room for get so much more than that, as long as they may have it. */
const AHEAD = 1.25;

/** The sizes in variables of the buffers that were made as large as their values need. */
export function sizesOf(items: readonly TraceItem[]): Map<Buffer, Sint> {
  const sizes = new Map<Buffer, Sint>();
  for (const { item } of items) {
    item.outputs.forEach((buffer, k) => {
      const size = item.lazies[k]?.size ?? buffer.size;
      if (typeof size !== "number" && isExact(size)) sizes.set(buffer, unbind(size)[0]);
    });
  }
  for (const { item } of items) {
    const isKernel = item.ast[0]?.op === "STORE" && !item.outputs.some((b) => b.dtype.image);
    if (isKernel || ![...item.inputs, ...item.outputs].some((b) => sizes.has(b))) continue;
    throw new JitError(
      "TinyJit: a value whose size differs from call to call is copied or made an image inside the function; return it " +
        "and copy it outside",
    );
  }
  return sizes;
}

/** How the memory of a capture grows; undefined: all of it has plain sizes. */
export function growthOf(
  sizes: ReadonlyMap<Buffer, Sint>,
  { lives }: Placement,
  slotOf: (buffer: Buffer) => number,
  bound: ReadonlyMap<Variable, number>,
): Growth | undefined {
  if (sizes.size === 0) return undefined;
  const sized = lives.map(({ values, first, last }) => ({
    first,
    last,
    values: values.map((b): SizedSlot => {
      const { device, dtype, size } = b;
      return { device, dtype, size, slot: slotOf(b), elements: sizes.get(b) ?? size };
    }),
  }));
  return growing(sized, bound);
}

/** `lives`: what only the items see; `room`: the values of variables that there is room for. */
const growing = (lives: readonly Life<SizedSlot>[], room: ReadonlyMap<Variable, number>): Growth => ({
  *grow(slots, bound) {
    const more = new Map(room);
    for (const [v, n] of bound) {
      const had = room.get(v) ?? 0;
      if (n > had) more.set(v, Math.max(n, Math.min(v.max, Math.ceil(had * AHEAD))));
    }
    if ([...more].every(([v, n]) => room.get(v) === n)) return undefined;
    const larger = lives.map((life) => ({
      ...life,
      values: life.values.map((v) => ({ ...v, size: evaluate(v.elements, more) })),
    }));
    const { buffers } = yield* planner().place(larger);
    const made = [...slots];
    larger.forEach(({ values }, i) => {
      for (const [k, { slot }] of values.entries())
        made[slot] = { kind: "fixed", buffer: buffers[i]?.[k] as Buffer };
    });
    return { slots: made, growth: growing(larger, more) };
  },
});
