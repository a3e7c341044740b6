// koffi calls C from Node. The package is optional: it is loaded when a device first needs it, and a device
// that lacks it says so by its own name. Only the part that we use is typed here, so
// that its types do not reach ours.

import { DeviceError } from "../errors.ts";

export interface Koffi {
  load(path: string): KoffiLibrary;
  /** zeroed memory outside of V8's heap; it stays where it is until `free` */
  alloc(type: "uint8_t", length: number): bigint;
  free(address: bigint): void;
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

export async function openKoffi(
  device: string,
  importer: () => Promise<unknown> = () => import("koffi"),
): Promise<Koffi> {
  try {
    const { default: koffi } = (await importer()) as { default: Koffi };
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
const STACK = 16 << 20;
let asked = false;

function enlargeStack(koffi: Koffi): void {
  if (asked) return;
  asked = true;
  try {
    koffi.config({ sync_stack_size: STACK });
  } catch {} // somebody else in this process loaded a library before us
}
