// CUDA C++ to machine code with NVRTC. `openNvrtc()` finds and loads the library; a `CudaCompiler` turns
// kernels into cubins of one architecture, or into PTX where NVRTC is older than the GPU, and keeps them for
// the next process. Loading the result is left to the devices (CUDA through the driver, NV by itself). One
// kernel at a time: NVRTC 13 compiles twelve on four threads as fast as one after the other.

import { env } from "../../env.ts";
import { CompileError, DeviceError } from "../../errors.ts";
import { cached, keyOf } from "../../host/diskcache.ts";
import type { Koffi } from "../../host/koffi.ts";
import { unnumbered } from "../../render/entry.ts";
import { CUDALanguage } from "../../render/languages.ts";
import type { Out } from "./driver.ts";
import { builtinsBeside, headersBeside, nvrtcPaths } from "./find.ts";
import { HEADERS } from "./headers.ts";

/** cubin: machine code of one architecture; ptx: an assembly that the driver compiles when it is loaded. */
export type CodeKind = "cubin" | "ptx";

export type Compilation =
  | { readonly ok: true; readonly code: Uint8Array }
  | { readonly ok: false; readonly log: string };

/** What we use of NVRTC; tests have one of their own. */
export interface Nvrtc {
  /** its own, as in 13.0 */
  readonly version: string;
  /** the architectures it knows: 90 is sm_90 */
  readonly archs: readonly number[];
  compile(source: string, options: readonly string[], kind: CodeKind): Compilation;
}

/** NVRTC's functions, as declared in nvrtc.h: each returns 0 if all is well. A program is a pointer. */
const FUNCTIONS = {
  nvrtcVersion: ["void*", "void*"],
  nvrtcGetNumSupportedArchs: ["void*"],
  nvrtcGetSupportedArchs: ["void*"],
  nvrtcCreateProgram: ["void*", "const char*", "const char*", "int", "const char**", "const char**"],
  nvrtcCompileProgram: ["uint64_t", "int", "const char**"],
  nvrtcGetCUBINSize: ["uint64_t", "void*"],
  nvrtcGetCUBIN: ["uint64_t", "void*"],
  nvrtcGetPTXSize: ["uint64_t", "void*"],
  nvrtcGetPTX: ["uint64_t", "void*"],
  nvrtcGetProgramLogSize: ["uint64_t", "void*"],
  nvrtcGetProgramLog: ["uint64_t", "void*"],
  nvrtcDestroyProgram: ["void*"],
} as const;
type Argument = Out | number | bigint | string | readonly string[];
type NvrtcFunctions = Readonly<Record<keyof typeof FUNCTIONS, (...args: Argument[]) => number>>;

/** NVRTC's answers that are the source's fault and not ours. */
const COMPILATION_FAILED = 6;

class NvrtcLibrary implements Nvrtc {
  readonly version: string;
  readonly archs: readonly number[];
  readonly #f: NvrtcFunctions;
  readonly #include: string | undefined;

  constructor(koffi: Koffi, path: string) {
    for (const file of builtinsBeside(path)) koffi.load(file);
    const library = koffi.load(path);
    this.#f = Object.fromEntries(
      Object.entries(FUNCTIONS).map(([name, args]) => [name, library.func(name, "int", args)]),
    ) as NvrtcFunctions;
    this.#include = headersBeside(path);
    const [major, minor, count] = [new Int32Array(1), new Int32Array(1), new Int32Array(1)];
    this.#check("nvrtcVersion", major, minor);
    this.version = `${major[0]}.${minor[0]}${this.#include === undefined ? "" : " with headers"}`;
    this.#check("nvrtcGetNumSupportedArchs", count);
    const archs = new Int32Array(count[0] as number);
    this.#check("nvrtcGetSupportedArchs", archs);
    this.archs = [...archs];
  }

  compile(source: string, options: readonly string[], kind: CodeKind): Compilation {
    const handle = new BigUint64Array(1);
    const own = this.#include === undefined ? HEADERS : {};
    const [names, texts] = [Object.keys(own), Object.values(own)];
    const all = this.#include === undefined ? options : [...options, `--include-path=${this.#include}`];
    this.#check("nvrtcCreateProgram", handle, source, "kernel.cu", names.length, texts, names);
    const program = handle[0] as bigint;
    try {
      const status = this.#f.nvrtcCompileProgram(program, all.length, all);
      if (status !== 0) {
        const log = new TextDecoder().decode(this.#read("nvrtcGetProgramLog", program)).replace(/\0+$/, "");
        const words = log.trim() === "" ? `status ${status}` : log.trim();
        if (status === COMPILATION_FAILED) return { ok: false, log: words };
        throw new DeviceError(`NVRTC ${this.version} cannot compile (status ${status}): ${words}`);
      }
      return { ok: true, code: this.#read(kind === "cubin" ? "nvrtcGetCUBIN" : "nvrtcGetPTX", program) };
    } finally {
      this.#check("nvrtcDestroyProgram", handle);
    }
  }

  #read(what: "nvrtcGetCUBIN" | "nvrtcGetPTX" | "nvrtcGetProgramLog", program: bigint): Uint8Array {
    const size = new BigUint64Array(1);
    this.#check(`${what}Size`, program, size);
    const bytes = new Uint8Array(Number(size[0]));
    if (bytes.byteLength > 0) this.#check(what, program, bytes);
    return bytes;
  }
  #check(name: keyof typeof FUNCTIONS, ...args: Argument[]): void {
    const status = this.#f[name](...args);
    if (status !== 0) throw new DeviceError(`NVRTC: ${name} answers ${status}`);
  }
}

let loaded: Nvrtc | undefined;

/** NVRTC of this machine; `device` is who asks, for the message where there is none. */
export function openNvrtc(koffi: Koffi, device: string): Nvrtc {
  loaded ??= loadNvrtc(koffi, device, nvrtcPaths());
  return loaded;
}

/** The first of the files that is NVRTC. */
export function loadNvrtc(koffi: Koffi, device: string, paths: Iterable<string>): Nvrtc {
  const tried: string[] = [];
  for (const path of paths) {
    try {
      return new NvrtcLibrary(koffi, path);
    } catch (e) {
      tried.push(`${path} (${(e as Error).message.split("\n")[0]})`);
    }
  }
  const what = `${device}: cannot load NVRTC, NVIDIA's compiler`;
  const last = tried.at(-1);
  if (env.CUDA_PATH !== "") {
    const why = last ?? "no libnvrtc lies there";
    throw new DeviceError(
      `${what}, from CUDA_PATH=${env.CUDA_PATH}: ${why}; name the folder of a CUDA toolkit or of the library, or unset ` +
        "CUDA_PATH to have it looked for in the usual places",
    );
  }
  throw new DeviceError(
    `${what} (${tried.length} places, the last: ${last ?? "nothing was there to try"}); install the CUDA toolkit, or ` +
      "only NVRTC with pip install nvidia-cuda-nvrtc, or name its folder in CUDA_PATH",
  );
}

/** What a kernel became. */
export interface CudaCode {
  readonly kind: CodeKind;
  readonly code: Uint8Array;
  /** what the kernel is called in it */
  readonly entry: string;
}

/**
 * Some instructions are for one architecture and no later one (sm_90a); code is
 * made for the GPU that is there.
 */
const hasOwnInstructions = (arch: number): boolean => arch >= 90;

/** Compiles for one architecture, 90 for sm_90. */
export class CudaCompiler {
  readonly #nvrtc: Nvrtc;
  readonly #options: readonly string[];
  readonly #device: string;
  readonly kind: CodeKind;
  /** whose instructions the code may have: the GPU's, or those of the last one that NVRTC knows before it */
  readonly arch: number;

  constructor(nvrtc: Nvrtc, arch: number, device: string) {
    this.#nvrtc = nvrtc;
    this.#device = device;
    this.kind = nvrtc.archs.includes(arch) ? "cubin" : "ptx";
    this.arch = this.kind === "cubin" ? arch : this.#before(arch);
    const own = hasOwnInstructions(arch) ? "a" : "";
    const target = this.kind === "cubin" ? `sm_${arch}${own}` : `compute_${this.arch}`;
    this.#options = [`--gpu-architecture=${target}`, "--std=c++17", "-w", ...CUDALanguage.flags];
  }

  #before(arch: number): number {
    const older = this.#nvrtc.archs.filter((a) => a < arch);
    if (older.length > 0) return Math.max(...older);
    throw new DeviceError(
      `${this.#device}: NVRTC ${this.#nvrtc.version} compiles for sm_${Math.min(...this.#nvrtc.archs)} and later, and ` +
        `this GPU is sm_${arch}; install an older CUDA toolkit and name its folder in CUDA_PATH`,
    );
  }

  /** The code of one kernel, of this process or an earlier one. */
  compile(name: string, source: string): CudaCode {
    const { entry, text } = unnumbered(this.#device, name, source);
    const key = keyOf(this.#nvrtc.version, this.kind, this.#options.join(" "), text);
    const make = (): Uint8Array => {
      const answer = this.#nvrtc.compile(text, this.#options, this.kind);
      if (answer.ok) return answer.code;
      throw new CompileError(
        `${this.#device}: NVRTC refused the kernel ${name}:\n${answer.log}\nsource:\n${source}`,
      );
    };
    return { kind: this.kind, code: cached("cuda", key, make), entry };
  }
}
