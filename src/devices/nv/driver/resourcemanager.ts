// The resource manager of the kernel driver, and its unified memory module: objects are allocated under a
// parent, asked and freed by handles. Makes the ioctls and turns what is refused into errors; which
// objects there are is for driver.ts.

import { DeviceError, OutOfMemoryError } from "../../../errors.ts";
import { iowr, type LinuxKernel, type NativeMemory } from "../../linux/syscalls.ts";
import { STATUS } from "./errornames.ts";
import { MADE_FOR, N } from "./ioctls.ts";
import { element, type FieldOf, hasField, Struct, type StructName, sizeOf, type Values } from "./structs.ts";

const CONTROL = "/dev/nvidiactl";
const UVM = "/dev/nvidia-uvm";

/** Handles are ours to choose, below those that the driver makes up. */
const FIRST_HANDLE = 0x5c000000;
const [ENOENT, EACCES, EPERM] = [-2, -13, -1];
const NO_MEMORY: readonly (string | undefined)[] = ["NV_ERR_NO_MEMORY", "NV_ERR_INSUFFICIENT_RESOURCES"];

/** The driver said no: what was asked, and its answer. */
class DriverError extends DeviceError {
  readonly status: string;
  constructor(what: string, status: string) {
    super(`NV: the driver refused ${what}: ${status}`);
    this.status = status;
  }
}

type UvmCall = keyof typeof N &
  (StructName extends infer S ? (S extends `${infer C}_PARAMS` ? C : never) : never);

export class ResourceManager {
  readonly kernel: LinuxKernel;
  /** the file of the resource manager */
  readonly control: number;
  /** the object above all others */
  readonly client: number;
  readonly version: string;
  readonly #uvm: number;
  /** a second file of the same module, which says that this process lives */
  readonly #alive: number;
  /** the structure of an ioctl, and the one that it points to; room for the largest */
  readonly #args: NativeMemory;
  readonly #params: NativeMemory;
  #handles = 0;

  /** Throws where there is no driver, or one that the tables do not fit. */
  constructor(kernel: LinuxKernel) {
    this.kernel = kernel;
    this.#args = kernel.alloc(sizeOf("UVM_MAP_EXTERNAL_ALLOCATION_PARAMS"));
    this.#params = kernel.alloc(sizeOf("NV2080_CTRL_FB_GET_INFO_V2_PARAMS"));
    const files: number[] = [];
    const open = (path: string): number => {
      const fd = openFile(kernel, path);
      files.push(fd);
      return fd;
    };
    try {
      this.control = open(CONTROL);
      this.version = this.#checkVersion();
      this.#uvm = open(UVM);
      this.#alive = open(UVM);
      const root = this.call(this.control, "NV_ESC_RM_ALLOC", "NVOS21_PARAMETERS", {
        hClass: N.NV01_ROOT_CLIENT,
      });
      this.client = root.get("hObjectNew");
      // without HMM an address that was not mapped is a fault, and never a page of this process
      this.uvm("UVM_INITIALIZE", { flags: N.UVM_INIT_FLAGS_DISABLE_HMM });
      this.#sayAlive();
    } catch (e) {
      for (const fd of files) kernel.close(fd);
      kernel.free(this.#args);
      kernel.free(this.#params);
      throw e;
    }
  }

  /** Kernels that do not watch processes answer that there is nothing to do. */
  #sayAlive(): void {
    try {
      this.uvm("UVM_MM_INITIALIZE", { uvmFd: this.#uvm }, "UVM_MM_INITIALIZE", this.#alive);
    } catch (e) {
      if (!(e instanceof DriverError) || e.status !== "NV_WARN_NOTHING_TO_DO") throw e;
    }
  }

  #checkVersion(): string {
    const query = this.call(this.control, "NV_ESC_CHECK_VERSION_STR", "nv_ioctl_rm_api_version_t", {
      cmd: N.NV_RM_API_VERSION_CMD_QUERY,
    });
    const version = query.text("versionString");
    const branch = (text: string) => text.split(".")[0];
    if (branch(version) === branch(MADE_FOR)) return version;
    throw new DeviceError(
      `NV: the kernel driver is ${version || "of no known version"} and the tables here are of ${MADE_FOR}, whose ` +
        `structures differ: use a driver ${branch(MADE_FOR)}, DEV=CUDA, or make tables with scripts/nvstructs.mjs`,
    );
  }

  newHandle(): number {
    return FIRST_HANDLE + this.#handles++;
  }

  /** The GPUs of this machine, whoever may use them. */
  cards(): readonly { readonly gpuId: number; readonly minor: number }[] {
    const [name, count] = ["nv_ioctl_card_info_t", 64] as const;
    const bytes = this.#args.bytes.subarray(0, count * sizeOf(name)).fill(0);
    const failed = this.kernel.ioctl(
      this.control,
      iowr("F", N.NV_ESC_CARD_INFO, bytes.byteLength),
      this.#args.address,
    );
    if (failed !== 0) throw new DriverError("the list of GPUs", `error ${-failed}`);
    return Array.from({ length: count }, (_, i) => element(name, bytes, i))
      .filter((card) => card.get("valid") !== 0)
      .map((card) => ({ gpuId: card.get("gpu_id"), minor: card.get("minor_number") }));
  }

  /** One ioctl of an nvidia file. The structure it gives is good until the next call. */
  call<S extends StructName>(
    fd: number,
    name: Extract<keyof typeof N, `NV_ESC_${string}`>,
    struct: S,
    values: Values<S>,
    what: string = name,
  ): Struct<S> {
    const args = new Struct(struct, this.#args).fill(values);
    const failed = this.kernel.ioctl(fd, iowr("F", N[name], sizeOf(struct)), args.address);
    if (failed !== 0) throw new DriverError(what, `error ${-failed}`);
    if (hasField(struct, "status")) check(what, args.get("status" as FieldOf<S>));
    return args;
  }

  /** One ioctl of the unified memory module. */
  uvm<C extends UvmCall>(
    name: C,
    values: Values<`${C}_PARAMS`>,
    what: string = name,
    fd: number = this.#uvm,
  ): void {
    const args = new Struct<`${C}_PARAMS`>(`${name}_PARAMS`, this.#args).fill(values);
    const failed = this.kernel.ioctl(fd, N[name], args.address);
    if (failed !== 0) throw new DriverError(what, `error ${-failed}`);
    check(what, args.get("rmStatus" as FieldOf<`${C}_PARAMS`>));
  }

  /**
   * A new object of a class under `parent`; its structure, where the class takes one, holds
   * the answer until the next call.
   */
  alloc<S extends StructName>(
    parent: number,
    name: keyof typeof N,
    struct?: S,
    values: Values<S> = {},
  ): { readonly handle: number; readonly params: Struct<S> | undefined } {
    const handle = this.newHandle();
    const params = struct && new Struct(struct, this.#params).fill(values);
    const asked = {
      hRoot: this.client,
      hObjectParent: parent,
      hObjectNew: handle,
      hClass: N[name],
      pAllocParms: params?.address ?? 0,
      paramsSize: struct === undefined ? 0 : sizeOf(struct),
    };
    this.call(this.control, "NV_ESC_RM_ALLOC", "NVOS21_PARAMETERS", asked, `an object ${name}`);
    return { handle, params };
  }

  /** Asks an object. The structure it gives is good until the next call. */
  ask<S extends StructName>(
    object: number,
    name: keyof typeof N,
    struct: S,
    values: Values<S> = {},
  ): Struct<S> {
    const params = new Struct(struct, this.#params).fill(values);
    const asked = {
      hClient: this.client,
      hObject: object,
      cmd: N[name],
      params: params.address,
      paramsSize: sizeOf(struct),
    };
    this.call(this.control, "NV_ESC_RM_CONTROL", "NVOS54_PARAMETERS", asked, name);
    return params;
  }

  /** An object, and with it all below it. */
  free(parent: number, handle: number): void {
    this.call(this.control, "NV_ESC_RM_FREE", "NVOS00_PARAMETERS", {
      hRoot: this.client,
      hObjectParent: parent,
      hObjectOld: handle,
    });
  }

  /** Another control file. */
  openControl(): number {
    return openFile(this.kernel, CONTROL);
  }
  /** Another file of a GPU, tied to the control file: each mapping takes one of its own. */
  openDevice(minor: number): number {
    const fd = openFile(this.kernel, `/dev/nvidia${minor}`);
    try {
      this.call(fd, "NV_ESC_REGISTER_FD", "nv_ioctl_register_fd_t", { ctl_fd: this.control });
      return fd;
    } catch (e) {
      this.kernel.close(fd);
      throw e;
    }
  }

  /** The client and all that is left below it. */
  close(): void {
    const { kernel } = this;
    this.free(this.client, this.client);
    kernel.close(this.#alive);
    kernel.close(this.#uvm);
    kernel.close(this.control);
    kernel.free(this.#args);
    kernel.free(this.#params);
  }
}

function openFile(kernel: LinuxKernel, path: string): number {
  const fd = kernel.open(path);
  if (fd >= 0) return fd;
  const absent =
    path === UVM
      ? "the module nvidia-uvm is not loaded (nvidia-modprobe -u does it), or a container lacks it"
      : "no NVIDIA GPU, no driver, or a container without it";
  const why =
    fd === ENOENT
      ? `is not there: ${absent}`
      : fd === EACCES || fd === EPERM
        ? "may not be opened: this user lacks the right to it"
        : `cannot be opened (error ${-fd})`;
  throw new DeviceError(`NV: ${path} ${why}; install the driver, or set DEV to another device`);
}

function check(what: string, status: number): void {
  if (status === 0) return;
  const name = STATUS[status] ?? `status 0x${status.toString(16)}`;
  if (NO_MEMORY.includes(name)) throw new OutOfMemoryError(`NV: no room for ${what} (${name})`);
  throw new DriverError(what, name);
}
