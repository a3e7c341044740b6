// What a page downloads stays below its limits, and a page has the methods of those areas that it imports.
// The package is built for it if it is older than src/.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { buildIfStale } from "../../bench/processes.ts";
import { esbuildPage, PAGES, sizeOf } from "../../bench/size/pages.ts";
import { whyClosed } from "../devices/webgpu/swiftshader.ts";

beforeAll(() => buildIfStale(), 300_000);

test.for(PAGES)("a page with $name", { timeout: 120_000 }, async (page, { skip }) => {
  const why = page.isGpu === true ? await whyClosed() : undefined;
  skip(why !== undefined, why);
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
    "const x = Tensor.ones(2); console.log(await x.l1Loss(x).item(), await x.huberLoss(x.mul(2)).item());";
  const said = await printed(`import "gradloom/losses"; import { Tensor } from "gradloom"; ${margin}`);
  expect(said).toContain('add: import "gradloom/distances"');
  const both = `import "gradloom/losses"; import "gradloom/distances"; import { Tensor } from "gradloom"; ${margin}`;
  expect((await printed(both)).trim()).toBe("0 0.5");
});

/** Too large to be interpreted, and too small for OptOps. */
const COMPILED = "await Tensor.ones(400).mul(2).sum().item();";
const CALLS = `
  ${COMPILED}
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
    ${COMPILED}
    const kernel = (n) => new Tensor(new Float32Array(n)).add(1);
    withEnv({ DEBUG: 2 }, () => { kernel(8192).dataSync(); });
    await withEnv({ DEBUG: 2 }, () => kernel(16).data());
    await withEnv({ DEBUG: 2 }, () => kernel(8192).data());`);
  // the sizes of loops: OptOps split them
  const [sync, small, large] = said.match(/\bE_[0-9_]+/g) ?? [];
  expect([sync, small]).toEqual(["E_8192", "E_16"]);
  expect(large).toMatch(/^E_\d+_\d+/);
});

test("a gather is a sum until what makes kernels fast is loaded, with the same values", {
  timeout: 120_000,
}, async () => {
  const said = await printed(`
    import { Tensor } from "gradloom";
    ${COMPILED}
    const rows = Tensor.arange(6000).reshape(3000, 2).contiguous();
    const pick = () => rows.indexSelect(0, new Tensor([2999, 0, 7]));
    console.log(String(pick().dataSync()));
    console.log(String(await pick().data()));
    console.log(String(await new Tensor([5, 6, 7]).indexSelect(0, new Tensor([2, 0])).data()));`);
  expect(said.trim().split("\n")).toEqual(["5998,5999,0,1,14,15", "5998,5999,0,1,14,15", "7,5"]);
});

test("a captured step of many bytes loads the memory planner; a sync one goes on without", {
  timeout: 120_000,
}, async () => {
  const said = await printed(`
    import { Tensor, TinyJit } from "gradloom";
    const chain = (x) => {
      for (let i = 0; i < 4; i++) x = x.add(1).contiguous();
      return x.sum();
    };
    const isPlanned = ({ apart, planned }) => planned < apart;
    for (const [size, isSync] of [[16, false], [65536, true], [65536, false]]) {
      const step = new TinyJit(chain);
      const sums = [];
      for (let i = 0; i < 4; i++) {
        const x = await Tensor.full([size], i).contiguous().realize();
        sums.push(await (isSync ? step.sync(x) : await step(x)).item());
      }
      console.log(size, isSync, isPlanned(step.memory), sums.map((s) => s / size).join());
    }`);
  expect(said.trim().split("\n")).toEqual([
    "16 false false 4,5,6,7",
    "65536 true false 4,5,6,7",
    "65536 false true 4,5,6,7",
  ]);
});

test("schedules are known again once a page has made a hundred", { timeout: 120_000 }, async () => {
  const said = await printed(`
    import { createSchedule, Tensor } from "gradloom";
    const a = new Tensor([1, 2, 3]);
    await a.realize();
    const values = () => createSchedule([a.add(1.5).lazydata])[0].varVals;
    const isKnown = () => values() === values();
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
    ${COMPILED}
    const [{ ast }] = createSchedule([new Tensor(new Float32Array(8)).add(1).lazydata]).slice(-1);
    toKernel(ast, [{ op: "UPCAST", axis: 0, lanes: 4 }], WASMRenderer);`);
  expect(said).toContain("ArgumentError: OptOps: a page loads them with the first large kernel");
  expect(said).toContain('import "gradloom/sync"');
});

test("a sync call computes small values, and says what to load for others", {
  timeout: 120_000,
}, async () => {
  const said = (rest: string) => printed(`import { Tensor } from "gradloom"; ${rest}`);
  expect((await said("console.log(new Tensor([1, 2]).sum().itemSync())")).trim()).toBe("3");
  const large = "console.log(Tensor.ones(400).mul(2).sum().itemSync())";
  const refused = 'loads the compiler with the first kernel that is awaited; import "gradloom/sync"';
  expect(await said(large)).toContain(refused);
  expect((await said(`import "gradloom/sync"; ${large}`)).trim()).toBe("800");
  expect((await said(`${COMPILED} ${large}`)).trim()).toBe("800");
});

test("names of codegen are there once a page has the compiler", { timeout: 120_000 }, async () => {
  const said = (rest: string) =>
    printed(`import { dtypes, Tensor, UOpGraph, UOps } from "gradloom"; ${rest}
      const graph = new UOpGraph();
      graph.add(UOps.CONST, dtypes.int32, [], 1);
      console.log(graph instanceof UOpGraph, String(graph).includes("CONST"));`);
  expect(await said("")).toContain("kernel: a page loads the compiler");
  expect((await said(COMPILED)).trim()).toBe("true true");
  expect((await said('import "gradloom/sync";')).trim()).toBe("true true");
});

test("the first small results of a page compile nothing", { timeout: 120_000 }, async () => {
  const count = `
    let compiled = 0;
    WebAssembly.Module = class extends WebAssembly.Module {
      constructor(code) {
        super(code);
        compiled++;
      }
    };
    const say = async (t) => console.log(String(await t.tolist()), compiled > 0);
    const small = (x) => new Tensor([x, 2]).mul(new Tensor([3, 4])).sum();`;
  const page = (rest: string) => printed(`import { Tensor, TinyJit } from "gradloom"; ${count} ${rest}`);
  // a kernel that must be compiled warms codegen up; then a small one is compiled, too
  const mixed = await page(`
    await say(small(1));
    await say(small(2).assign(small(5)));
    await say(Tensor.ones(400).mul(2).sum());
    await say(small(7));`);
  expect(mixed.trim().split("\n")).toEqual(["11 false", "23 false", "800 true", "29 true"]);
  // a program that goes on with small kernels has compiled ones
  const many = await page("for (let i = 0; i < 40; i++) await small(i).realize(); await say(small(1));");
  expect(many.trim()).toBe("11 true");
  // a captured kernel is compiled
  const jitted = await page(`
    const step = new TinyJit((x) => x.mul(2).sum().realize());
    for (let i = 0; i < 3; i++) await say(await step(await new Tensor([i, 2]).realize()));`);
  expect(jitted.trim().split("\n")).toEqual(["4 true", "6 true", "8 true"]);
});

test("methods that a page makes keep their results apart from their operands", {
  timeout: 120_000,
}, async () => {
  const said = await printed(`
    import { Tensor } from "gradloom";
    import "gradloom/movement";
    import "gradloom/conv";
    const x = await new Tensor([[1, 2]]).realize();
    const made = [x.roll(0), Tensor.hstack([x]), ...x.maxPool1dWithIndices(1)];
    await x.assign(new Tensor([[8, 9]])).realize();
    for (const t of made) console.log(String(await t.tolist()));`);
  expect(said.trim().split("\n")).toEqual(["1,2", "1,2", "1,2", "0,1"]);
});

test("functions of float32, float64 and erf load by themselves", { timeout: 120_000 }, async () => {
  const values = (dtype: string) => `new Tensor([0.5, 3], { dtype: "${dtype}" })`;
  const said = await printed(`import { Tensor } from "gradloom"; import "gradloom/special";
    for (const x of [${values("float32")}, ${values("float64")}])
      for (const y of [x.sin(), x.exp2().mul(x.log2()), x.erf()])
        console.log((await y.tolist()).map((v) => v.toFixed(6)).join());`);
  const lines = ["0.479426,0.141120", "-1.414214,12.679700", "0.520500,0.999978"];
  expect(said.trim().split("\n")).toEqual([...lines, ...lines]);
});
