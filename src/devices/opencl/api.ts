// The table of libOpenCL's functions that we call, with the types of their parameters, and how to load it. It
// is an interface of plain functions, so that a test can bring one that fails. Handles are bigints. What the
// calls mean together is left to the others.

import { DeviceError } from "../../errors.ts";
import type { Koffi } from "../../host/koffi.ts";

/** Where a call leaves its results, or takes them from: an array of ours, used during the call only. */
export type ClArray = BigUint64Array | Float32Array | Int32Array | Uint32Array | Uint8Array;

/** Kinds of parameters: how C passes them, and what stands for them here. */
const C_TYPES = {
  /** a platform, device, context, queue, program, kernel, memory object or event; 0n: none */
  handle: "uint64_t",
  flags: "uint64_t",
  size: "size_t",
  uint: "uint32_t",
  array: "void*",
  text: "const char*",
  texts: "const char**",
} as const;
type ClKind = keyof typeof C_TYPES;
interface ClValues {
  handle: bigint;
  flags: number;
  size: number;
  uint: number;
  array: ClArray | null;
  text: string;
  texts: readonly string[];
}

/** As in OpenCL 1.2: those that return a status, and those that return what they make. */
const STATUS = {
  clGetPlatformIDs: ["uint", "array", "array"],
  clGetDeviceIDs: ["handle", "flags", "uint", "array", "array"],
  clGetDeviceInfo: ["handle", "uint", "size", "array", "array"],
  clBuildProgram: ["handle", "uint", "array", "text", "handle", "handle"],
  clGetProgramBuildInfo: ["handle", "handle", "uint", "size", "array", "array"],
  clGetKernelWorkGroupInfo: ["handle", "handle", "uint", "size", "array", "array"],
  clSetKernelArg: ["handle", "uint", "size", "array"],
  clEnqueueNDRangeKernel: ["handle", "handle", "uint", "array", "array", "array", "uint", "handle", "array"],
  clEnqueueFillBuffer: ["handle", "handle", "array", "size", "size", "size", "uint", "handle", "array"],
  clEnqueueCopyBuffer: ["handle", "handle", "handle", "size", "size", "size", "uint", "handle", "array"],
  clEnqueueFillImage: ["handle", "handle", "array", "array", "array", "uint", "handle", "array"],
  clEnqueueReadImage: [
    ...(["handle", "handle", "uint", "array", "array", "size", "size"] as const),
    ...(["array", "uint", "handle", "array"] as const),
  ],
  clEnqueueWriteImage: [
    ...(["handle", "handle", "uint", "array", "array", "size", "size"] as const),
    ...(["array", "uint", "handle", "array"] as const),
  ],
  clEnqueueCopyImage: [
    ...(["handle", "handle", "handle", "array", "array", "array"] as const),
    ...(["uint", "handle", "array"] as const),
  ],
  clEnqueueCopyImageToBuffer: [
    ...(["handle", "handle", "handle", "array", "array", "size"] as const),
    ...(["uint", "handle", "array"] as const),
  ],
  clEnqueueCopyBufferToImage: [
    ...(["handle", "handle", "handle", "size", "array", "array"] as const),
    ...(["uint", "handle", "array"] as const),
  ],
  clEnqueueUnmapMemObject: ["handle", "handle", "handle", "uint", "handle", "array"],
  clEnqueueMarkerWithWaitList: ["handle", "uint", "handle", "array"],
  clGetEventInfo: ["handle", "uint", "size", "array", "array"],
  clGetEventProfilingInfo: ["handle", "uint", "size", "array", "array"],
  clFlush: ["handle"],
  clFinish: ["handle"],
  clReleaseMemObject: ["handle"],
  clReleaseEvent: ["handle"],
  clReleaseKernel: ["handle"],
  clReleaseProgram: ["handle"],
} as const satisfies Record<string, readonly ClKind[]>;
/** All leave their status in the last parameter. */
const MAKERS = {
  clCreateContext: ["handle", "uint", "array", "handle", "handle", "array"],
  clCreateCommandQueue: ["handle", "handle", "flags", "array"],
  clCreateBuffer: ["handle", "flags", "size", "handle", "array"],
  clCreateImage: ["handle", "flags", "array", "array", "handle", "array"],
  clCreateSubBuffer: ["handle", "flags", "uint", "array", "array"],
  clCreateProgramWithSource: ["handle", "uint", "texts", "handle", "array"],
  clCreateKernel: ["handle", "text", "array"],
  clEnqueueMapBuffer: [
    ...(["handle", "handle", "uint", "flags", "size", "size", "uint"] as const),
    ...(["handle", "array", "array"] as const),
  ],
} as const satisfies Record<string, readonly ClKind[]>;

type ClParameters<T extends readonly ClKind[]> = { -readonly [I in keyof T]: ClValues[T[I]] };
export type ClCall = keyof typeof STATUS;
export type ClMaker = keyof typeof MAKERS;
export type ClCallArguments<K extends ClCall> = ClParameters<(typeof STATUS)[K]>;
export type ClMakerArguments<K extends ClMaker> = ClParameters<(typeof MAKERS)[K]>;
export type ClFunctions = {
  readonly [K in ClCall]: (...args: ClCallArguments<K>) => number;
} & {
  readonly [K in ClMaker]: (...args: ClMakerArguments<K>) => bigint;
};
export interface OpenClApi extends ClFunctions {
  /** `clFinish` on another thread */
  finishAside(queue: bigint): Promise<number>;
  /** mapped memory without a copy */
  view(address: bigint, bytes: number): ArrayBuffer;
}

const LIBRARIES: Partial<Record<NodeJS.Platform, readonly string[]>> = {
  linux: ["libOpenCL.so.1", "libOpenCL.so"],
  darwin: ["/System/Library/Frameworks/OpenCL.framework/OpenCL"],
  win32: ["OpenCL.dll"],
};

/** koffi calls a function on a thread of its own, too. */
interface Aside {
  async(queue: bigint, done: (failure: Error | null, status: number) => void): void;
}

/** The library of this machine, or an error that says what to install. `device` is who asks. */
export function openApi(
  koffi: Koffi,
  device: string,
  paths: readonly string[] = LIBRARIES[process.platform] ?? [],
): OpenClApi {
  const failures: string[] = [];
  for (const path of paths) {
    try {
      return fromLibrary(koffi, koffi.load(path));
    } catch (e) {
      failures.push((e as Error).message.split("\n")[0] as string);
    }
  }
  throw new DeviceError(
    `${device}: cannot load ${paths[0] ?? "OpenCL"} (${failures[0] ?? `none is known on ${process.platform}`}); install the loader ` +
      "and a driver: on Debian ocl-icd-libopencl1 and pocl-opencl-icd, which runs on the CPU, or the GPU's own",
  );
}

function fromLibrary(koffi: Koffi, library: ReturnType<Koffi["load"]>): OpenClApi {
  const made = (table: Readonly<Record<string, readonly ClKind[]>>, result: string) =>
    Object.entries(table).map(([name, kinds]) => {
      const types = kinds.map((k) => C_TYPES[k]);
      return [name, library.func<(...args: unknown[]) => unknown>(name, result, types)] as const;
    });
  const makers = made(MAKERS, C_TYPES.handle).map(([name, make]) => {
    // a handle below 2^53 comes as a number
    return [name, (...args: unknown[]) => BigInt(make(...args) as number | bigint)] as const;
  });
  const functions = Object.fromEntries([...made(STATUS, "int"), ...makers]) as unknown as ClFunctions;
  const { clFinish } = functions as unknown as { clFinish: Aside };
  return {
    ...functions,
    finishAside: (queue) =>
      new Promise((resolve, reject) => {
        clFinish.async(queue, (failure, status) => (failure ? reject(failure) : resolve(status)));
      }),
    view: (address, bytes) => koffi.view(address, bytes),
  };
}

/** Statuses that mean something to us. */
export const CL = {
  SUCCESS: 0,
  MEM_OBJECT_ALLOCATION_FAILURE: -4,
  OUT_OF_RESOURCES: -5,
  OUT_OF_HOST_MEMORY: -6,
  INVALID_BUFFER_SIZE: -61,
} as const;

const STATUS_NAMES: Readonly<Record<number, string>> = {
  [-1]: "DEVICE_NOT_FOUND",
  [-2]: "DEVICE_NOT_AVAILABLE",
  [-3]: "COMPILER_NOT_AVAILABLE",
  [-4]: "MEM_OBJECT_ALLOCATION_FAILURE",
  [-5]: "OUT_OF_RESOURCES",
  [-6]: "OUT_OF_HOST_MEMORY",
  [-7]: "PROFILING_INFO_NOT_AVAILABLE",
  [-10]: "IMAGE_FORMAT_NOT_SUPPORTED",
  [-11]: "BUILD_PROGRAM_FAILURE",
  [-12]: "MAP_FAILURE",
  [-13]: "MISALIGNED_SUB_BUFFER_OFFSET",
  [-14]: "EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST",
  [-30]: "INVALID_VALUE",
  [-38]: "INVALID_MEM_OBJECT",
  [-39]: "INVALID_IMAGE_FORMAT_DESCRIPTOR",
  [-40]: "INVALID_IMAGE_SIZE",
  [-46]: "INVALID_KERNEL_NAME",
  [-49]: "INVALID_ARG_INDEX",
  [-50]: "INVALID_ARG_VALUE",
  [-51]: "INVALID_ARG_SIZE",
  [-52]: "INVALID_KERNEL_ARGS",
  [-53]: "INVALID_WORK_DIMENSION",
  [-54]: "INVALID_WORK_GROUP_SIZE",
  [-55]: "INVALID_WORK_ITEM_SIZE",
  [-61]: "INVALID_BUFFER_SIZE",
  [-63]: "INVALID_GLOBAL_WORK_SIZE",
  [-1001]: "PLATFORM_NOT_FOUND_KHR",
};
/** A status in words. */
export const explain = (status: number): string => `CL_${STATUS_NAMES[status] ?? `error ${status}`}`;
