// The checks of a release that need no build: what a tarball may hold, what its files may say, how version
// and changelog agree, which entries are tried, and that publishing is refused outside of CI. `npm run
// release -- --dry-run` runs all of it.

import { readdirSync, readFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import { script, withFolder } from "./run.ts";

const root = join(import.meta.dirname, "..", "..");
const modules = join(root, "node_modules");
const load = (name: string) => import(pathToFileURL(join(root, "scripts", "release", name)).href);

interface Manifest {
  name: string;
  version: string;
  exports: unknown;
  scripts?: object;
}
const contents = (await load("contents.mjs")) as {
  BUDGET: number;
  checkFiles(files: readonly { path: string }[], manifest: Manifest, size: number): string[];
  checkManifest(packed: object, files: readonly { path: string }[]): string[];
  checkText(path: string, text: string, folder: string): string[];
};
const { packedManifest } = (await load("manifest.mjs")) as { packedManifest(manifest: object): object };
const changelog = (await load("changelog.mjs")) as {
  checkChangelog(text: string, version: string, publishing?: boolean): string[];
};
const install = (await load("install.mjs")) as {
  entries(manifest: Manifest): string[];
  checkInstalled(folder: string, manifest: Manifest, modules: string): string[];
};
const forge = (await load("forge.mjs")) as {
  checkForge(env: Record<string, string>, manifest: Manifest & { repository?: { url: string } }): string[];
};
const own = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Manifest;

const manifest: Manifest = {
  name: "gradloom",
  version: "0.1.0",
  exports: {
    ".": {
      types: "./dist/types/index.d.ts",
      browser: "./dist/browser/index.js",
      default: "./dist/node/index.js",
    },
    "./nn": { types: "./dist/types/nn/nn.d.ts", default: "./dist/node/nn.js" },
    "./package.json": "./package.json",
  },
};
const good = [
  "package.json",
  "README.md",
  "LICENSE",
  "CHANGELOG.md",
  "docs/guide/jit.md",
  "examples/xor.ts",
  "examples/browser/index.html",
  "examples/browser/style.css",
  "dist/types/index.d.ts",
  "dist/types/nn/nn.d.ts",
  "dist/browser/index.js",
  "dist/node/index.js",
  "dist/node/nn.js",
  "dist/node/chunks/cuda-AB12.js.map",
];
const files = (paths: readonly string[]) => paths.map((path) => ({ path }));

describe("the tarball", () => {
  test("what should ship passes", () => {
    expect(contents.checkFiles(files(good), manifest, 1000)).toEqual([]);
  });
  test("everything in docs/ and examples/ may ship", () => {
    const written = ["docs", "examples"].flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => relative(root, join(entry.parentPath, entry.name)).split(sep).join("/"))
        // what package.json or npm leaves out
        .filter((path) => !/\/node_modules\/|\/package-lock\.json$|\/\.npmrc$/.test(path)),
    );
    expect(contents.checkFiles(files([...good, ...written]), manifest, 1000)).toEqual([]);
  });
  test.each([
    "test/ops.test.ts",
    "src/index.ts",
    ".env",
    ".npmrc",
    "dist/node/key.pem",
    "dist/types/index.d.ts.map",
    "docs/draft.txt",
    "examples/weights.safetensors",
    "scripts/build.mjs",
    "node_modules/x/package.json",
    "examples/models/node_modules/x/model.onnx",
    "examples/models/package-lock.json",
  ])("%s must not ship", (path) => {
    expect(contents.checkFiles(files([...good, path]), manifest, 1000)).toEqual([
      `${path} must not ship: no pattern of scripts/release/contents.mjs allows it`,
    ]);
  });
  test.each(["LICENSE", "CHANGELOG.md", "dist/browser/index.js", "dist/node/nn.js", "dist/types/nn/nn.d.ts"])(
    "%s must not be missing",
    (path) => {
      expect(contents.checkFiles(files(good.filter((p) => p !== path)), manifest, 1000)).toEqual([
        `${path} is missing`,
      ]);
    },
  );
  test("npm has nothing to warn of: neither this package nor what it brings runs a script", () => {
    for (const name of ["prepare", "preinstall", "install", "postinstall"]) {
      expect(own.scripts).not.toHaveProperty(name);
    }
    interface Locked {
      readonly dev?: boolean;
      readonly peer?: boolean;
      readonly hasInstallScript?: boolean;
    }
    const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
      packages: Record<string, Locked>;
    };
    const brought = Object.entries(packages).filter(([path, { dev, peer }]) => path !== "" && !dev && !peer);
    expect(brought.map(([path]) => path)).toContain("node_modules/@koromix/koffi-linux-x64");
    expect(brought.filter(([, { hasInstallScript }]) => hasInstallScript)).toEqual([]);
  });
  test("package.json names what ships, and runs nothing where it is installed", () => {
    const paths = [...good, "dist/browser/tensor/ondemand/all.js"];
    const wrong = {
      imports: { "#host": { browser: "./src/host/browser.ts", default: "./dist/node/index.js" } },
      scripts: { prepare: "npm run build", test: "vitest" },
      sideEffects: ["./src/tensor/ondemand/*.ts", "./dist/browser/tensor/ondemand/*.js"],
    };
    expect(contents.checkManifest(wrong, files(paths))).toEqual([
      "package.json: imports names ./src/host/browser.ts, which does not ship",
      "package.json: the script prepare would run where the package is installed",
      "package.json: sideEffects names ./src/tensor/ondemand/*.ts, which does not ship",
    ]);
    const packed = packedManifest({ ...own, ...wrong });
    expect(contents.checkManifest(packed, files(paths))).toEqual([]);
    expect(packed).toMatchObject({ name: "gradloom", sideEffects: ["./dist/browser/tensor/ondemand/*.js"] });
    expect(Object.keys(packed)).toEqual(
      expect.arrayContaining(["exports", "files", "engines", "type", "license"]),
    );
    for (const field of ["imports", "scripts", "devDependencies", "overrides"])
      expect(packed).not.toHaveProperty(field);
    const start = { "#start": { module: "./dist/node/a.js", default: "./dist/node/b.js" } };
    expect(packedManifest({ ...own, imports: { ...wrong.imports, ...start } })).toMatchObject({
      imports: start,
    });
  });
  test("the size has a budget", () => {
    const size = contents.BUDGET + 1;
    expect(contents.checkFiles(files(good), manifest, size)).toEqual([
      `the tarball has ${size} bytes, more than the budget of ${contents.BUDGET}`,
    ]);
  });
  test("no secrets, and no folder of the machine that built it", () => {
    const key = ["-----BEGIN RSA", "PRIVATE KEY-----"].join(" ");
    expect(contents.checkText("a.js", `x ${key}`, "/some/folder")).toEqual(["a.js holds a private key"]);
    expect(contents.checkText("a.js", `npm_${"a1B2".repeat(9)}`, "/some/folder")).toEqual([
      "a.js holds a token of npm",
    ]);
    expect(contents.checkText("a.js.map", '["/some/folder/src/a.ts"]', "/some/folder")).toEqual([
      "a.js.map names a folder of the machine that built it",
    ]);
    expect(contents.checkText("a.js", "const npm_config = 1;", "/some/folder")).toEqual([]);
  });
});

describe("the changelog", () => {
  const text = (top: string, rest = "## [0.1.0] - 2026-01-31\n\n- first\n") =>
    `# Changelog\n\n${top}\n${rest}`;
  test("ours fits package.json", () => {
    expect(changelog.checkChangelog(readFileSync(join(root, "CHANGELOG.md"), "utf8"), own.version)).toEqual(
      [],
    );
  });
  test("entries under Unreleased wait for a version", () => {
    const waiting = text("## [Unreleased]\n\n- new\n");
    expect(changelog.checkChangelog(waiting, "0.1.0")).toEqual([]);
    expect(changelog.checkChangelog(waiting, "0.1.0", true)).toEqual([
      "[Unreleased] is not empty: move its entries to a section with the new version",
    ]);
    expect(changelog.checkChangelog(text("## [Unreleased]\n"), "0.1.0", true)).toEqual([]);
  });
  test.each([
    [text(""), "0.1.0", "CHANGELOG.md must start with a section [Unreleased]"],
    [text("## [Unreleased]\n", ""), "0.1.0", "CHANGELOG.md has no section [0.1.0]"],
    [
      text("## [Unreleased]\n"),
      "0.2.0",
      "package.json says 0.2.0, the newest section of CHANGELOG.md is [0.1.0]",
    ],
    [
      text("## [Unreleased]\n", "## [0.1.0]\n\n- first\n"),
      "0.1.0",
      "[0.1.0] needs a date: ## [0.1.0] - 2030-01-31",
    ],
    [text("## [Unreleased]\n", "## [0.1.0] - 2026-01-31\n"), "0.1.0", "[0.1.0] is empty"],
  ])("%j for %s", (log, version, complaint) => {
    expect(changelog.checkChangelog(log, version)).toEqual([complaint]);
  });
});

test("every entry of the package is tried, but for package.json", () => {
  expect(install.entries(manifest)).toEqual(["gradloom", "gradloom/nn"]);
  expect(install.entries(own)[0]).toBe("gradloom");
});

test("a package that cannot be imported is found out, by Node and by the type check", () => {
  const found = withFolder({}, (root) => install.checkInstalled(root, manifest, modules));
  expect(found).toEqual([
    expect.stringMatching(/^dot.mjs ended with 1 and printed [\s\S]*Cannot find package 'gradloom'/),
    expect.stringMatching(/^the types do not check:\n[\s\S]*Cannot find module 'gradloom'/),
  ]);
});

describe("publishing", () => {
  const home = { GITHUB_SERVER_URL: "https://forge", GITHUB_REPOSITORY: "me/gradloom" };
  const ci = {
    ...{ GITHUB_ACTIONS: "true", ACTIONS_ID_TOKEN_REQUEST_URL: "x", GITHUB_REF_NAME: "v0.1.0" },
    ...home,
  };
  const at = (url: string) => ({ ...manifest, repository: { type: "git", url } });
  const known = at("git+https://forge/me/gradloom.git");
  test("happens in CI, from the tag of the version, in the repository that package.json names", () => {
    expect(forge.checkForge(ci, known)).toEqual([]);
    expect(forge.checkForge(ci, at("https://forge/me/gradloom"))).toEqual([]);
    const { repository, homepage, bugs } = own as unknown as Record<string, { url: string }>;
    expect(repository?.url).toMatch(/^git\+https:\/\/[^/]+\/[^/]+\/gradloom\.git$/);
    const web = repository?.url.replace(/^git\+|\.git$/g, "");
    expect([homepage, bugs]).toEqual([`${web}#readme`, `${web}/issues`]);
  });
  test.each([
    [{}, known, "only CI with an id-token may publish"],
    [{ GITHUB_ACTIONS: "true" }, known, "only CI with an id-token may publish"],
    [{ ...ci, GITHUB_REF_NAME: "main" }, known, "the tag is main, package.json says 0.1.0"],
    [ci, manifest, "package.json needs a `repository`"],
    [ci, at("git+https://forge/you/gradloom.git"), "and this is https://forge/me/gradloom"],
  ])("is refused with %j", (env: Record<string, string>, given, complaint) => {
    expect(forge.checkForge(env, given)).toEqual([expect.stringContaining(complaint)]);
  });
});

test("without --dry-run or --publish nothing happens", () => {
  expect(script("release.mjs")).toMatchObject({ status: 2, complaints: [expect.stringContaining("usage:")] });
});
