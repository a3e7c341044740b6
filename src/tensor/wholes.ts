// What is known of whole numbers that came in plain arrays: the largest magnitude and the total. They are
// int32, as in the arrays of other languages, and int32 wraps; where these facts show that a sum or a square
// would, it is refused, and means are computed in floats.

import type { DType } from "../dtype.ts";
import { DTypeError } from "../errors.ts";
import type { LazyBuffer } from "../lazy/lazybuffer.ts";
import type { Tensor } from "./tensor.ts";

interface Wholes {
  readonly largest: number;
  readonly total: number;
}
const known = new WeakMap<LazyBuffer, Wholes>();
const MAX = 2 ** 31 - 1;

/** Keeps the facts of the values of a node on one device. */
export function noteWholes(node: LazyBuffer, values: readonly unknown[]): void {
  if (node.parts.length > 1) return;
  let [largest, total] = [0, 0];
  for (const x of values) {
    largest = Math.max(largest, Math.abs(Number(x)));
    total += Number(x);
  }
  known.set(node.base, { largest, total });
}
const factsOf = ({ lazydata }: Tensor): Wholes | undefined =>
  lazydata.parts.length === 1 && lazydata.isWhole ? known.get(lazydata.base) : undefined;

const widest = ({ kind, bits }: DType): number => 2 ** (kind === "int" ? bits - 1 : bits);

/** Whether `count` elements of a tensor of integers may add up to more than 32 bits hold. */
export const mayWrap = (self: Tensor, count: number): boolean =>
  !self.dtype.isFloat && !self.dtype.isBig && count * (factsOf(self)?.largest ?? widest(self.dtype)) > MAX;

/** Refuses a sum of all elements, or a square, that is known to wrap. */
export function requireFit(self: Tensor, method: "sum" | "square"): void {
  const facts = self.dtype.name === "int32" ? factsOf(self) : undefined;
  if (facts === undefined) return;
  const value = method === "sum" ? facts.total : facts.largest ** 2;
  if (Math.abs(value) <= MAX) return;
  throw new DTypeError(
    `${method}: ${value} does not fit int32, the type of whole numbers in arrays; ` +
      'say what they are: new Tensor(data, { dtype: "float32" }) or "int64"',
  );
}
