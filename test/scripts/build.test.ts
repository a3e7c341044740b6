// dist/node as scripts/build/node.mjs makes it, in a folder of its own: a start loads two files, what loads
// later is there for sync methods, and it survives the bundler of a user.

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import { afterAll, beforeAll, expect, test } from "vitest";

const root = join(import.meta.dirname, "..", "..");
const folder = mkdtempSync(join(tmpdir(), "gradloom-build-"));
const out = relative(root, join(folder, "node"));

interface Metafile {
  outputs: Record<string, { imports: { path: string; kind: string; external?: boolean }[] }>;
}
let made: Metafile;

beforeAll(async () => {
  const url = pathToFileURL(join(root, "scripts/build/node.mjs")).href;
  const { buildNode } = (await import(url)) as { buildNode(options: object): Promise<Metafile> };
  const esm = { absWorkingDir: root, format: "esm", target: "es2022", logLevel: "warning" };
  const bundled = {
    ...esm,
    sourcemap: true,
    metafile: true,
    bundle: true,
    splitting: true,
    chunkNames: "chunks/[name]-[hash]",
  };
  const entries = ["index", "nn", "render", "areas/conv"].map((file) => [file, ""]);
  made = await buildNode({ root, out, bundled, entries });
}, 60_000);
afterAll(() => rmSync(folder, { recursive: true }));

const PROGRAM = `
import { Tensor, nn } from "./node/index.js";
import { Linear } from "./node/nn.js";
import "./node/areas/conv.js";
const image = Tensor.ones(1, 1, 2, 2);
console.log(image.conv2d(image).itemSync(), nn.Linear === Linear, Object.keys(nn).includes("optim"));
`;
const run = (name: string, text?: string): string => {
  const file = join(folder, name);
  if (text !== undefined) writeFileSync(file, text);
  return execFileSync(process.execPath, [file], { encoding: "utf8" }).trim();
};

test("a start loads two files, without what loads later", () => {
  const files = new Set([`${out}/index.js`]);
  for (const file of files) {
    const { imports } = made.outputs[file] ?? { imports: [] };
    for (const i of imports) if (i.kind === "import-statement" && i.external !== true) files.add(i.path);
  }
  expect(files.size).toBe(2);
  const bytes = [...files].reduce((sum, file) => sum + statSync(join(root, file)).size, 0);
  expect(bytes).toBeLessThan(620_000);
});

test("sync methods, nn and the areas work in Node", () => {
  expect(run("program.mjs", PROGRAM)).toBe("4 true true");
}, 30_000);

test("the jit loads when it is first used, as a class, a function and a decorator", () => {
  const text = `
import { Tensor, TinyJit } from "./node/index.js";
const [made, called] = [new TinyJit((x) => x.add(1)), TinyJit((x) => x.add(2))];
const method = TinyJit(async function (x) { return x.add(this.by); }, { kind: "method", static: false, name: "f" });
const x = new Tensor([1]);
for (let i = 0; i < 3; i++) await Promise.all([await made(x), await called(x)]);
console.log(await (await made(x)).item(), called.sync(x).itemSync(), made.cnt, made instanceof TinyJit);
console.log(await (await method.call({ by: 3 }, x)).item());`;
  expect(run("jit.mjs", text)).toBe("2 3 4 true\n4");
}, 30_000);

test("packed and narrow types, and the checks of SPEC=1, load when a kernel needs them", () => {
  const text = `
process.env.SPEC = "1";
const { Tensor } = await import("./node/index.js");
const [half, packed] = ["float16", "int4"].map((dtype) => new Tensor([1, 7], { dtype }).add(1).dataSync());
console.log(String(half), String(packed));`;
  expect(run("narrow.mjs", text)).toBe("2,8 2,-8");
}, 30_000);

test("what loads later is found where a require of others is in the way", () => {
  const text = 'import("./node/index.js").then(({ nn }) => console.log(typeof nn.Linear))';
  const found = execFileSync(process.execPath, ["-e", text], { cwd: folder, encoding: "utf8" });
  expect(found.trim()).toBe("function");
}, 30_000);

test("a first result takes none of Node's modules that are slow to load", () => {
  const text = `
import { Tensor } from "./node/index.js";
const value = await new Tensor([1, 2]).dot(new Tensor([3, 4])).item();
const loaded = ["v8", "stream", "perf_hooks", "worker_threads"].filter((m) =>
  process.moduleLoadList.includes("NativeModule " + m));
console.log(value, loaded.join());`; // in this order: console.log itself loads some
  expect(run("first.mjs", text)).toBe("11");
}, 30_000);

test("classes have their own names, whatever the bundler calls them", () => {
  const text = `
import * as all from "./node/index.js";
const classes = { ...all, ...all.nn, ...all.nn.optim };
const wrong = Object.entries(classes).filter(([name, x]) =>
  typeof x === "function" && /^class\\b/.test(String(x)) && x.name !== name);
console.log(wrong.map(([name, x]) => name + " is " + x.name).join(), all.TinyJit.name, all.ShapeError.name);`;
  expect(run("names.mjs", text)).toBe("TinyJit ShapeError");
}, 30_000);

test("DEBUG=4 shows the source, which loads later", () => {
  const text =
    'process.env.DEBUG = "4"; const { Tensor } = await import("./node/index.js"); new Tensor([1, 2]).add(1).dataSync();';
  expect(run("debug.mjs", text)).toMatch(/in C:\nvoid /);
}, 30_000);

test("a bundle of a user has it all", async () => {
  writeFileSync(join(folder, "program.mjs"), PROGRAM);
  await build({
    entryPoints: [join(folder, "program.mjs")],
    bundle: true,
    platform: "node",
    format: "esm",
    external: ["koffi"],
    outfile: join(folder, "elsewhere", "bundle.mjs"),
  });
  expect(run(join("elsewhere", "bundle.mjs"))).toBe("4 true true");
}, 30_000);
