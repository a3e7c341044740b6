// koffi calls C from Node. It is loaded when a device first needs it, and a device that lacks it says so by
// its own name. We depend on its binaries, a package for each platform: koffi itself has an install script,
// which npm warns of. Only the part that we use is typed here, so that its types do not reach ours.

import { DeviceError } from "../errors.ts";
import { load } from "./builtin.ts";

export interface Koffi {
  load(path: string): KoffiLibrary;
  /** zeroed memory outside of V8's heap; it stays where it is until `free` */
  alloc(type: "uint8_t", length: number): bigint;
  free(address: bigint): void;
  /** a struct of C, which functions take by its name; once for each name */
  struct(name: string, members: Readonly<Record<string, string>>): unknown;
  /** the memory without a copy; owns nothing */
  view(address: bigint, bytes: number): ArrayBuffer;
  /** Before the first library is loaded: the bytes of the stack that foreign functions run on. */
  config(changes: { readonly sync_stack_size: number }): unknown;
}
export type KoffiFunction = (...args: bigint[]) => void;
export interface KoffiLibrary {
  /** `F` is what the caller declares in C's words: nothing checks it. */
  func<F = KoffiFunction>(name: string, result: string, parameters: readonly string[]): F;
}

/** Where koffi may be: our dependency, or the whole package, which builds itself on any other platform. */
export const koffiPackages = (): readonly string[] => [
  `@koromix/koffi-${process.platform}-${process.arch}`,
  "koffi",
];
/** Where other threads and processes find it. */
export function koffiPath(): string {
  for (const name of koffiPackages()) {
    try {
      return load.resolve(name);
    } catch {} // not installed
  }
  return "koffi";
}
/** Loaded with require: the text of Node's build is run where `import()` does not work. */
function loadKoffi(): unknown {
  const [binary, whole] = koffiPackages() as [string, string];
  try {
    return load(binary);
  } catch (cause) {
    try {
      return load(whole);
    } catch {
      throw cause;
    }
  }
}

export async function openKoffi(device: string, importer: () => unknown = loadKoffi): Promise<Koffi> {
  try {
    const koffi = (await importer()) as Koffi;
    enlargeStack(koffi);
    return koffi;
  } catch (cause) {
    const why = cause instanceof Error ? cause.message.split("\n")[0] : String(cause);
    throw new DeviceError(
      `${device}: cannot load koffi, which calls C from Node (${why}); run npm install koffi`,
      { cause },
    );
  }
}

/** A thread's own stack has 8 MiB, koffi's 2: a compiler may need more. */
export const STACK = 16 << 20;
let asked = false;

function enlargeStack(koffi: Koffi): void {
  if (asked) return;
  asked = true;
  try {
    koffi.config({ sync_stack_size: STACK });
  } catch {} // somebody else in this process loaded a library before us
}
