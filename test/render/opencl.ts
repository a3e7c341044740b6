// A small OpenCL host for the tests: opens the first device through koffi, builds
// a program, runs one case of it.

import { openKoffi } from "../../src/host/koffi.ts";
import { type Case, encode } from "./kernels.ts";

type Fn = (...args: unknown[]) => number & bigint;
interface Library {
  func(name: string, result: string, parameters: readonly string[]): Fn;
}

const P = "void*";
const SIGNATURES = {
  clGetPlatformIDs: ["int", ["uint32", P, P]],
  clGetDeviceIDs: ["int", [P, "uint64", "uint32", P, P]],
  clCreateContext: [P, [P, "uint32", P, P, P, P]],
  clCreateCommandQueue: [P, [P, P, "uint64", P]],
  clCreateProgramWithSource: [P, [P, "uint32", "const char **", P, P]],
  clBuildProgram: ["int", [P, "uint32", P, "str", P, P]],
  clGetProgramBuildInfo: ["int", [P, P, "uint32", "size_t", P, P]],
  clCreateKernel: [P, [P, "str", P]],
  clCreateBuffer: [P, [P, "uint64", "size_t", P, P]],
  clSetKernelArg: ["int", [P, "uint32", "size_t", P]],
  clEnqueueNDRangeKernel: ["int", [P, P, "uint32", P, P, P, "uint32", P, P]],
  clEnqueueReadBuffer: ["int", [P, P, "uint32", "size_t", "size_t", P, "uint32", P, P]],
  clReleaseMemObject: ["int", [P]],
  clReleaseKernel: ["int", [P]],
  clReleaseProgram: ["int", [P]],
} as const;
type Api = { readonly [K in keyof typeof SIGNATURES]: Fn };

const LIBRARIES = ["libOpenCL.so.1", "libOpenCL.so", "OpenCL.dll"];
const DEVICE_TYPE_ALL = 0xffffffffn;
const BUILD_LOG = 0x1183;
const READ_WRITE = 1n;
const COPY_HOST = 32n;

const check = (what: string, code: number): void => {
  if (code !== 0) throw new Error(`${what} failed with ${code}`);
};

export class OpenCL {
  readonly api: Api;
  readonly context: bigint;
  readonly device: bigint;
  readonly queue: bigint;

  constructor(api: Api, context: bigint, device: bigint, queue: bigint) {
    this.api = api;
    this.context = context;
    this.device = device;
    this.queue = queue;
  }

  static async open(): Promise<OpenCL> {
    const koffi = (await openKoffi("OPENCL")) as unknown as { load(path: string): Library };
    const library = LIBRARIES.map((path) => {
      try {
        return koffi.load(path);
      } catch {
        return undefined;
      }
    }).find((l) => l !== undefined);
    if (library === undefined) throw new Error("libOpenCL is not installed");
    const entries = Object.entries(SIGNATURES).map(([name, [result, args]]) => [
      name,
      library.func(name, result, args),
    ]);
    const api = Object.fromEntries(entries) as Api;
    const id = new BigUint64Array(1);
    check("clGetPlatformIDs", api.clGetPlatformIDs(1, id, null));
    check("clGetDeviceIDs", api.clGetDeviceIDs(id[0], DEVICE_TYPE_ALL, 1, id, null));
    const device = id[0] as bigint;
    const error = new Int32Array(1);
    const context = api.clCreateContext(null, 1, id, null, null, error);
    check("clCreateContext", error[0] as number);
    const queue = api.clCreateCommandQueue(context, device, 0n, error);
    check("clCreateCommandQueue", error[0] as number);
    return new OpenCL(api, context, device, queue);
  }

  build(source: string): { run(c: Case): Uint8Array[]; release(): void } {
    const error = new Int32Array(1);
    const program = this.api.clCreateProgramWithSource(this.context, 1, [source], null, error);
    check("clCreateProgramWithSource", error[0] as number);
    const devices = BigUint64Array.of(this.device);
    if (this.api.clBuildProgram(program, 1, devices, "", null, null) !== 0) {
      const log = Buffer.alloc(20_000);
      this.api.clGetProgramBuildInfo(program, this.device, BUILD_LOG, log.length, log, null);
      throw new Error(`clBuildProgram: ${log.toString().replace(/\0.*/s, "")}`);
    }
    return { run: (c) => this.#run(program, c), release: () => void this.api.clReleaseProgram(program) };
  }

  #run(program: bigint, c: Case): Uint8Array[] {
    const { api, context, queue } = this;
    const error = new Int32Array(1);
    const kernel = api.clCreateKernel(program, c.name, error);
    check(`clCreateKernel ${c.name}`, error[0] as number);
    const host = [
      ...c.outputs.map((o) => new Uint8Array(o.values.length * o.dtype.itemsize)),
      ...c.inputs.map(({ dtype, values }) => encode(dtype, values)),
    ];
    const buffers = host.map((bytes) => {
      const buffer = api.clCreateBuffer(context, READ_WRITE | COPY_HOST, bytes.length, bytes, error);
      check("clCreateBuffer", error[0] as number);
      return buffer;
    });
    for (const [i, b] of buffers.entries())
      check("clSetKernelArg", api.clSetKernelArg(kernel, i, 8, BigUint64Array.of(b)));
    for (const [i, v] of c.vals.entries()) {
      check("clSetKernelArg", api.clSetKernelArg(kernel, buffers.length + i, 4, Int32Array.of(v)));
    }
    const groups = c.local === 1 ? 1 : 2;
    const size = [BigInt(groups * c.local), BigInt(c.local)].map((x) => BigUint64Array.of(x));
    const code = api.clEnqueueNDRangeKernel(queue, kernel, 1, null, size[0], size[1], 0, null, null);
    check(`clEnqueueNDRangeKernel ${c.name}`, code);
    const results = host.slice(0, c.outputs.length);
    for (const [i, bytes] of results.entries()) {
      check(
        "clEnqueueReadBuffer",
        api.clEnqueueReadBuffer(queue, buffers[i], 1, 0, bytes.length, bytes, 0, null, null),
      );
    }
    for (const b of buffers) api.clReleaseMemObject(b);
    api.clReleaseKernel(kernel);
    return results;
  }
}
