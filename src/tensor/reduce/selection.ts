// Partial selection: the indices of the first few elements of each row, in order. A row is cut into blocks. A
// block can hold one of the first k elements only if its least element is among the k least of all blocks,
// so the rest is never looked at; which blocks these are is the same question for a shorter row. In: integer
// keys, equal ones in the order of their indices. Out: indices, without a gradient. order.ts makes the keys.

import { bounds, dtypes } from "../../dtype.ts";
import { range } from "../../helpers.ts";
import { cast, counting } from "../core.ts";
import { add, bitwiseAnd, bitwiseOr, eq, lt, mul, where, zero } from "../math/arithmetic.ts";
import { pad } from "../movement/arrange.ts";
import { expand, reduceSum, reshape, transpose, unsqueeze } from "../movement/views.ts";
import type { Tensor } from "../tensor.ts";
import { min } from "./reduce.ts";

/** The elements of the last dim that `index` names, along its last dim: an indexed load. */
export function takeLast(self: Tensor, index: Tensor): Tensor {
  const [n, m] = [self.shape.at(-1) as number, index.shape.at(-1) as number];
  const full = [...self.shape.slice(0, -1), m, n];
  const chosen = eq(expand(unsqueeze(index, -1), full), expand(counting(self, n), full));
  const values = expand(unsqueeze(self, -2), full);
  return reshape(reduceSum(where(chosen, values, zero(values)), [full.length - 1]), full.slice(0, -1));
}

/**
 * How many elements of the row come before each one. Equal ones are in the order of `places`, which are
 * those in the row unless others are given.
 */
export function ranks(self: Tensor, places: Tensor = counting(self, self.shape.at(-1) as number)): Tensor {
  const full = [...self.shape, self.shape.at(-1) as number];
  const own = (x: Tensor): Tensor => expand(unsqueeze(expand(x, self.shape), -1), full);
  const other = (x: Tensor): Tensor => expand(unsqueeze(expand(x, self.shape), -2), full);
  const before = bitwiseOr(
    lt(other(self), own(self)),
    bitwiseAnd(eq(other(self), own(self)), lt(other(places), own(places))),
  );
  return reshape(reduceSum(cast(before, dtypes.int32), [full.length - 1]), self.shape);
}

/** Of each row, the values of the elements that have these ranks. */
export function atRanks(rank: Tensor, wanted: Tensor, values: Tensor): Tensor {
  const full = [...rank.shape.slice(0, -1), wanted.shape.at(-1) as number, rank.shape.at(-1) as number];
  const here = eq(expand(unsqueeze(rank, -2), full), expand(unsqueeze(wanted, -1), full));
  const shown = expand(unsqueeze(expand(values, rank.shape), -2), full);
  return reshape(reduceSum(where(here, shown, 0), [full.length - 1]), full.slice(0, -1));
}

/** Launching a kernel takes as long as this many comparisons. */
const LAUNCH = 150_000;
/** A round of a sorting network compares, swaps and stores keys and indices. */
const ROUND = 8;
const BLOCKS = [4, 8, 16, 32, 64, 128, 256] as const;

interface SelectionPlan {
  /** in comparisons */
  readonly cost: number;
  /** elements of a block; 1: all elements are ranked */
  readonly block: number;
}
/** The cheapest way to find the first `k` of `n` in each of `rows`. */
function planFor(rows: number, n: number, k: number): SelectionPlan {
  let best: SelectionPlan = { cost: 2 * LAUNCH + rows * (n * n + k * n), block: 1 };
  for (const block of BLOCKS) {
    const blocks = Math.ceil(n / block);
    const chosen = Math.min(k, blocks);
    const left = chosen * block;
    // the first blocks must leave most of the row behind
    if (2 * left > n) break;
    const own = 4 * LAUNCH + rows * (n + left * left + k * left);
    if (own < best.cost) {
      const cost = own + planFor(rows, blocks, chosen).cost;
      if (cost < best.cost) best = { cost, block };
    }
  }
  return best;
}

/** Whether selecting the first `k` of `n` takes less than sorting all, by ranks or by a network. */
export function selectsCheaply(rows: number, n: number, k: number): boolean {
  const rounds = Math.ceil(Math.log2(n)) ** 2 / 2;
  const { cost, block } = planFor(rows, n, k);
  return block > 1 && cost < rounds * (LAUNCH + rows * n * ROUND);
}

/** Rows of `size` keys: what is added is not less than any key and comes after it, so it is never first. */
export function lengthened(keys: Tensor, size: number): Tensor {
  const n = keys.shape.at(-1) as number;
  if (n === size) return keys;
  const added = range(keys.ndim).map((i): [number, number] => [0, i === keys.ndim - 1 ? size - n : 0]);
  const longer = pad(keys, added);
  return where(expand(lt(counting(keys, size), n), longer.shape), longer, bounds(keys.dtype)[1]);
}

/** The indices of the `k` least keys of each row, least first; equal keys in their order. */
export function firstPlaces(keys: Tensor, k: number): Tensor {
  const n = keys.shape.at(-1) as number;
  const front = keys.shape.slice(0, -1);
  const wanted = expand(counting(keys, k), [...front, k]);
  const { block } = planFor(keys.size / n, n, k);
  if (block === 1) return atRanks(ranks(keys), wanted, counting(keys, n));
  const blocks = Math.ceil(n / block);
  const whole = reshape(lengthened(keys, blocks * block), [...front, blocks, block]);
  const count = Math.min(k, blocks);
  const chosen = firstPlaces(min(whole, -1), count);
  const left = [...front, count, block];
  const flat = [...front, count * block];
  const places = reshape(
    add(mul(expand(unsqueeze(chosen, -1), left), block), expand(counting(keys, block), left)),
    flat,
  );
  const candidates = takeBlocks(whole, chosen);
  return atRanks(ranks(reshape(candidates, flat), places), wanted, places);
}

/** The blocks that `index` names: an indexed load along the dim before the last. */
function takeBlocks(self: Tensor, index: Tensor): Tensor {
  const [blocks, block] = self.shape.slice(-2) as [number, number];
  const full = [...self.shape.slice(0, -2), index.shape.at(-1) as number, block, blocks];
  const at = expand(unsqueeze(unsqueeze(index, -1), -1), full);
  const chosen = eq(at, expand(counting(self, blocks), full));
  const values = expand(unsqueeze(transpose(self, -1, -2), -3), full);
  return reshape(reduceSum(where(chosen, values, zero(values)), [full.length - 1]), full.slice(0, -1));
}
