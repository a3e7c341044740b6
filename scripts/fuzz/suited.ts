// Which programs a device can be held to. WebGPU has no float64, and may take a number below 2^-126 for 0: a
// program that has one on its way may give anything there. In: a program, an open device. Out: why not.

import { Device, dtypes } from "gradloom";
import type { Program, Scalar } from "./language.ts";
import type { Arr } from "./reference/array.ts";
import { interpret } from "./reference/interpreter.ts";
import { isFloat } from "./reference/types.ts";

const SMALLEST_NORMAL = 2 ** -126;
const isSubnormal = (x: Scalar): boolean => x !== 0 && Math.abs(Number(x)) < SMALLEST_NORMAL;

/** Whether the sign of a zero counts on the device. */
export const keepsZeros = (device: string): boolean => Device.get(device).renderer?.ieee !== false;

/** Why the device cannot be held to the program; undefined: it can. */
export function unsuited(p: Program, device: string): string | undefined {
  const { renderer } = Device.get(device);
  if (renderer === undefined || (renderer.ieee && renderer.support(dtypes.float64) !== "none"))
    return undefined;
  let nodes: readonly Arr[];
  try {
    nodes = interpret(p);
  } catch {
    return undefined; // the reference does not take it: what comes out says more
  }
  const lacking = nodes.find(({ d }) => renderer.support(dtypes[d]) === "none");
  if (lacking !== undefined) return `${device} has no ${lacking.d}`;
  const isSmall = ({ d, v }: Arr): boolean => isFloat(d) && v.some(isSubnormal);
  return !renderer.ieee && nodes.some(isSmall) ? `${device} may take a subnormal number for 0` : undefined;
}
