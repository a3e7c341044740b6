// The only reader of the environment. In Node the values come from process.env, in a page from
// globalThis.GRADLOOM_ENV, an object set before the import. Everyone else reads `env.NAME`; tests and tools
// change a value for the duration of a call with `withEnv`.

import { ArgumentError } from "./errors.ts";
import { restoring } from "./helpers.ts";

/** The settings and their defaults. A test compares the table of settings in the docs with this one. */
export const SETTINGS = {
  /**
   * the default device: WASM, JS, CLANG, CUDA, NV, METAL, WEBGPU, NULL, optionally with a number (WASM:1);
   * AUTO: the fastest that opens
   */
  DEV: "WASM",
  /** 1 devices, 2 kernel timings, 3 schedule, 4 source, 5 uops, 6 queues, 7 passes */
  DEBUG: 0,
  /** 1: plain loops, without vectors, tiles and threads */
  NOOPT: 0,
  /** n: search the OptOps of each kernel by measuring, with a beam of n lists; results are kept in CACHE */
  BEAM: 0,
  /** the longest search for one kernel, in seconds */
  BEAM_SECONDS: 20,
  /** 0: fuse by the classic rules alone, at most one reduction per kernel */
  FUSE: 1,
  /** megabytes of freed memory that a device keeps for the next buffer of the same size */
  MEMCACHE: 256,
  /** gigabytes that the memory of WASM may grow to, 16 at most; above 4 the engine must have memory64 */
  WASM_MEMORY: 4,
  /** 0: TinyJit captures nothing, 2: it replays item by item, without a graph */
  JIT: 1,
  /** 1: write the lazy graph of every schedule to GRAPHPATH as .dot and .svg */
  GRAPH: 0,
  /** GRAPH for the call of a TinyJit that is captured; empty: as GRAPH */
  JITGRAPH: "",
  /** where GRAPH=1 writes, without the extension */
  GRAPHPATH: "gradloom-graph",
  /** 1: record what runs when, and write a trace to PROFILEPATH when the process ends */
  PROFILE: 0,
  /** where PROFILE=1 writes */
  PROFILEPATH: "gradloom-profile.json",
  /** 1: verify types and structure of the UOps between passes */
  SPEC: 0,
  /** 1: check indices, and sums of int32, when they are computed, and fail if one is out of range */
  CHECK: 0,
  /** how allreduce works: 0 every device gets all parts, 1 in a ring if large, 2 always in a ring */
  RING: 1,
  /** how many threads run a kernel on WASM; 0: as many as the machine has */
  THREADS: 0,
  /** in Node: convolutions and products of matrices over images, of 1 16-bit floats, 2 float32 */
  IMAGE: 0,
  /** 1: tensor cores may multiply float32 matrices; they use 19 of the 32 bits */
  ALLOW_TF32: 0,
  /** how many seconds a wait for a device may see no progress before it fails */
  HCQ_TIMEOUT: 30,
  /** what kernels of WEBGPU may use: f32, f16 (also 16-bit floats), full; empty: full */
  WEBGPU_TIER: "",
  /** the C compiler of CLANG; empty: the first of clang, gcc, cc */
  CC: "",
  /** the folder of the CUDA toolkit, or of NVRTC's library; empty: the usual places */
  CUDA_PATH: "",
  /** the folder of ROCm, whose compiler AMD takes; empty: clang-19, or the ROCm of the usual place */
  ROCM_PATH: "",
  /** where compiled kernels and results of BEAM are kept; empty: .cache/gradloom at home; 0: nowhere */
  CACHE: "",
  /** 0: keep no code of the package itself in CACHE, which makes the start of the next process shorter */
  CODECACHE: 1,
  /** 0: no progress bar while compiling or searching takes long */
  PROGRESS: 1,
  /** set: never print colours */
  NO_COLOR: "",
} as const satisfies Record<string, string | number>;

type Settings = typeof SETTINGS;
export type EnvName = keyof Settings;
export type Env = { readonly [K in EnvName]: Settings[K] extends number ? number : string };

type Globals = {
  process?: { env?: Record<string, string | undefined>; stdout?: { isTTY?: boolean } };
  GRADLOOM_ENV?: Record<string, string | number | undefined>;
};
const host = globalThis as Globals;

/** A variable of the environment that is not ours. */
export const foreignVariable = (name: string): string | undefined => host.process?.env?.[name];

/** All variables of the environment, for a worker thread. */
export const allVariables = (): Record<string, string | undefined> => host.process?.env ?? {};

/** A setting as the environment has it, for what runs before the package is loaded. */
export function setting(name: EnvName): string | number {
  const fallback = SETTINGS[name];
  const raw = host.GRADLOOM_ENV?.[name] ?? foreignVariable(name);
  if (raw === undefined) return fallback;
  // Vite and vitest set DEV to 1 or nothing for their own purposes; that is not a device
  if (name === "DEV" && !/^[a-z]/i.test(String(raw))) return fallback;
  if (typeof fallback === "string") return String(raw);
  const n = raw === "" ? NaN : Number(raw);
  if (Number.isFinite(n) && n >= 0) return n;
  // DEBUG=app:* and the like are meant for the logger of another package
  const foreign = name === "DEBUG" && /[:*,]/.test(String(raw));
  if (raw !== "" && !foreign)
    console.warn(`gradloom: ${name}=${raw} is not a number >= 0; using ${fallback}`);
  return fallback;
}

const readAll = (): Record<string, string | number> =>
  Object.fromEntries((Object.keys(SETTINGS) as EnvName[]).map((k) => [k, setting(k)]));
/** Marked so that a bundle with `setting` alone leaves it out: it would warn a second time. */
const values = /* @__PURE__ */ readAll();

/** The settings as they are now: `env.DEBUG`. */
export const env = values as unknown as Env;

/** Runs `fn`, which may be async, with some settings changed. Two such calls must not overlap. */
export function withEnv<T>(changes: Partial<Env>, fn: () => T): T {
  const wrong = Object.entries(changes ?? {}).find(
    ([name, x]) => typeof x !== typeof SETTINGS[name as EnvName] || (typeof x === "number" && !(x >= 0)),
  );
  if (wrong !== undefined || typeof fn !== "function") {
    const [name = "", x] = wrong ?? [];
    const isKnown = name in SETTINGS;
    const value = `${name} is ${typeof x === "string" ? `"${x}"` : x}, expected a ${typeof SETTINGS[name as EnvName]}`;
    const what = wrong === undefined ? "a function is missing" : isKnown ? value : `unknown setting ${name}`;
    throw new ArgumentError(`withEnv: ${what}; write withEnv({ DEBUG: 2 }, () => …), with names of \`env\``);
  }
  const before = { ...values };
  Object.assign(values, changes);
  return restoring(fn, () => void Object.assign(values, before));
}

/** Colours are for people: only if the output is a terminal and NO_COLOR is not set. */
export const wantsColor = (): boolean => env.NO_COLOR === "" && host.process?.stdout?.isTTY === true;
