// Hand-made kernels and buffers for the tests of devices that we drive ourselves, as lists of uops: the
// device's own renderer spells them.

import { dtypes, Pointer } from "../../../src/dtype.ts";
import type { HardwareBlock } from "../../../src/runtime/hcq/gpumemory.ts";
import type { HardwareDevice } from "../../../src/runtime/hcq/hardware.ts";
import type { HCQProgram } from "../../../src/runtime/hcq/program.ts";
import { Variable } from "../../../src/shape/symbolic.ts";
import { UOpGraph } from "../../../src/uop/list.ts";

const pointer = new Pointer(dtypes.int32, false);

/** data0[i] = data1[i] * factor + plus, one element a block. */
export function scaleUops(factor: number, plus: number): UOpGraph {
  const list = new UOpGraph();
  const out = list.add("DEFINE_GLOBAL", pointer, [], [0, "data0", true]);
  const from = list.add("DEFINE_GLOBAL", pointer, [], [1, "data1", false]);
  const i = list.add("SPECIAL", dtypes.int32, [], [0, "gidx0", 2 ** 20]);
  const x = list.add("LOAD", dtypes.int32, [from, i]);
  const by = list.add("CONST", dtypes.int32, [], factor);
  const product = list.add("ALU", dtypes.int32, [x, by], "MUL");
  const sum = list.add("ALU", dtypes.int32, [product, list.add("CONST", dtypes.int32, [], plus)], "ADD");
  list.add("STORE", undefined, [out, i, sum]);
  return list;
}
/** data0[0] = n */
export function storeUops(): UOpGraph {
  const list = new UOpGraph();
  const out = list.add("DEFINE_GLOBAL", pointer, [], [0, "data0", true]);
  const n = list.add("DEFINE_VAR", dtypes.int32, [], Variable("n", 0, 1000));
  list.add("STORE", undefined, [out, list.add("CONST", dtypes.int32, [], 0), n]);
  return list;
}

/** data0[0] = data1[2^29]: two GiB behind a buffer. */
export function strayUops(): UOpGraph {
  const list = new UOpGraph();
  const out = list.add("DEFINE_GLOBAL", pointer, [], [0, "data0", true]);
  const from = list.add("DEFINE_GLOBAL", pointer, [], [1, "data1", false]);
  const far = list.add("CONST", dtypes.int32, [], 2 ** 29);
  list.add("STORE", undefined, [
    out,
    list.add("CONST", dtypes.int32, [], 0),
    list.add("LOAD", dtypes.int32, [from, far]),
  ]);
  return list;
}

export const compile = (device: HardwareDevice, name: string, list: UOpGraph): HCQProgram =>
  device.compile(name, device.renderer.render(name, list)) as HCQProgram;
export const scale = (device: HardwareDevice, name: string, factor: number, plus: number): HCQProgram =>
  compile(device, name, scaleUops(factor, plus));

/** Memory with these numbers in it. */
export function ints(device: HardwareDevice, values: readonly number[]): HardwareBlock {
  const block = device.allocator.alloc(values.length * 4, false);
  device.allocator.copyin(block, new Uint8Array(new Int32Array(values).buffer));
  return block;
}
export async function read(block: HardwareBlock): Promise<number[]> {
  const bytes = new Uint8Array(block.size);
  await (block.device as HardwareDevice).allocator.copyout(bytes, block);
  return [...new Int32Array(bytes.buffer)];
}
