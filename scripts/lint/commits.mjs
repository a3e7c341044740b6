// Checks the messages of the commits since `BASE`: a subject below 72 characters, a blank line, then why, in
// lines of at most 110 columns. Older commits broke the rule too often to be held to it.
// In: a checkout (this one by default) and optionally another base. Out: `hash: complaint`, exit code 1 if
// any. Where there is no history to look at (a tarball, a shallow clone) it says so and passes.

import { spawnSync } from "node:child_process";
import { realpathSync } from "node:fs";
import { join, resolve } from "node:path";

const BASE = "72e21a57be1a12f7fa097286f58f3a8cf16531cf";
const SUBJECT = 72;
const WIDTH = 110;
/** Fewer words than this cannot say why. */
const WORDS = 4;

/** What is wrong with one message. */
function complaintsOf(message) {
  const [subject = "", second = "", ...rest] = message.trimEnd().split("\n");
  const found = [];
  if (subject.length >= SUBJECT) {
    found.push(`a subject of ${subject.length} characters: it must be below ${SUBJECT}`);
  }
  if (second.trim() !== "") found.push("the second line must be blank");
  // trailers say who, not why
  const body = rest.filter((line) => !/^[\w-]+: .* <.*>$|^Signed-off-by:/.test(line));
  if (body.join(" ").split(/\s+/).filter(Boolean).length < WORDS) {
    found.push("no body: after a blank line, say why");
  }
  const wide = rest.find((line) => line.length > WIDTH && /\S\s+\S/.test(line) && !/https?:\/\//.test(line));
  if (wide !== undefined)
    found.push(`a line of ${wide.length} columns, at most ${WIDTH}: "${wide.slice(0, 40)}…"`);
  return found;
}

function main(root, base) {
  const git = (...args) => spawnSync("git", args, { cwd: root, encoding: "utf8" });
  const pass = (why) => {
    console.log(`commits: not checked, ${why}`);
    return 0;
  };
  const top = git("rev-parse", "--show-toplevel");
  if (top.error) return pass("there is no git");
  if (top.status !== 0) return pass("this is not a git checkout");
  // a tarball that was unpacked inside somebody's checkout has another top
  if (realpathSync(top.stdout.trim()) !== realpathSync(root))
    return pass("this folder is not a checkout's top");
  if (git("cat-file", "-e", `${base}^{commit}`).status !== 0) {
    return pass(`this clone does not reach back to ${base.slice(0, 7)} (git fetch --unshallow brings it)`);
  }
  const log = git("log", "--no-merges", "--format=%H%n%B%x00", `${base}..HEAD`);
  if (log.status !== 0) return pass(`git log says: ${log.stderr.trim()}`);
  const commits = log.stdout
    .split("\0")
    .map((entry) => entry.trimStart())
    .filter((entry) => entry !== "");
  const complaints = commits.flatMap((entry) => {
    const end = entry.indexOf("\n");
    const hash = entry.slice(0, end);
    return complaintsOf(entry.slice(end + 1)).map((what) => `${hash.slice(0, 7)}: ${what}`);
  });
  for (const line of complaints) console.error(line);
  console.log(`commits: ${commits.length} since ${base.slice(0, 7)}, ${complaints.length} complaints`);
  return complaints.length === 0 ? 0 : 1;
}

const [root = join(import.meta.dirname, "..", ".."), base = BASE] = process.argv.slice(2);
process.exitCode = main(resolve(root), base);
