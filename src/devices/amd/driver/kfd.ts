// The kernel driver of AMD's GPUs as a file that takes ioctls: makes them, and turns what is refused into
// errors. Which calls there are is in ioctls.ts; what they are for is for driver.ts.

import { DeviceError, OutOfMemoryError } from "../../../errors.ts";
import { CStruct, type FieldValues } from "../../linux/struct.ts";
import { ioctlRequest, type LinuxSystem, type NativeMemory } from "../../linux/syscalls.ts";
import { CALLS, type CallName, type KfdStructName, STRUCTS } from "./ioctls.ts";

export const KFD = "/dev/kfd";
const [EPERM, ENOENT, ENOMEM, EACCES] = [1, 2, 12, 13];
/** The interface that the structures are of; the driver keeps it while this number stays. */
const MAJOR = 1;

type StructOf<C extends CallName> = (typeof CALLS)[C][2];
type KfdFieldOf<S extends KfdStructName> = keyof (typeof STRUCTS)[S]["fields"] & string;
export class KfdStruct<S extends KfdStructName> extends CStruct<KfdFieldOf<S>> {
  constructor(name: S, memory: NativeMemory, offset = 0) {
    super(name, STRUCTS[name], memory, offset);
  }
}

export class Kfd {
  readonly system: LinuxSystem;
  readonly file: number;
  readonly #args: NativeMemory;

  constructor(system: LinuxSystem) {
    this.system = system;
    this.file = openDevice(system, KFD, "no AMD GPU, no driver amdgpu, or a container without it");
    this.#args = system.alloc(Math.max(...Object.values(STRUCTS).map((s) => s.bytes)));
    try {
      const version = this.call("GET_VERSION", {});
      const [major, minor] = [version.get("major"), version.get("minor")];
      if (major !== MAJOR)
        throw new DeviceError(
          `AMD: ${KFD} speaks version ${major}.${minor} of its interface, and ${MAJOR} is known here; set DEV to another device`,
        );
    } catch (e) {
      this.close();
      throw e;
    }
  }

  /** One ioctl. The structure it gives is good until the next call. */
  call<C extends CallName>(
    name: C,
    values: FieldValues<KfdFieldOf<StructOf<C>>>,
    what: string = name,
  ): KfdStruct<StructOf<C>> {
    const [number, direction, struct] = CALLS[name];
    const args = new KfdStruct<StructOf<C>>(struct as StructOf<C>, this.#args).fill(values);
    const request = ioctlRequest(direction, "K", number, STRUCTS[struct].bytes);
    const failed = -this.system.ioctl(this.file, request, args.address);
    if (failed === 0) return args;
    if (failed === ENOMEM) throw new OutOfMemoryError(`AMD: no room for ${what}`);
    throw new DeviceError(`AMD: the driver refused ${what}: error ${failed}`);
  }
  close(): void {
    this.system.close(this.file);
    this.system.free(this.#args);
  }
}

/** `absent`: what it means that the file is not there. */
export function openDevice(system: LinuxSystem, path: string, absent: string): number {
  const fd = system.open(path);
  if (fd >= 0) return fd;
  const why =
    -fd === ENOENT
      ? `is not there: ${absent}; install the driver`
      : -fd === EACCES || -fd === EPERM
        ? "may not be opened: add this user to the group render (usermod -aG render USER, then log in again)"
        : `cannot be opened (error ${-fd})`;
  throw new DeviceError(`AMD: ${path} ${why}, or set DEV to another device`);
}
