// The settings: one table in src/env.ts, every name of it used and documented, read nowhere else; `withEnv`
// puts back what it changed; GRAPH=1 writes its pictures where GRAPHPATH says.

import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { env, Tensor, TinyJit, withEnv } from "gradloom";
import { afterEach, describe, expect, test, vi } from "vitest";
import { type EnvName, SETTINGS } from "../src/env.ts";

const root = join(import.meta.dirname, "..");
const NAMES = Object.keys(SETTINGS) as EnvName[];

/** The code without its comments, which may speak of settings too. */
const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".ts"))
  .map((path) => {
    const text = readFileSync(join(root, "src", path), "utf8").replaceAll(/\/\/.*$|\/\*[\s\S]*?\*\//gm, "");
    return { path: path.replaceAll("\\", "/"), text };
  });

describe("the table", () => {
  test.each(NAMES)("%s is used", (name) => {
    const users = sources.filter(({ text }) =>
      new RegExp(`\\benv\\.${name}\\b|\\bsetting\\("${name}"\\)`).test(text),
    );
    expect(users.map((u) => u.path)).not.toEqual([]);
  });

  test("the guide has a row for each name and no other", () => {
    const lines = readFileSync(join(root, "docs", "guide", "debugging.md"), "utf8").split(/\r?\n/);
    // the settings table is the run of rows around the one of DEBUG
    const at = lines.findIndex((line) => /^\|\s*`?DEBUG\b/.test(line));
    expect(at, "the guide has a table of settings with a row that starts with DEBUG").toBeGreaterThan(0);
    let [first, last] = [at, at];
    while (lines[first - 1]?.startsWith("|")) first--;
    while (lines[last + 1]?.startsWith("|")) last++;
    const rows = lines.slice(first + 2, last + 1).map((line) => /^\|\s*`?([A-Z_\d]+)/.exec(line)?.[1]);
    expect(rows.toSorted()).toEqual(NAMES.toSorted());
    for (const [i, name] of rows.entries()) {
      const fallback = String(SETTINGS[name as EnvName]);
      const cells = lines[first + 2 + i]?.split("|").map((cell) => cell.replaceAll("`", "").trim());
      if (fallback !== "") expect(cells, `the row of ${name} has its default in a cell`).toContain(fallback);
    }
  });

  test("the environment is read in src/env.ts and nowhere else", () => {
    const readers = sources.filter(({ text }) =>
      /\bprocess\??\.env\b|import\.meta\.env|GRADLOOM_ENV/.test(text),
    );
    expect(readers.map((r) => r.path)).toEqual(["env.ts"]);
  });
});

describe("where values come from", () => {
  const saved = { ...process.env };
  afterEach(() => {
    process.env = { ...saved };
    vi.unstubAllGlobals();
    vi.resetModules();
  });
  /** vi.stubEnv would make a boolean of DEV. */
  async function fresh(variables: Record<string, string>, page?: Record<string, string | number>) {
    process.env = { ...saved, ...variables };
    if (page !== undefined) vi.stubGlobal("GRADLOOM_ENV", page);
    vi.resetModules();
    return (await import("../src/env.ts")).env;
  }

  test("process.env, as the type of the default", async () => {
    const e = await fresh({ DEBUG: "3", FUSE: "0", CC: "gcc-12", DEV: "JS:1" });
    expect([e.DEBUG, e.FUSE, e.CC, e.DEV]).toEqual([3, 0, "gcc-12", "JS:1"]);
  });
  test("a value that is not a number gives the default with a warning; an empty one gives the default", async () => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
    const e = await fresh({ DEBUG: "lots", FUSE: "", BEAM: "-1" });
    expect([e.DEBUG, e.FUSE, e.BEAM]).toEqual([0, 1, 0]);
    expect(warn.mock.calls).toEqual([
      ["gradloom: DEBUG=lots is not a number >= 0; using 0"],
      ["gradloom: BEAM=-1 is not a number >= 0; using 0"],
    ]);
    warn.mockRestore();
  });
  test("a DEBUG that is meant for the logger of another package is ignored", async () => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
    expect((await fresh({ DEBUG: "app:*" })).DEBUG).toBe(0);
    expect(warn.mock.calls).toEqual([]);
    warn.mockRestore();
  });
  test("a page says it in GRADLOOM_ENV, which wins", async () => {
    const e = await fresh({ DEBUG: "3" }, { DEBUG: 1, DEV: "NULL" });
    expect([e.DEBUG, e.DEV]).toEqual([1, "NULL"]);
  });
  test("Vite's own DEV=1 (and nothing, in production) names no device", async () => {
    expect([(await fresh({ DEV: "1" })).DEV, (await fresh({ DEV: "" })).DEV]).toEqual(["WASM", "WASM"]);
    expect((await fresh({ DEV: "nope" })).DEV).toBe("nope"); // a wrong name is told when it is used
  });
});

describe("withEnv", () => {
  const now = () => [env.DEBUG, env.FUSE, env.CC];
  const before = now();
  const changes = { DEBUG: 4, FUSE: 0, CC: "tcc" };
  const changed = [4, 0, "tcc"];

  test("changes for the length of a call and gives its result", () => {
    expect(withEnv(changes, now)).toEqual(changed);
    expect(now()).toEqual(before);
  });
  test("puts back when the call throws", () => {
    const fail = () =>
      withEnv(changes, () => {
        throw new RangeError(String(now()));
      });
    expect(fail).toThrow(String(changed));
    expect(now()).toEqual(before);
  });
  test("lasts until a promise is settled, well or badly", async () => {
    const good = withEnv(changes, async () => {
      await Promise.resolve();
      return now();
    });
    expect(now()).toEqual(changed);
    expect(await good).toEqual(changed);
    expect(now()).toEqual(before);
    const bad = withEnv(changes, async () => {
      await Promise.resolve();
      throw new RangeError("late");
    });
    await expect(bad).rejects.toThrow("late");
    expect(now()).toEqual(before);
  });
  test("nests", () => {
    withEnv({ DEBUG: 2 }, () => {
      expect(withEnv({ FUSE: 0 }, now)).toEqual([2, 0, before[2]]);
      expect(env.DEBUG).toBe(2);
    });
    expect(now()).toEqual(before);
  });
});

describe("GRAPH=1", () => {
  test("writes the graph of every schedule as .dot and .svg to GRAPHPATH", async () => {
    const folder = mkdtempSync(join(tmpdir(), "gradloom-graph-"));
    try {
      const GRAPHPATH = join(folder, "dot product");
      const c = new Tensor([1, 2]).dot(new Tensor([3, 4]));
      expect(await withEnv({ GRAPHPATH }, () => c.add(1).item())).toBe(12); // GRAPH=0 writes nothing
      expect(readdirSync(folder)).toEqual([]);
      const d = new Tensor([1, 2]).dot(new Tensor([3, 4]));
      expect(await withEnv({ GRAPH: 1, GRAPHPATH }, () => d.item())).toBe(11);
      expect(readdirSync(folder).toSorted()).toEqual(["dot product.dot", "dot product.svg"]);
      const dot = readFileSync(`${GRAPHPATH}.dot`, "utf8");
      expect(dot).toMatch(/^digraph \w+ \{/);
      for (const op of ["SUM", "MUL", "COPY", "EMPTY"]) expect(dot).toContain(op);
      const svg = readFileSync(`${GRAPHPATH}.svg`, "utf8");
      expect(svg).toMatch(/^<svg [^>]*xmlns="http:\/\/www\.w3\.org\/2000\/svg"[\s\S]*<\/svg>\s*$/);
      for (const op of ["SUM", "MUL", "COPY", "EMPTY"]) expect(svg).toContain(op);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe("JITGRAPH, for the captured call of a TinyJit", () => {
  test.each([
    [{ GRAPH: 0 }, [0, 0, 0]],
    [{ GRAPH: 0, JITGRAPH: "1" }, [0, 1, 0]],
    [{ GRAPH: 1 }, [1, 1, 0]],
    [{ GRAPH: 1, JITGRAPH: "0" }, [1, 0, 0]],
  ])("%o: graphs written by each call", async (settings, expected) => {
    const folder = mkdtempSync(join(tmpdir(), "gradloom-jitgraph-"));
    try {
      const step = new TinyJit((x: Tensor) => x.add(1));
      const pictures = () => readdirSync(folder).filter((name) => name.endsWith(".dot")).length;
      const written: number[] = [];
      for (let i = 0; i < 3; i++) {
        const x = await new Tensor([i]).realize();
        const before = pictures();
        await withEnv({ ...settings, GRAPHPATH: join(folder, "g") }, () => step(x));
        written.push(pictures() - before);
      }
      expect(written).toEqual(expected);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
