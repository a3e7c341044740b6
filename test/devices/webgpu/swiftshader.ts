// A GPU without a GPU: the software driver that Debian's chromium ships, for Dawn. Imported before the first
// device is opened, since Dawn looks for drivers then.

import { existsSync } from "node:fs";
import { Device, DeviceError } from "gradloom";

const DRIVERS = ["/usr/lib/chromium/vk_swiftshader_icd.json", "/opt/google/chrome/vk_swiftshader_icd.json"];
const found = DRIVERS.find((path) => existsSync(path));
if (process.env.VK_DRIVER_FILES === undefined && found !== undefined) process.env.VK_DRIVER_FILES = found;

/** Why WEBGPU does not open here; undefined: it is open. */
export async function whyClosed(): Promise<string | undefined> {
  try {
    await Device.open("WEBGPU");
    return undefined;
  } catch (e) {
    if (e instanceof DeviceError) return e.message;
    throw e;
  }
}
