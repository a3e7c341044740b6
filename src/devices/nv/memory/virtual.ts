// Memory of one GPU: blocks on the GPU (with a window for the host or without) and of the host, each at an
// address that we choose. The unified memory module maps a block there; the resource manager owns it. Large
// blocks take pages of 2 MiB. Between two blocks some addresses stay empty, so that a kernel that runs
// past its buffer meets a fault.

import { InternalError, OutOfMemoryError } from "../../../errors.ts";
import { AddressSpace } from "../../../runtime/addressspace.ts";
import { type MemoryBlock, type MemoryKind, whereabouts } from "../../../runtime/hcq/pool.ts";
import { N } from "../driver/ioctls.ts";
import type { ResourceManager } from "../driver/resourcemanager.ts";
import { encode } from "../driver/structs.ts";

const GiB = 2 ** 30;
const [PAGE, SMALL, HUGE] = [2 ** 12, 2 ** 16, 2 ** 21] as const;
/** From here on a block takes huge pages. */
const HUGE_FROM = 8 * 2 ** 20;
/** Node shows no more foreign memory than this as one array. */
const WINDOW = 2 ** 31;

/**
 * All addresses are below 2^40. What is low, the channels' own, comes first;
 * the windows of kernels come last.
 */
export const LAYOUT = {
  channels: 4 * GiB,
  small: [64 * GiB, 256 * GiB],
  huge: [256 * GiB, 1000 * GiB],
  sharedWindow: 1016 * GiB,
  localWindow: 1020 * GiB,
} as const;

/** The objects under which memory is made. */
export interface Owner {
  readonly device: number;
  readonly subdevice: number;
  /** the file of the GPU, and the number in its name */
  readonly file: number;
  readonly minor: number;
  readonly uuid: Uint8Array;
}

/** A block, with what undoes each step of its making. */
interface AddressBlock extends MemoryBlock {
  readonly handle: number;
  readonly undo: (() => void)[];
}

const WHERE: Readonly<Record<MemoryKind, string>> = {
  device: "on the GPU",
  visible: "on the GPU where the host sees them",
  host: "of the host's memory",
};
const roundUp = (nbytes: number, unit: number): number => Math.max(1, Math.ceil(nbytes / unit)) * unit;

export class MappedMemory {
  readonly #rm: ResourceManager;
  readonly #owner: Owner;
  readonly #small = new AddressSpace(LAYOUT.small[0]);
  readonly #huge = new AddressSpace(LAYOUT.huge[0]);
  readonly #blocks = new Map<MemoryBlock, AddressBlock>();

  constructor(rm: ResourceManager, owner: Owner) {
    this.#rm = rm;
    this.#owner = owner;
  }

  /** `contiguous`: in one piece also physically, for what engines read without translation. */
  alloc(nbytes: number, kind: MemoryKind, contiguous = false): MemoryBlock {
    if (kind !== "device" && nbytes > WINDOW) {
      throw new OutOfMemoryError(
        `NV: ${nbytes} bytes that the host sees; at most ${WINDOW} in one piece, allocate several`,
      );
    }
    const huge = kind !== "host" && nbytes >= HUGE_FROM;
    const size = roundUp(nbytes, huge ? HUGE : kind === "host" ? PAGE : SMALL);
    const undo: (() => void)[] = [];
    try {
      const block =
        kind === "host" ? this.#host(size, undo) : this.#local(size, kind, huge, contiguous, undo);
      this.#blocks.set(block, block);
      return block;
    } catch (e) {
      for (const step of undo.reverse()) step();
      if (!(e instanceof OutOfMemoryError)) throw e;
      throw new OutOfMemoryError(`NV: no room for ${nbytes} bytes ${WHERE[kind]} (${e.message})`, {
        cause: e,
      });
    }
  }

  free(memory: MemoryBlock): void {
    const block = this.#blocks.get(memory);
    if (block === undefined) throw new InternalError(`NV: memory at ${memory.va} is freed twice`);
    this.#blocks.delete(memory);
    for (const step of block.undo.reverse()) step();
  }
  freeAll(): void {
    for (const memory of [...this.#blocks.keys()].reverse()) this.free(memory);
  }
  /** The driver's handle, for objects that are made on top of a block. */
  handleOf(memory: MemoryBlock): number {
    const block = this.#blocks.get(memory);
    if (block === undefined) throw new InternalError(`NV: no block at ${memory.va}`);
    return block.handle;
  }

  whereabouts(va: number): string {
    return whereabouts(this.#blocks.keys(), va);
  }

  /** On the GPU. */
  #local(
    size: number,
    kind: MemoryKind,
    huge: boolean,
    contiguous: boolean,
    undo: (() => void)[],
  ): AddressBlock {
    const rm = this.#rm;
    const { device, minor } = this.#owner;
    const { handle } = rm.alloc(device, "NV01_MEMORY_LOCAL_USER", "NV_MEMORY_ALLOCATION_PARAMS", {
      owner: rm.client,
      type: N.NVOS32_TYPE_IMAGE,
      flags:
        N.NVOS32_ALLOC_FLAGS_IGNORE_BANK_PLACEMENT |
        N.NVOS32_ALLOC_FLAGS_ALIGNMENT_FORCE |
        N.NVOS32_ALLOC_FLAGS_MAP_NOT_REQUIRED |
        N.NVOS32_ALLOC_FLAGS_PERSISTENT_VIDMEM,
      attr:
        (contiguous ? N.NVOS32_ATTR_PHYSICALITY_CONTIGUOUS : N.NVOS32_ATTR_PHYSICALITY_ALLOW_NONCONTIGUOUS) |
        (huge ? N.NVOS32_ATTR_PAGE_SIZE_HUGE : 0),
      attr2:
        N.NVOS32_ATTR2_GPU_CACHEABLE_YES |
        N.NVOS32_ATTR2_ZBC_PREFER_NO_ZBC |
        (huge ? N.NVOS32_ATTR2_PAGE_SIZE_HUGE_2MB : 0),
      size,
      alignment: huge ? HUGE : SMALL,
      limit: size - 1,
    });
    undo.push(() => rm.free(device, handle));
    let bytes: Uint8Array | undefined;
    if (kind === "visible") {
      const open = () => rm.openDevice(minor);
      bytes = this.#window(handle, size, N.NVOS33_FLAGS_CACHING_TYPE_WRITECOMBINED, open, undo);
    }
    const va = this.#map(handle, size, huge ? HUGE : SMALL, undo);
    return { va, size, kind, bytes, handle, undo };
  }

  /** The host's own, for the GPU too. */
  #host(size: number, undo: (() => void)[]): AddressBlock {
    const rm = this.#rm;
    const { device, file } = this.#owner;
    const address = rm.kernel.mmap(size, -1);
    if (address === undefined) throw new OutOfMemoryError("NV: the host has none");
    undo.push(() => rm.kernel.munmap(address, size));
    const handle = rm.newHandle();
    rm.call(
      file,
      "NV_ESC_RM_ALLOC_MEMORY",
      "nv_ioctl_nvos02_parameters_with_fd",
      {
        hRoot: rm.client,
        hObjectParent: device,
        hObjectNew: handle,
        hClass: N.NV01_MEMORY_SYSTEM_OS_DESCRIPTOR,
        flags:
          N.NVOS02_FLAGS_PHYSICALITY_NONCONTIGUOUS |
          N.NVOS02_FLAGS_COHERENCY_CACHED |
          N.NVOS02_FLAGS_MAPPING_NO_MAP,
        pMemory: address,
        limit: size - 1,
        fd: -1,
      },
      "memory of the host",
    );
    undo.push(() => rm.free(device, handle));
    const va = this.#map(handle, size, SMALL, undo);
    return { va, size, kind: "host", bytes: rm.kernel.view(address, size), handle, undo };
  }

  /** Memory that the driver itself writes to: what it says about a channel. It has no address for the GPU. */
  notifier(nbytes: number, undo: (() => void)[]): { readonly handle: number; readonly bytes: Uint8Array } {
    const rm = this.#rm;
    const { device } = this.#owner;
    const size = roundUp(nbytes, PAGE);
    const { handle } = rm.alloc(device, "NV01_MEMORY_SYSTEM", "NV_MEMORY_ALLOCATION_PARAMS", {
      owner: rm.client,
      type: N.NVOS32_TYPE_NOTIFIER,
      flags: N.NVOS32_ALLOC_FLAGS_IGNORE_BANK_PLACEMENT | N.NVOS32_ALLOC_FLAGS_MAP_NOT_REQUIRED,
      attr:
        N.NVOS32_ATTR_PHYSICALITY_ALLOW_NONCONTIGUOUS |
        N.NVOS32_ATTR_LOCATION_PCI |
        N.NVOS32_ATTR_COHERENCY_CACHED,
      attr2: N.NVOS32_ATTR2_GPU_CACHEABLE_NO | N.NVOS32_ATTR2_ZBC_PREFER_NO_ZBC,
      size,
      alignment: PAGE,
      limit: size - 1,
    });
    undo.push(() => rm.free(device, handle));
    const open = () => rm.openControl();
    const bytes = this.#window(handle, size, N.NVOS33_FLAGS_CACHING_TYPE_CACHED, open, undo);
    return { handle, bytes };
  }

  /** The host's window on registers of the GPU. */
  registers(handle: number, size: number, undo: (() => void)[]): Uint8Array {
    const { subdevice, minor } = this.#owner;
    const open = () => this.#rm.openDevice(minor);
    return this.#window(handle, size, N.NVOS33_FLAGS_CACHING_TYPE_UNCACHED, open, undo, subdevice);
  }

  /** The host's window on an object: the driver ties it to a file, whose memory is then mapped. */
  #window(
    handle: number,
    size: number,
    flags: number,
    open: () => number,
    undo: (() => void)[],
    device = this.#owner.device,
  ): Uint8Array {
    const rm = this.#rm;
    const { kernel, client } = rm;
    const fd = open();
    try {
      const made = rm.call(
        rm.control,
        "NV_ESC_RM_MAP_MEMORY",
        "nv_ioctl_nvos33_parameters_with_fd",
        { hClient: client, hDevice: device, hMemory: handle, length: size, flags, fd },
        "a window for the host",
      );
      const linear = made.get("pLinearAddress");
      undo.push(() => {
        const asked = { hClient: client, hDevice: device, hMemory: handle, pLinearAddress: linear };
        rm.call(rm.control, "NV_ESC_RM_UNMAP_MEMORY", "NVOS34_PARAMETERS", asked);
      });
      const address = kernel.mmap(size, fd);
      if (address === undefined) throw new OutOfMemoryError("NV: the host has no addresses for a window");
      undo.push(() => kernel.munmap(address, size));
      return kernel.view(address, size);
    } finally {
      // the mapping holds the file
      kernel.close(fd);
    }
  }

  /** At an address of ours, by the unified memory module. */
  #map(handle: number, size: number, unit: number, undo: (() => void)[]): number {
    const rm = this.#rm;
    const va = this.#reserve(size, unit, undo);
    rm.uvm("UVM_CREATE_EXTERNAL_RANGE", { base: va, length: size }, "a range of addresses");
    undo.push(() => rm.uvm("UVM_FREE", { base: va, length: size }));
    const mapping = encode("UvmGpuMappingAttributes", { gpuUuid: this.#owner.uuid, gpuMappingType: 1 });
    rm.uvm(
      "UVM_MAP_EXTERNAL_ALLOCATION",
      {
        base: va,
        length: size,
        perGpuAttributes: mapping,
        gpuAttributesCount: 1,
        rmCtrlFd: rm.control,
        hClient: rm.client,
        hMemory: handle,
      },
      "memory at an address",
    );
    return va;
  }

  #reserve(size: number, unit: number, undo: (() => void)[]): number {
    const [space, end] = unit === HUGE ? [this.#huge, LAYOUT.huge[1]] : [this.#small, LAYOUT.small[1]];
    const room = roundUp(size, unit) + unit;
    const { at } = space.alloc(room);
    undo.push(() => space.free(at, room));
    if (space.top > end) throw new OutOfMemoryError("NV: all addresses are in use");
    return at;
  }
}
