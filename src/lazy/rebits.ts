// A node read as a type with another number of bits, where one of the two types is packed: the bytes of a
// file of quantised weights as int4 elements, and elements as the bytes that hold them. Elements lie in a
// word from its low end up, along the last dim. In goes a node, out comes a node of other nodes: shifts, and
// casts that wrap to the width.

import { type DType, dtypes } from "../dtype.ts";
import { DTypeError, ShapeError } from "../errors.ts";
import type { Sint } from "../shape/symbolic.ts";
import type { LazyBuffer } from "./lazybuffer.ts";

const { uint4, uint8, uint16, uint32 } = dtypes;
/** By the number of bits. */
const UNSIGNED: ReadonlyMap<number, DType> = new Map([uint4, uint8, uint16, uint32].map((d) => [d.bits, d]));

type Arange = (device: string, n: Sint) => LazyBuffer;

/** `x` as `dtype`, which has another number of bits than the type of `x`. */
export function rebits(x: LazyBuffer, dtype: DType, arange: Arange): LazyBuffer {
  const [from, to] = [UNSIGNED.get(x.dtype.bits), UNSIGNED.get(dtype.bits)];
  if (from === undefined || to === undefined || !(from.isPacked || to.isPacked)) {
    throw new DTypeError(
      `bitcast: ${x.dtype.name} has ${x.dtype.bits} bits, ${dtype.name} has ${dtype.bits}; expected types of one size, or one ` +
        "that is packed and another of up to 32 bits",
    );
  }
  const bits = x.bitcast(from).cast(uint32);
  const outer = x.shape.slice(0, -1);
  const last = x.shape.at(-1);
  const width = Math.min(from.bits, to.bits);
  const perWord = Math.max(from.bits, to.bits) / width;
  if (typeof last !== "number" || (to.bits > from.bits && last % perWord !== 0)) {
    throw new ShapeError(
      `bitcast: ${x.dtype.name} of shape [${x.shape.join(", ")}] to ${dtype.name}; expected a last dim of a known size` +
        (to.bits > from.bits ? `, a multiple of ${perWord}` : ""),
    );
  }
  /** the bit at which each element of a word starts */
  const shifts = (shape: readonly Sint[]): LazyBuffer => {
    const index = arange(x.device, perWord).cast(uint32);
    const at = index.e("MUL", index.const(width));
    return at.reshape([...shape.slice(0, -1).map(() => 1), perWord]).expand(shape);
  };
  if (to.bits < from.bits) {
    const shape = [...outer, last, perWord];
    const words = bits.reshape([...outer, last, 1]).expand(shape);
    const elements = words.e("SHR", shifts(shape)).cast(to);
    return elements.reshape([...outer, last * perWord]).bitcast(dtype);
  }
  const shape = [...outer, last / perWord, perWord];
  // no two elements have a bit in common: their sum is the word
  const words = bits
    .reshape(shape)
    .e("SHL", shifts(shape))
    .r("SUM", [shape.length - 1]);
  return words
    .reshape([...outer, last / perWord])
    .cast(to)
    .bitcast(dtype);
}
