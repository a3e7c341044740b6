// The tests of the jit once more, with METAL on the fake runtime as the default device: what is captured
// there are indirect command buffers, whose kernels run in a random order that the barriers allow.

import { Device } from "gradloom";
import { installFake } from "./setup.ts";

installFake({ plain: true });
Device.DEFAULT = "METAL";
await import("../../engine/jit/jit.test.ts");
await import("../../engine/jit/order.test.ts");
