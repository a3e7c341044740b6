// README.md says what is true: its example prints what stands below it, its DEBUG samples are what DEBUG
// prints (but for the times), its two commands are what continuous integration runs, its size is the size.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "..", "..");
const readme = readFileSync(join(root, "README.md"), "utf8");
const blocks = [...readme.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map((m) => ({
  language: m[1] as string,
  text: m[2] as string,
}));
const { DEV: _, DEBUG: __, SPEC: ___, ...environment } = process.env;

/** What a program prints that imports gradloom, which is src/index.ts here. */
function output(code: string, settings: Record<string, string> = {}): string {
  const dir = mkdtempSync(join(tmpdir(), "gradloom-readme-"));
  try {
    const file = join(dir, "program.mts");
    writeFileSync(file, code);
    const env = { ...environment, ...settings };
    const run = spawnSync(process.execPath, ["--import", "tsx", file], { cwd: root, encoding: "utf8", env });
    expect(run.stderr).toBe("");
    expect(run.status).toBe(0);
    return run.stdout;
  } finally {
    rmSync(dir, { recursive: true });
  }
}

test("the example prints what is written below it", () => {
  const at = blocks.findIndex((b) => b.language === "js");
  const [example, printed] = blocks.slice(at);
  expect(printed?.language).toBe("text");
  expect(output(example?.text ?? "")).toBe(printed?.text);
  expect(example?.text.trimEnd().split("\n").length).toBeLessThanOrEqual(10);
});

test("the example runs as many kernels as its comments say", () => {
  const code = blocks.find((b) => b.language === "js")?.text ?? "";
  const counted = `${code}
import { GlobalCounters } from "gradloom";
console.log(GlobalCounters.kernelCount);`;
  expect(output(counted).trimEnd().split("\n").at(-1)).toBe("3");
});

test("the jit's example prints what its comment says", () => {
  const code = blocks.find((b) => b.text.includes("new TinyJit"))?.text ?? "";
  const [, said] = /console\.log\(.*\); \/\/ (.*)/.exec(code) ?? [];
  // plain JavaScript there, a module of TypeScript here
  const printed = output(`import { nn, Tensor, TinyJit } from "gradloom";\n${code}`);
  expect(said).toBeDefined();
  expect(printed.trimEnd()).toBe(said);
});

const samples = blocks.filter((b) => b.language === "console").map((b) => b.text.split(/\n/).slice(0, -1));

/** Times and rates differ from run to run; colours are off where no terminal reads. */
const timeless = (line: string): string => line.replace(/\btm .*$/, "tm");

test.each(samples.map((lines) => [lines[0] as string, lines] as const))("%s", (command, lines) => {
  const [, settings = "", name] = /^\$ ((?:\w+=\w+ )+)node (\w+)\.mjs$/.exec(command) ?? [];
  const program = new RegExp(`\`${name}\\.mjs\` being\\s+\`([^\`]+)\``).exec(readme)?.[1];
  expect(program, `README says what ${name}.mjs is`).toBeDefined();
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

test("the commands are those of package.json and .ci/run", () => {
  const commands = blocks.filter((b) => b.language === "sh").map((b) => b.text.trim());
  expect(commands).toEqual(["npm install && npm run mnist", "npm ci && npm test"]);
  expect(readFileSync(join(root, ".ci/run"), "utf8").trimEnd().split("\n").at(-1)).toBe(commands[1]);
});

test("every script that README names is there, and so is every example", () => {
  const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    scripts: Record<string, string>;
  };
  const named = [...readme.matchAll(/npm run ([\w:]+)/g)].map(([, name]) => name as string);
  expect(named.filter((name) => scripts[name] === undefined)).toEqual([]);
});

test("what README links to is in the package", () => {
  const { files } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { files: string[] };
  const links = [...readme.matchAll(/\]\(([^)#]+)\)/g)].map(([, path]) => path as string);
  expect(links.filter((path) => !files.some((f) => path === f || path.startsWith(`${f}/`)))).toEqual([]);
});

test("every file that README links to is there", () => {
  for (const [, path] of readme.matchAll(/\]\(([^)#]+)\)/g)) {
    expect(() => readFileSync(join(root, path as string)), path).not.toThrow();
  }
});

test("the browser build is as large as README says, give or take a tenth", async () => {
  const said = Number(/the browser build is (\d+) KB minified and gzipped/.exec(readme)?.[1]);
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: ["src/index.ts"],
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
  expect(bytes / 1000).toBeGreaterThan(said * 0.9);
  expect(bytes / 1000).toBeLessThan(said * 1.1);
});
