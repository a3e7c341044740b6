// EXT holds host arrays: where data comes from and where results are read. A handle is the array itself.

import { DeviceError, OutOfMemoryError } from "../errors.ts";
import { type Allocator, type Compiled, HOST_ALIGN, HOST_SLACK } from "../runtime/device.ts";

/** Memory as plain Uint8Arrays, for every device whose handle is a host array. */
export const hostAllocator = (device: string): Allocator<Uint8Array> => ({
  alloc(nbytes) {
    try {
      return new Uint8Array(nbytes);
    } catch (cause) {
      throw new OutOfMemoryError(
        `${device}: no host array of ${nbytes} bytes can be made; split the tensor`,
        { cause },
      );
    }
  },
  free() {}, // the engine's own collector does it
  copyin: (dest, src) => void dest.set(src),
  copyout: (dest, src) => void dest.set(src),
  view: (handle) => handle,
  offset: (handle, nbytes, at) => handle.subarray(at, at + nbytes),
  recycles: false,
  isSlow: false,
  slack: HOST_SLACK,
  offsetAlign: HOST_ALIGN,
  canTransfer: false,
  transfer: (dest, src) => void dest.set(src),
});

export const open = (name: string): Compiled<Uint8Array> => ({
  name,
  allocator: hostAllocator(name),
  renderer: undefined,
  keepsTime: false,
  space: undefined,
  timeline: undefined,
  graph: undefined,
  compilesAside: false,
  compile() {
    throw new DeviceError(`${name} holds data and cannot compute; move the tensor first: t.to("WASM")`);
  },
  synchronize() {},
});
