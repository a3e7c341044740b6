// The check of the names of types (scripts/lint/types.mjs): this repository passes, and a name that two files
// declare is found.

import { expect, test } from "vitest";
import { script, withFolder } from "./run.ts";

test("a name of a type means one thing", () => {
  expect(script("lint/types.mjs")).toMatchObject({ status: 0, complaints: [] });
});

test("two files must not declare one name, whatever it is declared as", () => {
  const files = {
    "src/a/one.ts": "interface Plan {\n  readonly x: number;\n}\nexport class Step {}\ntype Own = 1;\n",
    "src/b/two.ts": "export type Plan = number;\nabstract class Other {\n}\n// type Own = 2;\n",
    "src/nn/index.ts": "export class Step {}\n",
    "src/c/node.ts": "export const x = 1;\n",
    "src/c/built.ts": 'type Form = typeof import("./node.ts");\n',
    "src/c/browser.ts": 'type Form = typeof import("./node.ts");\n',
    "src/d/gpu.ts": "export interface Gpu {}\n",
  };
  expect(withFolder(files, (root) => script("lint/types.mjs", root))).toMatchObject({
    status: 1,
    complaints: [
      "Gpu is declared once: take it from EXEMPT in scripts/lint/types.mjs",
      "Plan is declared in src/a/one.ts, src/b/two.ts: one name for one thing",
    ],
  });
});
