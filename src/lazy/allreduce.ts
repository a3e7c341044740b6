// Allreduce: partial results, one per device, become their total on every device. Naive: every device gets
// every part, n(n-1) copies of the whole size. Ring: each part is split into n chunks; a chunk travels around
// once to collect the sum (reduce-scatter) and once more as the total (all-gather), 2n(n-1) copies of 1/n of
// the size. Both ways give all devices the same bits, so that replicas of a parameter never diverge.

import { env } from "../env.ts";
import { REDUCE, type ReduceOp } from "../ops.ts";
import { concat } from "./concat.ts";
import type { LazyBuffer } from "./lazybuffer.ts";

/**
 * From how many devices and bytes the ring is used. It moves 2/n of the bytes of the naive way and adds less,
 * but in more and smaller pieces, and it must join the chunks. Devices that share the host's memory copy as
 * fast as they add: on WASM the naive way was faster with 3 and 4 devices at every size, the ring with 8
 * devices from 1 MiB, and the naive way again with 12. The machine was busy, so the limits are rough; RING
 * overrides them.
 */
export const RING_DEVICES = 8;
export const RING_BYTES = 1 << 20;

function usesRing(parts: readonly LazyBuffer[]): boolean {
  const [first] = parts as readonly [LazyBuffer];
  const { size } = first;
  if (typeof size !== "number" || size < parts.length || env.RING <= 0) return false;
  return env.RING >= 2 || (parts.length >= RING_DEVICES && size * first.dtype.itemsize >= RING_BYTES);
}

/** The total of `parts`, which all have the same shape, on the device of each. */
export function allreduce(op: ReduceOp, parts: readonly LazyBuffer[]): LazyBuffer[] {
  return usesRing(parts) ? ring(op, parts) : naive(op, parts);
}

/** Sends a node to other devices; if it must be made contiguous first, that happens once. */
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
  // every device adds in the same order
  return parts.map(({ device }) => send.map((to) => to(device)).reduce((a, b) => a.e(combine, b)));
}

function ring(op: ReduceOp, parts: readonly LazyBuffer[]): LazyBuffer[] {
  const { combine } = REDUCE[op];
  const n = parts.length;
  const { shape, size } = parts[0] as LazyBuffer;
  // chunks of equal size, the last one padded: joined as rows they need no check per element
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
    // the last device of the chain has the total and passes it on
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
