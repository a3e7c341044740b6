// dist/node as scripts/build/node.mjs makes it: a start loads two files, what loads later is there for sync
// methods, and it survives the bundler of a user.

import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { build } from "esbuild";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Built, buildPackage } from "./built.ts";

let built: Built;
beforeAll(async () => {
  built = await buildPackage();
}, 60_000);
afterAll(() => built.remove());
const run: Built["run"] = (...args) => built.run(...args);

const PROGRAM = `
import { Tensor, nn } from "built";
import { Linear } from "built/nn";
import "built/conv";
const image = Tensor.ones(1, 1, 2, 2);
console.log(image.conv2d(image).itemSync(), nn.Linear === Linear, Object.keys(nn).includes("optim"));
`;
test("a start loads two files, without what loads later", () => {
  const folder = join(built.folder, "node");
  const textOf = (file: string): string => readFileSync(join(folder, file), "utf8");
  const imports = [...textOf("index.js").matchAll(/\bfrom"([^"]+)"/g)].map(([, path = ""]) => path);
  expect(imports.filter((path) => !path.startsWith("node:"))).toEqual([]);
  const core = readdirSync(join(folder, "chunks")).filter((file) => /^core-\w+\.cjs$/.test(file));
  expect(core.length).toBe(1);
  expect(textOf("index.js").replaceAll("\\\n", "")).toContain(`"./chunks/${core}"`);
  // with checks of lists made by hand, types of images, mixed precision and scatters
  expect(textOf(`chunks/${core}`).length).toBeLessThan(667_000);
  expect(textOf("index.js").length).toBeLessThan(9000); // V8 compiles it in every process
});

test("sync methods, nn and the areas work in Node", () => {
  expect(run("program.mjs", PROGRAM)).toBe("4 true true");
}, 30_000);

test("the jit loads when it is first used, as a class, a function and a decorator", () => {
  const text = `
import { Tensor, TinyJit } from "built";
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
const { Tensor } = await import("built");
const [half, packed] = ["float16", "int4"].map((dtype) => new Tensor([1, 7], { dtype }).add(1).dataSync());
console.log(String(half), String(packed));`;
  expect(run("narrow.mjs", text)).toBe("2,8 2,-8");
}, 30_000);

test("what loads later is found where a require of others is in the way", () => {
  const text = 'import("./node/index.js").then(({ nn }) => console.log(typeof nn.Linear))';
  const found = execFileSync(process.execPath, ["-e", text], { cwd: built.folder, encoding: "utf8" });
  expect(found.trim()).toBe("function");
}, 30_000);

test("a first result takes none of Node's modules that are slow to load", () => {
  const text = `
import { Tensor } from "built";
const value = await new Tensor([1, 2]).dot(new Tensor([3, 4])).item();
const loaded = ["v8", "stream", "perf_hooks", "worker_threads"].filter((m) =>
  process.moduleLoadList.includes("NativeModule " + m));
console.log(value, loaded.join());`; // in this order: console.log itself loads some
  expect(run("first.mjs", text)).toBe("11");
}, 30_000);

test("classes have their own names, whatever the bundler calls them", () => {
  const text = `
import * as all from "built";
const classes = { ...all, ...all.nn, ...all.nn.optim };
const wrong = Object.entries(classes).filter(([name, x]) =>
  typeof x === "function" && /^class\\b/.test(String(x)) && x.name !== name);
console.log(wrong.map(([name, x]) => name + " is " + x.name).join(), all.TinyJit.name, all.ShapeError.name);`;
  expect(run("names.mjs", text)).toBe("TinyJit ShapeError");
}, 30_000);

test("DEBUG=4 shows the source, which loads later", () => {
  const text =
    'process.env.DEBUG = "4"; const { Tensor } = await import("built"); new Tensor([1, 2]).add(1).dataSync();';
  expect(run("debug.mjs", text)).toMatch(/in C:\nvoid /);
}, 30_000);

// a bundler takes the condition "module" if it is told no others; without it, it follows a `require`
test.each([
  ["esm", "mjs", undefined],
  ["cjs", "cjs", undefined],
  ["esm", "mjs", ["other"]],
] as const)(
  "a bundle of a user has it all: %s, %s, conditions %s",
  async (format, ending, conditions) => {
    writeFileSync(join(built.folder, "program.mjs"), PROGRAM);
    const outfile = join(built.folder, "elsewhere", `bundle-${conditions?.[0]}.${ending}`);
    await build({
      entryPoints: [join(built.folder, "program.mjs")],
      bundle: true,
      platform: "node",
      format,
      external: ["koffi"],
      ...(conditions === undefined ? {} : { conditions: [...conditions] }),
      logOverride: { "empty-import-meta": "silent" },
      outfile,
    });
    expect(run(relative(built.folder, outfile))).toBe("4 true true");
  },
  30_000,
);

test("rolldown's bundle has it all, devices too", async () => {
  const program = `${PROGRAM}console.log((await new Tensor([1, 2]).to("NULL").add(1).realize()).device);`;
  writeFileSync(join(built.folder, "rolled.mjs"), program);
  const { rolldown } = await import("rolldown");
  const bundle = await rolldown({
    input: join(built.folder, "rolled.mjs"),
    platform: "node",
    external: ["koffi"],
    logLevel: "silent",
  });
  await bundle.write({ dir: join(built.folder, "rolled"), format: "esm", entryFileNames: "[name].mjs" });
  expect(run(join("rolled", "rolled.mjs"))).toBe("4 true true\nNULL");
}, 30_000);

test("require() loads it, where Node can require modules", ({ skip }) => {
  skip(!("require_module" in process.features), "this Node requires CommonJS alone");
  const text = 'console.log(require("built").dtypes.float32.name, require("built/nn").Linear.name);';
  expect(run("required.cjs", text)).toBe("float32 Linear");
}, 30_000);

test("places in a stack are those of the sources, if Node is asked for them", () => {
  const text = `
import { Tensor } from "built";
try { new Tensor([1, 2]).reshape(3); } catch (e) { console.log(e.stack); }`;
  const plain = run("stack.mjs", text);
  expect(plain).toMatch(/^ShapeError: reshape: /);
  expect(plain).toMatch(/at _?LazyBuffer\.reshape \(.*core-\w+\.cjs:\d+:\d+\)/);
  const mapped = run("stack.mjs", text, {}, ["--enable-source-maps"]);
  expect(mapped).toMatch(/at _?LazyBuffer\.reshape \(.*src[\\/]lazy[\\/]lazybuffer\.ts:\d+:\d+\)/);
  // the map is true to the file, with and without the code that was kept
  const place = /core-\w+\.cjs:(\d+):(\d+)/.exec(plain)?.slice(1);
  const unkept = run("stack.mjs", text, { CODECACHE: "0" });
  expect(/core-\w+\.cjs:(\d+):(\d+)/.exec(unkept)?.slice(1)).toEqual(place);
}, 30_000);
