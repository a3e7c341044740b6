// `npm run release -- --dry-run` builds and packs the package and checks what would be published: the tree is
// clean, version and changelog agree, the tarball holds what it should, publint and are-the-types-wrong have
// no complaint, and a fresh folder can install it, compute with it and type-check against it. `--publish`
// does the same and then publishes with provenance, which only a public forge's CI can
// sign: anywhere else it refuses.

import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { checkChangelog } from "./release/changelog.mjs";
import { checkFiles, checkManifest, checkText } from "./release/contents.mjs";
import { checkForge } from "./release/forge.mjs";
import { checkInstalled } from "./release/install.mjs";
import { packedManifest } from "./release/manifest.mjs";

const root = join(import.meta.dirname, "..");
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const mode = process.argv[2];
if (process.argv.length !== 3 || (mode !== "--dry-run" && mode !== "--publish")) {
  console.error("usage: npm run release -- --dry-run | --publish");
  process.exit(2);
}
const publishing = mode === "--publish";

/** Runs npm, by the way it was itself started where possible: `npm` alone is not a program on Windows. */
function npm(args, cwd = root) {
  const cli = process.env.npm_execpath;
  const [command, first] = cli?.endsWith(".js") ? [process.execPath, [cli]] : ["npm", []];
  const shell = first.length === 0 && process.platform === "win32";
  const run = spawnSync(command, [...first, ...args], { cwd, encoding: "utf8", shell });
  if (run.status !== 0) throw new Error(`npm ${args.join(" ")} failed:\n${run.stdout}${run.stderr}`);
  return run.stdout;
}

function checkTree() {
  const git = spawnSync("git", ["status", "--porcelain"], { cwd: root, encoding: "utf8" });
  if (git.status !== 0) return ["git status failed: is this a checkout?"];
  const changed = git.stdout.split("\n").filter(Boolean);
  return changed.length === 0 ? [] : [`the tree is not clean: ${changed.slice(0, 5).join(", ")}`];
}

/** Packs a copy of what ships, with the package.json that ships; gives npm's report. */
function pack(packed, folder) {
  // --ignore-scripts: `prepack` would build once more
  const [{ files }] = JSON.parse(npm(["pack", "--json", "--dry-run", "--ignore-scripts"]));
  const stage = join(folder, "stage");
  for (const { path } of files) {
    mkdirSync(join(stage, dirname(path)), { recursive: true });
    cpSync(join(root, path), join(stage, path));
  }
  writeFileSync(join(stage, "package.json"), `${JSON.stringify(packed, undefined, 2)}\n`);
  return npm(["pack", "--json", "--ignore-scripts", "--pack-destination", folder], stage);
}

let failed = 0;
/** Runs one check and prints its complaints; `hint` only mentions them in a dry run. */
async function step(name, check, hint = false) {
  const complaints = await check();
  const word = complaints.length === 0 ? "ok  " : hint && !publishing ? "note" : "FAIL";
  console.log(`${word} ${name}`);
  for (const line of complaints) console.log(`     ${line}`);
  if (word === "FAIL") failed += complaints.length;
}

const folder = mkdtempSync(join(tmpdir(), "gradloom-release-"));
try {
  await step("this process may publish", () => checkForge(process.env, manifest), true);
  await step("the tree is clean", checkTree, true);
  const changelog = readFileSync(join(root, "CHANGELOG.md"), "utf8");
  await step("version and changelog agree", () => checkChangelog(changelog, manifest.version, publishing));
  npm(["run", "build"]);
  const packed = packedManifest(manifest);
  const [{ filename, files, size }] = JSON.parse(pack(packed, folder));
  const tarball = join(folder, filename);
  console.log(`     ${filename}: ${files.length} files, ${(size / 1e6).toFixed(2)} MB packed`);
  await step("the tarball holds what it should", () => [
    ...checkFiles(files, manifest, size),
    ...checkManifest(packed, files),
    ...files.flatMap(({ path }) => checkText(path, readFileSync(join(root, path), "utf8"), root)),
  ]);
  await step("publint and are-the-types-wrong agree", async () => {
    const { checkTypes } = await import("./release/types.mjs");
    return checkTypes(tarball, manifest);
  });
  await step("a fresh folder can use it", () => {
    const user = mkdtempSync(join(folder, "user-"));
    writeFileSync(join(user, "package.json"), JSON.stringify({ private: true, type: "module" }));
    // koffi is optional and large: what needs it is not tried here
    npm(["install", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund", tarball], user);
    return checkInstalled(user, manifest, join(root, "node_modules"));
  });
  const command = ["publish", tarball, "--provenance", "--access", "public"];
  if (failed > 0) console.log(`\n${failed} complaints: nothing is published`);
  else if (publishing) console.log(npm(command));
  else console.log(`\ndry run: would run npm ${command.join(" ").replace(tarball, filename)}`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = failed === 0 ? 0 : 1;
