// What DEBUG=4 shows of a kernel: its source, and machine code and lists as the C that does the same.

import type { Kernel } from "../codegen/kernel.ts";
import type { Renderer, Source } from "../codegen/target.ts";
import { uopsToCStyle } from "../render/cstyle.ts";
import { ClangLanguage } from "../render/languages.ts";

export function readable({ name }: Renderer, { code }: Source, kernel: Kernel): string {
  if (typeof code === "string") return code;
  const what = code instanceof Uint8Array ? `${code.byteLength} bytes for ${name}` : "interpreted uops";
  return `// ${what}, in C:\n${uopsToCStyle(ClangLanguage, kernel.name, kernel.uops)}`;
}
