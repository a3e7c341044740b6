// ARCHITECTURE.md says what is true: it is short, its paths and names exist, its table has every folder of
// src/, and the kernel it follows is what the passes print. docs/guide/two-programs.md: its listings are what
// is printed, too.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import {
  CommandQueue,
  createSchedule,
  type LazyBuffer,
  resetKernelNames,
  showAst,
  Tensor,
  toKernel,
  withEnv,
} from "gradloom";
import { ClangRenderer } from "gradloom/render";
import { expect, test } from "vitest";
import { withWalk } from "../../scripts/walk.ts";

const root = join(import.meta.dirname, "..", "..");
const text = readFileSync(join(root, "ARCHITECTURE.md"), "utf8");
const programs = readFileSync(join(root, "docs/guide/two-programs.md"), "utf8");
const files = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
  .map((f) => f.replaceAll("\\", "/"))
  .filter((f) => f.endsWith(".ts"));
const source = files.map((f) => readFileSync(join(root, "src", f), "utf8")).join("\n");

const blocks = [...programs.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map((m) => ({
  language: m[1],
  text: m[2] as string,
}));
const prose = text.replaceAll(/^```[\s\S]*?^```$/gm, "");

test("every path that is named exists", () => {
  const paths = prose.match(/\b(?:src|test|docs|bench|scripts)\/[\w./-]*\w\/?/g) ?? [];
  expect(paths.length).toBeGreaterThan(20);
  expect(paths.filter((p) => !existsSync(join(root, p)))).toEqual([]);
});

test("it fits 250 lines", () => {
  expect(text.split("\n").length).toBeLessThanOrEqual(251);
});

test("the kernel that it follows is what the passes print: npm run walk writes it", () => {
  expect(withWalk(text)).toBe(text);
});

test("its table has every folder of src/ that has files of its own", () => {
  const named = new Set([...text.matchAll(/^\| (src\/[\w/]+) /gm)].map(([, path]) => path));
  const folders = new Set(files.filter((f) => f.includes("/")).map((f) => `src/${dirname(f)}`));
  const isNamed = (folder: string): boolean => {
    if (named.has(folder)) return true;
    // of devices, codegen/opt and the like the text names what is below
    return folder.split("/").length > 2 && named.has(dirname(folder));
  };
  expect([...folders].filter((f) => !isNamed(f) && f.split("/").length <= 3)).toEqual([]);
});

test("every name in code quotes is in src/", () => {
  const quoted = [...prose.matchAll(/`([^`\n]+)`/g)].map((m) => m[1] as string);
  const names = quoted.flatMap((q) => /^([A-Za-z_]\w*)(?:\(\w*\)|\[\])?$/.exec(q)?.[1] ?? []);
  expect(names.length).toBeGreaterThan(30);
  const kernels = ["r_2", "E_4", "r_4_2", "r_4", "r_4n1", "n1"]; // named at run time
  const missing = names.filter((n) => !kernels.includes(n) && !new RegExp(`\\b${n}\\b`).test(source));
  expect(missing).toEqual([]);
});

test("no code outside of devices/ compares the name of a device", () => {
  const kinds = readFileSync(join(root, "src/devices/everywhere.ts"), "utf8").concat(
    readFileSync(join(root, "src/devices/node.ts"), "utf8"),
  );
  const names = [...kinds.matchAll(/^ {2}([A-Z]+): \{/gm)].map(([, name]) => name);
  expect(names).toContain("WASM");
  const comparison = new RegExp(`(?:[=!]==|case|startsWith\\(|includes\\()\\s*"(?:${names.join("|")})[:"]`);
  const outside = files.filter((f) => !f.startsWith("devices/"));
  const asking = outside.filter((f) => comparison.test(readFileSync(join(root, "src", f), "utf8")));
  expect(asking).toEqual([]);
});

/** Everything the compiler prints of a tensor, from its graph to its queues. */
function printed(t: Tensor): string {
  resetKernelNames();
  const tree: string[] = [];
  const walk = (lb: LazyBuffer, depth: number): void => {
    tree.push("  ".repeat(depth) + String(lb));
    for (const s of lb._base === undefined ? (lb.srcs ?? []) : [lb._base]) walk(s, depth + 1);
  };
  walk(t.lazydata, 0);
  const items = createSchedule([t.lazydata]);
  const kernels = items
    .filter((si) => si.ast[0]?.op === "STORE")
    .map((si) => toKernel(si.ast, [], ClangRenderer));
  return [
    tree.join("\n"),
    items.flatMap((si) => si.ast.map(showAst)).join("\n"),
    ...kernels.flatMap((k) => [k.name, String(k.uops), ClangRenderer.render(k.name, k.uops).code]),
    String(new CommandQueue(items)),
    "",
  ].join("\n");
}

test("the listings are real", () => {
  const all = printed(new Tensor([1, 2]).dot(new Tensor([3, 4]))) + printed(new Tensor([1, 2, 3, 4]).var());
  const listings = blocks.filter((b) => b.language === "text" || b.language === "c");
  expect(listings.length).toBe(8);
  for (const { text: listing } of listings) expect(all).toContain(listing);
});

test("FUSE=0 gives the two kernels it names", () => {
  const names = withEnv({ FUSE: 0 }, () => printed(new Tensor([1, 2, 3, 4]).var()).match(/^r_\w+$/gm));
  expect(names).toEqual(["r_4", "r_4n1"]);
});
