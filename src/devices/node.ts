// The devices of Node: those of the browser, and those that need files, compilers and foreign functions.

import { writeFileSync } from "node:fs";
import { registry as everywhere, type Registry } from "./browser.ts";

export const registry: Registry = {
  ...everywhere,
  CLANG: () => import("./clang.ts"),
  DISK: () => import("./disk.ts"),
};

export const writeText = (path: string, text: string): void => writeFileSync(path, text);
