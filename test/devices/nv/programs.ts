// A fixed set of work for an NV device: every command, alone and in chains, bound and not, with updates
// between. It checks its results, so that a recording of it (recorder.ts) is of
// words that did what they should.

import type { NVDevice } from "../../../src/devices/nv/device.ts";
import type { HardwareBlock } from "../../../src/runtime/hcq/gpumemory.ts";
import { compile, ints, read, scale, storeUops } from "../../runtime/hcq/kernels.ts";

function same(what: string, got: readonly number[], want: readonly number[]): void {
  if (got.join() !== want.join()) throw new Error(`${what}: got ${got.join()}, expected ${want.join()}`);
}

/**
 * What it returns must live as long as the recording: collected, it would be
 * given back at some time or other.
 */
export async function runPrograms(device: NVDevice): Promise<unknown> {
  const [double, next] = [scale(device, "double_0", 2, 0), scale(device, "next_0", 1, 1)];
  const store = compile(device, "store_0", storeUops());
  const [a, b] = [ints(device, [1, 2, 3, 4]), ints(device, [0, 0, 0, 0])];
  double.run([b, a], { globalSize: [4], localSize: [1], vals: [] }, false);
  same("an eager launch", await read(b), [2, 4, 6, 8]);

  const [s, t, gate] = [device.allocSignal(), device.allocSignal(), device.allocSignal()];
  const args = next.allocKernargs([a, a], []);
  const chain = device.computeQueue().memoryBarrier().timestamp(t);
  for (let i = 0; i < 5; i++) chain.exec(next, args, [4], [1]);
  chain
    .signal(s, 1)
    .timestamp(t)
    .exec(double, double.allocKernargs([b, a], []), [4], [1])
    .signal(s, 2);
  chain
    .wait(gate, 1)
    .exec(next, next.allocKernargs([a, a], []), [2], [1])
    .signal(s, 3)
    .bind(device);
  for (let run = 1; run <= 2; run++) {
    device.setSignal(s, 0);
    device.setSignal(gate, run);
    chain.updateWait(11, gate, run).submit(device);
    await device.waitSignal(s, 3);
  }
  same("a chain", await read(a), [13, 14, 13, 14]);
  same("a chain's other result", await read(b), [24, 26, 26, 28]);

  const kept = store.allocKernargs([b], [1]);
  const launch = device.computeQueue().memoryBarrier().exec(store, kept, [1], [1]).signal(s, 4).bind(device);
  kept.setVal(0, 900);
  launch.updateExec(1, [3], [1]).updateSignal(2, t, 5).submit(device);
  await device.waitSignal(t, 5);
  same("an update", (await read(b)).slice(0, 1), [900]);

  const copies = device
    .copyQueue()
    .wait(t, 5)
    .copy(a, b, 8)
    .timestamp(s)
    .zero(b, 12)
    .signal(s, 6)
    .bind(device);
  copies.submit(device);
  await device.waitSignal(s, 6);
  same("a copy", await read(a), [900, 26, 13, 14]);
  same("zeros", await read(b), [0, 0, 0, 28]);
  device.allocator.transfer(b, a, 16);
  same("a transfer", await read(b), [900, 26, 13, 14]);
  const large: HardwareBlock = device.allocator.alloc(3 << 20, true);
  same("large zeros", [...new Set(await read(large))], [0]);
  return [double, next, store, chain, launch, copies, large];
}
