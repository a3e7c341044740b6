// Addresses of the WASM renderer, of 32 bits, or of 64 on a memory above 4 GiB. There the pointers of buffers
// come as f64, since a call with numbers makes no BigInt, and the arrays of a kernel still lie below 4 GiB.

import type { UOpGraph } from "../../uop/list.ts";
import type { UOp } from "../../uop/node.ts";
import { type FunctionBuilder, I32, I64, OP } from "./assembler.ts";

/** How large a memory with addresses of 32 and of 64 bits may be, in pages. */
export const NARROW_PAGES = 65536;
export const WIDE_PAGES = 262144;

/** The pointer in a parameter that is an f64, as an i64 in a local. */
export function widened(f: FunctionBuilder, param: number): number {
  const at = f.local(I64);
  f.get(param);
  f.op(OP["i64.trunc_sat_f64_u"]);
  f.set(at);
  return at;
}

/** Puts pointers to the arrays of the kernel into locals; gives the bytes of all arrays. */
export function placeArrays(
  f: FunctionBuilder,
  graph: UOpGraph,
  isWide: boolean,
  place: (u: UOp, local: number) => void,
): number {
  let offset = 0;
  for (const u of graph.uops) {
    if (u.op !== "DEFINE_LOCAL") continue;
    const at = f.local(isWide ? I64 : I32);
    f.globalGet(0);
    f.i32(offset);
    f.op(OP["i32.add"]);
    if (isWide) f.op(OP["i64.extend_i32_u"]);
    f.set(at);
    place(u, at);
    // arrays start where vectors may start
    offset += Math.ceil((u.elements * u.dtype.base.itemsize) / 64) * 64;
  }
  return offset;
}

/** Adds the index on the stack, an int32 that is not negative, to the pointer below it. */
export function addIndex(f: FunctionBuilder, align: number, isWide: boolean): void {
  if (isWide) f.op(OP["i64.extend_i32_u"]);
  if (align > 0) {
    if (isWide) f.i64(BigInt(align));
    else f.i32(align);
    f.op(isWide ? OP["i64.shl"] : OP["i32.shl"]);
  }
  f.op(isWide ? OP["i64.add"] : OP["i32.add"]);
}
