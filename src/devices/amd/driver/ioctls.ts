// The numbers and structures by which driver/ and memory/ speak to the kernel driver of AMD's GPUs (KFD), as
// Linux's header kfd_ioctl.h has them. The kernel takes structures of older and newer headers by their size.

import type { IoctlDirection } from "../../linux/syscalls.ts";

/** Bytes of each structure, and of each field we use where it starts and how long it is. */
export const STRUCTS = {
  version: { bytes: 8, fields: { major: [0, 4], minor: [4, 4] } },
  queue: {
    bytes: 88,
    fields: {
      ring: [0, 8],
      writePointer: [8, 8],
      readPointer: [16, 8],
      doorbell: [24, 8],
      ringBytes: [32, 4],
      gpu: [36, 4],
      type: [40, 4],
      percentage: [44, 4],
      priority: [48, 4],
      queue: [52, 4],
      eop: [56, 8],
      eopBytes: [64, 8],
      saveArea: [72, 8],
      saveBytes: [80, 4],
      stackBytes: [84, 4],
    },
  },
  /** of a queue, or of an event */
  id: { bytes: 8, fields: { id: [0, 4] } },
  clocks: { bytes: 40, fields: { gpuClock: [0, 8], gpu: [32, 4] } },
  event: {
    bytes: 32,
    fields: { page: [0, 8], type: [12, 4], autoReset: [16, 4], id: [24, 4] },
  },
  wait: {
    bytes: 24,
    fields: { events: [0, 8], count: [8, 4], all: [12, 4], timeout: [16, 4], result: [20, 4] },
  },
  /** what is waited for: an event, and what it says of memory or of the hardware */
  eventData: {
    bytes: 48,
    fields: {
      notPresent: [0, 4],
      readOnly: [4, 4],
      noExecute: [8, 4],
      imprecise: [12, 4],
      va: [16, 8],
      memoryGpu: [24, 4],
      resetCause: [4, 4],
      memoryLost: [8, 4],
      hardwareGpu: [12, 4],
      id: [40, 4],
    },
  },
  apertures: { bytes: 16, fields: { list: [0, 8], count: [8, 4] } },
  aperture: { bytes: 56, fields: { base: [32, 8], limit: [40, 8], gpu: [48, 4] } },
  acquire: { bytes: 8, fields: { file: [0, 4], gpu: [4, 4] } },
  memory: {
    bytes: 40,
    fields: { va: [0, 8], size: [8, 8], handle: [16, 8], offset: [24, 8], gpu: [32, 4], flags: [36, 4] },
  },
  handle: { bytes: 8, fields: { handle: [0, 8] } },
  mapping: { bytes: 24, fields: { handle: [0, 8], gpus: [8, 8], count: [16, 4], done: [20, 4] } },
  available: { bytes: 16, fields: { bytes: [0, 8], gpu: [8, 4] } },
} as const;
export type KfdStructName = keyof typeof STRUCTS;

/** Requests: the number, what the kernel does with the structure, and the structure. */
export const CALLS = {
  GET_VERSION: [0x01, "R", "version"],
  CREATE_QUEUE: [0x02, "WR", "queue"],
  DESTROY_QUEUE: [0x03, "WR", "id"],
  GET_CLOCK_COUNTERS: [0x05, "WR", "clocks"],
  CREATE_EVENT: [0x08, "WR", "event"],
  DESTROY_EVENT: [0x09, "W", "id"],
  RESET_EVENT: [0x0b, "W", "id"],
  WAIT_EVENTS: [0x0c, "WR", "wait"],
  GET_PROCESS_APERTURES_NEW: [0x14, "WR", "apertures"],
  ACQUIRE_VM: [0x15, "W", "acquire"],
  ALLOC_MEMORY_OF_GPU: [0x16, "WR", "memory"],
  FREE_MEMORY_OF_GPU: [0x17, "W", "handle"],
  MAP_MEMORY_TO_GPU: [0x18, "WR", "mapping"],
  UNMAP_MEMORY_FROM_GPU: [0x19, "WR", "mapping"],
  AVAILABLE_MEMORY: [0x23, "WR", "available"],
} as const satisfies Record<string, readonly [number, IoctlDirection, KfdStructName]>;
export type CallName = keyof typeof CALLS;

export const QUEUE = { COMPUTE: 0, COPY: 1 } as const;
export const EVENT = { HARDWARE: 3, MEMORY: 8 } as const;
export const WAIT_COMPLETE = 0;
/** Flags of memory, as bits. */
export const MEMORY = {
  VRAM: 2 ** 0,
  GTT: 2 ** 1,
  UNCACHED: 2 ** 25,
  COHERENT: 2 ** 26,
  NO_SUBSTITUTE: 2 ** 28,
  PUBLIC: 2 ** 29,
  EXECUTABLE: 2 ** 30,
  WRITABLE: 2 ** 31,
} as const;
