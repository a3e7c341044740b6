// Makes the devices of this build known: the registry itself (runtime/registry.ts) lists none, so that what
// devices are made of does not depend on the devices. `#devices` is devices/node.ts or devices/browser.ts.

import { kinds } from "#devices";
import { Device as registry } from "../runtime/registry.ts";

/** The devices: `await Device.open("CLANG")`, `Device.DEFAULT = "JS"`. */
export const Device = registry.register(kinds);
