// Partial results, one on each device, become their total on each device. Naive: everyone gets everyone's part, n(n-1)
// copies of all of it. Ring: each part is cut into n chunks; a chunk goes around once and gathers what the devices have
// (reduce-scatter), then once more as the total (all-gather), 2n(n-1) copies of an n-th. Either way all devices end up
// with the same bits, so that copies of a parameter never drift apart.

import { env } from "../env.ts";
import { REDUCE, type ReduceOp } from "../ops.ts";
import { concat } from "./concat.ts";
import type { LazyBuffer } from "./lazybuffer.ts";

/**
 * From how many devices and bytes on the ring is chosen. It moves 2/n of the bytes of the naive way and adds less, in more
 * and smaller pieces, and it has to join the chunks. Devices that share the host's memory copy as fast as they add: on
 * WASM the naive way was the faster one with 3 and 4 devices at every size, the ring with 8 from 1 MiB on, and the naive
 * way again with 12, all of it on a busy machine: the limits are rough, and RING overrides them.
 */
export const RING_DEVICES = 8;
export const RING_BYTES = 1 << 20;

function usesRing(parts: readonly LazyBuffer[]): boolean {
  const [first] = parts as readonly [LazyBuffer];
  const { size } = first;
  if (typeof size !== "number" || size < parts.length || env.RING <= 0) return false;
  return env.RING >= 2 || (parts.length >= RING_DEVICES && size * first.dtype.itemsize >= RING_BYTES);
}

/** The total of `parts`, which have one shape, on the device of each. */
export function allreduce(op: ReduceOp, parts: readonly LazyBuffer[]): LazyBuffer[] {
  return usesRing(parts) ? ring(op, parts) : naive(op, parts);
}

/** Gives a node to other devices; what has to be put in order first is so once. */
export function sender(node: LazyBuffer): (device: string) => LazyBuffer {
  let stored: LazyBuffer | undefined;
  return (device) => {
    if (device === node.device) return node;
    stored ??= node.isWhole || node.isUnrealizedConst || node.onlyHolds ? node : node.contiguous();
    return stored.copyToDevice(device);
  };
}

function naive(op: ReduceOp, parts: readonly LazyBuffer[]): LazyBuffer[] {
  const { combine } = REDUCE[op];
  const send = parts.map(sender);
  // everyone adds in the same order
  return parts.map(({ device }) => send.map((to) => to(device)).reduce((a, b) => a.e(combine, b)));
}

function ring(op: ReduceOp, parts: readonly LazyBuffer[]): LazyBuffer[] {
  const { combine } = REDUCE[op];
  const n = parts.length;
  const { shape, size } = parts[0] as LazyBuffer;
  // chunks of one size, the last one padded: joined as rows they make a kernel that needs no check an element
  const chunk = Math.ceil((size as number) / n);
  const flat = parts.map((p) => p.reshape([size]).pad([[0, n * chunk - (size as number)]]));
  const at = (i: number): LazyBuffer => flat[i % n] as LazyBuffer;
  const rowsOf = parts.map((): LazyBuffer[] => []);
  for (let c = 0; c < n; c++) {
    const span = [c * chunk, (c + 1) * chunk] as const;
    let sum = at(c).shrink([span]);
    for (let i = c + 1; i < c + n; i++) {
      const next = at(i);
      sum = sender(sum)(next.device).e(combine, next.shrink([span]));
    }
    // the last one of the way has the total, and passes it on
    for (let i = c + n - 1; i < c + 2 * n - 1; i++) {
      sum = sum.copyToDevice(at(i).device);
      rowsOf[i % n]?.push(sum.reshape([1, chunk]));
    }
  }
  return rowsOf.map((rows) =>
    concat(rows, 0)
      .reshape([n * chunk])
      .shrink([[0, size]])
      .reshape(shape),
  );
}
