// The tests of the jit once more, with the mock of AMD as the default device: graphs there are streams that a
// ring calls.

import { Device } from "gradloom";
import { vi } from "vitest";
import { MOCK } from "./register.ts";

// kernels are interpreted, and some of the tests run thousands
vi.setConfig({ testTimeout: 180_000 });
Device.DEFAULT = MOCK;
await import("../../engine/jit/jit.test.ts");
await import("../../engine/jit/order.test.ts");
