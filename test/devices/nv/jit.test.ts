// The tests of the jit once more, with the mock of NV as the default device: graphs there are chains of QMDs.

import { Device } from "gradloom";
import { MOCK } from "./register.ts";

Device.DEFAULT = MOCK;
await import("../../engine/jit.test.ts");
await import("../../engine/jitorder.test.ts");
