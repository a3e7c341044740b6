// Tensors over several devices (gradloom/shard): shards along a dim, or a copy on each.

import { ArgumentError } from "../../errors.ts";
import { shard as shardBuffer } from "../../lazy/multi.ts";
import { placedLike, wrap } from "../core.ts";
import { showShape } from "../show.ts";
import type { Tensor } from "../tensor.ts";
import { axisOf } from "./views.ts";

export function shard(self: Tensor, devices: readonly string[], dim?: number | null): Tensor {
  const axis = dim === undefined || dim === null ? undefined : axisOf(self, "shard", dim);
  return wrap(shardBuffer(self.lazydata, devices, axis), [self], (g) => [placedLike(g, self)]);
}
export function shard_(self: Tensor, devices: readonly string[], dim?: number | null): Tensor {
  if (self.context !== undefined) {
    throw new ArgumentError(
      `shard_: a tensor of shape ${showShape(self.shape)} was computed from others, which would lose its gradient; ` +
        "use shard, or shard_ on those",
    );
  }
  const { lazydata } = shard(self, devices, dim);
  if (self.grad !== undefined) self.grad = shard(self.grad, devices, dim);
  self.lazydata = lazydata;
  return self;
}
