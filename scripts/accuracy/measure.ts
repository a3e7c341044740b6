// How far functions of Tensor are from the truth on a device, in units in the last place. In go rows of
// reference.py, out comes the largest distance; accuracy.ts makes the page of the docs from it, and a test
// holds the page.

import { type DType, dtypes, Tensor } from "../../src/index.ts";

/** [x, value, rest], or [x, y, value, rest] */
type Row = readonly number[];
export type Reference = Readonly<Record<string, Readonly<Record<"float32" | "float64", readonly Row[]>>>>;

/**
 * These cross zero where only a longer formula would keep digits: beside their zeros a distance counts in
 * units of 1.
 */
const CROSSING: ReadonlySet<string> = new Set(["lgamma", "digamma"]);

export interface Distance {
  readonly ulp: number;
  readonly at: readonly number[];
}

const view = new DataView(new ArrayBuffer(8));
/** The distance of neighbours around a value of this type. */
export function ulpOf(dtype: DType, x: number): number {
  if (dtype === dtypes.float64) {
    view.setFloat64(0, Math.abs(x));
    return 2 ** (Math.max(1, view.getUint16(0) >> 4) - 1075);
  }
  // rounded down: a value just below a power of two has the smaller unit
  view.setFloat64(0, Math.abs(x));
  return 2 ** (Math.max((view.getUint16(0) >> 4) - 1023, -126) - 23);
}

export async function measure(
  name: string,
  dtype: DType,
  rows: readonly Row[],
  device: string,
): Promise<Distance> {
  const column = (i: number): Tensor => {
    const values = rows.map((r) => r[i] as number);
    return new Tensor(dtype === dtypes.float64 ? Float64Array.from(values) : Float32Array.from(values), {
      device,
    });
  };
  const args = Array.from({ length: (rows[0]?.length ?? 3) - 2 }, (_, i) => column(i));
  const [self, ...others] = args as [Tensor, ...Tensor[]];
  const method = Reflect.get(self, name) as (...xs: Tensor[]) => Tensor;
  const got = await method.apply(self, others).data();
  let [ulp, at]: [number, readonly number[]] = [0, []];
  for (const [i, row] of rows.entries()) {
    const [value, rest] = row.slice(-2) as [number, number];
    const off =
      Math.abs(Number(got[i]) - value - rest) /
      ulpOf(dtype, CROSSING.has(name) ? Math.max(1, Math.abs(value)) : value);
    if (!(off <= ulp)) [ulp, at] = [Number.isNaN(off) ? Infinity : off, row];
  }
  return { ulp, at };
}
