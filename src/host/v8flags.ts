// The flag of V8 that this package sets. V8 takes code that it made earlier only under the flags that it was
// made under, so codecache.ts must be able to go back.

import { builtin } from "./builtin.ts";

let isOn = false;

/**
 * Node 20 has relaxed SIMD behind a flag, which may be set as long as no module was compiled that uses it.
 */
export function enableRelaxedSimd(): void {
  if (Number.parseInt(process.versions.node, 10) < 22) setRelaxedSimd(true);
}
function setRelaxedSimd(on: boolean): void {
  if (on !== isOn) builtin.v8.setFlagsFromString(`--${on ? "" : "no-"}experimental-wasm-relaxed-simd`);
  isOn = on;
}

/** Names the flags that are set now. */
export const flags = (): string => (isOn ? "relaxed" : "");

/** Runs `fn`, which compiles nothing, under the flags of an earlier moment. */
export function underFlags<T>(earlier: string, fn: () => T): T {
  const now = isOn;
  setRelaxedSimd(earlier !== "");
  try {
    return fn();
  } finally {
    setRelaxedSimd(now);
  }
}
