// HIP text to code objects by libamd_comgr, the library in which ROCm has its compiler. It runs in a process
// of its own, which loads it through koffi: a second LLVM in a process (OpenCL's) ends it, and so does a
// compiler that fails badly. The class and the function that run there are sent as text, so they use nothing
// from outside but what they are given.

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { env } from "../../env.ts";
import { type Koffi, koffiPath, STACK } from "../../host/koffi.ts";

/** What we call, as amd_comgr.h declares it: the result, then the parameters. All but the first give 0. */
const FUNCTIONS = {
  get_version: ["void", "void*", "void*"],
  create_data: ["int", "int", "void*"],
  set_data: ["int", "uint64_t", "size_t", "void*"],
  set_data_name: ["int", "uint64_t", "const char*"],
  get_data: ["int", "uint64_t", "void*", "void*"],
  release_data: ["int", "uint64_t"],
  create_data_set: ["int", "void*"],
  data_set_add: ["int", "uint64_t", "uint64_t"],
  action_data_count: ["int", "uint64_t", "int", "void*"],
  action_data_get_data: ["int", "uint64_t", "int", "size_t", "void*"],
  destroy_data_set: ["int", "uint64_t"],
  create_action_info: ["int", "void*"],
  action_info_set_language: ["int", "uint64_t", "int"],
  action_info_set_isa_name: ["int", "uint64_t", "const char*"],
  action_info_set_option_list: ["int", "uint64_t", "const char**", "size_t"],
  action_info_set_logging: ["int", "uint64_t", "bool"],
  do_action: ["int", "int", "uint64_t", "uint64_t", "uint64_t"],
  destroy_action_info: ["int", "uint64_t"],
} as const;
export type ComgrCall = keyof typeof FUNCTIONS;
/** A handle, a struct of one uint64_t, goes by value as that number does. */
type ComgrArgument =
  | bigint
  | number
  | boolean
  | string
  | readonly string[]
  | Uint8Array
  | BigUint64Array
  | null;
/** The library; tests have one of their own. */
export type ComgrApi = Readonly<Record<ComgrCall, (...args: ComgrArgument[]) => number>>;

/** The numbers that differ between major versions: HIP among the languages, and two of the actions. */
type Majors = Readonly<
  Record<number, { readonly hip: number; readonly codegen: number; readonly link: number }>
>;
const MAJORS: Majors = {
  2: { hip: 4, codegen: 6, link: 9 },
  3: { hip: 3, codegen: 4, link: 7 },
};

export class Comgr {
  readonly version: string;
  readonly #api: ComgrApi;
  readonly #numbers: NonNullable<Majors[number]>;

  constructor(api: ComgrApi, majors: Majors) {
    this.#api = api;
    const [major, minor] = [new BigUint64Array(1), new BigUint64Array(1)];
    api.get_version(major, minor);
    this.version = `${major[0]}.${minor[0]}`;
    const numbers = majors[Number(major[0])];
    if (numbers === undefined) {
      throw new Error(
        `has interface ${this.version}, of which ${Object.keys(majors).join(" and ")} are known`,
      );
    }
    this.#numbers = numbers;
  }

  /** Whether it makes code for this instruction set, as in amdgcn-amd-amdhsa--gfx90a. */
  knows(isa: string): boolean {
    const info = this.#made("create_action_info");
    try {
      return this.#api.action_info_set_isa_name(info, isa) === 0;
    } finally {
      this.#call("destroy_action_info", info);
    }
  }

  /** The code object of a text, or an error with the compiler's words. */
  compile(text: Uint8Array, isa: string, options: readonly string[]): Uint8Array {
    const { hip, codegen, link } = this.#numbers;
    const [source, toBitcode, executable] = [1, 2, 8];
    const held: [ComgrCall, bigint][] = [];
    const hold = (release: ComgrCall, handle: bigint): bigint => {
      held.push([release, handle]);
      return handle;
    };
    const newSet = () => hold("destroy_data_set", this.#made("create_data_set"));
    try {
      const data = hold("release_data", this.#made("create_data", source));
      this.#call("set_data", data, text.byteLength, text);
      this.#call("set_data_name", data, "kernel.hip");
      let set = newSet();
      this.#call("data_set_add", set, data);
      const info = hold("destroy_action_info", this.#made("create_action_info"));
      this.#call("action_info_set_language", info, hip);
      this.#call("action_info_set_isa_name", info, isa);
      this.#call("action_info_set_logging", info, true);
      for (const [action, itsOptions] of [
        [toBitcode, options],
        [codegen, ["-O3"]],
        [link, []],
      ] as const) {
        this.#call("action_info_set_option_list", info, itsOptions, itsOptions.length);
        const result = newSet();
        const status = this.#api.do_action(action, info, set, result);
        if (status !== 0) throw new Error(this.#log(result) || `action ${action} answers ${status}`);
        set = result;
      }
      return this.#read(set, executable);
    } finally {
      for (const [release, handle] of held.reverse()) this.#api[release](handle);
    }
  }

  #log(set: bigint): string {
    const log = 5;
    const count = new BigUint64Array(1);
    this.#call("action_data_count", set, log, count);
    if (count[0] === 0n) return "";
    return new TextDecoder().decode(this.#read(set, log)).replace(/\0+$/, "").trim();
  }
  /** The first of this kind in a set. */
  #read(set: bigint, kind: number): Uint8Array {
    const data = this.#made("action_data_get_data", set, kind, 0);
    try {
      const size = new BigUint64Array(1);
      this.#call("get_data", data, size, null);
      const bytes = new Uint8Array(Number(size[0]));
      if (bytes.byteLength > 0) this.#call("get_data", data, size, bytes);
      return bytes;
    } finally {
      this.#call("release_data", data);
    }
  }
  /** The handle that a call leaves in its last parameter. */
  #made(name: ComgrCall, ...args: ComgrArgument[]): bigint {
    const handle = new BigUint64Array(1);
    this.#call(name, ...args, handle);
    return handle[0] as bigint;
  }
  #call(name: ComgrCall, ...args: ComgrArgument[]): void {
    const status = this.#api[name](...args);
    if (status !== 0) throw new Error(`amd_comgr_${name} answers ${status}`);
  }
}

/** What the process is asked: which of the libraries makes code for `isa`, or to compile a file. */
interface ComgrRequest {
  readonly koffi: string;
  readonly stack: number;
  readonly functions: typeof FUNCTIONS;
  readonly majors: Majors;
  readonly paths: readonly string[];
  readonly isa: string;
  readonly job?: { readonly file: string; readonly out: string; readonly options: readonly string[] };
}
/** A library that makes the code. */
export interface ComgrLibrary {
  readonly path: string;
  readonly version: string;
}
interface ComgrAnswer {
  readonly found?: ComgrLibrary;
  /** why the others do not */
  readonly tried: readonly string[];
}

/** What the process does: prints a ComgrAnswer, or writes a code object. */
function inProcess(Library: typeof Comgr, load: (name: string) => unknown, request: ComgrRequest): void {
  const fs = load("node:fs") as typeof import("node:fs");
  const koffi = load(request.koffi) as Koffi;
  koffi.config({ sync_stack_size: request.stack });
  const open = (path: string): Comgr => {
    const library = koffi.load(path);
    const bound = Object.entries(request.functions).map(([name, [result, ...args]]) => {
      return [name, library.func(`amd_comgr_${name}`, result, args)];
    });
    return new Library(Object.fromEntries(bound) as ComgrApi, request.majors);
  };
  const firstLine = (e: unknown): string => (e as Error).message.split("\n")[0] as string;
  /** An interface has many builds: what was loaded, and when it was installed. */
  const identity = (): string => {
    const files = new Set(fs.readFileSync("/proc/self/maps", "utf8").match(/\/\S*lib(amd_comgr|LLVM)\S*/g));
    return [...files].map((f) => `${f} ${fs.statSync(f).size} ${fs.statSync(f).mtimeMs}`).join(" ");
  };
  if (request.job !== undefined) {
    const { file, out, options } = request.job;
    try {
      const code = open(request.paths[0] as string).compile(fs.readFileSync(file), request.isa, options);
      fs.writeFileSync(out, code);
    } catch (e) {
      process.exitCode = 1;
      fs.writeSync(2, (e as Error).message);
    }
    return;
  }
  const tried: string[] = [];
  let found: ComgrLibrary | undefined;
  for (const path of request.paths) {
    try {
      const library = open(path);
      if (library.knows(request.isa)) {
        found = { path, version: `${library.version} ${identity()}` };
        break;
      }
      tried.push(`${path} makes no code for ${request.isa.replace(/.*--/, "")}`);
    } catch (e) {
      tried.push(`${path}: ${firstLine(e)}`);
    }
  }
  fs.writeSync(1, JSON.stringify({ found, tried }));
}

/** A Node without what this one was started with, also where this one is Electron. */
function nodeCommand(request: Pick<ComgrRequest, "paths" | "isa" | "job">): readonly [string, ...string[]] {
  const whole: ComgrRequest = {
    koffi: koffiPath(),
    stack: STACK,
    functions: FUNCTIONS,
    majors: MAJORS,
    ...request,
  };
  // some loaders of TypeScript wrap functions in it
  const text = `const __name = (f) => f;\n(${inProcess})(${Comgr}, require, JSON.parse(process.argv[1]))`;
  return [
    "env",
    "-u",
    "NODE_OPTIONS",
    "ELECTRON_RUN_AS_NODE=1",
    process.execPath,
    "-e",
    text,
    JSON.stringify(whole),
  ];
}

const FILES = ["libamd_comgr.so.3", "libamd_comgr.so.2"];
const isaOf = (arch: string): string => `amdgcn-amd-amdhsa--${arch}`;

/** The library of the ROCm that ROCM_PATH names, or else the first that the system or its ROCm has. */
export const comgrPaths = (): readonly string[] =>
  env.ROCM_PATH === ""
    ? [...FILES, ...FILES.map((f) => join("/opt/rocm/lib", f))]
    : FILES.map((f) => join(env.ROCM_PATH, "lib", f));

/** The first of the libraries that makes code for `arch`. */
export function askComgr(paths: readonly string[], arch: string): ComgrAnswer {
  const [command, ...args] = nodeCommand({ paths, isa: isaOf(arch) });
  const answer = spawnSync(command, args, { encoding: "utf8" });
  if (answer.status === 0) return JSON.parse(answer.stdout) as ComgrAnswer;
  const words =
    answer.error?.message ?? (answer.stderr.trim() || `ended by ${answer.signal ?? answer.status}`);
  return { tried: [`${paths.join(" and ")} cannot be asked: ${words.split("\n")[0]}`] };
}

/** The command that makes the code object `out` of the text in `file`. */
export const comgrCommand = (
  { path }: ComgrLibrary,
  arch: string,
  job: NonNullable<ComgrRequest["job"]>,
): readonly [string, ...string[]] => nodeCommand({ paths: [path], isa: isaOf(arch), job });
