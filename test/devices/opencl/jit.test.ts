// The tests of the jit once more, with OPENCL as the default device: its kernels are enqueued one by one.

import { Device } from "gradloom";
import { test } from "vitest";
import { whyClosed } from "./open.ts";

const closed = await whyClosed();
if (closed === undefined) {
  Device.DEFAULT = "OPENCL";
  await import("../../engine/jit/jit.test.ts");
  await import("../../engine/jit/order.test.ts");
} else test("the jit on OPENCL", ({ skip }) => skip(closed));
