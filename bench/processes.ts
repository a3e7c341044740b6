// Measures processes: from starting one until it has printed what it should. They import the built package,
// so it is built first if it is older than src/.

import { spawn, spawnSync } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const root = join(import.meta.dirname, "..");
export const log = (text: string): void => void process.stderr.write(`${text}\n`);

/** The measured package is the built one; it must match src/. */
export function buildIfStale(): void {
  const newest = (dir: string): number =>
    Math.max(
      ...readdirSync(dir, { recursive: true, encoding: "utf8" }).map((f) => statSync(join(dir, f)).mtimeMs),
    );
  const built = join(root, "dist/node/index.js");
  if (existsSync(built) && statSync(built).mtimeMs > newest(join(root, "src"))) return;
  log("dist/ is older than src/: building");
  const { status, stderr } = spawnSync("npm", ["run", "build"], {
    cwd: root,
    encoding: "utf8",
    shell: process.platform === "win32", // npm is a batch file there
  });
  if (status !== 0) throw new Error(`npm run build failed:\n${stderr}`);
}

/** A program of bench/ with all of src/ in one file, so that starting it measures no loader. */
export const bundle = (program: string, outfile: string): Promise<unknown> =>
  build({
    absWorkingDir: root,
    entryPoints: [join("bench", program)],
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node20",
    external: ["koffi", "webgpu"],
    logLevel: "warning",
    outfile,
  });

/** Whether the package of bench/package.json is installed. */
export const isInstalled = (name: string): boolean => existsSync(join(root, "bench/node_modules", name));
export const SKIP = "is not installed: npm install --prefix bench --ignore-scripts";

export interface Program {
  readonly name: string;
  /** below bench/startup */
  readonly file: string;
  readonly prints: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Milliseconds from starting a process until it has printed. */
export function timeToPrint({ name, file, prints, env = {} }: Program): Promise<number> {
  return new Promise((resolve, reject) => {
    const start = performance.now();
    const child = spawn(process.execPath, [join(root, "bench/startup", file)], {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, ...env },
    });
    let took = NaN;
    let printed = "";
    child.stdout.on("data", (chunk) => {
      if (printed === "") took = performance.now() - start;
      printed += chunk;
    });
    child.on("error", reject);
    child.on("close", () => {
      if (printed.trim() === prints) resolve(took);
      else reject(new Error(`${name} printed ${JSON.stringify(printed)}, expected ${prints}`));
    });
  });
}
