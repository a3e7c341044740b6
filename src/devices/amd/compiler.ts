// HIP text to code objects, by the clang of ROCm or of the system: found, asked in processes of its own, as
// many at once as there are cores, and what it gave is kept for the next process. A caller that cannot wait
// compiles by itself.

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

const CLANGS = ["clang-19", "clang-20", "clang-21", "/opt/rocm/llvm/bin/clang"];
const FLAGS = [
  ...["-x", "hip", "--offload-device-only", "--no-gpu-bundle-output", "-nogpulib", "-nogpuinc", "-O3", "-w"],
  ...AMDLanguage.flags,
];

/** A compiler that answers, and its version. */
export interface HipClang {
  readonly command: string;
  readonly version: string;
}

/** The compiler that ROCM_PATH names, or else the first that has the code generator and the linker. */
export function findHipClang(
  candidates: readonly string[] = env.ROCM_PATH === ""
    ? CLANGS
    : [join(env.ROCM_PATH, "llvm", "bin", "clang")],
): HipClang {
  const tried: string[] = [];
  for (const command of candidates) {
    const ask = (option: string): string => spawnSync(command, [option], { encoding: "utf8" }).stdout ?? "";
    const version = ask("--version").split("\n")[0] ?? "";
    if (version === "") tried.push(`${command} does not answer`);
    else if (!ask("-print-targets").includes("amdgcn")) tried.push(`${command} makes no code for AMD's GPUs`);
    else if (!ask("-print-prog-name=ld.lld").includes("/")) tried.push(`${command} has no ld.lld`);
    else return { command, version };
  }
  throw new DeviceError(
    `AMD: no compiler for its kernels (${tried.join(", ")}); install clang-19 and lld-19, or ROCm, whose folder ` +
      "ROCM_PATH names",
  );
}

interface HipCode {
  readonly code: Uint8Array;
  readonly entry: string;
}

/** What a compiler is asked for, and what becomes of its answer. */
interface HipJob {
  readonly clang: HipClang;
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

  #prepare(folder: string): { readonly args: readonly string[]; readonly out: string } {
    const [file, out] = [join(folder, "kernel.hip"), join(folder, "kernel.hsaco")];
    writeFileSync(file, this.#job.text);
    return { args: [...FLAGS, `--offload-arch=${this.#job.arch}`, "-o", out, file], out };
  }
  #finish(out: string, status: number | null, words: string): void {
    if (this.#result !== undefined) return;
    const { clang, refused, done } = this.#job;
    if (status === 0) {
      this.#result = new Uint8Array(readFileSync(out));
      done(this.#result);
    } else this.#result = refused(words.trim() || `${clang.command} ended with ${status}`);
  }
  #get(): Uint8Array {
    if (ArrayBuffer.isView(this.#result)) return this.#result;
    throw this.#result ?? new InternalError("a compiler ended without a result");
  }
  #here(): Uint8Array {
    if (this.#result !== undefined) return this.#get();
    const folder = newFolder();
    try {
      const { args, out } = this.#prepare(folder);
      const answer = spawnSync(this.#job.clang.command, args, { encoding: "utf8" });
      this.#finish(out, answer.status, answer.error?.message ?? answer.stderr);
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
      const { args, out } = this.#prepare(folder);
      const { status, words } = await answerOf(this.#job.clang.command, args);
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

/** What a process of its own says. */
const answerOf = (
  command: string,
  args: readonly string[],
): Promise<{ readonly status: number | null; readonly words: string }> =>
  new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ["ignore", "ignore", "pipe"] });
    let words = "";
    child.stderr.setEncoding("utf8").on("data", (part: string) => {
      words += part;
    });
    child.once("error", (e) => resolve({ status: null, words: e.message }));
    child.once("close", (status) => resolve({ status, words }));
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
  readonly #clang: HipClang;
  readonly #arch: string;
  readonly #device: string;

  constructor(clang: HipClang, arch: string, device: string) {
    this.#clang = clang;
    this.#arch = arch;
    this.#device = device;
  }

  /** The code of a kernel: at once where it is kept. */
  compile(name: string, source: Source): MaybePromise<HipCode> {
    if (!isText(source)) throw new InternalError("AMD compiles HIP");
    const { entry, text } = unnumbered(this.#device, name, source.code);
    const key = keyOf(this.#clang.version, this.#arch, FLAGS.join(" "), text);
    const known = kept("hip", key);
    if (known !== undefined) return { code: known, entry };
    const refused = (words: string) =>
      new CompileError(
        `${this.#device}: ${this.#clang.command} refused the kernel ${name}:\n${words}\nsource:\n${text}`,
      );
    const done = (code: Uint8Array) => {
      keep("hip", key, code);
      orders.delete(key);
    };
    const job: HipJob = { clang: this.#clang, arch: this.#arch, text, refused, done };
    return chain(getOrMake(orders, key, () => new HipOrder(job)).code, (code) => ({ code, entry }));
  }
}
