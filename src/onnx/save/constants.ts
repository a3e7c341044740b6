// Arrays of the host that say little: one value everywhere, or numbers that count up. They are written as
// what they say, so that one that was made for a size of an open dim is right for others. In: a node that
// holds data. Out: a node, or undefined where it is data.

import type { Value } from "../../dtype.ts";
import type { LazyBuffer } from "../../lazy/lazybuffer.ts";
import { make } from "../../tensor/core.ts";
import { knownValues } from "../../tensor/known.ts";
import type { ExportNode, GraphBuilder } from "./graph.ts";
import { whole } from "./views.ts";

/** Larger arrays are data. */
const MAX_LOOKED_AT = 1 << 16;

export function constantIn(b: GraphBuilder, base: LazyBuffer): ExportNode | undefined {
  const shape = base.shape.map(whole);
  const size = shape.reduce((n, s) => n * s, 1);
  // a weight that may be trained stays one
  if (!base.onlyHolds || base.dtype.isPacked || size === 0 || size > MAX_LOOKED_AT) return undefined;
  if (base.dtype.isFloat && base.dtype.bits < 32) return undefined;
  const values = knownValues(make(base));
  if (values === undefined) return undefined;
  const first = values[0] as Value;
  const same = values.every as unknown as (f: (x: Value) => boolean) => boolean;
  if (size > 1 && same.call(values, (x) => Object.is(x, first))) {
    const one = b.reshape(
      b.number(first, base.dtype),
      shape.map(() => 1),
    );
    return b.expand(one, shape);
  }
  if (!base.dtype.isInt || size < 3) return undefined;
  const number = (i: number): number => Number(values[i]);
  const step = number(1) - number(0);
  for (let i = 1; i < size; i++) if (number(i) !== number(0) + i * step) return undefined;
  return b.reshape(b.cast(b.lattice(number(0), [step], [size]), base.dtype), shape);
}
