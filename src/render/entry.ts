// The name under which a compiled kernel is found. What a kernel is called depends on what was compiled
// before it; its code should not.

import { CompileError } from "../errors.ts";

/**
 * Without the number at the end of the kernel's name, so that the same code is found again; the rest of the
 * name stays, for profilers.
 */
export function unnumbered(device: string, name: string, source: string): { entry: string; text: string } {
  const entry = name.replace(/(?<=_[A-Za-z0-9_]+)n\d+$/, "");
  const head = new RegExp(`\\b${name}(?=\\()`);
  if (!head.test(source)) throw new CompileError(`${device}: no kernel ${name} in this source:\n${source}`);
  return { entry, text: source.replace(head, entry) };
}
