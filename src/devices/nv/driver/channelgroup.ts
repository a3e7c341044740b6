// The two channels of a GPU, as objects of the driver: each in a group of its own, since a group belongs to
// one engine and falls as a whole. Compute is on the graphics engine, copies on the copy engine that has the
// most hardware behind it, so that they run beside kernels. Comes with the address space and memory; what
// goes through a channel is channel.ts.

import { DeviceError } from "../../../errors.ts";
import type { MemoryBlock } from "../../../runtime/hcq/pool.ts";
import { LAYOUT, type MappedMemory, type Owner } from "../memory/virtual.ts";
import { Channel, ENTRY_BYTES } from "./channel.ts";
import { explainFault } from "./fault.ts";
import { N, STRUCTS } from "./ioctls.ts";
import type { ResourceManager } from "./resourcemanager.ts";
import { sizeOf } from "./structs.ts";

/** Entries of a ring; with USERD behind it a channel takes a MiB. */
const ENTRIES = 2 ** 16;
const CHANNEL_BYTES = 2 ** 20;
/** Addresses in which the unified memory module maps what a channel needs for itself. */
const CHANNEL_RANGE = 64 * 2 ** 20;

/** Newest first: the first that the GPU has is taken. */
export const CLASSES = {
  usermode: ["HOPPER_USERMODE_A", "AMPERE_USERMODE_A"],
  channel: ["HOPPER_CHANNEL_GPFIFO_A", "AMPERE_CHANNEL_GPFIFO_A"],
  compute: ["HOPPER_COMPUTE_A", "ADA_COMPUTE_A", "AMPERE_COMPUTE_B", "AMPERE_COMPUTE_A"],
  copy: ["HOPPER_DMA_COPY_A", "AMPERE_DMA_COPY_B", "AMPERE_DMA_COPY_A"],
} as const;
export type ClassNames = { readonly [K in keyof typeof CLASSES]: (typeof CLASSES)[K][number] };

/** What channels are made on. */
export interface Ground {
  readonly rm: ResourceManager;
  readonly owner: Owner;
  readonly memory: MappedMemory;
  readonly vaspace: number;
  readonly classes: ClassNames;
  readonly registers: Uint32Array;
}

/** What differs between the two channels. */
interface ChannelSpec {
  readonly kind: "compute" | "copy";
  readonly group: number;
  /** the part of the group's context that the channel is in, where an engine has parts */
  readonly share?: number;
  /** makes the object of the engine on the channel */
  readonly engine: (channel: number) => number;
}

export interface Channels {
  readonly compute: Channel;
  readonly copy: Channel;
}

export function makeChannels(ground: Ground, undo: (() => void)[]): Channels {
  const area = ground.memory.alloc(2 * CHANNEL_BYTES, "visible", true);
  undo.push(() => ground.memory.free(area));
  const make = (spec: ChannelSpec, i: number): Channel => {
    const channel = makeChannel(ground, spec, area, i, undo);
    const schedule = ["NVA06C_CTRL_CMD_GPFIFO_SCHEDULE", "NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS"] as const;
    ground.rm.ask(spec.group, ...schedule, { bEnable: 1 });
    return channel;
  };
  return { compute: make(planCompute(ground, undo), 0), copy: make(planCopy(ground, undo), 1) };
}

function planCompute(ground: Ground, undo: (() => void)[]): ChannelSpec {
  const { rm, vaspace, classes } = ground;
  const group = makeGroup(ground, { engineType: N.NV2080_ENGINE_TYPE_GRAPHICS }, undo);
  const share = rm.alloc(group, "FERMI_CONTEXT_SHARE_A", "NV_CTXSHARE_ALLOCATION_PARAMETERS", {
    hVASpace: vaspace,
    flags: N.NV_CTXSHARE_ALLOCATION_FLAGS_SUBCONTEXT_ASYNC,
  }).handle;
  return { kind: "compute", group, share, engine: (channel) => rm.alloc(channel, classes.compute).handle };
}

function planCopy(ground: Ground, undo: (() => void)[]): ChannelSpec {
  const { rm, vaspace, classes } = ground;
  const engineType = findCopyEngine(ground);
  const group = makeGroup(ground, { engineType, hVASpace: vaspace }, undo);
  // without its number the object would be one of the graphics engine, and take the channel there
  const which = { version: N.NVB0B5_ALLOCATION_PARAMETERS_VERSION_1, engineType };
  const engine = (channel: number) =>
    rm.alloc(channel, classes.copy, "NVB0B5_ALLOCATION_PARAMETERS", which).handle;
  return { kind: "copy", group, engine };
}

function makeGroup(
  { rm, owner }: Ground,
  values: { readonly engineType: number; readonly hVASpace?: number },
  undo: (() => void)[],
): number {
  const { device } = owner;
  const group = rm.alloc(device, "KEPLER_CHANNEL_GROUP_A", "NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS", values);
  undo.push(() => rm.free(device, group.handle));
  return group.handle;
}

/**
 * Of those that are not shared with the graphics engine the one with the most units:
 * on an H200 559 GB/s against 94.
 */
function findCopyEngine({ rm, owner }: Ground): number {
  const { subdevice } = owner;
  const all = rm.ask(subdevice, "NV2080_CTRL_CMD_CE_GET_ALL_CAPS", "NV2080_CTRL_CE_GET_ALL_CAPS_PARAMS");
  const [caps, present] = [all.raw("capsTbl"), BigInt(all.get("present"))];
  const bytesEach = STRUCTS[all.name].fields.capsTbl[1] / N.NV2080_CTRL_MAX_CES;
  let best: { readonly engineType: number; readonly units: number } | undefined;
  for (
    let engineType: number = N.NV2080_ENGINE_TYPE_COPY0;
    engineType <= N.NV2080_ENGINE_TYPE_COPY9;
    engineType++
  ) {
    const i = engineType - N.NV2080_ENGINE_TYPE_COPY0;
    const ofGraphics = ((caps[i * bytesEach] ?? 0) & N.NV2080_CTRL_CE_CAPS_CE_GRCE) !== 0;
    if (((present >> BigInt(i)) & 1n) === 0n || ofGraphics) continue;
    const asked = ["NV2080_CTRL_CMD_CE_GET_CE_PCE_MASK", "NV2080_CTRL_CE_GET_CE_PCE_MASK_PARAMS"] as const;
    const mask = rm.ask(subdevice, ...asked, { ceEngineType: engineType }).get("pceMask");
    const units = mask.toString(2).replaceAll("0", "").length;
    if (best === undefined || units > best.units) best = { engineType, units };
  }
  if (best !== undefined) return best.engineType;
  throw new DeviceError("NV: this GPU gives this process no copy engine of its own; use DEV=CUDA");
}

function makeChannel(
  ground: Ground,
  spec: ChannelSpec,
  area: MemoryBlock,
  i: number,
  undo: (() => void)[],
): Channel {
  const { rm, owner, memory, classes, registers } = ground;
  const offset = i * CHANNEL_BYTES;
  const notifier = memory.notifier(sizeOf("NvNotification"), undo);
  const channel = rm.alloc(spec.group, classes.channel, "NV_CHANNEL_ALLOC_PARAMS", {
    hObjectError: notifier.handle,
    hObjectBuffer: memory.handleOf(area),
    gpFifoOffset: area.va + offset,
    gpFifoEntries: ENTRIES,
    hContextShare: spec.share ?? 0,
    hUserdMemory: words32(memory.handleOf(area)),
    userdOffset: words64(offset + ENTRIES * ENTRY_BYTES),
  }).handle;
  undo.push(() => rm.free(spec.group, channel));
  const engine = spec.engine(channel);
  const token = rm.ask(
    channel,
    "NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN",
    "NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS",
    { workSubmitToken: -1 },
  );
  const doorbell = {
    registers: registers.subarray(N.NVC361_NOTIFY_CHANNEL_PENDING / 4),
    token: token.get("workSubmitToken"),
  };
  const place = { gpuUuid: owner.uuid, hClient: rm.client, hChannel: channel };
  rm.uvm("UVM_REGISTER_CHANNEL", {
    ...place,
    rmCtrlFd: rm.control,
    base: LAYOUT.channels + i * CHANNEL_RANGE,
    length: CHANNEL_RANGE,
  });
  undo.push(() => rm.uvm("UVM_UNREGISTER_CHANNEL", place));
  return new Channel({
    kind: spec.kind,
    entries: ENTRIES,
    bytes: (area.bytes as Uint8Array).subarray(offset, offset + CHANNEL_BYTES),
    doorbell: doorbell.registers,
    token: doorbell.token,
    notifier: notifier.bytes,
    kernel: rm.kernel,
    explain: () => (spec.kind === "compute" ? explainFault(ground, engine) : ""),
  });
}

const words32 = (value: number): Uint8Array => new Uint8Array(new Uint32Array([value]).buffer);
const words64 = (value: number): Uint8Array => new Uint8Array(new BigUint64Array([BigInt(value)]).buffer);
