// HIP text to code objects, by the clang of ROCm or of the system, or by ROCm's library (comgr.ts): found,
// asked in processes of their own, as many at once as there are cores, and what they gave is kept for the
// next process. A caller that cannot wait compiles by itself.

import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { isText, type Source } from "../../codegen/target.ts";
import { env } from "../../env.ts";
import { CompileError, DeviceError, InternalError } from "../../errors.ts";
import { chain, getOrMake, type MaybePromise, type Waitable, waitable } from "../../helpers.ts";
import { keep, kept, keyOf } from "../../host/diskcache.ts";
import { unnumbered } from "../../render/entry.ts";
import { AMDLanguage } from "../../render/hip.ts";
import { askComgr, comgrCommand, comgrPaths } from "./comgr.ts";

const CLANGS = ["clang-19", "clang-20", "clang-21", "/opt/rocm/llvm/bin/clang"];
const CLANG_FLAGS = ["-x", "hip", "--offload-device-only", "--no-gpu-bundle-output"];
const FLAGS = ["-nogpulib", "-nogpuinc", "-O3", "-w", ...AMDLanguage.flags];

/** A compiler that answers. */
export interface HipTool {
  /** for messages */
  readonly name: string;
  readonly version: string;
  /** the command that makes the code object `out` of the text in `file` */
  command(arch: string, file: string, out: string): readonly [string, ...string[]];
}

/** What there is, or why there is none: a word on each that was tried. */
export type HipSearch = { readonly found: HipTool } | { readonly tried: readonly string[] };

/** The clang that ROCM_PATH names, or else the first that has the code generator and the linker. */
export function findHipClang(
  candidates: readonly string[] = env.ROCM_PATH === ""
    ? CLANGS
    : [join(env.ROCM_PATH, "llvm", "bin", "clang")],
): HipSearch {
  const tried: string[] = [];
  for (const name of candidates) {
    const ask = (option: string): string => spawnSync(name, [option], { encoding: "utf8" }).stdout ?? "";
    const version = ask("--version").split("\n")[0] ?? "";
    if (version === "") tried.push(`${name} does not answer`);
    else if (!ask("-print-targets").includes("amdgcn")) tried.push(`${name} makes no code for AMD's GPUs`);
    else if (!ask("-print-prog-name=ld.lld").includes("/")) tried.push(`${name} has no ld.lld`);
    else {
      const command: HipTool["command"] = (arch, file, out) => {
        return [name, ...CLANG_FLAGS, ...FLAGS, `--offload-arch=${arch}`, "-o", out, file];
      };
      return { found: { name, version, command } };
    }
  }
  return { tried };
}

/** The first of the libraries that makes code for `arch`. */
export function findComgr(arch: string, paths: readonly string[] = comgrPaths()): HipSearch {
  const { found, tried } = askComgr(paths, arch);
  if (found === undefined) return { tried };
  const command: HipTool["command"] = (its, file, out) => {
    return comgrCommand(found, its, { file, out, options: FLAGS });
  };
  return { found: { name: found.path, version: found.version, command } };
}

/** What compiles for `arch` here: a clang, or else the library of ROCm's compiler. */
export function findHipTool(
  arch: string,
  ways: readonly (() => HipSearch)[] = [() => findHipClang(), () => findComgr(arch)],
): HipTool {
  const tried: string[] = [];
  for (const way of ways) {
    const search = way();
    if ("found" in search) return search.found;
    tried.push(...search.tried);
  }
  throw new DeviceError(
    `AMD: no compiler for the kernels of ${arch} (${tried.join(", ")}); install clang-19 and lld-19, or ROCm or its ` +
      "library libamd_comgr; ROCM_PATH names the folder of a ROCm that lies elsewhere",
  );
}

interface HipCode {
  readonly code: Uint8Array;
  readonly entry: string;
}

/** What a compiler is asked for, and what becomes of its answer. */
interface HipJob {
  readonly tool: HipTool;
  readonly arch: string;
  readonly text: string;
  refused(words: string): CompileError;
  done(code: Uint8Array): void;
}

/** A text that somebody waits for. */
class HipOrder {
  readonly code: Waitable<Uint8Array>;
  readonly #job: HipJob;
  #result: Uint8Array | Error | undefined;

  constructor(job: HipJob) {
    this.#job = job;
    this.code = waitable(
      inTurn(() => this.#aside()),
      () => this.#here(),
    );
    // who waits is told, and who waits in another way too
    this.code.catch(() => {});
  }

  #prepare(folder: string): { readonly command: readonly [string, ...string[]]; readonly out: string } {
    const [file, out] = [join(folder, "kernel.hip"), join(folder, "kernel.hsaco")];
    const { tool, arch, text } = this.#job;
    writeFileSync(file, text);
    return { command: tool.command(arch, file, out), out };
  }
  #finish(out: string, status: Ending, words: string): void {
    if (this.#result !== undefined) return;
    const { tool, refused, done } = this.#job;
    if (status === 0) {
      this.#result = new Uint8Array(readFileSync(out));
      done(this.#result);
    } else this.#result = refused(words.trim() || `${tool.name} ended by ${status}`);
  }
  #get(): Uint8Array {
    if (ArrayBuffer.isView(this.#result)) return this.#result;
    throw this.#result ?? new InternalError("a compiler ended without a result");
  }
  #here(): Uint8Array {
    if (this.#result !== undefined) return this.#get();
    const folder = newFolder();
    try {
      const { command, out } = this.#prepare(folder);
      const [program, ...args] = command;
      const answer = spawnSync(program, args, { encoding: "utf8" });
      this.#finish(out, answer.status ?? answer.signal, answer.error?.message ?? answer.stderr);
      return this.#get();
    } finally {
      removeFolder(folder);
    }
  }
  async #aside(): Promise<Uint8Array> {
    if (this.#result !== undefined) return this.#get();
    const folder = newFolder();
    const remove = () => removeFolder(folder);
    process.once("exit", remove);
    try {
      const { command, out } = this.#prepare(folder);
      const { status, words } = await answerOf(command);
      this.#finish(out, status, words);
      return this.#get();
    } finally {
      process.off("exit", remove);
      remove();
    }
  }
}

const newFolder = (): string => mkdtempSync(join(tmpdir(), "gradloom-"));
const removeFolder = (folder: string): void => rmSync(folder, { recursive: true, force: true });

/** The status of a process, or the signal that ended it. */
type Ending = number | NodeJS.Signals | null;
/** What a process of its own says. */
const answerOf = ([program, ...args]: readonly [string, ...string[]]): Promise<{
  readonly status: Ending;
  readonly words: string;
}> =>
  new Promise((resolve) => {
    const child = spawn(program, args, { stdio: ["ignore", "ignore", "pipe"] });
    let words = "";
    child.stderr.setEncoding("utf8").on("data", (part: string) => {
      words += part;
    });
    child.once("error", (e) => resolve({ status: null, words: e.message }));
    child.once("close", (status, signal) => resolve({ status: status ?? signal, words }));
  });

/** As many as there are cores run; the others wait for their turn. */
let running = 0;
const waiting: (() => void)[] = [];
async function inTurn<T>(work: () => Promise<T>): Promise<T> {
  if (running >= availableParallelism()) await new Promise<void>((go) => waiting.push(go));
  running++;
  try {
    return await work();
  } finally {
    running--;
    waiting.shift()?.();
  }
}

/** By key: two devices may want the same kernel. */
const orders = new Map<string, HipOrder>();

/** Compiles for one instruction set. */
export class HipCompiler {
  readonly #tool: HipTool;
  readonly #arch: string;
  readonly #device: string;

  constructor(tool: HipTool, arch: string, device: string) {
    this.#tool = tool;
    this.#arch = arch;
    this.#device = device;
  }

  /** The code of a kernel: at once where it is kept. */
  compile(name: string, source: Source): MaybePromise<HipCode> {
    if (!isText(source)) throw new InternalError("AMD compiles HIP");
    const { entry, text } = unnumbered(this.#device, name, source.code);
    const key = keyOf(this.#tool.version, ...this.#tool.command(this.#arch, "", ""), text);
    const known = kept("hip", key);
    if (known !== undefined) return { code: known, entry };
    const refused = (words: string) =>
      new CompileError(
        `${this.#device}: ${this.#tool.name} refused the kernel ${name}:\n${words}\nsource:\n${text}`,
      );
    const done = (code: Uint8Array) => {
      keep("hip", key, code);
      orders.delete(key);
    };
    const job: HipJob = { tool: this.#tool, arch: this.#arch, text, refused, done };
    return chain(getOrMake(orders, key, () => new HipOrder(job)).code, (code) => ({ code, entry }));
  }
}
