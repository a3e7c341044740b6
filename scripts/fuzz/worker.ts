// A worker process of the fuzzer: it is told a seed, a device and a setting, and answers with the failure, if
// any. The process is one of several, so that a kernel that crashes takes one program with it.

import { Device, withEnv } from "gradloom";
import { settingOf } from "./execute.ts";
import type { ClassName } from "./language.ts";
import { type Failure, isLeftOut, runOracle, runSeed } from "./task.ts";

export interface Order {
  readonly seed: number;
  readonly device: string;
  readonly setting: string;
  readonly c?: ClassName;
  /** compare with the oracle's program of this number instead of making one */
  readonly oracle?: number;
}
export interface Answer {
  readonly order: Order;
  readonly failure?: Failure;
  /** why the device cannot be held to the program */
  readonly leftOut?: string;
}

const opened = new Set<string>();
process.on("message", async (order: Order) => {
  if (!opened.has(order.device)) await Device.open(order.device);
  opened.add(order.device);
  const how = settingOf(order.setting);
  const run = () =>
    order.oracle === undefined
      ? runSeed(order.seed, order.device, how, order.c)
      : runOracle(order.oracle, order.device, how);
  const found = await withEnv({ CACHE: "0", PROGRESS: 0 }, run);
  const answer: Answer =
    found === undefined ? { order } : isLeftOut(found) ? { order, ...found } : { order, failure: found };
  process.send?.(answer);
});
