// Stands in for vitest where tests run from one file, without npm (scripts/standalone.mjs): `test`,
// `describe`, hooks, `skip` with a reason, and vitest's own `expect`. The bundle calls `runTests()`;
// arguments of the process choose: a pattern of names, and `i/n` for every n-th test from the i-th on.

import {
  type ChaiPlugin,
  customMatchers,
  JestAsymmetricMatchers,
  JestChaiExpect,
  JestExtend,
} from "@vitest/expect";
import * as chai from "chai";

chai.use(JestExtend as ChaiPlugin);
chai.use(JestChaiExpect as ChaiPlugin);
chai.use(JestAsymmetricMatchers as ChaiPlugin);
type Expect = typeof import("vitest")["expect"];
export const expect = chai.expect as unknown as Expect;
(expect as unknown as { extend(it: Expect, matchers: unknown): void }).extend(expect, customMatchers);

interface Context {
  skip(condition: boolean | string, reason?: string): void;
}
type Body = (context: Context) => unknown;
type Hook = () => unknown;
interface Suite {
  readonly name: string;
  readonly parent: Suite | undefined;
  readonly before: Hook[];
  readonly after: Hook[];
  readonly beforeEach: Hook[];
  readonly afterEach: Hook[];
  opened: boolean;
}
class Skip extends Error {}

const suite = (name: string, parent: Suite | undefined): Suite => ({
  name,
  parent,
  before: [],
  after: [],
  beforeEach: [],
  afterEach: [],
  opened: false,
});
const root = suite("", undefined);
let current = root;
const tests: { readonly name: string; readonly suite: Suite; readonly body: Body }[] = [];

/**
 * The same for each row of a table: its cells are the arguments, and fill in `%s` and the like in the name.
 */
const each =
  (one: (name: string, body: (...args: never[]) => unknown) => void) =>
  (table: readonly unknown[]) =>
  (name: string, body: (...args: unknown[]) => unknown): void => {
    for (const row of table) {
      const cells: unknown[] = Array.isArray(row) ? row : [row];
      let next = 0;
      one(
        name.replaceAll(/%[sdifj]/g, () => String(cells[next++])),
        () => body(...cells),
      );
    }
  };

function group(name: string, body: () => void): void {
  const outer = current;
  current = suite(outer === root ? name : `${outer.name} > ${name}`, outer);
  body();
  current = outer;
}
/** Options may stand before the body; of a time limit nothing is known here. */
function single(name: string, ...rest: readonly [Body] | readonly [unknown, Body]): void {
  const body = rest.at(-1) as Body;
  tests.push({ name: current === root ? name : `${current.name} > ${name}`, suite: current, body });
}
export const describe = Object.assign(group, { each: each(group as Parameters<typeof each>[0]) });
export const test = Object.assign(single, { each: each(single as unknown as Parameters<typeof each>[0]) });
export const it = test;
export const beforeAll = (hook: Hook): void => void current.before.push(hook);
export const afterAll = (hook: Hook): void => void current.after.push(hook);
export const beforeEach = (hook: Hook): void => void current.beforeEach.push(hook);
export const afterEach = (hook: Hook): void => void current.afterEach.push(hook);

const context: Context = {
  skip(condition, reason) {
    if (condition !== false) throw new Skip(typeof condition === "string" ? condition : reason);
  },
};
const lineage = (s: Suite | undefined): Suite[] => (s === undefined ? [] : [...lineage(s.parent), s]);

async function runOne(body: Body, suites: readonly Suite[]): Promise<void> {
  for (const s of suites) {
    if (s.opened) continue;
    s.opened = true;
    for (const hook of s.before) await hook();
  }
  for (const s of suites) for (const hook of s.beforeEach) await hook();
  try {
    await body(context);
  } finally {
    for (const s of suites.toReversed()) for (const hook of s.afterEach) await hook();
  }
}

/** Called by the bundle when all its files have loaded. */
export async function runTests(): Promise<void> {
  const [pattern = "", share = "0/1"] = process.argv.slice(2);
  const [i, n] = share.split("/").map(Number) as [number, number];
  const chosen = tests.filter((t) => new RegExp(pattern).test(t.name)).filter((_, k) => k % n === i);
  const counts = { passed: 0, failed: 0, skipped: 0 };
  for (const { name, suite: s, body } of chosen) {
    const start = performance.now();
    const say = (what: string): void =>
      console.log(`${what} ${name} (${(performance.now() - start).toFixed(0)} ms)`);
    try {
      await runOne(body, lineage(s));
      counts.passed++;
      say("ok  ");
    } catch (e) {
      counts[e instanceof Skip ? "skipped" : "failed"]++;
      say(e instanceof Skip ? "skip" : "FAIL");
      console.log(e instanceof Skip ? e.message : e instanceof Error ? e.stack : e);
    }
  }
  console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
  process.exit(counts.failed === 0 ? 0 : 1);
}
