// The values of a tensor where they are known without computing anything: those of an array on the host, or
// of memory that can be read at once. For console.log, the REPL and JSON.

import type { TypedArray, Value } from "../dtype.ts";
import { CacheCollector } from "../engine/jit/collector.ts";
import { runSync } from "../helpers.ts";
import { decodeArray } from "../hostarrays.ts";
import type { TensorHandle } from "./core.ts";

/** More elements are not shown. */
const MOST = 100;

/** All elements in row-major order; undefined where they are not known. */
export function knownValues({ lazydata, dtype }: TensorHandle): TypedArray | undefined {
  if (lazydata.parts.length > 1) return undefined;
  const { base } = lazydata;
  const isCopy = base.op === "COPY" && base.srcs !== undefined;
  const { realized } = isCopy ? (base.srcs?.[0]?.base ?? base) : base;
  if (realized === undefined || !lazydata.isWhole || typeof lazydata.size !== "number") return undefined;
  if (CacheCollector.collecting) return undefined;
  try {
    const bytes = runSync(realized.read(true), "values");
    return decodeArray(dtype, bytes.slice(0, dtype.bytesFor(lazydata.size)), lazydata.size);
  } catch {
    return undefined; // the device cannot be waited for here
  }
}

/** The values as nested lists, floats with the digits that they have. */
export function showValues(t: TensorHandle): string | undefined {
  const values = t.size > MOST ? undefined : knownValues(t);
  if (values === undefined) return undefined;
  const one = (x: Value): string => {
    if (t.dtype.kind === "bool") return String(x !== 0);
    return typeof x === "number" && t.dtype.bits < 64 ? String(Number(x.toPrecision(7))) : String(x);
  };
  const rows = (dim: number, at: number, count: number): string => {
    const n = t.shape[dim];
    if (n === undefined) return one(values[at] as Value);
    const step = count / n;
    return `[${Array.from({ length: n }, (_, i) => rows(dim + 1, at + i * step, step)).join(", ")}]`;
  };
  return rows(0, 0, values.length);
}
