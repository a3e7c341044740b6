// The workflows for a public forge: they parse, cover every supported Node and system, run scripts that
// exist, and only the release may ask for an id-token.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parseYaml, type Yaml } from "./yaml.ts";

const root = join(import.meta.dirname, "..", "..");
const folder = join(root, ".github", "workflows");
type YamlMap = { [key: string]: Yaml };
interface Job extends YamlMap {
  steps: YamlMap[];
}
const read = (name: string) =>
  parseYaml(readFileSync(join(folder, name), "utf8")) as { jobs: Record<string, Job> };
const { scripts, engines } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  scripts: Record<string, string>;
  engines: { node: string };
};

describe.each(readdirSync(folder))("%s", (name) => {
  const workflow = read(name);
  const steps = Object.values(workflow.jobs).flatMap((job) => job.steps);

  test("every job has a system, a time limit and steps that do one thing", () => {
    for (const job of Object.values(workflow.jobs)) {
      expect(job).toMatchObject({
        "runs-on": expect.any(String),
        "timeout-minutes": expect.stringMatching(/^\d+$/),
      });
      for (const step of job.steps)
        expect([step.uses, step.run].filter((x) => x !== undefined)).toHaveLength(1);
    }
  });

  test("every script that it runs is in package.json", () => {
    const runs = steps.flatMap((step) => (typeof step.run === "string" ? [step.run] : []));
    const named = runs
      .flatMap((run) => /npm (?:run )?([\w:]+)/.exec(run)?.[1] ?? [])
      .filter((n) => n !== "ci");
    expect(named.length).toBeGreaterThan(0);
    expect(named.filter((n) => scripts[n] === undefined)).toEqual([]);
  });

  test("actions are pinned to a version", () => {
    for (const { uses } of steps) if (uses !== undefined) expect(uses).toMatch(/^actions\/[\w-]+@v\d+$/);
  });
});

test("tests run on every supported Node and system", () => {
  expect(read("ci.yml").jobs.test?.strategy).toMatchObject({
    matrix: { os: ["ubuntu-latest", "macos-latest", "windows-latest"], node: ["20", "22", "24", "26"] },
  });
  // from 20.19 on a script can `require` the package, which is a module
  expect(engines.node).toBe(">=20.19");
});

test("the lint sees the whole history; only the release gets an id-token", () => {
  expect(read("ci.yml").jobs.lint?.steps[0]).toMatchObject({ with: { "fetch-depth": "0" } });
  expect(JSON.stringify(read("ci.yml"))).not.toContain("id-token");
  expect(read("release.yml").jobs.publish).toMatchObject({ permissions: { "id-token": "write" } });
});

describe("the reader of YAML", () => {
  test("maps, lists, scalars", () => {
    const text = 'a:\n  - b: 1 # one\n    c: [x, "y z"]\n  - d\ne: f-g\ng:\n';
    expect(parseYaml(text)).toEqual({ a: [{ b: "1", c: ["x", "y z"] }, "d"], e: "f-g", g: null });
  });
  test.each([
    ["a:\n\tb: 1", "line 2: a tab"],
    ["a: 1\na: 2", "line 2: a a second time"],
    ["a:\n    b: 1\n  c: 2", "line 3: not expected at this indentation"],
    ["a: b: c", "line 1: not a plain scalar"],
    ["just words", "line 1: neither a key nor an entry"],
  ])("%j is refused", (text, message) => {
    expect(() => parseYaml(text)).toThrow(message);
  });
});
