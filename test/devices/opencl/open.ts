// OPENCL on this machine's driver, which is pocl where .ci/run installed it. Also a library that fails where
// a test wants it to.

import { Device, DeviceError } from "gradloom";
import type { OpenClApi } from "../../../src/devices/opencl/api.ts";
import { openApi } from "../../../src/devices/opencl/api.ts";
import { OpenClDevice } from "../../../src/devices/opencl/device.ts";
import { openKoffi } from "../../../src/host/koffi.ts";

/** Why OPENCL does not open here; undefined: it is open. */
export async function whyClosed(): Promise<string | undefined> {
  try {
    await Device.open("OPENCL");
    return undefined;
  } catch (e) {
    if (e instanceof DeviceError) return e.message;
    throw e;
  }
}

/** A device of its own whose library has these functions in place of the driver's. */
export async function openWith(name: string, own: (api: OpenClApi) => Partial<OpenClApi>): Promise<string> {
  const api = openApi(await openKoffi(name), name);
  const open = () => new OpenClDevice({ ...api, ...own(api) }, name);
  Device.register({ [name]: { storage: "memory", load: () => ({ open }) } });
  await Device.open(name);
  return name;
}

/** As clGetDeviceInfo has them: the question for the type of a device, and the answer of a GPU. */
const [DEVICE_TYPE, TYPE_GPU] = [0x1000, 4n];
/** The driver's device as if it were a GPU: kernels are a grid of threads, with barriers and local memory. */
export const openAsGpu = (name: string): Promise<string> =>
  openWith(name, (api) => ({
    clGetDeviceInfo: (...args) => {
      const status = api.clGetDeviceInfo(...args);
      const [, which, , out] = args;
      if (which === DEVICE_TYPE && out instanceof BigUint64Array) out[0] = TYPE_GPU;
      return status;
    },
  }));
