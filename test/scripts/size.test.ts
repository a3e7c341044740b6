// What a page downloads stays below its limits, and a page has the methods of those areas that it imports.
// The package is built for it if it is older than src/.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { buildIfStale } from "../../bench/processes.ts";
import { esbuildPage, PAGES, sizeOf } from "../../bench/size/pages.ts";

beforeAll(() => buildIfStale(), 300_000);

test.each(PAGES)("a page with $name", { timeout: 120_000 }, async (page) => {
  expect(await sizeOf(page, esbuildPage)).toBeLessThanOrEqual(page.limit);
});

/** What a page prints, bundled for the browser and run. */
async function printed(text: string): Promise<string> {
  // inside the repository, where `gradloom` means this package
  const folder = mkdtempSync(join(import.meta.dirname, "../../node_modules/.cache-page-"));
  const out = mkdtempSync(join(tmpdir(), "gradloom-page-"));
  try {
    writeFileSync(join(folder, "page.js"), text);
    for (const [name, code] of await esbuildPage(join(folder, "page.js"))) {
      writeFileSync(
        join(out, name.replace(/\.js$/, ".mjs")),
        code.replaceAll(/(\.\/[\w-]+)\.js"/g, '$1.mjs"'),
      );
    }
    // settings of this process, such as SPEC=1 in tests, would load more
    const env = { ...process.env, SPEC: "0", DEBUG: "0" };
    const { stdout, stderr } = spawnSync(process.execPath, [join(out, "page.mjs")], {
      encoding: "utf8",
      env,
    });
    // Node shows the line that threw: all of a minified file
    return (stdout + stderr)
      .split("\n")
      .filter((line) => line.length < 1000)
      .join("\n");
  } finally {
    rmSync(folder, { recursive: true });
    rmSync(out, { recursive: true });
  }
}
const INVERSE =
  'console.log(JSON.stringify(await new Tensor([[2, 0], [0, 4]], { dtype: "float32" }).inverse().tolist()))';

test("a method of an area that the page did not load says what to import", { timeout: 120_000 }, async () => {
  const said = await printed(`import { Tensor } from "gradloom"; ${INVERSE};`);
  // the name of the error's class, whatever the minifier called it
  expect(said).toMatch(/^ArgumentError: inverse: this method of Tensor is in an area/m);
  expect(said).toContain('add: import "gradloom/linalg" (or "gradloom/all" for every area)');
});

test("several devices are such an area", { timeout: 120_000 }, async () => {
  const ones = 'console.log(String(await Tensor.ones([2], { device: "WASM,WASM:1" }).tolist()))';
  const said = await printed(`import { Tensor } from "gradloom"; ${ones};`);
  expect(said).toContain('add: import "gradloom/shard"');
  expect((await printed(`import "gradloom/shard"; import { Tensor } from "gradloom"; ${ones};`)).trim()).toBe(
    "1,1",
  );
});

test.each(["linalg", "all"])("with gradloom/%s it is there", { timeout: 120_000 }, async (area) => {
  const said = await printed(`import "gradloom/${area}"; import { Tensor } from "gradloom"; ${INVERSE};`);
  expect(said.trim()).toBe("[[0.5,0],[0,0.25]]");
});

test("gradloom/distances has what gradloom/losses has not", { timeout: 120_000 }, async () => {
  const margin =
    "const x = Tensor.ones(2); console.log(await x.l1Loss(x).item(), await x.softMarginLoss(x).item() < 1);";
  const said = await printed(`import "gradloom/losses"; import { Tensor } from "gradloom"; ${margin}`);
  expect(said).toContain('add: import "gradloom/distances"');
  const both = `import "gradloom/losses"; import "gradloom/distances"; import { Tensor } from "gradloom"; ${margin}`;
  expect((await printed(both)).trim()).toBe("0 true");
});

const CALLS = `
  const x = new Tensor([0, 2], { dtype: "float32" });
  const half = () => new Tensor([1.5, 65505], { dtype: "float16" }).mul(2);
  const packed = () => new Tensor([1, 7], { dtype: "int4" }).add(1);`;

test("what few kernels need loads with the first that is awaited", { timeout: 120_000 }, async () => {
  const said = await printed(`
    import "gradloom/special"; import { Tensor } from "gradloom"; ${CALLS}
    console.log(String(await x.exp2().data()), String(await half().data()), String(await packed().data()));
    console.log(String(x.add(1).exp2().dataSync()), await Tensor.full([1], 1).erf().item() > 0.84);`);
  expect(said.trim().split("\n")).toEqual(["1,4 3,Infinity 2,-8", "2,8 true"]);
});

test.each([
  ["x.exp2()", "EXP2"],
  ["half()", "the arithmetic of float16"],
])(
  "a sync %s says what it waits for, or has it with gradloom/sync",
  { timeout: 120_000 },
  async (call, what) => {
    const page = `import { Tensor } from "gradloom"; ${CALLS} console.log(String(${call}.dataSync()));`;
    const said = await printed(page);
    expect(said).toMatch(/DeviceError\]?: \w+Sync: a page loads /);
    expect(said).toContain(`loads ${what} with the first kernel that is awaited; import "gradloom/sync"`);
    expect((await printed(`import "gradloom/sync"; ${page}`)).trim()).toMatch(/^(1,4|3,Infinity)$/);
  },
);

test("errors name the class of a layer or an optimiser, whatever the minifier calls it", {
  timeout: 120_000,
}, async () => {
  const page = `
    import { Adam, Conv2d, LSTMCell } from "gradloom/nn";
    for (const make of [() => new Adam([]), () => new Conv2d(0, 1, 1), () => new LSTMCell(0, 1)])
      try { make(); } catch (e) { console.log(e.constructor.name, String(e).split(" ").slice(0, 2).join(" ")); }`;
  const names = ["Adam", "Conv2d", "LSTMCell"].map((name) => `ArgumentError ArgumentError: ${name}:`);
  expect((await printed(page)).trim().split("\n")).toEqual(names);
});

test("what makes kernels fast loads with the first large one that is awaited", {
  timeout: 120_000,
}, async () => {
  const said = await printed(`
    import { Tensor, withEnv } from "gradloom";
    const kernel = (n) => new Tensor(new Float32Array(n)).add(1);
    withEnv({ DEBUG: 2 }, () => { kernel(8192).dataSync(); });
    await withEnv({ DEBUG: 2 }, () => kernel(16).data());
    await withEnv({ DEBUG: 2 }, () => kernel(8192).data());`);
  // the sizes of loops: OptOps split them
  const [sync, small, large] = said.match(/\bE_[0-9_]+/g) ?? [];
  expect([sync, small]).toEqual(["E_8192", "E_16"]);
  expect(large).toMatch(/^E_\d+_\d+/);
});

test("schedules are known again once a page has made a hundred", { timeout: 120_000 }, async () => {
  const said = await printed(`
    import { createSchedule, Tensor } from "gradloom";
    const a = new Tensor([1, 2, 3]);
    await a.realize();
    const ast = () => createSchedule([a.add(1.5).lazydata])[0].ast[0];
    const isKnown = () => ast() === ast();
    const before = isKnown();
    for (let i = 0; i < 1000 && !isKnown(); i++) await new Promise((done) => setTimeout(done, 5));
    console.log(before, isKnown());`);
  expect(said.trim()).toBe("false true");
});
test("OptOps that a page has not loaded yet are refused with what to write", {
  timeout: 120_000,
}, async () => {
  const said = await printed(`
    import { createSchedule, Tensor, toKernel } from "gradloom";
    import { WASMRenderer } from "gradloom/render";
    const [{ ast }] = createSchedule([new Tensor(new Float32Array(8)).add(1).lazydata]).slice(-1);
    toKernel(ast, [{ op: "UPCAST", axis: 0, lanes: 4 }], WASMRenderer);`);
  expect(said).toContain("ArgumentError: OptOps: a page loads them with the first large kernel");
  expect(said).toContain('import "gradloom/sync"');
});
