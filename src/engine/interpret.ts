// Computes a kernel of a few elements on the host, straight from its AST. A page gets its first small results
// this way, before the JavaScript engine has compiled codegen. In: an item of a schedule. Out: whether it can
// be interpreted, and a runner. The values are those of the compiled kernel, bit for bit: only types and ops
// are accepted for which the device computes exactly what ops.ts says.

import { PLAIN_ITERATIONS } from "../codegen/target.ts";
import { castValue, type DType, dtypes, type TypedArray, type Value, wrap } from "../dtype.ts";
import { chain } from "../helpers.ts";
import { isAluOp, isReduceOp, opRecord, REDUCE } from "../ops.ts";
import { CustomOp, type Runner } from "../runtime/runner.ts";
import { astNodes, type ConstBuffer, type LazyOp, type MemBuffer } from "../schedule/lazyop.ts";
import type { ScheduleItem } from "../schedule/schedule.ts";
import type { ShapeTracker } from "../shape/shapetracker.ts";
import { sprod } from "../shape/symbolic.ts";
import { stridesFor, unflatten, View } from "../shape/view.ts";
import { Device } from "./devices.ts";

/** The most elements of a kernel without reductions. */
const MOST = 256;
const TYPES: ReadonlySet<DType> = new Set([dtypes.float32, dtypes.int32, dtypes.bool]);

const isExact = ({ op, dtype }: LazyOp): boolean =>
  TYPES.has(dtype) && !/ARANGE|BIT|MOD/.test(op) && !(isAluOp(op) && opRecord(op).piece);
/** Without variables every size is a number. */
const sizeOf = ({ shape }: LazyOp): number => sprod(shape) as number;

/**
 * Whether a kernel has only exact ops and is small, counting the elements of all its nodes. A kernel with
 * reductions must be so small that it would be compiled without OptOps, which add in the same order.
 */
export function isSmall({ ast, varVals }: ScheduleItem): boolean {
  const nodes = astNodes(ast);
  const elements = nodes.reduce((n, u) => (isExact(u) ? n + sizeOf(u) : NaN), varVals.size === 0 ? 0 : NaN);
  return elements < (nodes.some((u) => isReduceOp(u.op)) ? PLAIN_ITERATIONS : MOST);
}

/** The position in memory of element `i` of a view or a stack of views; -1 where there is only padding. */
function placeOf(st: Pick<View, "shape" | "expr">, i: number): number {
  const { index, valid } = st.expr(unflatten(i, st.shape));
  return valid === 0 ? -1 : (index as number);
}

/** Computes all outputs of a kernel; `arrays` are its outputs, then its inputs. */
export function interpret(ast: readonly LazyOp[], arrays: readonly TypedArray[]): void {
  const values = new Map<LazyOp, readonly Value[]>();
  for (const u of astNodes(ast)) {
    const { op, srcs, dtype } = u;
    const sources = srcs.map((s) => values.get(s)!);
    const [first] = sources as [readonly Value[]];
    const from = srcs.at(-1)?.dtype as DType;
    let made: Value[] = [];
    if (isReduceOp(op)) {
      const { combine, identity } = REDUCE[op];
      const { evaluate } = opRecord(combine);
      const axes = u.arg as readonly number[];
      const strides = stridesFor(u.shape).map((s, d) => (axes.includes(d) ? 0 : s));
      const view = View.create(srcs[0]!.shape, strides);
      first.forEach((x, i) => {
        const at = placeOf(view, i);
        made[at] = evaluate(dtype, made[at] ?? identity(dtype), x);
      });
    } else if (isAluOp(op)) {
      made = first.map((_, i) => opRecord(op).evaluate(from, ...sources.map((x) => x[i]!)));
    } else if (u.op === "CAST") {
      made = first.map((x) => castValue(dtype, x, from));
    } else if (u.op !== "STORE") {
      const { idx, val, st = u.arg as ShapeTracker } = u.arg as Partial<MemBuffer & ConstBuffer>;
      for (let i = 0; i < sizeOf(u); i++) {
        const at = placeOf(st, i);
        made.push(at < 0 ? 0 : val !== undefined ? wrap(dtype, val) : (arrays[idx!] ?? first)[at]!);
      }
    }
    values.set(u, made);
  }
  // at the end, because an output may share memory with an input
  for (const u of ast) {
    if (u.op !== "STORE") continue;
    values.get(u.srcs[0])!.forEach((x, i) => {
      arrays[u.arg.idx]![placeOf(u.arg.st, i)] = x as number;
    });
  }
}

/** Computes the kernel once the device has finished what was enqueued before. */
export const interpreter = (ast: readonly LazyOp[]): Runner =>
  new CustomOp(function interpreted(buffers) {
    const device = Device.get(buffers[0]!.device);
    return chain(device.synchronize(), () => {
      const arrays = buffers.map(({ dtype, handle, nbytes, size }) => {
        const { buffer, byteOffset } = device.allocator.view(handle, nbytes)!;
        return new dtype.storage(buffer, byteOffset, size);
      });
      interpret(ast, arrays);
    });
  });
