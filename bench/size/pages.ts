// How large a page is that uses the built package: bundled and minified as its author would do it, then
// run, so that only the chunks that it loads count. Bytes are those of gzip.

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build, transform } from "esbuild";

const root = join(import.meta.dirname, "..", "..");

export interface Page {
  readonly name: string;
  /** it needs navigator.gpu, which Dawn stands in for */
  readonly isGpu?: boolean;
  /** below bench/size */
  readonly file: string;
  readonly prints: string;
  /** bytes, gzipped */
  readonly limit: number;
  readonly target: number;
}
export const PAGES: readonly Page[] = [
  { name: "a dot product", file: "dot.js", prints: "11", limit: 90_000, target: 110_000 },
  { name: "a trained network", file: "mlp.js", prints: "0,1,1,0", limit: 131_500, target: 130_000 },
  {
    name: "twenty methods on WEBGPU",
    isGpu: true,
    file: "webgpu.js",
    prints: "12.5,3.5,4.0,0.0",
    limit: 131_000,
    target: 130_000,
  },
];

/** Files of a bundled page, by name. */
type Files = ReadonlyMap<string, string>;
export type Bundler = (file: string) => Promise<Files>;

/** The entry points of the package, and the file of each for a page. */
function entryFiles(): ReadonlyMap<string, string> {
  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    exports: Readonly<Record<string, { readonly browser?: string }>>;
  };
  const files = Object.entries(exports).flatMap(([name, { browser }]) =>
    browser === undefined ? [] : [[`gradloom${name.slice(1)}`, join(root, browser)] as const],
  );
  return new Map(files);
}

export const esbuildPage: Bundler = async (file) => {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: { page: file },
    bundle: true,
    splitting: true,
    format: "esm",
    minify: true,
    platform: "browser",
    target: "es2022",
    outdir: join(root, "page"),
    write: false,
    logLevel: "silent",
    // as a user has it; our tsconfig.json says that `gradloom` is src/
    tsconfigRaw: {},
    alias: Object.fromEntries(entryFiles()),
  });
  return new Map(outputFiles.map((f) => [f.path.slice(join(root, "page").length + 1), f.text]));
};

interface Rollup {
  rollup(options: object): Promise<{
    generate(options: object): Promise<{
      output: readonly { readonly type: string; readonly fileName: string; readonly code?: string }[];
    }>;
  }>;
}
export const rollupPage: Bundler = async (file) => {
  const { rollup } = (await import(join(root, "bench/node_modules/rollup/dist/es/rollup.js"))) as Rollup;
  const isAreaLoader = (id: string): boolean => /[\\/]ondemand[\\/]/.test(id) && id.includes("tensor");
  const bundle = await rollup({
    input: { page: file },
    treeshake: { moduleSideEffects: (id: string) => id.endsWith(file) || isAreaLoader(id) },
    plugins: [{ name: "gradloom", resolveId: (id: string) => entryFiles().get(id) }],
    onwarn: () => {},
  });
  const { output } = await bundle.generate({ format: "es", chunkFileNames: "[name]-[hash].js" });
  const chunks = output.filter((o) => o.type === "chunk");
  return new Map(
    await Promise.all(
      chunks.map(async ({ fileName, code = "" }) => {
        const { code: small } = await transform(code, { minify: true, format: "esm", target: "es2022" });
        return [fileName, small] as const;
      }),
    ),
  );
};

/** Gives Node the `navigator.gpu` of a page. */
const DAWN = `import { create, globals } from ${JSON.stringify(join(root, "node_modules/webgpu/index.js"))};
  Object.assign(globalThis, globals);
  Object.defineProperty(globalThis, "navigator", { value: { gpu: create([]) } });
`;

/** Runs a bundled page and adds up what it loaded. */
export async function sizeOf({ file, prints, isGpu }: Page, bundler: Bundler): Promise<number> {
  const files = await bundler(join(import.meta.dirname, file));
  const folder = mkdtempSync(join(tmpdir(), "gradloom-size-"));
  try {
    writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
    for (const [name, text] of files) {
      mkdirSync(join(folder, name, ".."), { recursive: true });
      writeFileSync(join(folder, name), `(globalThis.loaded ??= []).push(${JSON.stringify(name)});${text}`);
    }
    const last = 'await import("./page.js"); console.log(JSON.stringify(loaded)); process.exit(0);';
    writeFileSync(join(folder, "run.js"), `${isGpu === true ? DAWN : ""}${last}`);
    // settings of this process, such as SPEC=1 in tests, would load more
    const env = { ...process.env, SPEC: "0", DEBUG: "0" };
    const { stdout, stderr } = spawnSync(process.execPath, [join(folder, "run.js")], {
      encoding: "utf8",
      env,
    });
    const [printed, loaded = "[]"] = stdout.trim().split("\n");
    if (printed !== prints) throw new Error(`${file} printed ${printed}, expected ${prints}\n${stderr}`);
    return (JSON.parse(loaded) as string[])
      .map((name) => gzipSync(files.get(name) ?? "", { level: 9 }).length)
      .reduce((a, b) => a + b, 0);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
