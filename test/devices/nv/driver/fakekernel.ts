// A kernel with NVIDIA's driver in it, for tests: keeps the tree of objects, files, mappings and ranges of
// addresses, answers as the real one does and refuses what it would refuse (a parent that is not there, a
// range that overlaps, memory that is not mapped). `calls` says what was asked in which order; `left()` what
// was never given back. No GPU takes part.

import type { LinuxKernel, NativeMemory } from "../../../../src/devices/linux/syscalls.ts";
import { STATUS } from "../../../../src/devices/nv/driver/errornames.ts";
import { N, STRUCTS } from "../../../../src/devices/nv/driver/ioctls.ts";
import { element, encode, Struct, type StructName } from "../../../../src/devices/nv/driver/structs.ts";

const CLIENT = 0xc1d00001;
const UUID = Uint8Array.from({ length: 16 }, (_, i) => 0xa0 + i);
const TOKEN = 0x7700;

const statusCode = (name: string): number =>
  Number(Object.entries(STATUS).find(([, known]) => known === name)?.[0]);
const nameOf = (prefix: RegExp, value: number): string =>
  Object.entries(N).find(([name, n]) => prefix.test(name) && n === value)?.[0] ?? `0x${value.toString(16)}`;

/** A structure as the caller filled it, field by field; arrays as bytes. */
type Fields = Record<string, number | Uint8Array>;
export interface Call {
  /** `RM_ALLOC FERMI_VASPACE_A`, `UVM_REGISTER_GPU`, `open /dev/nvidiactl` */
  readonly name: string;
  readonly fields: Fields;
}

interface Object {
  readonly parent: number;
  readonly name: string;
  readonly bytes: number;
}

const GR: Record<number, number> = {
  [N.NV0080_CTRL_GR_INFO_INDEX_SM_VERSION]: 0x900,
  [N.NV0080_CTRL_GR_INFO_INDEX_LITTER_NUM_GPCS]: 8,
  [N.NV0080_CTRL_GR_INFO_INDEX_LITTER_NUM_TPC_PER_GPC]: 9,
  [N.NV0080_CTRL_GR_INFO_INDEX_LITTER_NUM_SM_PER_TPC]: 2,
  [N.NV0080_CTRL_GR_INFO_INDEX_MAX_WARPS_PER_SM]: 64,
  [N.NV0080_CTRL_GR_INFO_INDEX_SHADER_PIPE_SUB_COUNT]: 66,
};
const PARAMS: Record<string, StructName> = {
  NV01_DEVICE_0: "NV0080_ALLOC_PARAMETERS",
  NV20_SUBDEVICE_0: "NV2080_ALLOC_PARAMETERS",
  FERMI_VASPACE_A: "NV_VASPACE_ALLOCATION_PARAMETERS",
  KEPLER_CHANNEL_GROUP_A: "NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS",
  FERMI_CONTEXT_SHARE_A: "NV_CTXSHARE_ALLOCATION_PARAMETERS",
  HOPPER_CHANNEL_GPFIFO_A: "NV_CHANNEL_ALLOC_PARAMS",
  NV01_MEMORY_LOCAL_USER: "NV_MEMORY_ALLOCATION_PARAMS",
  NV01_MEMORY_SYSTEM: "NV_MEMORY_ALLOCATION_PARAMS",
  HOPPER_DMA_COPY_A: "NVB0B5_ALLOCATION_PARAMETERS",
  GT200_DEBUGGER: "NV83DE_ALLOC_PARAMETERS",
};
const CONTROLS: Record<string, StructName> = {
  NV0000_CTRL_CMD_GPU_GET_ID_INFO_V2: "NV0000_CTRL_GPU_GET_ID_INFO_V2_PARAMS",
  NV0080_CTRL_CMD_GPU_GET_CLASSLIST_V2: "NV0080_CTRL_GPU_GET_CLASSLIST_V2_PARAMS",
  NV0080_CTRL_CMD_GR_GET_INFO_V2: "NV0080_CTRL_GR_GET_INFO_V2_PARAMS",
  NV2080_CTRL_CMD_FB_GET_INFO_V2: "NV2080_CTRL_FB_GET_INFO_V2_PARAMS",
  NV2080_CTRL_CMD_CE_GET_ALL_CAPS: "NV2080_CTRL_CE_GET_ALL_CAPS_PARAMS",
  NV2080_CTRL_CMD_CE_GET_CE_PCE_MASK: "NV2080_CTRL_CE_GET_CE_PCE_MASK_PARAMS",
  NV2080_CTRL_CMD_GPU_GET_GID_INFO: "NV2080_CTRL_GPU_GET_GID_INFO_PARAMS",
  NV2080_CTRL_CMD_GPU_GET_NAME_STRING: "NV2080_CTRL_GPU_GET_NAME_STRING_PARAMS",
  NVA06C_CTRL_CMD_GPFIFO_SCHEDULE: "NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS",
  NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN: "NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS",
  NV83DE_CTRL_CMD_DEBUG_READ_MMU_FAULT_INFO: "NV83DE_CTRL_DEBUG_READ_MMU_FAULT_INFO_PARAMS",
};
const ESCAPES: Record<number, StructName> = {
  [N.NV_ESC_CHECK_VERSION_STR]: "nv_ioctl_rm_api_version_t",
  [N.NV_ESC_CARD_INFO]: "nv_ioctl_card_info_t",
  [N.NV_ESC_REGISTER_FD]: "nv_ioctl_register_fd_t",
  [N.NV_ESC_RM_ALLOC]: "NVOS21_PARAMETERS",
  [N.NV_ESC_RM_CONTROL]: "NVOS54_PARAMETERS",
  [N.NV_ESC_RM_FREE]: "NVOS00_PARAMETERS",
  [N.NV_ESC_RM_ALLOC_MEMORY]: "nv_ioctl_nvos02_parameters_with_fd",
  [N.NV_ESC_RM_MAP_MEMORY]: "nv_ioctl_nvos33_parameters_with_fd",
  [N.NV_ESC_RM_UNMAP_MEMORY]: "NVOS34_PARAMETERS",
};

export class FakeKernel implements LinuxKernel {
  version = "580.159.04";
  /** minors of the GPUs that are listed, and those whose file exists */
  listed = [0];
  present = [0];
  classes: number[] = [
    N.HOPPER_USERMODE_A,
    N.HOPPER_CHANNEL_GPFIFO_A,
    N.HOPPER_COMPUTE_A,
    N.HOPPER_DMA_COPY_A,
  ];
  freeBytes = 140 * 2 ** 30;
  /** the unified memory module wants to know when the process ends */
  watchesProcesses = true;
  /** an error instead of an answer, by the name of the call */
  refuse: (name: string) => string | undefined = () => undefined;
  readonly calls: Call[] = [];
  readonly barriers: (() => void)[] = [];
  /** copy engines as an H200 has them: whether each is one of the graphics engine, and its units */
  copyEngines: { readonly graphics: boolean; readonly units: number }[] = [
    { graphics: true, units: 0x5000 },
    { graphics: true, units: 0xa000 },
    { graphics: false, units: 0x5000 },
    { graphics: false, units: 0xa000 },
    { graphics: false, units: 0xfff },
  ];
  /** what the driver noted about faults */
  mmuFaults: { faultAddress: number; accessType: number; faultType: number }[] = [];
  /** objects that only the end of the client freed */
  dropped = 0;

  readonly #files = new Map<number, string>();
  readonly #objects = new Map<number, Object>();
  readonly #memory = new Map<bigint, Uint8Array>();
  readonly #native = new Set<bigint>();
  /** files to which a mapping was tied, and mappings by what the driver calls them */
  readonly #tied = new Map<number, number>();
  readonly #windows = new Map<number, number>();
  readonly #mapped = new Map<bigint, { readonly handle: number; readonly bytes: number }>();
  readonly #ranges = new Map<number, { readonly length: number; handle: number | undefined }>();
  readonly #registered = new Set<string>();
  /** groups of channels -> their engine */
  readonly #engines = new Map<number, number>();
  readonly #shown = new Map<number, Uint8Array>();
  #next = 0x10000n;
  #fds = 3;
  #lives = false;

  /** What is still held. */
  left(): Record<string, number> {
    const counts = {
      files: this.#files.size,
      objects: this.#objects.size,
      native: this.#native.size,
      windows: this.#windows.size,
      mapped: this.#mapped.size,
      ranges: this.#ranges.size,
      registered: this.#registered.size,
      dropped: this.dropped,
    };
    return Object.fromEntries(Object.entries(counts).filter(([, n]) => n > 0));
  }
  /** The names in order. */
  get names(): string[] {
    return this.calls.map((call) => call.name);
  }
  find(name: string): Fields[] {
    return this.calls.filter((call) => call.name === name).map((call) => call.fields);
  }
  /** Mapped memory of an object, as the GPU or the driver sees it. */
  memoryOf(handle: number): Uint8Array {
    const bytes = this.#shown.get(handle);
    if (bytes === undefined) throw new Error(`nothing of object ${handle.toString(16)} was mapped`);
    return bytes;
  }
  /** Objects of a class, by handle. */
  handles(name: string): number[] {
    return [...this.#objects].filter(([, o]) => o.name === name).map(([handle]) => handle);
  }
  /** The object mapped at an address of the GPU, or none. */
  at(va: number): number | undefined {
    for (const [base, { length, handle }] of this.#ranges)
      if (va >= base && va < base + length) return handle;
    return undefined;
  }

  open(path: string): number {
    this.calls.push({ name: `open ${path}`, fields: {} });
    const minor = /^\/dev\/nvidia(\d+)$/.exec(path)?.[1];
    if (minor !== undefined && !this.present.includes(Number(minor))) return -2;
    const fd = this.#fds++;
    this.#files.set(fd, path);
    return fd;
  }
  close(fd: number): void {
    if (!this.#files.delete(fd)) throw new Error(`close of ${fd}, which is not open`);
    this.#tied.delete(fd);
    // the last file of the driver takes what is left of the client with it
    if ([...this.#files.values()].some((path) => path === "/dev/nvidiactl")) return;
    this.dropped += this.#objects.size;
    this.#objects.clear();
    this.#ranges.clear();
    this.#registered.clear();
    this.#windows.clear();
  }

  mmap(nbytes: number, fd: number): bigint | undefined {
    this.calls.push({ name: "mmap", fields: { nbytes } });
    if (this.refuse("mmap") !== undefined) return undefined;
    const handle = fd < 0 ? -1 : this.#tied.get(fd);
    if (handle === undefined) throw new Error(`mmap of file ${fd}, to which nothing was tied`);
    const address = this.#take(new Uint8Array(nbytes));
    this.#mapped.set(address, { handle, bytes: nbytes });
    if (fd >= 0) this.#shown.set(handle, this.view(address, nbytes));
    return address;
  }
  munmap(address: bigint, nbytes: number): void {
    if (this.#mapped.get(address)?.bytes !== nbytes) throw new Error(`munmap of ${nbytes} at ${address}`);
    this.#mapped.delete(address);
    this.#memory.delete(address);
  }
  alloc(nbytes: number): NativeMemory {
    const address = this.#take(new Uint8Array(nbytes));
    this.#native.add(address);
    return { address, bytes: this.view(address, nbytes) };
  }
  free({ address }: NativeMemory): void {
    if (!this.#native.delete(address)) throw new Error(`free of ${address}`);
    this.#memory.delete(address);
  }
  view(address: bigint, nbytes: number): Uint8Array {
    for (const [start, bytes] of this.#memory) {
      const offset = Number(address - start);
      if (offset >= 0 && offset + nbytes <= bytes.length) return bytes.subarray(offset, offset + nbytes);
    }
    throw new Error(`no memory of ${nbytes} bytes at ${address}`);
  }
  barrier(): void {
    for (const look of this.barriers) look();
  }
  #take(bytes: Uint8Array): bigint {
    const address = this.#next;
    this.#next += BigInt(bytes.length + 0x10000) & ~0xffffn;
    this.#memory.set(address, bytes);
    return address;
  }

  ioctl(fd: number, request: number, args: bigint): number {
    const path = this.#files.get(fd);
    if (path === undefined) throw new Error(`ioctl of file ${fd}, which is not open`);
    if (path === "/dev/nvidia-uvm") return this.#uvm(request, args);
    const [nr, size] = [request & 0xff, (request >>> 16) & 0x1fff];
    const name = ESCAPES[nr];
    if (name === undefined || request >>> 30 !== 3 || ((request >>> 8) & 0xff) !== 0x46) return -25;
    const expected = nr === N.NV_ESC_CARD_INFO ? 64 * STRUCTS[name].bytes : STRUCTS[name].bytes;
    if (size !== expected) return -22;
    const bytes = this.view(args, size);
    const struct = new Struct(name, { address: args, bytes });
    const [label, run] = this.#escape(nr, struct, bytes, fd);
    const refused = this.refuse(label);
    if (refused === "errno") return -5;
    const status = refused ?? run();
    if (Object.hasOwn(STRUCTS[name].fields, "status")) {
      set(struct, "status", statusCode(status));
      return 0;
    }
    return status === "NV_OK" ? 0 : -5;
  }

  #note(name: string, struct?: Struct<StructName>): string {
    this.calls.push({ name, fields: struct === undefined ? {} : fieldsOf(struct) });
    return name;
  }

  /** The name of a call and what it does. */
  #escape(nr: number, args: Struct<StructName>, bytes: Uint8Array, fd: number): [string, () => string] {
    const get = (field: string): number => args.get(field as never);
    switch (nr) {
      case N.NV_ESC_CHECK_VERSION_STR:
        return [
          this.#note("CHECK_VERSION"),
          () => {
            if (get("cmd") !== N.NV_RM_API_VERSION_CMD_QUERY) return "NV_ERR_INVALID_ARGUMENT";
            set(args, "versionString", new TextEncoder().encode(`${this.version}\0`));
            return "NV_OK";
          },
        ];
      case N.NV_ESC_CARD_INFO:
        return [
          this.#note("CARD_INFO"),
          () => {
            this.listed.forEach((minor, i) => {
              const card = encode("nv_ioctl_card_info_t", {
                valid: 1,
                gpu_id: 0x100 + minor,
                minor_number: minor,
              });
              bytes.set(card, i * card.length);
            });
            return "NV_OK";
          },
        ];
      case N.NV_ESC_REGISTER_FD:
        return [
          this.#note("REGISTER_FD"),
          () => (this.#files.get(get("ctl_fd")) === "/dev/nvidiactl" ? "NV_OK" : "NV_ERR_INVALID_ARGUMENT"),
        ];
      case N.NV_ESC_RM_ALLOC:
        return this.#alloc(args);
      case N.NV_ESC_RM_CONTROL:
        return this.#control(args);
      case N.NV_ESC_RM_FREE:
        return [
          this.#note(`RM_FREE ${this.#objects.get(get("hObjectOld"))?.name}`, args),
          () => this.#free(get("hObjectOld"), get("hObjectParent")),
        ];
      case N.NV_ESC_RM_ALLOC_MEMORY:
        return [
          this.#note("RM_ALLOC_MEMORY", args),
          () => {
            const where = BigInt(get("pMemory"));
            if (!this.#mapped.has(where)) return "NV_ERR_INVALID_ADDRESS";
            return this.#make(get("hObjectNew"), get("hObjectParent"), "host memory", get("limit") + 1);
          },
        ];
      case N.NV_ESC_RM_MAP_MEMORY:
        return [
          this.#note("RM_MAP_MEMORY", args),
          () => {
            const [handle, file] = [get("hMemory"), get("fd")];
            if (!this.#objects.has(handle) || !this.#objects.has(get("hDevice")))
              return "NV_ERR_OBJECT_NOT_FOUND";
            if (!this.#files.has(file) || file === fd) return "NV_ERR_INVALID_ARGUMENT";
            this.#tied.set(file, handle);
            const linear = 0x7f0000000000 + this.#windows.size * 4096 + handle;
            this.#windows.set(linear, handle);
            set(args, "pLinearAddress", linear);
            return "NV_OK";
          },
        ];
      default:
        return [
          this.#note("RM_UNMAP_MEMORY", args),
          () => {
            const known = this.#windows.get(get("pLinearAddress")) === get("hMemory");
            this.#windows.delete(get("pLinearAddress"));
            return known ? "NV_OK" : "NV_ERR_INVALID_ADDRESS";
          },
        ];
    }
  }

  #make(handle: number, parent: number, name: string, bytes: number): string {
    if (!this.#objects.has(parent)) return "NV_ERR_INVALID_OBJECT_PARENT";
    if (this.#objects.has(handle)) return "NV_ERR_INSERT_DUPLICATE_NAME";
    this.#objects.set(handle, { parent, name, bytes });
    return "NV_OK";
  }

  #alloc(args: Struct<StructName>): [string, () => string] {
    const get = (field: string): number => args.get(field as never);
    const name = nameOf(/^(NV01|NV20|FERMI|KEPLER|HOPPER|ADA|AMPERE|GT200)_/, get("hClass"));
    const struct = PARAMS[name];
    const address = BigInt(get("pAllocParms"));
    const params = struct && new Struct(struct, { address, bytes: this.view(address, get("paramsSize")) });
    this.calls.push({
      name: `RM_ALLOC ${name}`,
      fields: { ...fieldsOf(args), ...(params && fieldsOf(params)) },
    });
    const run = (): string => {
      if (name === "NV01_ROOT_CLIENT") {
        this.#objects.set(CLIENT, { parent: CLIENT, name, bytes: 0 });
        set(args, "hObjectNew", CLIENT);
        return "NV_OK";
      }
      if (params !== undefined && get("paramsSize") !== STRUCTS[params.name].bytes)
        return "NV_ERR_INVALID_PARAM_STRUCT";
      const size = params?.name === "NV_MEMORY_ALLOCATION_PARAMS" ? params.get("size" as never) : 0;
      if (size > this.freeBytes) return "NV_ERR_NO_MEMORY";
      if (
        name === "HOPPER_CHANNEL_GPFIFO_A" &&
        this.at(params?.get("gpFifoOffset" as never) ?? 0) === undefined
      )
        return "NV_ERR_INVALID_OFFSET";
      if (name === "HOPPER_DMA_COPY_A" && !this.#onEngine(get("hObjectParent"), params))
        return "NV_ERR_INVALID_ARGUMENT";
      if (name === "KEPLER_CHANNEL_GROUP_A")
        this.#engines.set(get("hObjectNew"), params?.get("engineType" as never) ?? 0);
      if (name === "NV01_MEMORY_LOCAL_USER") this.freeBytes -= size;
      return this.#make(get("hObjectNew"), get("hObjectParent"), name, size);
    };
    return [`RM_ALLOC ${name}`, run];
  }

  /** A copy object is of the engine that its channel's group belongs to. */
  #onEngine(channel: number, params: Struct<StructName> | undefined): boolean {
    const group = this.#objects.get(channel)?.parent ?? 0;
    return params?.get("engineType" as never) === this.#engines.get(group);
  }

  #free(handle: number, parent: number): string {
    const object = this.#objects.get(handle);
    if (object === undefined || object.parent !== parent) return "NV_ERR_OBJECT_NOT_FOUND";
    this.#objects.delete(handle);
    if (object.name === "NV01_MEMORY_LOCAL_USER") this.freeBytes += object.bytes;
    for (const [child, { parent: of }] of [...this.#objects]) if (of === handle) this.#free(child, handle);
    return "NV_OK";
  }

  #control(args: Struct<StructName>): [string, () => string] {
    const get = (field: string): number => args.get(field as never);
    const name = nameOf(/_CTRL_CMD_/, get("cmd"));
    const struct = CONTROLS[name];
    if (struct === undefined) throw new Error(`the fake driver does not know the command ${name}`);
    const address = BigInt(get("params"));
    const params = new Struct(struct, { address, bytes: this.view(address, get("paramsSize")) });
    this.calls.push({ name: `RM_CONTROL ${name}`, fields: fieldsOf(params) });
    const run = (): string => {
      if (!this.#objects.has(get("hObject"))) return "NV_ERR_INVALID_OBJECT_HANDLE";
      if (get("paramsSize") !== STRUCTS[struct].bytes) return "NV_ERR_INVALID_PARAM_STRUCT";
      this.#answer(name, params, get("hObject"));
      return "NV_OK";
    };
    return [`RM_CONTROL ${name}`, run];
  }

  #answer(name: string, params: Struct<StructName>, object: number): void {
    if (name.endsWith("GET_ID_INFO_V2")) set(params, "deviceInstance", params.get("gpuId" as never) - 0x100);
    if (name.endsWith("GET_CLASSLIST_V2")) {
      set(params, "numClasses", this.classes.length);
      set(params, "classList", new Uint8Array(Uint32Array.from(this.classes).buffer));
    }
    if (name.endsWith("GET_GID_INFO")) set(params, "data", UUID);
    if (name.endsWith("GET_NAME_STRING"))
      set(params, "gpuNameString", new TextEncoder().encode("NVIDIA H200\0"));
    if (name.endsWith("GET_WORK_SUBMIT_TOKEN")) {
      set(params, "workSubmitToken", TOKEN + this.handles("HOPPER_CHANNEL_GPFIFO_A").indexOf(object));
    }
    if (name.endsWith("GR_GET_INFO_V2")) {
      const { index } = fieldsOf(element("NV0080_CTRL_GR_INFO", params.raw("grInfoList" as never), 0));
      const data = GR[index as number] ?? 0;
      set(params, "grInfoList", encode("NV0080_CTRL_GR_INFO", { index: index as number, data }));
    }
    if (name.endsWith("FB_GET_INFO_V2")) {
      const { index } = fieldsOf(element("NV2080_CTRL_FB_INFO", params.raw("fbInfoList" as never), 0));
      const bytes = index === N.NV2080_CTRL_FB_INFO_INDEX_HEAP_FREE ? this.freeBytes : 141 * 2 ** 30;
      set(
        params,
        "fbInfoList",
        encode("NV2080_CTRL_FB_INFO", { index: index as number, data: bytes / 1024 }),
      );
    }
    if (name.endsWith("CE_GET_ALL_CAPS")) {
      set(
        params,
        "capsTbl",
        Uint8Array.from(this.copyEngines.flatMap((e) => [0xe0 | Number(e.graphics), 3])),
      );
      set(params, "present", 2 ** this.copyEngines.length - 1);
    }
    if (name.endsWith("CE_GET_CE_PCE_MASK")) {
      const engine = this.copyEngines[params.get("ceEngineType" as never) - N.NV2080_ENGINE_TYPE_COPY0];
      set(params, "pceMask", engine?.units ?? 0);
    }
    if (name.endsWith("READ_MMU_FAULT_INFO")) {
      set(params, "count", this.mmuFaults.length);
      const all = this.mmuFaults.map((fault) => encode("NV83DE_CTRL_DEBUG_READ_MMU_FAULT_INFO_ENTRY", fault));
      set(params, "mmuFaultInfoList", Uint8Array.from(all.flatMap((bytes) => [...bytes])));
    }
  }

  #uvm(request: number, address: bigint): number {
    const name = nameOf(/^UVM_(?!INIT_FLAGS)/, request);
    const struct = `${name}_PARAMS` as StructName;
    const args = new Struct(struct, { address, bytes: this.view(address, STRUCTS[struct].bytes) });
    this.calls.push({ name, fields: fieldsOf(args) });
    const refused = this.refuse(name);
    if (refused === "errno") return -5;
    set(args, "rmStatus", statusCode(refused ?? this.#unified(name, args)));
    return 0;
  }

  #unified(name: string, args: Struct<StructName>): string {
    const get = (field: string): number => args.get(field as never);
    const toggle = (key: string, on: boolean): string => {
      if (this.#registered.has(key) === on) return "NV_ERR_INVALID_DEVICE";
      if (on) this.#registered.add(key);
      else this.#registered.delete(key);
      return "NV_OK";
    };
    switch (name) {
      case "UVM_INITIALIZE":
        return "NV_OK";
      case "UVM_MM_INITIALIZE":
        if (this.#files.get(get("uvmFd")) !== "/dev/nvidia-uvm") return "NV_ERR_INVALID_ARGUMENT";
        this.#lives = true;
        return this.watchesProcesses ? "NV_OK" : "NV_WARN_NOTHING_TO_DO";
      case "UVM_REGISTER_GPU":
      case "UVM_UNREGISTER_GPU":
        return toggle("gpu", name === "UVM_REGISTER_GPU");
      case "UVM_REGISTER_GPU_VASPACE":
        if (!this.#lives) return "NV_ERR_PAGE_TABLE_NOT_AVAIL";
        return this.#objects.has(get("hVaSpace")) ? toggle("space", true) : "NV_ERR_OBJECT_NOT_FOUND";
      case "UVM_UNREGISTER_GPU_VASPACE":
        return toggle("space", false);
      case "UVM_REGISTER_CHANNEL":
        return this.#objects.has(get("hChannel"))
          ? toggle(`channel ${get("hChannel")}`, true)
          : "NV_ERR_OBJECT_NOT_FOUND";
      case "UVM_UNREGISTER_CHANNEL":
        return toggle(`channel ${get("hChannel")}`, false);
      case "UVM_CREATE_EXTERNAL_RANGE": {
        const [base, length] = [get("base"), get("length")];
        if (base % 4096 !== 0 || length % 4096 !== 0) return "NV_ERR_INVALID_ADDRESS";
        const clash = [...this.#ranges].some(([at, r]) => at < base + length && base < at + r.length);
        if (clash) return "NV_ERR_UVM_ADDRESS_IN_USE";
        this.#ranges.set(base, { length, handle: undefined });
        return "NV_OK";
      }
      case "UVM_MAP_EXTERNAL_ALLOCATION": {
        const [range, object] = [this.#ranges.get(get("base")), this.#objects.get(get("hMemory"))];
        if (range === undefined || !this.#registered.has("space")) return "NV_ERR_INVALID_ADDRESS";
        if (object === undefined || object.bytes < get("length")) return "NV_ERR_OBJECT_NOT_FOUND";
        range.handle = get("hMemory");
        return "NV_OK";
      }
      default:
        return this.#ranges.get(get("base"))?.length === get("length") && this.#ranges.delete(get("base"))
          ? "NV_OK"
          : "NV_ERR_INVALID_ADDRESS";
    }
  }
}

const set = (struct: Struct<StructName>, field: string, value: number | Uint8Array): void =>
  struct.set(field as never, value);

function fieldsOf(struct: Struct<StructName>): Fields {
  const fields: Record<string, readonly [number, number]> = STRUCTS[struct.name].fields;
  const entries = Object.entries(fields).map(([field, [, size]]) => [
    field,
    [1, 2, 4, 8].includes(size) ? struct.get(field as never) : struct.raw(field as never),
  ]);
  return Object.fromEntries(entries);
}
