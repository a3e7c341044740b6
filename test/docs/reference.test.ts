// The pages of docs/reference are what the sources say, and they have every public name: each method of
// Tensor, each name of nn, with a text and an example that examples.test.ts runs.

import { readdirSync, readFileSync } from "node:fs";
import { fft, func, nn, Tensor } from "gradloom";
import { describe, expect, test } from "vitest";
import { allEntries, type Entry, FAMILIES, pages } from "../../scripts/reference.ts";
import { OPT_OPS } from "../../src/codegen/opt/registry.ts";

const files = FAMILIES.flatMap(([, , , list]) => list);
const entries: readonly Entry[] = allEntries();
const ofTensor = (e: Entry): boolean => e.owner !== undefined && /^Tensor(Handle)?$/.test(e.owner);

/** The names of methods on an object and on what it inherits from. */
function methodsOf(start: object, end: object): string[] {
  const names = new Set<string>();
  for (let o = start; o !== end && o !== null; o = Object.getPrototypeOf(o)) {
    for (const [name, p] of Object.entries(Object.getOwnPropertyDescriptors(o))) {
      if (typeof p.value === "function" || p.get !== undefined) names.add(name);
    }
  }
  return [...names].filter((n) => n !== "constructor").sort();
}

test("the pages are up to date: npm run reference writes them", () => {
  const made: ReadonlyMap<string, string> = pages();
  expect(readdirSync("docs/reference").sort()).toEqual([...made.keys()].sort());
  for (const [name, text] of made) {
    expect(readFileSync(`docs/reference/${name}`, "utf8") === text, `docs/reference/${name}`).toBe(true);
  }
});

test("every file of an area belongs to the page of its name", () => {
  const areas = readdirSync("src/tensor", { withFileTypes: true }).filter(
    (e) => e.isDirectory() && !["ondemand", "images", "autocast"].includes(e.name),
  );
  const codecs = ["browser", "convert", "deflate", "jpeg", "node", "png", "pngwrite"];
  const helpers = ["common", "index", "ondemand", "promotion", "selection", "threefry", ...codecs];
  for (const { name } of areas) {
    const own = readdirSync(`src/tensor/${name}`).map((f) => f.replace(".ts", ""));
    const listed = FAMILIES.find(([page]) => page === name)?.[3] ?? [];
    expect(listed[0]).toBe(`tensor/tensor#${name}`);
    const paths = own.filter((f) => !helpers.includes(f)).map((f) => `tensor/${name}/${f}`);
    expect(listed.slice(1).toSorted()).toEqual(paths.sort());
  }
});

test("every heading of the class has a page", () => {
  const source = readFileSync("src/tensor/tensor.ts", "utf8");
  const headings = [...source.matchAll(/^ {2}\/\/ ==== (\w+)/gm)].map((m) => `tensor/tensor#${m[1]}`);
  expect(headings.length).toBeGreaterThan(10);
  expect(files.filter((f) => f.includes("#")).toSorted()).toEqual(headings.toSorted());
});

test("the jit, devices, variables and the profiler have a page", () => {
  const names = entries
    .filter((e) => "page" in e && e.page === "engine")
    .map((e) => `${e.owner ?? ""} ${e.name}`);
  const wanted = [
    " TinyJit",
    "Device open",
    "Device memory",
    "Device DEFAULT",
    " Variable",
    " profiler",
    " Span",
  ];
  expect(wanted.filter((name) => !names.includes(name))).toEqual([]);
});

test("every OptOp has a section with its textbook name, its parameters and its picture", () => {
  const page = pages().get("optops.md") ?? "";
  const sections = new Map(page.split("\n## ").map((s) => [s.slice(0, s.indexOf("\n")), s]));
  for (const { name, textbook, picture, params } of OPT_OPS) {
    const section = sections.get(name) ?? "";
    expect(section, name).toContain(`*${textbook}.*`);
    expect(section, name).toContain(picture.trim());
    for (const p of Object.keys(params)) expect(section, name).toContain(`| \`${p}\` |`);
  }
});

describe.each([
  ["methods", Tensor.prototype, Object.prototype, false],
  ["static methods", Tensor, Function.prototype, true],
] as const)("%s of Tensor", (_, start, end, isStatic) => {
  const own = entries.filter((e) => ofTensor(e) && e.isStatic === isStatic && e.kind !== "field");
  test("all of them are on a page", () => {
    // torch's spelling of requiresGrad is in docs/guide/errors.md
    const there = methodsOf(start, end).filter((n) => n !== "prototype" && n !== "requires_grad");
    expect([...new Set(own.map((e) => e.name))].sort()).toEqual(there);
  });
  test("all of them say what they do", () => {
    expect(own.filter((e) => (e.doc?.text ?? "") === "").map((e) => e.name)).toEqual([]);
  });
  test("all of them have an example with its result", () => {
    const without = own.filter((e) => !e.doc?.example.at(-1)?.includes("// => "));
    expect(without.map((e) => e.name)).toEqual([]);
  });
});

test("every class and function of nn, fft and func is on a page, with an example", () => {
  const names = [nn, nn.optim, nn.init, nn.metrics, nn.plot, nn.transforms, nn.datasets, fft, func].flatMap(
    (space) => Object.entries(space).flatMap(([name, x]) => (typeof x === "function" ? [name] : [])),
  );
  const own = entries.filter((e) => e.owner === undefined);
  expect(names.filter((n) => !own.some((e) => e.name === n))).toEqual([]);
  const shown = own.filter((e) => names.includes(e.name));
  expect(shown.filter((e) => (e.doc?.text ?? "") === "").map((e) => e.name)).toEqual([]);
  const without = shown.filter((e) => !e.doc?.example.at(-1)?.includes("// "));
  expect(without.map((e) => e.name)).toEqual([]);
});
