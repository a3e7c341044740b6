// Brings one GPU up through the kernel driver and takes it down again: the objects of the resource manager in their order, the
// address space that the unified memory module owns, a compute and a copy channel, the doorbell. Out comes an `NVGpu`. No
// CUDA library takes part. Work itself makes no system call: it is words in memory and one store to the doorbell.

import { DeviceError } from "../../errors.ts";
import { Channel, ENTRY_BYTES } from "./channel.ts";
import type { NVChannel, NVClasses, NVGpu, NVMemory, NVPlace } from "./gpu.ts";
import { N, STRUCTS } from "./ioctls.ts";
import type { Kernel } from "./kernel.ts";
import { LAYOUT, Memory, type Owner } from "./memory.ts";
import { ResourceManager } from "./rm.ts";
import { element, encode, sizeOf } from "./struct.ts";

/** Entries of a ring; with USERD behind it a channel takes a MiB. */
const ENTRIES = 2 ** 16;
const CHANNEL_BYTES = 2 ** 20;
/** Addresses in which the unified memory module maps what a channel needs for itself. */
const CHANNEL_RANGE = 64 * 2 ** 20;
/** The GPU's addresses, of which LAYOUT uses the low ones. */
const VA_START = 0x1000;
const VA_SIZE = 2 ** 49 - 0x5000000;
const UUID_BYTES = 16;

/** Newest first: the first that the GPU has is taken. */
const USERMODE = ["HOPPER_USERMODE_A", "AMPERE_USERMODE_A"] as const;
const CLASSES = {
  channel: ["HOPPER_CHANNEL_GPFIFO_A", "AMPERE_CHANNEL_GPFIFO_A"],
  compute: ["HOPPER_COMPUTE_A", "ADA_COMPUTE_A", "AMPERE_COMPUTE_B", "AMPERE_COMPUTE_A"],
  copy: ["HOPPER_DMA_COPY_A", "AMPERE_DMA_COPY_B", "AMPERE_DMA_COPY_A"],
} as const;

/** The index-th GPU that this process may open. */
export function openGpu(kernel: Kernel, index: number): NVGpu {
  const rm = new ResourceManager(kernel);
  const undo: (() => void)[] = [() => rm.close()];
  try {
    return bringUp(rm, index, undo);
  } catch (e) {
    takeDown(undo);
    throw e;
  }
}

/** In reverse. A step that fails does not keep the others from being undone; gives the first failure. */
function takeDown(undo: (() => void)[]): unknown {
  let failed: unknown;
  for (const step of undo.splice(0).reverse()) {
    try {
      step();
    } catch (e) {
      failed ??= e;
    }
  }
  return failed;
}

function bringUp(rm: ResourceManager, index: number, undo: (() => void)[]): NVGpu {
  const { gpuId, minor, file } = findCard(rm, index);
  undo.push(() => rm.kernel.close(file));
  const id = rm.ask(
    rm.client,
    "NV0000_CTRL_CMD_GPU_GET_ID_INFO_V2",
    "NV0000_CTRL_GPU_GET_ID_INFO_V2_PARAMS",
    {
      gpuId,
    },
  );
  const device = rm.alloc(rm.client, "NV01_DEVICE_0", "NV0080_ALLOC_PARAMETERS", {
    deviceId: id.get("deviceInstance"),
    hClientShare: rm.client,
    vaMode: N.NV_DEVICE_ALLOCATION_VAMODE_OPTIONAL_MULTIPLE_VASPACES,
  }).handle;
  undo.push(() => rm.free(rm.client, device));
  const subdevice = rm.alloc(device, "NV20_SUBDEVICE_0", "NV2080_ALLOC_PARAMETERS").handle;
  const owner: Owner = { device, subdevice, file, minor, uuid: uuidOf(rm, subdevice) };
  const memory = new Memory(rm, owner);
  const known = classesOf(rm, device);
  const doorbell = mapDoorbell(rm, memory, subdevice, known.usermode, undo);
  const vaspace = makeAddressSpace(rm, owner, undo);
  undo.push(() => memory.freeAll());
  const channels = makeChannels(rm, owner, memory, vaspace, known, doorbell, undo);
  return new Gpu(rm, owner, memory, known, doorbell, channels, undo);
}

/** Cards that are listed but may not be opened belong to others. */
function findCard(rm: ResourceManager, index: number): { gpuId: number; minor: number; file: number } {
  const cards = rm.cards();
  let seen = 0;
  let refusal: unknown;
  for (const { gpuId, minor } of cards) {
    let file: number;
    try {
      file = rm.openDevice(minor);
    } catch (e) {
      refusal ??= e;
      continue;
    }
    if (seen++ === index) return { gpuId, minor, file };
    rm.kernel.close(file);
  }
  if (seen === 0 && refusal !== undefined) throw refusal;
  throw new DeviceError(`NV:${index}: there is no such GPU, this process can open ${seen}`);
}

function uuidOf(rm: ResourceManager, subdevice: number): Uint8Array {
  const info = rm.ask(subdevice, "NV2080_CTRL_CMD_GPU_GET_GID_INFO", "NV2080_CTRL_GPU_GET_GID_INFO_PARAMS", {
    flags: N.NV2080_GPU_CMD_GPU_GET_GID_FLAGS_FORMAT_BINARY,
    length: UUID_BYTES,
  });
  return info.raw("data").slice(0, UUID_BYTES);
}

type Known = NVClasses & { readonly usermode: (typeof USERMODE)[number] };

function classesOf(rm: ResourceManager, device: number): Known {
  const list = rm.ask(
    device,
    "NV0080_CTRL_CMD_GPU_GET_CLASSLIST_V2",
    "NV0080_CTRL_GPU_GET_CLASSLIST_V2_PARAMS",
  );
  const all = new Uint32Array(list.raw("classList").buffer, 0, list.get("numClasses"));
  const first = <T extends keyof typeof N>(what: string, names: readonly T[]): T => {
    const found = names.find((name) => all.includes(N[name]));
    if (found !== undefined) return found;
    throw new DeviceError(
      `NV: this GPU has no ${what} class that is known here (${names.join(", ")}); use DEV=CUDA`,
    );
  };
  return {
    usermode: first("usermode", USERMODE),
    channel: N[first("channel", CLASSES.channel)],
    compute: N[first("compute", CLASSES.compute)],
    copy: N[first("copy", CLASSES.copy)],
  };
}

/** Registers that a process may touch: the doorbell and the clock. */
function mapDoorbell(
  rm: ResourceManager,
  memory: Memory,
  subdevice: number,
  name: Known["usermode"],
  undo: (() => void)[],
): Uint32Array {
  const { handle } = rm.alloc(subdevice, name);
  undo.push(() => rm.free(subdevice, handle));
  const bytes = memory.registers(handle, N.NVC361_NV_USERMODE__SIZE, undo);
  return new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
}

function makeAddressSpace(rm: ResourceManager, { device, uuid }: Owner, undo: (() => void)[]): number {
  const { handle } = rm.alloc(device, "FERMI_VASPACE_A", "NV_VASPACE_ALLOCATION_PARAMETERS", {
    flags:
      N.NV_VASPACE_ALLOCATION_FLAGS_ENABLE_PAGE_FAULTING | N.NV_VASPACE_ALLOCATION_FLAGS_IS_EXTERNALLY_OWNED,
    vaBase: VA_START,
    vaSize: VA_SIZE,
  });
  undo.push(() => rm.free(device, handle));
  rm.uvm("UVM_REGISTER_GPU", { gpu_uuid: uuid, rmCtrlFd: -1 });
  undo.push(() => rm.uvm("UVM_UNREGISTER_GPU", { gpu_uuid: uuid }));
  rm.uvm("UVM_REGISTER_GPU_VASPACE", {
    gpuUuid: uuid,
    rmCtrlFd: rm.control,
    hClient: rm.client,
    hVaSpace: handle,
  });
  undo.push(() => rm.uvm("UVM_UNREGISTER_GPU_VASPACE", { gpuUuid: uuid }));
  return handle;
}

/** Both in one group on the engine for compute, which has a copy engine of its own. */
function makeChannels(
  rm: ResourceManager,
  owner: Owner,
  memory: Memory,
  vaspace: number,
  known: Known,
  doorbell: Uint32Array,
  undo: (() => void)[],
): { readonly compute: Channel; readonly copy: Channel } {
  const { device } = owner;
  const group = rm.alloc(device, "KEPLER_CHANNEL_GROUP_A", "NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS", {
    engineType: N.NV2080_ENGINE_TYPE_GRAPHICS,
  }).handle;
  undo.push(() => rm.free(device, group));
  const share = rm.alloc(group, "FERMI_CONTEXT_SHARE_A", "NV_CTXSHARE_ALLOCATION_PARAMETERS", {
    hVASpace: vaspace,
    flags: N.NV_CTXSHARE_ALLOCATION_FLAGS_SUBCONTEXT_ASYNC,
  }).handle;
  const area = memory.alloc(2 * CHANNEL_BYTES, "visible", true);
  const make = (kind: NVChannel["kind"], i: number): Channel => {
    const offset = i * CHANNEL_BYTES;
    const notifier = memory.notifier(sizeOf("NvNotification"), undo);
    const channel = rm.alloc(
      group,
      CLASSES.channel[0],
      "NV_CHANNEL_ALLOC_PARAMS",
      {
        hObjectError: notifier.handle,
        hObjectBuffer: memory.handleOf(area),
        gpFifoOffset: area.va + offset,
        gpFifoEntries: ENTRIES,
        hContextShare: share,
        hUserdMemory: words32(memory.handleOf(area)),
        userdOffset: words64(offset + ENTRIES * ENTRY_BYTES),
      },
      known.channel,
    ).handle;
    undo.push(() => rm.free(group, channel));
    const engine = rm.alloc(channel, CLASSES[kind][0], undefined, {}, known[kind]).handle;
    const token = rm
      .ask(
        channel,
        "NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN",
        "NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS",
        { workSubmitToken: -1 },
      )
      .get("workSubmitToken");
    const place = { gpuUuid: owner.uuid, hClient: rm.client, hChannel: channel };
    rm.uvm("UVM_REGISTER_CHANNEL", {
      ...place,
      rmCtrlFd: rm.control,
      base: LAYOUT.channels + i * CHANNEL_RANGE,
      length: CHANNEL_RANGE,
    });
    undo.push(() => rm.uvm("UVM_UNREGISTER_CHANNEL", place));
    return new Channel({
      kind,
      entries: ENTRIES,
      bytes: (area.bytes as Uint8Array).subarray(offset, offset + CHANNEL_BYTES),
      doorbell: doorbell.subarray(N.NVC361_NOTIFY_CHANNEL_PENDING / 4),
      token,
      notifier: notifier.bytes,
      kernel: rm.kernel,
      explain: () => (kind === "compute" ? explainFault(rm, device, engine) : ""),
    });
  };
  const channels = { compute: make("compute", 0), copy: make("copy", 1) };
  rm.ask(group, "NVA06C_CTRL_CMD_GPFIFO_SCHEDULE", "NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS", { bEnable: 1 });
  return channels;
}

const words32 = (value: number): Uint8Array => new Uint8Array(new Uint32Array([value]).buffer);
const words64 = (value: number): Uint8Array => new Uint8Array(new BigUint64Array([BigInt(value)]).buffer);

/** What the driver noted about accesses that met no memory; nothing where it noted none. */
function explainFault(rm: ResourceManager, device: number, engine: number): string {
  const [entry, list] = ["NV83DE_CTRL_DEBUG_READ_MMU_FAULT_INFO_ENTRY", "mmuFaultInfoList"] as const;
  try {
    const session = rm.alloc(device, "GT200_DEBUGGER", "NV83DE_ALLOC_PARAMETERS", {
      hAppClient: rm.client,
      hClass3dObject: engine,
    }).handle;
    const info = rm.ask(
      session,
      "NV83DE_CTRL_CMD_DEBUG_READ_MMU_FAULT_INFO",
      "NV83DE_CTRL_DEBUG_READ_MMU_FAULT_INFO_PARAMS",
    );
    const count = Math.min(info.get("count"), STRUCTS[info.name].fields[list][1] / sizeOf(entry));
    const faults = info.raw(list);
    rm.free(device, session);
    return Array.from({ length: count }, (_, i) => {
      const fault = element(entry, faults, i);
      const address = `0x${fault.get("faultAddress").toString(16)}`;
      return `; address ${address} (access ${fault.get("accessType")}, fault ${fault.get("faultType")})`;
    }).join("");
  } catch (e) {
    return `; no address is known (${(e as Error).message})`;
  }
}

class Gpu implements NVGpu {
  readonly name: string;
  readonly arch: number;
  readonly classes: NVClasses;
  readonly smCount: number;
  readonly gpcs: number;
  readonly tpcsPerGpc: number;
  readonly smsPerTpc: number;
  readonly maxWarpsPerSM: number;
  readonly totalBytes: number;
  readonly sharedWindow = LAYOUT.sharedWindow;
  readonly localWindow = LAYOUT.localWindow;
  readonly compute: Channel;
  readonly copy: Channel;
  readonly #rm: ResourceManager;
  readonly #owner: Owner;
  readonly #memory: Memory;
  readonly #registers: Uint32Array;
  readonly #undo: (() => void)[];

  constructor(
    rm: ResourceManager,
    owner: Owner,
    memory: Memory,
    classes: NVClasses,
    registers: Uint32Array,
    channels: { readonly compute: Channel; readonly copy: Channel },
    undo: (() => void)[],
  ) {
    this.#rm = rm;
    this.#owner = owner;
    this.#memory = memory;
    this.#registers = registers;
    this.#undo = undo;
    this.classes = { channel: classes.channel, compute: classes.compute, copy: classes.copy };
    ({ compute: this.compute, copy: this.copy } = channels);
    this.name = rm
      .ask(owner.subdevice, "NV2080_CTRL_CMD_GPU_GET_NAME_STRING", "NV2080_CTRL_GPU_GET_NAME_STRING_PARAMS")
      .text("gpuNameString");
    const version = this.#hardware("NV0080_CTRL_GR_INFO_INDEX_SM_VERSION");
    this.arch = (version >> 8) * 10 + (version & 0xff);
    this.gpcs = this.#hardware("NV0080_CTRL_GR_INFO_INDEX_LITTER_NUM_GPCS");
    this.tpcsPerGpc = this.#hardware("NV0080_CTRL_GR_INFO_INDEX_LITTER_NUM_TPC_PER_GPC");
    this.smsPerTpc = this.#hardware("NV0080_CTRL_GR_INFO_INDEX_LITTER_NUM_SM_PER_TPC");
    this.maxWarpsPerSM = this.#hardware("NV0080_CTRL_GR_INFO_INDEX_MAX_WARPS_PER_SM");
    this.smCount = this.#hardware("NV0080_CTRL_GR_INFO_INDEX_SHADER_PIPE_SUB_COUNT") * this.smsPerTpc;
    this.totalBytes = this.#kilobytes("NV2080_CTRL_FB_INFO_INDEX_HEAP_SIZE");
  }

  #hardware(what: Extract<keyof typeof N, `NV0080_CTRL_GR_INFO_INDEX_${string}`>): number {
    const asked = { grInfoListSize: 1, grInfoList: encode("NV0080_CTRL_GR_INFO", { index: N[what] }) };
    const { device } = this.#owner;
    const info = this.#rm.ask(
      device,
      "NV0080_CTRL_CMD_GR_GET_INFO_V2",
      "NV0080_CTRL_GR_GET_INFO_V2_PARAMS",
      asked,
    );
    return element("NV0080_CTRL_GR_INFO", info.raw("grInfoList"), 0).get("data");
  }
  #kilobytes(what: Extract<keyof typeof N, `NV2080_CTRL_FB_INFO_INDEX_${string}`>): number {
    const asked = { fbInfoListSize: 1, fbInfoList: encode("NV2080_CTRL_FB_INFO", { index: N[what] }) };
    const { subdevice } = this.#owner;
    const info = this.#rm.ask(
      subdevice,
      "NV2080_CTRL_CMD_FB_GET_INFO_V2",
      "NV2080_CTRL_FB_GET_INFO_V2_PARAMS",
      asked,
    );
    return element("NV2080_CTRL_FB_INFO", info.raw("fbInfoList"), 0).get("data") * 1024;
  }

  alloc(nbytes: number, place: NVPlace): NVMemory {
    return this.#memory.alloc(nbytes, place);
  }
  free(memory: NVMemory): void {
    this.#memory.free(memory);
  }
  submit(channel: NVChannel, va: number, dwords: number): void {
    (channel as Channel).submit(va, dwords);
  }

  time(): bigint {
    const [low, high] = [N.NVC361_TIME_0 / 4, N.NVC361_TIME_1 / 4];
    // the high word must not have changed while the low one was read
    for (;;) {
      const before = this.#registers[high] as number;
      const ns = this.#registers[low] as number;
      if (this.#registers[high] === before) return (BigInt(before) << 32n) | BigInt(ns);
    }
  }
  freeBytes(): number {
    return this.#kilobytes("NV2080_CTRL_FB_INFO_INDEX_HEAP_FREE");
  }
  close(): void {
    const failed = takeDown(this.#undo);
    if (failed !== undefined) throw failed;
  }
}
