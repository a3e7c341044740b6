// Where NVIDIA's libraries lie: the driver's own, which the system's loader knows, and NVRTC, which comes
// with the toolkit or with a Python wheel, in one of many places. Gives paths to try, in order;
// loading is left to the caller.

import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { env } from "../../env.ts";
import { load } from "../../host/builtin.ts";
import { homeFolder } from "../../host/folder.ts";

const WINDOWS = process.platform === "win32";

/** The driver's library; WSL keeps it in a folder of its own. */
export const DRIVER_PATHS: readonly string[] = WINDOWS
  ? ["nvcuda.dll"]
  : ["libcuda.so.1", "libcuda.so", "/usr/lib/wsl/lib/libcuda.so.1"];

const isNvrtc = (file: string): boolean =>
  WINDOWS ? /^nvrtc64_\d+_\d+\.dll$/.test(file) : /^libnvrtc\.so(\.\d+)*$/.test(file);
/**
 * What NVRTC opens by name when it first compiles. A wheel's has no path to it, unless it is there already.
 */
const isBuiltins = (file: string): boolean => /^(lib)?nvrtc-builtins(64_\d+\.dll|\.so\.\d+\.\d+)$/.test(file);

const list = (folder: string): string[] => {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
};
/** Folders whose last names are patterns: `/usr/local/cuda-*` and the like, the newest version first. */
const matching = (folder: string, name: RegExp): string[] =>
  list(folder)
    .filter((f) => name.test(f))
    .sort((a, b) => b.localeCompare(a, "en", { numeric: true }))
    .map((f) => join(folder, f));

const LIBRARY_FOLDERS = ["", "lib64", "lib", "bin", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"];

/** The folders of a toolkit, or of a wheel, in which libraries may lie. */
const within = (root: string): string[] => LIBRARY_FOLDERS.map((f) => join(root, f));

/** Wheels keep it below `nvidia/`: cu13/lib, or cuda_nvrtc/lib before version 13. */
const wheels = (sitePackages: string): string[] =>
  matching(join(sitePackages, "nvidia"), /^(cu\d+|cuda_nvrtc)$/).flatMap(within);

function sitePackages(): string[] {
  const home = homeFolder(load);
  const roots = ["/usr/local/lib", "/usr/lib", ...(home === undefined ? [] : [join(home, ".local/lib")])];
  return roots
    .flatMap((root) => matching(root, /^python3/))
    .flatMap((p) => [join(p, "site-packages"), join(p, "dist-packages")]);
}

/** The wheel of the Python that a shell would start: an environment may lie anywhere. Starts a process. */
function ofPython(): string[] {
  const script = "import nvidia; print('\\n'.join(nvidia.__path__))";
  const answer = spawnSync("python3", ["-c", script], { encoding: "utf8", timeout: 10_000 });
  if (answer.status !== 0) return [];
  const found = answer.stdout.split("\n").filter((line) => line !== "");
  return found.flatMap((p) => wheels(dirname(p)));
}

function* folders(): Generator<string> {
  yield* matching("/usr/local", /^cuda(-\d|$)/).flatMap(within);
  yield* within("/opt/cuda");
  if (WINDOWS) yield* matching("C:/Program Files/NVIDIA GPU Computing Toolkit/CUDA", /^v/).flatMap(within);
  yield* ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib/wsl/lib", "/usr/lib64"];
  yield* sitePackages().flatMap(wheels);
  yield* ofPython();
}

/** Files of NVRTC in a folder, the newest first. */
const nvrtcIn = (folder: string): string[] =>
  list(folder)
    .filter(isNvrtc)
    .sort((a, b) => b.localeCompare(a, "en", { numeric: true }))
    .map((f) => join(folder, f));

/**
 * Paths of NVRTC, best first, as they are asked for. The setting CUDA_PATH names a toolkit, a folder, one of
 * Python packages or the file, and then nothing else counts.
 */
export function* nvrtcPaths(named: string = env.CUDA_PATH): Generator<string> {
  if (named !== "") {
    const isFolder = existsSync(named) && statSync(named).isDirectory();
    yield* isFolder ? [...within(named), ...wheels(named)].flatMap(nvrtcIn) : [named];
    return;
  }
  yield* WINDOWS ? [] : ["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"];
  for (const folder of folders()) yield* nvrtcIn(folder);
}

/** The libraries that must be loaded before the one at `path`. */
export const builtinsBeside = (path: string): string[] =>
  basename(path) === path ? [] : matching(dirname(path), /builtins/).filter((f) => isBuiltins(basename(f)));

/** The toolkit's headers that belong to the library at `path`; undefined where there are none. */
export function headersBeside(path: string): string | undefined {
  if (basename(path) === path) return undefined;
  const up = [dirname(path), dirname(dirname(path)), dirname(dirname(dirname(path)))];
  return up.map((f) => join(f, "include")).find((f) => existsSync(join(f, "cuda_fp16.h")));
}
