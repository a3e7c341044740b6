// OPENCL: kernels as OpenCL C, compiled by the driver of any GPU or CPU. The parts are in opencl/; this file
// loads the library when the first device is opened.

import { openKoffi } from "../host/koffi.ts";
import { type OpenClApi, openApi } from "./opencl/api.ts";
import { OpenClDevice } from "./opencl/device.ts";

let api: OpenClApi | undefined;

export async function open(name: string): Promise<OpenClDevice> {
  api ??= openApi(await openKoffi(name), name);
  return new OpenClDevice(api, name);
}
