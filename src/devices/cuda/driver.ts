// The table of libcuda's functions that we call, with the types of their parameters, and how to load it. It
// is an interface of plain functions on numbers, so that a test can put a driver of its own in the place of
// NVIDIA's. Handles and addresses are numbers: the driver gives out none above 2^53. What the calls mean
// together is left to the others.

import { DeviceError } from "../../errors.ts";
import type { Koffi } from "../../host/koffi.ts";
import { DRIVER_PATHS } from "./find.ts";

/** Where a call leaves its results: an array that it fills. */
export type Out = BigUint64Array | Int32Array | Float32Array | Uint8Array;

/** Kinds of parameters: how C passes them, and what stands for them here. */
const C_TYPES = {
  /** a context, stream, event, function, graph, node: a pointer that only the driver follows */
  handle: "uint64_t",
  /** in the GPU's memory */
  device: "uint64_t",
  /** in the host's memory, from `alloc` or cuMemHostAlloc */
  host: "uint64_t",
  size: "uint64_t",
  int: "int",
  uint: "unsigned int",
  byte: "unsigned char",
  /** an array of ours, used during the call only */
  array: "void*",
  text: "const char*",
  /** a list of one text that the call fills in */
  texts: "_Out_ const char**",
} as const;
type CKind = keyof typeof C_TYPES;
type CValue<K> = K extends "array"
  ? Out
  : K extends "text"
    ? string
    : K extends "texts"
      ? (string | null)[]
      : number;

/** As in cuda.h of 11.4 and later. Every one of them returns a CUresult. */
const FUNCTIONS = {
  cuInit: ["uint"],
  cuGetErrorName: ["int", "texts"],
  cuGetErrorString: ["int", "texts"],
  cuDeviceGetCount: ["array"],
  cuDeviceGet: ["array", "int"],
  cuDeviceGetAttribute: ["array", "int", "int"],
  cuDevicePrimaryCtxRetain: ["array", "int"],
  cuDeviceCanAccessPeer: ["array", "int", "int"],
  cuDeviceGetDefaultMemPool: ["array", "int"],
  cuCtxSetCurrent: ["handle"],
  cuCtxEnablePeerAccess: ["handle", "uint"],
  cuMemGetInfo_v2: ["array", "array"],
  cuMemAlloc_v2: ["array", "size"],
  cuMemFree_v2: ["device"],
  cuMemAllocAsync: ["array", "size", "handle"],
  cuMemFreeAsync: ["device", "handle"],
  cuMemPoolSetAttribute: ["handle", "int", "array"],
  cuMemPoolSetAccess: ["handle", "array", "size"],
  cuMemPoolTrimTo: ["handle", "size"],
  cuMemHostAlloc: ["array", "size", "uint"],
  cuMemcpyHtoDAsync_v2: ["device", "host", "size", "handle"],
  cuMemcpyDtoHAsync_v2: ["host", "device", "size", "handle"],
  cuMemcpyDtoDAsync_v2: ["device", "device", "size", "handle"],
  cuMemcpyPeerAsync: ["device", "handle", "device", "handle", "size", "handle"],
  cuMemsetD8Async: ["device", "byte", "size", "handle"],
  cuStreamCreate: ["array", "uint"],
  cuStreamQuery: ["handle"],
  cuStreamSynchronize: ["handle"],
  cuStreamWaitEvent: ["handle", "handle", "uint"],
  cuEventCreate: ["array", "uint"],
  cuEventRecord: ["handle", "handle"],
  cuEventQuery: ["handle"],
  cuEventSynchronize: ["handle"],
  cuEventElapsedTime: ["array", "handle", "handle"],
  cuModuleLoadData: ["array", "array"],
  cuModuleUnload: ["handle"],
  cuModuleGetFunction: ["array", "handle", "text"],
  cuFuncGetAttribute: ["array", "int", "handle"],
  cuFuncSetAttribute: ["handle", "int", "int"],
  cuLaunchKernel: [
    "handle",
    ...(["uint", "uint", "uint", "uint", "uint", "uint", "uint"] as const),
    ...(["handle", "host", "host"] as const),
  ],
  cuGraphCreate: ["array", "uint"],
  cuGraphAddKernelNode: ["array", "handle", "array", "size", "host"],
  cuGraphAddMemcpyNode: ["array", "handle", "array", "size", "host", "handle"],
  cuGraphAddEventRecordNode: ["array", "handle", "array", "size", "handle"],
  cuGraphInstantiateWithFlags: ["array", "handle", "size"],
  cuGraphExecKernelNodeSetParams: ["handle", "handle", "host"],
  cuGraphExecMemcpyNodeSetParams: ["handle", "handle", "host", "handle"],
  cuGraphLaunch: ["handle", "handle"],
  cuGraphExecDestroy: ["handle"],
  cuGraphDestroy: ["handle"],
} as const satisfies Record<string, readonly CKind[]>;

export type DriverCall = keyof typeof FUNCTIONS;
type CParameters<T extends readonly CKind[]> = { -readonly [I in keyof T]: CValue<T[I]> };
export type DriverFunctions = {
  readonly [K in DriverCall]: (...args: CParameters<(typeof FUNCTIONS)[K]>) => number;
};

/** Memory of the host that stays where it is, as the driver's structures need it. */
export interface HostMemory {
  /** the address of zeroed memory */
  alloc(bytes: number): number;
  free(address: number): void;
  /** the memory without a copy, also that of cuMemHostAlloc */
  view(address: number, bytes: number): ArrayBuffer;
}
export interface CudaDriver extends DriverFunctions {
  readonly memory: HostMemory;
}

function hostMemory(koffi: Koffi): HostMemory {
  return {
    alloc: (bytes) => Number(koffi.alloc("uint8_t", bytes)),
    free: (address) => koffi.free(BigInt(address)),
    view: (address, bytes) => koffi.view(BigInt(address), bytes),
  };
}

/** The driver of this machine, or an error that says what to install. `device` is who asks. */
export function openDriver(
  koffi: Koffi,
  device: string,
  paths: readonly string[] = DRIVER_PATHS,
): CudaDriver {
  const failures: string[] = [];
  for (const path of paths) {
    let library: ReturnType<Koffi["load"]>;
    try {
      library = koffi.load(path);
    } catch (e) {
      failures.push((e as Error).message.split("\n")[0] as string);
      continue;
    }
    try {
      const functions = Object.entries(FUNCTIONS).map(([name, kinds]) => {
        const types = kinds.map((k: CKind) => C_TYPES[k]);
        return [name, library.func<unknown>(name, "int", types)];
      });
      return { ...(Object.fromEntries(functions) as DriverFunctions), memory: hostMemory(koffi) };
    } catch (cause) {
      throw new DeviceError(
        `${device}: the NVIDIA driver lacks a function that we call (${(cause as Error).message}); ` +
          "install driver 470 or later (CUDA 11.4)",
        { cause },
      );
    }
  }
  throw new DeviceError(
    `${device}: cannot load ${paths[0]}, the library of the NVIDIA driver (${failures[0] ?? "no path given"}); install ` +
      "the driver of the GPU, and in a container start it with access to the GPU (--gpus all, NVIDIA container toolkit)",
  );
}

/** The CUresults that mean something to us. */
export const CUDA = {
  SUCCESS: 0,
  OUT_OF_MEMORY: 2,
  NO_DEVICE: 100,
  NOT_READY: 600,
  PEER_ALREADY_ENABLED: 704,
} as const;

/** CUdevice_attribute. */
export const ATTRIBUTE = {
  MULTIPROCESSORS: 16,
  /** of one multiprocessor: threads, bytes of shared memory, registers, blocks */
  SM_THREADS: 39,
  SM_SHARED: 81,
  SM_REGISTERS: 82,
  SM_BLOCKS: 106,
  MAJOR: 75,
  MINOR: 76,
  /** bytes of shared memory that a kernel may take if it is asked for */
  SHARED_OPTIN: 97,
  MEMORY_POOLS: 115,
} as const;
