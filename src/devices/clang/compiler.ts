// C text to a shared object: finds gcc or clang, and keeps what they gave for the next process. native.ts
// loads and calls it. Temporary files are gone when a function returns.
//
// Memory, measured with koffi 3.3 on Node 20, a kernel of three buffers: addresses as bigint from
// `koffi.alloc` 45 ns a call, typed arrays 96 ns, the addresses written into a table and the table passed 37
// ns. The table also escapes koffi's limit of 64 parameters, so every kernel gets a second entry that takes
// one.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Source } from "../../codegen/target.ts";
import { env } from "../../env.ts";
import { CompileError, DeviceError } from "../../errors.ts";
import { range } from "../../helpers.ts";
import { cached, keyOf } from "../../host/diskcache.ts";
import { ClangLanguage } from "../../render/languages.ts";
import type { Vectors } from "../../render/vectors.ts";

export interface CCompiler {
  /** the command and its first arguments */
  readonly command: readonly string[];
  /** all it defines for this processor, its own version included */
  readonly macros: string;
}

const CANDIDATES = ["clang", "gcc", "cc"];

const NATIVE = process.arch === "arm64" ? "-mcpu=native" : "-march=native";
/**
 * Of clang's 2.8 s for the 79 kernels of an MNIST step, -O1 saves a third, and what it leaves out is what
 * makes loops fast; -O2 without its vectorizers saves nothing that could be measured.
 */
const FLAGS = ["-O2", NATIVE, ...ClangLanguage.flags, "-fPIC", "-w", "-x", "c"];
/**
 * gcc 12 drops loops whose counters it takes for overflowing though they do not (test/devices/clang.test.ts
 * has one); where overflow is defined it does not reason like this.
 */
const GCC_FLAGS = ["-fwrapv"];
/** The arguments for one kernel, without those that name files. */
export const flagsOf = ({ macros }: CCompiler): readonly string[] =>
  macros.includes("#define __clang__ ") ? FLAGS : [...GCC_FLAGS, ...FLAGS];

/** The compiler that the setting CC names, or else the first that answers. */
export function findCompiler(
  candidates: readonly string[] = env.CC === "" ? CANDIDATES : [env.CC],
): CCompiler {
  for (const candidate of candidates) {
    const command = candidate.trim().split(/\s+/);
    const args = [...command.slice(1), NATIVE, "-dM", "-E", "-x", "c", "-"];
    const answer = spawnSync(command[0] ?? "", args, { input: "", encoding: "utf8" });
    if (answer.status === 0) return { command, macros: answer.stdout };
  }
  throw new DeviceError(
    `CLANG: no C compiler answers (tried ${candidates.join(", ")}); install clang or gcc, or name one in CC`,
  );
}

/** Whether it defines this name for the processor. */
export const hasMacro = ({ macros }: CCompiler, name: string): boolean =>
  new RegExp(`^#define ${name} `, "m").test(macros);

/**
 * The vectors of this processor: 128 bits are everywhere, with AVX2 there are 256. AVX-512 gives these twice
 * the registers, and `isWide` says whether vectors of 512 bits pay (wide.ts).
 */
export function vectorsOf(compiler: CCompiler, isWide: boolean): Vectors {
  const has = (name: string): boolean => hasMacro(compiler, name);
  const narrow = has("__AVX2__") ? [8, 4] : [4];
  const widths = isWide ? [16, ...narrow] : narrow;
  const registers = has("__AVX512VL__") || has("__aarch64__") ? 32 : 16;
  // with 24 of 32 compilers run out of them
  const accumulators = registers === 32 ? 16 : 12;
  return { widths, accumulators, registers, fused: has("__FMA__") || has("__aarch64__") };
}

/** The entry that takes a table of buffers and a table of variables. */
export const ENTRY = "kernel_entry";

/** The key under which the code of a kernel is kept, and its text. */
export interface Job {
  readonly compiler: CCompiler;
  /** of the kernel in `source` */
  readonly name: string;
  readonly source: Source<string>;
  readonly key: string;
}

/** The kernel's own name does not count: the number in it depends on what was compiled before. */
export function jobFor(compiler: CCompiler, name: string, source: Source<string>): Job {
  const parts = [
    compiler.command.join(" "),
    compiler.macros,
    flagsOf(compiler).join(" "),
    withEntry(name, source),
  ];
  return { compiler, name, source, key: keyOf(...parts) };
}

/** The text with a second entry, which ends in `suffix` and is the only one that others see. */
export function withEntry(name: string, source: Source<string>, suffix = ""): string {
  const { code } = source;
  const head = `void ${name}(`;
  if (!code.includes(head)) throw new CompileError(`CLANG: no kernel ${name} in this source:\n${code}`);
  const buffers = range(source.buffers).map((i) => `b[${i}]`);
  const vals = range(source.vals + (source.isPart ? 2 : 0)).map((i) => `v[${i}]`);
  return `${code.replace(head, `static void kernel${suffix}(`)}
void ${ENTRY}${suffix}(void** b, const int* v) { kernel${suffix}(${[...buffers, ...vals].join(", ")}); }
`;
}

function inTempFolder<T>(use: (folder: string) => T): T {
  const folder = mkdtempSync(join(tmpdir(), "gradloom-"));
  try {
    return use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The shared object of one kernel, of this process or an earlier one. */
export function compile(compiler: CCompiler, name: string, source: Source<string>): Uint8Array {
  const job = jobFor(compiler, name, source);
  return cached("clang", job.key, () => compileAlone(job));
}

/** One kernel, here and now; says what is wrong with it. */
export function compileAlone({ compiler, name, source }: Job): Uint8Array {
  const [command = "", ...first] = compiler.command;
  const input = withEntry(name, source);
  const run = (...args: string[]): void => {
    const answer = spawnSync(command, [...first, ...flagsOf(compiler), ...args, "-"], {
      input,
      encoding: "utf8",
    });
    if (answer.status === 0) return;
    const words = answer.error?.message ?? (answer.stderr || `ended by ${answer.signal ?? answer.status}`);
    throw new CompileError(
      `CLANG: ${command} refused the kernel ${name}:\n${words.trim()}\nsource:\n${source.code}`,
    );
  };
  return inTempFolder((folder) => {
    const [object, out] = [join(folder, "kernel.o"), join(folder, "kernel.so")];
    if (linker.present) {
      run("-c", "-o", object);
      linker.present = spawnSync("ld", [...LINK, object, ...LINK_LIBRARIES, "-o", out]).status === 0;
    }
    if (!linker.present) run("-shared", "-o", out, "-lm");
    return readFileSync(out);
  });
}

/**
 * A compiler that also links is three processes, of which two load all of it: 76 ms against 34 with clang 14.
 */
export const linker = { present: process.platform === "linux" };
export const LINK = ["-shared"];
export const LINK_LIBRARIES = ["--as-needed", "-l:libm.so.6"];
