// ROCm's compiler as a library. A library of JavaScript checks what is called and that every handle is given
// back, whatever fails; where libamd_comgr is installed, its code objects are read beside clang's.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dtypes, type Tensor, withEnv } from "gradloom";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Renderer, type Source, sourceOf } from "../../../src/codegen/target.ts";
import { askComgr, Comgr, type ComgrApi, type ComgrCall } from "../../../src/devices/amd/comgr.ts";
import { type Hsaco, loadHsaco } from "../../../src/devices/amd/commands/hsaco.ts";
import { findComgr, findHipClang, HipCompiler, type HipTool } from "../../../src/devices/amd/compiler.ts";
import { optimized } from "../../../src/engine/compiler.ts";
import { CompileError } from "../../../src/errors.ts";
import { range, type Waitable } from "../../../src/helpers.ts";
import { amdFor } from "../../../src/render/amd.ts";
import { Device } from "../../../src/runtime/registry.ts";
import { lastItem } from "../../codegen/kernels.ts";
import { tensor } from "../../device/harness.ts";

const MAJORS = { 2: { hip: 4, codegen: 6, link: 9 }, 3: { hip: 3, codegen: 4, link: 7 } };
const CODE = new Uint8Array([1, 2, 3, 4, 5]);
const TEXT = new TextEncoder().encode("void k() {}");

interface Fake {
  readonly api: ComgrApi;
  readonly calls: string[];
  /** handles that nobody has given back */
  readonly live: Set<bigint>;
}
/** `failing`: the number of the call that answers 1. `log`: what a failed action has to say. */
function fake(major: number, failing = Infinity, log = "kernel.hip:1: error: so it is"): Fake {
  const [calls, live, kinds]: [string[], Set<bigint>, Map<bigint, number>] = [[], new Set(), new Map()];
  let handles = 0n;
  const make = (out: unknown, kind = 0): number => {
    handles += 1n;
    (out as BigUint64Array)[0] = handles;
    live.add(handles);
    kinds.set(handles, kind);
    return 0;
  };
  const used = (handle: unknown): bigint => {
    if (!live.has(handle as bigint)) throw new Error(`handle ${handle} is not alive`);
    return handle as bigint;
  };
  const drop = (handle: unknown): number => (live.delete(used(handle)) ? 0 : 2);
  const api: Record<ComgrCall, (...args: never[]) => number> = {
    get_version: (a: BigUint64Array, b: BigUint64Array) => {
      [a[0], b[0]] = [BigInt(major), 1n];
      return 0;
    },
    create_data: (kind: number, out: unknown) => make(out, kind),
    set_data: (h: bigint, size: number, bytes: Uint8Array) => (used(h) && bytes.byteLength === size ? 0 : 2),
    set_data_name: (h: bigint, name: string) => (used(h) && name.endsWith(".hip") ? 0 : 2),
    get_data: (h: bigint, size: BigUint64Array, bytes: Uint8Array | null) => {
      const all = kinds.get(used(h)) === 8 ? CODE : new TextEncoder().encode(`${log}\n\0`);
      size[0] = BigInt(all.byteLength);
      bytes?.set(all);
      return 0;
    },
    release_data: drop,
    create_data_set: (out: unknown) => make(out),
    data_set_add: (set: bigint, data: bigint) => (used(set) && used(data) ? 0 : 2),
    action_data_count: (set: bigint, _kind: number, out: BigUint64Array) => {
      out[0] = used(set) && log !== "" ? 1n : 0n;
      return 0;
    },
    action_data_get_data: (set: bigint, kind: number, _at: number, out: unknown) =>
      used(set) ? make(out, kind) : 2,
    destroy_data_set: drop,
    create_action_info: (out: unknown) => make(out),
    action_info_set_language: (h: bigint) => (used(h) ? 0 : 2),
    action_info_set_isa_name: (h: bigint, isa: string) => (used(h) && isa.endsWith("--gfx90a") ? 0 : 2),
    action_info_set_option_list: (h: bigint, list: string[], n: number) =>
      used(h) && n === list.length ? 0 : 2,
    action_info_set_logging: (h: bigint) => (used(h) ? 0 : 2),
    do_action: (_action: number, info: bigint, from: bigint, to: bigint) =>
      used(info) && used(from) && used(to) && from !== to ? 0 : 2,
    destroy_action_info: drop,
  };
  const isRelease = (name: string): boolean => /release|destroy/.test(name);
  const recorded = Object.entries(api).map(([name, run]) => [
    name,
    (...args: unknown[]) => {
      const words = args.filter((a) => typeof a !== "object" || Array.isArray(a));
      calls.push(`${name} ${words.join(" ")}`.trim());
      // a handle is given back also where the library says it could not be
      if (calls.length === failing && !isRelease(name)) return 1;
      return (run as (...args: unknown[]) => number)(...args);
    },
  ]);
  return { api: Object.fromEntries(recorded) as ComgrApi, calls, live };
}

describe("the library's calls", () => {
  const isa = "amdgcn-amd-amdhsa--gfx90a";
  const compile = ({ api }: Fake) => new Comgr(api, MAJORS).compile(TEXT, isa, ["-O3", "-w"]);

  test.each([2, 3] as const)("interface %i: the actions in their order, with its numbers", (major) => {
    const library = fake(major);
    expect(compile(library)).toEqual(CODE);
    expect(library.live.size).toBe(0);
    const { hip, codegen, link } = MAJORS[major];
    const starts = (name: string) => library.calls.filter((c) => c.startsWith(name));
    expect(starts("do_action").map((c) => Number(c.split(" ")[1]))).toEqual([2, codegen, link]);
    expect(starts("action_info_set_language")[0]).toMatch(new RegExp(` ${hip}$`));
    expect(starts("action_info_set_option_list").map((c) => c.split(" ")[2])).toEqual(["-O3,-w", "-O3", ""]);
  });
  test("another interface is refused", () => {
    expect(() => new Comgr(fake(4).api, MAJORS)).toThrow(/interface 4\.1, of which 2 and 3 are known/);
  });
  test("whichever call fails, it is an error and nothing stays", () => {
    const all = fake(2);
    compile(all);
    const releases = all.calls.map((c) => /release|destroy/.test(c));
    for (const at of range(all.calls.length).slice(1)) {
      if (releases[at] === true) continue;
      const library = fake(2, at + 1);
      expect(() => compile(library), all.calls[at]).toThrow(
        (all.calls[at] as string).startsWith("do_action") ? /so it is$/ : /answers 1$/,
      );
      expect(library.live.size, all.calls[at]).toBe(0);
    }
  });
  test("an action that fails without a word", () => {
    const whole = fake(2);
    compile(whole);
    const first = whole.calls.findIndex((c) => c.startsWith("do_action"));
    expect(() => compile(fake(2, first + 1, ""))).toThrow(/^action 2 answers 1$/);
  });
  test("what it makes code for", () => {
    const library = fake(3);
    const comgr = new Comgr(library.api, MAJORS);
    expect([comgr.version, comgr.knows(isa), comgr.knows("amdgcn-amd-amdhsa--gfx1")]).toEqual([
      "3.1",
      true,
      false,
    ]);
    expect(library.live.size).toBe(0);
  });
});

test("files that are no such library are named with the reason", ({ skip }) => {
  if (process.platform !== "linux") return skip("AMD's GPUs are driven on Linux only");
  const { found, tried } = askComgr(["libnothing.so.2", "libc.so.6"], "gfx90a");
  expect(found).toBeUndefined();
  expect(tried).toEqual([
    expect.stringMatching(/^libnothing\.so\.2: .*cannot open shared object/),
    expect.stringMatching(/^libc\.so\.6: .*amd_comgr_get_version/),
  ]);
});

// ---- the real one, and clang beside it ----

const ARCH = "gfx90a";
const comgr = findComgr(ARCH);
const clang = findHipClang(["clang-19"]);
const missing = "found" in comgr ? "" : `no libamd_comgr: ${comgr.tried.join(", ")}`;
const toolOf = (search: typeof comgr): HipTool => (search as { readonly found: HipTool }).found;
let folder = "";
beforeAll(async () => {
  await Device.open("JS");
  folder = mkdtempSync(join(tmpdir(), "gradloom-test-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const zeros = (...shape: number[]): Tensor =>
  tensor("JS", dtypes.float32, new Array(shape.reduce((a, b) => a * b, 1)).fill(0), shape);
async function sourceFor(t: Tensor): Promise<{ readonly name: string; readonly source: Source<string> }> {
  const renderer = amdFor(ARCH, { computeUnits: 104 }) as Renderer<string>;
  const { name, uops } = optimized((await lastItem(t)).ast, renderer, false);
  return { name, source: renderer.render(name, uops) };
}
/** What a launch needs; how many registers the code takes is each compiler's own affair. */
function launch({ image: _, entry, rsrc, ...facts }: Hsaco) {
  const [registers, accumulators] = [10, 6];
  return {
    ...facts,
    aligned: entry % 256,
    rsrc: [(rsrc[0] as number) >>> registers, rsrc[1], (rsrc[2] as number) >>> accumulators],
  };
}

test("kernels: what a launch reads is what clang writes", { timeout: 120_000 }, async ({ skip }) => {
  if (missing !== "") return skip(missing);
  if (!("found" in clang)) return skip(clang.tried.join(", "));
  await withEnv({ CACHE: folder }, async () => {
    const works = [zeros(4096).add(1).sqrt(), zeros(64, 4096).sum(1)];
    for (const { name, source } of await Promise.all(works.map(sourceFor))) {
      const [ours, theirs] = await Promise.all(
        [comgr, clang].map(async (search) => {
          const { code, entry } = await new HipCompiler(toolOf(search), ARCH, "AMD").compile(name, source);
          return launch(loadHsaco(code, entry, ARCH));
        }),
      );
      expect(ours).toEqual(theirs);
      expect(ours?.kernargBytes).toBe(8 * source.buffers);
    }
  });
});

const bad = sourceOf('extern "C" __attribute__((global)) void bad(int* data0) {\n  data0[0] = nothing;\n}');
const good = sourceOf('extern "C" __attribute__((global)) void good(int* data0) {\n  data0[0] = 7;\n}');
test("a refused kernel, a wait that blocks, and a loop that is not held", { timeout: 60_000 }, async ({
  skip,
}) => {
  if (missing !== "") return skip(missing);
  await withEnv({ CACHE: "0" }, async () => {
    const compiler = new HipCompiler(toolOf(comgr), ARCH, "AMD");
    const now = compiler.compile("good", good) as unknown as Waitable<{ readonly code: Uint8Array }>;
    expect(loadHsaco(now.waitSync().code, "good", ARCH).offsets).toEqual([0]);
    await now;
    let ticks = 0;
    const timer = setInterval(() => ticks++, 1);
    const failure: unknown = await Promise.resolve(compiler.compile("bad", bad)).catch((e: unknown) => e);
    clearInterval(timer);
    expect(ticks).toBeGreaterThan(5);
    expect(failure).toBeInstanceOf(CompileError);
    expect((failure as Error).message).toMatch(
      /libamd_comgr\S* refused the kernel bad:.*'nothing'.*source:/s,
    );
  });
});
test("a GPU that the library does not know", ({ skip }) => {
  if (missing !== "") return skip(missing);
  const { name } = toolOf(comgr);
  expect(findComgr("gfx9999", [name])).toEqual({ tried: [`${name} makes no code for gfx9999`] });
});
