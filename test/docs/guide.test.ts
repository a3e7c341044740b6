// The guide says what is true: every example is run, type-checked, and prints what stands below it; the
// samples of DEBUG are what DEBUG prints, but for the times; links lead somewhere; the size of
// the browser build is the size.

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { format } from "node:util";
import { gzipSync } from "node:zlib";
import { build, transform } from "esbuild";
import * as gradloom from "gradloom";
import * as device from "gradloom/device";
import * as onnx from "gradloom/onnx";
import * as render from "gradloom/render";
import { describe, expect, test, vi } from "vitest";
import { buildIfStale } from "../../bench/processes.ts";
import { esbuildPage, PAGES, type Page, sizeOf } from "../../bench/size/pages.ts";
import { anchorsOf, type Block, output, readPage, root } from "./markdown.ts";

const pages = readdirSync(join(root, "docs/guide"))
  .filter((name) => name.endsWith(".md"))
  .map((name) => readPage(`docs/guide/${name}`));
const examples = pages.flatMap(({ path, blocks }) =>
  blocks.flatMap((block, i) =>
    /^[jt]s$/.test(block.language) ? [{ where: `${path}:${block.line}`, block, printed: blocks[i + 1] }] : [],
  ),
);

/** Runs an example in this process and gives what it logs. Its imports become those of the test. */
async function run({ text }: Block): Promise<string> {
  const AsyncFunction = (async () => {}).constructor as new (
    ...args: string[]
  ) => (load: (name: string) => unknown) => Promise<void>;
  const { code } = await transform(text, { loader: "ts", target: "es2022", format: "esm" });
  const body = code.replaceAll(/^import (\{[^}]*\}) from ("[^"]+");$/gm, "const $1 = await load($2);");
  const lines: string[] = [];
  const log = vi.spyOn(console, "log").mockImplementation((...args) => void lines.push(format(...args)));
  try {
    gradloom.resetKernelNames();
    const ours: Readonly<Record<string, unknown>> = {
      gradloom,
      "gradloom/nn": gradloom.nn,
      "gradloom/render": render,
      "gradloom/device": device,
      "gradloom/onnx": onnx,
    };
    await new AsyncFunction("load", body)((name) => ours[name] ?? import(name));
  } finally {
    log.mockRestore();
  }
  return lines.map((line) => `${line}\n`).join("");
}

describe("examples", () => {
  test("there are some, each with what it prints", () => {
    expect(examples.length).toBeGreaterThan(15);
    expect(examples.filter((e) => e.printed?.language !== "text").map((e) => e.where)).toEqual([]);
  });

  test.each(examples)("$where", async ({ block, printed }) => {
    expect(await run(block)).toBe(printed?.text);
  });

  test("type-check", () => {
    const folder = join(root, "node_modules/.cache/gradloom-guide");
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    for (const { where, block } of examples) {
      writeFileSync(join(folder, `${where.replaceAll(/\W/g, "_")}.${block.language}`), block.text);
    }
    const compilerOptions = { allowJs: true, checkJs: true, strict: false, noImplicitOverride: false };
    const paths = {
      gradloom: [join(root, "src/index.ts")],
      "gradloom/nn": [join(root, "src/nn/index.ts")],
      "gradloom/onnx": [join(root, "src/onnx/index.ts")],
      "gradloom/render": [join(root, "src/render/index.ts")],
      "gradloom/device": [join(root, "src/device.ts")],
    };
    const config = {
      extends: join(root, "tsconfig.json"),
      compilerOptions: { ...compilerOptions, paths },
      include: ["*.js", "*.ts"],
    };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
    const tsc = join(root, "node_modules/typescript/bin/tsc");
    const { stdout } = spawnSync(process.execPath, [tsc, "-p", folder], { cwd: root, encoding: "utf8" });
    expect(stdout.split("\n").filter((line) => line.includes("gradloom-guide"))).toEqual([]);
    rmSync(folder, { recursive: true });
  });
});

describe("samples of DEBUG", () => {
  const page = readPage("docs/guide/debugging.md");
  const samples = page.blocks
    .filter((b) => b.language === "console")
    .map((b) => b.text.split(/\n/).slice(0, -1));

  /** Times and rates differ from run to run; colours are off where no terminal reads. */
  const timeless = (line: string): string => line.replace(/\btm .*$/, "tm");

  test("there are some", () => expect(samples.length).toBe(4));

  test.each(samples.map((lines) => [lines[0] as string, lines] as const))("%s", (command, lines) => {
    const [, settings = "", name] = /^\$ ((?:\w+=\w+ )+)node (\w+)\.mjs$/.exec(command) ?? [];
    const program = new RegExp(`\`${name}\\.mjs\` being\\s+\`([^\`]+)\``).exec(page.text)?.[1];
    expect(program, `the page says what ${name}.mjs is`).toBeDefined();
    const variables = Object.fromEntries(
      settings
        .trim()
        .split(" ")
        .map((s) => s.split("=") as [string, string]),
    );
    const printed = output(`import { Tensor } from "gradloom";\n${program};`, variables)
      .split("\n")
      .map(timeless)
      .join("\n");
    // … stands for any lines
    const parts = lines.slice(1).map(timeless).join("\n").split(/^…\n?/m);
    let rest = printed;
    for (const part of parts) {
      expect(rest).toContain(part);
      rest = rest.slice(rest.indexOf(part) + part.length);
    }
    if (parts.length === 1) expect(`${parts[0]}\n`).toBe(printed);
  });
});

describe("links", () => {
  test.each(pages)("$path", ({ path, links }) => {
    const broken = links.filter((link) => {
      const [file = "", anchor] = link.split("#");
      const target = file === "" ? path : join(dirname(path), file);
      if (!existsSync(join(root, target))) return true;
      return anchor !== undefined && !anchorsOf(readFileSync(join(root, target), "utf8")).includes(anchor);
    });
    expect(broken).toEqual([]);
  });

  test("the first page links to all others", () => {
    const first = readPage("docs/guide/README.md");
    const others = pages.map(({ path }) => path.replace("docs/guide/", "")).filter((p) => p !== "README.md");
    expect(others.filter((name) => !first.links.includes(name))).toEqual([]);
  });

  test("every script that is named is in package.json", () => {
    const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
      scripts: Record<string, string>;
    };
    const named = pages.flatMap(({ text }) =>
      [...text.matchAll(/npm run ([\w:-]+)/g)].map(([, n]) => n as string),
    );
    expect(named.filter((name) => scripts[name] === undefined)).toEqual([]);
  });
});

/** A tenth more or less is what a figure in prose may be off. */
const expectNear = (kilobytes: number, said: string | undefined): void => {
  expect(kilobytes).toBeGreaterThan(Number(said) * 0.9);
  expect(kilobytes).toBeLessThan(Number(said) * 1.1);
};
const browserPage = readPage("docs/guide/browser.md").text.replaceAll("\n", " ");

test("pages are as large as the guide says", { timeout: 300_000 }, async () => {
  buildIfStale();
  const [, dot, network] = /dot product loads (\d+) KB.*network loads (\d+) KB/.exec(browserPage) ?? [];
  for (const [i, said] of [dot, network].entries()) {
    expectNear((await sizeOf(PAGES[i] as Page, esbuildPage)) / 1000, said);
  }
});

test("the build in one piece is as large as the guide says", async () => {
  const { outputFiles } = await build({
    absWorkingDir: root,
    stdin: {
      contents: 'import "gradloom/all"; export * from "gradloom"; export * as render from "gradloom/render";',
      resolveDir: root,
    },
    alias: {
      "gradloom/all": join(root, "src/tensor/ondemand/all.ts"),
      "gradloom/render": join(root, "src/render/index.ts"),
      "gradloom/device": join(root, "src/device.ts"),
      gradloom: join(root, "src/index.ts"),
    },
    bundle: true,
    splitting: true,
    minify: true,
    format: "esm",
    target: "es2022",
    platform: "browser",
    conditions: ["browser"],
    outdir: "dist",
    write: false,
  });
  const bytes = outputFiles.reduce((sum, file) => sum + gzipSync(file.contents, { level: 9 }).length, 0);
  expectNear(bytes / 1000, /in one piece is (\d+) KB/.exec(browserPage)?.[1]);
});
