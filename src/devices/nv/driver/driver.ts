// Brings one GPU up through the kernel driver and takes it down again: the objects of the resource manager in
// their order, the address space that the unified memory module owns, a compute and a copy channel, the
// doorbell. Out comes an `NVGpu`. No CUDA library takes part. Work itself makes no system call: it is words
// in memory and one store to the doorbell.

import { DeviceError } from "../../../errors.ts";
import type { MemoryBlock, MemoryKind } from "../../../runtime/hcq/pool.ts";
import type { LinuxKernel } from "../../linux/syscalls.ts";
import { orThrow, takeDown } from "../../linux/undo.ts";
import type { NVChannel, NVClasses, NVGpu } from "../gpu.ts";
import { LAYOUT, MappedMemory, type Owner } from "../memory/virtual.ts";
import type { Channel } from "./channel.ts";
import { type Channels, CLASSES, type ClassNames, type Ground, makeChannels } from "./channelgroup.ts";
import { N } from "./ioctls.ts";
import { ResourceManager } from "./resourcemanager.ts";
import { element, encode } from "./structs.ts";

/** The GPU's addresses, of which LAYOUT uses the low ones. */
const VA_START = 0x1000;
const VA_SIZE = 2 ** 49 - 0x5000000;
const UUID_BYTES = 16;

/** The index-th GPU that this process may open. */
export function openGpu(kernel: LinuxKernel, index: number): NVGpu {
  const rm = new ResourceManager(kernel);
  const undo: (() => void)[] = [() => rm.close()];
  try {
    return bringUp(rm, index, undo);
  } catch (e) {
    takeDown(undo);
    throw e;
  }
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
  const memory = new MappedMemory(rm, owner);
  const classes = classesOf(rm, device);
  const registers = mapRegisters(rm, memory, subdevice, classes.usermode, undo);
  const vaspace = makeAddressSpace(rm, owner, undo);
  undo.push(() => memory.freeAll());
  return new NvidiaGpu({ rm, owner, memory, vaspace, classes, registers }, undo);
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

function classesOf(rm: ResourceManager, device: number): ClassNames {
  const list = rm.ask(
    device,
    "NV0080_CTRL_CMD_GPU_GET_CLASSLIST_V2",
    "NV0080_CTRL_GPU_GET_CLASSLIST_V2_PARAMS",
  );
  const all = new Uint32Array(list.raw("classList").buffer, 0, list.get("numClasses"));
  const first = <T extends keyof typeof N>(kind: string, names: readonly T[]): T => {
    const found = names.find((name) => all.includes(N[name]));
    if (found !== undefined) return found;
    throw new DeviceError(
      `NV: this GPU has no ${kind} class that is known here (${names.join(", ")}); use DEV=CUDA`,
    );
  };
  return {
    usermode: first("usermode", CLASSES.usermode),
    channel: first("channel", CLASSES.channel),
    compute: first("compute", CLASSES.compute),
    copy: first("copy", CLASSES.copy),
  };
}

/** Registers that a process may touch: the doorbell and the clock. */
function mapRegisters(
  rm: ResourceManager,
  memory: MappedMemory,
  subdevice: number,
  name: ClassNames["usermode"],
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

class NvidiaGpu implements NVGpu {
  readonly tick = 1;
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
  readonly #ground: Ground;
  #channels: Channels;
  readonly #undoChannels: (() => void)[] = [];
  readonly #undo: (() => void)[];

  constructor(ground: Ground, undo: (() => void)[]) {
    const { rm, owner, classes } = ground;
    this.#ground = ground;
    this.#undo = undo;
    undo.push(() => orThrow(takeDown(this.#undoChannels)));
    this.#channels = makeChannels(ground, this.#undoChannels);
    this.classes = { channel: N[classes.channel], compute: N[classes.compute], copy: N[classes.copy] };
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
    const { rm, owner } = this.#ground;
    const info = rm.ask(
      owner.device,
      "NV0080_CTRL_CMD_GR_GET_INFO_V2",
      "NV0080_CTRL_GR_GET_INFO_V2_PARAMS",
      asked,
    );
    return element("NV0080_CTRL_GR_INFO", info.raw("grInfoList"), 0).get("data");
  }
  #kilobytes(what: Extract<keyof typeof N, `NV2080_CTRL_FB_INFO_INDEX_${string}`>): number {
    const asked = { fbInfoListSize: 1, fbInfoList: encode("NV2080_CTRL_FB_INFO", { index: N[what] }) };
    const { rm, owner } = this.#ground;
    const info = rm.ask(
      owner.subdevice,
      "NV2080_CTRL_CMD_FB_GET_INFO_V2",
      "NV2080_CTRL_FB_GET_INFO_V2_PARAMS",
      asked,
    );
    return element("NV2080_CTRL_FB_INFO", info.raw("fbInfoList"), 0).get("data") * 1024;
  }

  get compute(): Channel {
    return this.#channels.compute;
  }
  get copy(): Channel {
    return this.#channels.copy;
  }
  restart(): void {
    orThrow(takeDown(this.#undoChannels));
    this.#channels = makeChannels(this.#ground, this.#undoChannels);
  }

  alloc(nbytes: number, kind: MemoryKind): MemoryBlock {
    return this.#ground.memory.alloc(nbytes, kind);
  }
  free(memory: MemoryBlock): void {
    this.#ground.memory.free(memory);
  }
  submit(channel: NVChannel, va: number, dwords: number): void {
    (channel as Channel).submit(va, dwords);
  }

  time(): bigint {
    const { registers } = this.#ground;
    const [low, high] = [N.NVC361_TIME_0 / 4, N.NVC361_TIME_1 / 4];
    // the high word must not have changed while the low one was read
    for (;;) {
      const before = registers[high] as number;
      const ns = registers[low] as number;
      if (registers[high] === before) return (BigInt(before) << 32n) | BigInt(ns);
    }
  }
  freeBytes(): number {
    return this.#kilobytes("NV2080_CTRL_FB_INFO_INDEX_HEAP_FREE");
  }
  close(): void {
    orThrow(takeDown(this.#undo));
  }
}
