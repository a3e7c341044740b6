// The devices of a browser build, one line each. EXT and WASM load with the package, since every program uses them;
// the rest on first use.

import type { MaybePromise } from "../helpers.ts";
import type { Compiled } from "../runtime/device.ts";
import * as ext from "./ext.ts";
import * as wasm from "./wasm.ts";

export interface DeviceModule {
  /** `name` is canonical and carries what followed the colon */
  open(name: string): MaybePromise<Compiled>;
}
export type Registry = Readonly<Record<string, () => MaybePromise<DeviceModule>>>;

export const registry: Registry = {
  WASM: () => wasm,
  JS: () => import("./js.ts"),
  NULL: () => import("./null.ts"),
  EXT: () => ext,
};

/** A page has no files: the text goes to the function that the page put there, if any. */
export function writeText(path: string, text: string): void {
  (globalThis as { GRADLOOM_WRITE?: (path: string, text: string) => void }).GRADLOOM_WRITE?.(path, text);
}
