// Makes the device MOCKMETAL: METAL on the fake runtime, for the suites that run on every device.

import { installFake } from "./setup.ts";

export const MOCK = "MOCKMETAL";
installFake({ plain: true }, MOCK);
