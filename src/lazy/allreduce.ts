// Partial results, one on each device, become their total on each device. Naive: everyone gets everyone's part, n(n-1)
// copies of all of it. Ring: each part is cut into n chunks; a chunk goes around once and gathers what the devices have
// (reduce-scatter), then once more as the total (all-gather), 2n(n-1) copies of an n-th. Either way all devices end up
// with the same bits, so that copies of a parameter never drift apart.

import { env } from "../env.ts";
import { REDUCE, type ReduceOp } from "../ops.ts";
import { concat } from "./concat.ts";
import type { LazyBuffer } from "./lazybuffer.ts";
import { type Span, spansOf } from "./sharding.ts";

/**
 * From how many bytes on a ring is worth its copies and kernels, which are more and smaller. It moves 2/n of the bytes of
 * the naive way: nothing is gained with two devices.
 */
export const RING_BYTES = 1 << 18;

function usesRing(parts: readonly LazyBuffer[]): boolean {
  const [first] = parts as readonly [LazyBuffer];
  const { size } = first;
  if (typeof size !== "number" || size < parts.length || env.RING <= 0) return false;
  return env.RING >= 2 || (parts.length > 2 && size * first.dtype.itemsize >= RING_BYTES);
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
  const flat = parts.map((p) => p.reshape([p.size]));
  const at = (i: number): LazyBuffer => flat[i % n] as LazyBuffer;
  const chunksOf = parts.map((): LazyBuffer[] => []);
  spansOf(parts[0]?.size as number, n).forEach((span: Span, c) => {
    let sum = at(c).shrink([span]);
    for (let i = c + 1; i < c + n; i++) {
      const next = at(i);
      sum = sender(sum)(next.device).e(combine, next.shrink([span]));
    }
    // the last one of the way has the total, and passes it on
    for (let i = c + n - 1; i < c + 2 * n - 1; i++) {
      sum = sum.copyToDevice(at(i).device);
      chunksOf[i % n]?.push(sum);
    }
  });
  return chunksOf.map((chunks, i) => concat(chunks, 0).reshape((parts[i] as LazyBuffer).shape));
}
