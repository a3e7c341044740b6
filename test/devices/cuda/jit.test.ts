// The tests of the jit once more, with CUDA on the fake driver as the default device: what is captured there
// are CUDA graphs, whose nodes run in a random order that their edges allow.

import { Device } from "gradloom";
import { installFake } from "./setup.ts";

installFake({ gpus: 4, plain: true });
Device.DEFAULT = "CUDA";
await import("../../engine/jit/jit.test.ts");
await import("../../engine/jit/order.test.ts");
