// A device that runs Metal's kernels as C++ on the CPU, for tests: the stub of metal_stdlib has the threads,
// the host's compiler the rest. It shows that texts mean what they should, not that Apple's compiler takes
// them. Memory is the CLANG device's.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isText, type Renderer, type Source } from "../../src/codegen/target.ts";
import { open as openClang } from "../../src/devices/clang.ts";
import { type Koffi, openKoffi } from "../../src/host/koffi.ts";
import { kernelIdentifier } from "../../src/names.ts";
import { metalFor } from "../../src/render/metal.ts";
import type { Compiled, Launch, Program } from "../../src/runtime/device.ts";
import { METAL_STDLIB } from "./metalstub.ts";

type Run = (buffers: BigUint64Array, vals: Int32Array, groups: Uint32Array, local: Uint32Array) => void;
export type MetalRun = Run;
type Block = { readonly vaAddr: bigint };

/** The first compiler of C++ that is there; on Linux, which has the fibres of the stub. */
export const cppCompiler = (): string | undefined =>
  (process.platform === "linux" ? ["g++", "clang++"] : []).find(
    (c) => spawnSync(c, ["--version"]).status === 0,
  );

/** Calls a kernel with what the arrays have, by the parameters in its head. */
function entryOf(entry: string, name: string, text: string): string {
  const head = text.split("\n").find((line) => line.includes("kernel void ")) ?? "";
  const params = head.slice(head.indexOf("(", head.indexOf("kernel void ")) + 1, head.lastIndexOf(")"));
  let [buffers, vals] = [0, 0];
  const args = params.split(", ").map((p) => {
    if (p.startsWith("uint3 ")) return p.split(" ")[1];
    if (p.startsWith("constant int& ")) return `fibres::vals[${vals++}]`;
    return `(${p.slice(0, p.lastIndexOf(" "))})fibres::buffers[${buffers++}]`;
  });
  return `static void call(uint3 gid, uint3 lid) { ${kernelIdentifier(name)}(${args.join(", ")}); }
extern "C" void ${entry}(void** buffers, const int* vals, const uint* groups, const uint* local) {
  fibres::buffers = buffers;
  fibres::vals = vals;
  fibres::runGrid(call, groups, local);
}`;
}

/** An array of a threadgroup is one for all of its threads. */
const sharedArrays = (text: string): string =>
  text.replace(/^( *alignas\(16\) )threadgroup /gm, "$1static threadgroup ");

/** What every text starts with. */
const START = "#include <metal_stdlib>\nusing namespace metal;";
const HEAD = /^#include <metal_stdlib>\nusing namespace metal;\n/;

export interface NamedText {
  readonly name: string;
  readonly text: string;
}

export class MetalOnCpu {
  readonly folder = mkdtempSync(join(tmpdir(), "gradloom-metal-"));
  /** the texts of all kernels, by name */
  readonly texts = new Map<string, string>();
  readonly #koffi: Koffi;
  readonly #compiler: string;
  #count = 0;

  constructor(koffi: Koffi, compiler: string) {
    this.#koffi = koffi;
    this.#compiler = compiler;
    writeFileSync(join(this.folder, "metal_stdlib"), METAL_STDLIB);
  }
  static async open(compiler: string): Promise<MetalOnCpu> {
    return new MetalOnCpu(await openKoffi("METAL"), compiler);
  }
  close(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Several kernels in one file: each in its own namespace, so that their helpers do not meet. */
  compile(kernels: readonly NamedText[]): Run[] {
    const [file, library] = [`k${this.#count}.cpp`, `k${this.#count++}.so`];
    const bodies = kernels.map(({ name, text }, i) => {
      this.texts.set(name, text);
      const body = sharedArrays(text).replace(HEAD, "");
      return `namespace k${i} {\n${body}\n${entryOf(`run${i}`, name, text)}\n}`;
    });
    writeFileSync(join(this.folder, file), [START, ...bodies, ""].join("\n"));
    const flags = ["-std=c++14", "-O1", "-w", "-ffp-contract=off", "-fno-strict-aliasing", "-fwrapv"];
    const args = [...flags, "-shared", "-fPIC", "-I.", "-x", "c++", file, "-o", library];
    const made = spawnSync(this.#compiler, args, { cwd: this.folder, encoding: "utf8" });
    if (made.status !== 0) throw new Error(`${this.#compiler}:\n${made.stderr}\n${bodies.join("\n")}`);
    const loaded = this.#koffi.load(join(this.folder, library));
    return kernels.map((_, i) => loaded.func<Run>(`run${i}`, "void", ["void*", "void*", "void*", "void*"]));
  }

  /** As a device of this process: CLANG with another renderer and compiler. */
  async device(name: string, renderer: Renderer<string> = metalFor()): Promise<Compiled> {
    const clang = await openClang("CLANG:9");
    const sizes = (xs: readonly number[]): Uint32Array =>
      Uint32Array.from({ length: 3 }, (_, i) => xs[i] ?? 1);
    const { allocator } = clang;
    return {
      ...{ name, allocator, renderer, space: this, timeline: undefined, graph: undefined },
      ...{ keepsTime: false, compilesAside: false },
      synchronize: () => clang.synchronize(),
      compile: (kernel: string, source: Source): Program => {
        if (!isText(source)) throw new Error("Metal is text");
        const [run] = this.compile([{ name: kernel, text: source.code }]) as [Run];
        return {
          run: (handles, { globalSize, localSize, vals }: Launch) => {
            const buffers = BigUint64Array.from((handles as Block[]).map((b) => b.vaAddr));
            run(buffers, Int32Array.from(vals), sizes(globalSize), sizes(localSize));
            return undefined;
          },
        };
      },
    };
  }
}
