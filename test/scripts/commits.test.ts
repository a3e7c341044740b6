// The check of commit messages (scripts/lint/commits.mjs), on repositories made for the purpose: what it
// refuses, and that it passes with a reason where there is no history to look at.

import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { beforeEach, describe, expect, test } from "vitest";
import { script, withFolder } from "./run.ts";

const hasGit = spawnSync("git", ["--version"]).status === 0;
beforeEach(({ skip }) => skip(!hasGit, "no git found"));

const settings = ["user.name=a", "user.email=a@example.org", "commit.gpgsign=false"].flatMap((s) => [
  "-c",
  s,
]);
const git = (cwd: string, ...args: string[]): string =>
  execFileSync("git", [...settings, ...args], { cwd, encoding: "utf8", stdio: "pipe" }).trim();

/** A checkout whose first commit is the base, and one more for each message. */
function withCommits<T>(messages: readonly string[], use: (root: string, base: string) => T): T {
  return withFolder({}, (root) => {
    git(root, "init", "-q");
    const add = (message: string) => git(root, "commit", "-q", "--allow-empty", "-m", message);
    add("an old commit that nobody explains");
    const base = git(root, "rev-parse", "HEAD");
    for (const message of messages) add(message);
    return use(root, base);
  });
}

const check = (...messages: string[]) =>
  withCommits(messages, (root, base) => script("lint/commits.mjs", root, base));
const why = "\n\nIt was slow because of this and that.";

describe("messages", () => {
  test("a subject of 71 characters and a reason pass", () => {
    expect(check("a".repeat(71) + why, `b${why}\n\nCo-authored-by: B <b@example.org>`)).toMatchObject({
      status: 0,
      complaints: [],
      said: expect.stringMatching(/^commits: 2 since \w{7}, 0 complaints$/),
    });
  });

  test.each([
    ["a".repeat(72) + why, "a subject of 72 characters: it must be below 72"],
    ["no reason", "no body: after a blank line, say why"],
    [
      "a name is not a reason\n\nCo-authored-by: B C D <b@example.org>",
      "no body: after a blank line, say why",
    ],
    [`wide\n\n${"word ".repeat(25).trim()}`, 'a line of 124 columns, at most 110: "'],
  ])("%j is refused", (message, complaint) => {
    const { status, complaints } = check(`fine${why}`, message);
    expect(status).toBe(1);
    expect(complaints).toHaveLength(1);
    expect(complaints[0]).toContain(`: ${complaint}`);
  });

  test("the base and what came before it are not looked at", () => {
    expect(check()).toMatchObject({ status: 0, said: expect.stringMatching(/^commits: 0 since/) });
  });
});

describe("without a history it passes and says why", () => {
  test("a shallow clone", () => {
    withCommits(["short"], (root, base) =>
      withFolder({}, (other) => {
        git(other, "clone", "-q", "--depth=1", pathToFileURL(root).href, "copy");
        const { status, said } = script("lint/commits.mjs", join(other, "copy"), base);
        expect([status, said]).toEqual([0, expect.stringContaining("does not reach back to")]);
      }),
    );
  });
  test("a folder inside another checkout", () => {
    withCommits(["short"], (root, base) => {
      mkdirSync(join(root, "inner"));
      const { status, said } = script("lint/commits.mjs", join(root, "inner"), base);
      expect([status, said]).toEqual([0, "commits: not checked, this folder is not a checkout's top"]);
    });
  });
  test("no checkout at all", () => {
    withFolder({}, (root) => {
      const { status, said } = script("lint/commits.mjs", root);
      expect([status, said]).toEqual([0, "commits: not checked, this is not a git checkout"]);
    });
  });
});
