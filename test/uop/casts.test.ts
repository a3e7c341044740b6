// The types of nodes carry the weight: codegen and uop/ have few casts, and nobody but node.ts takes a source
// by its position, renderers and devices included.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

/** The comments and strings of a program, as the lint finds them. */
const SCANNER: string = "../../scripts/lint/scan.mjs";
const { scan } = (await import(/* @vite-ignore */ SCANNER)) as {
  scan(text: string): { readonly line: number; readonly text: string }[];
};

const FOLDERS = ["src/codegen", "src/uop"];
/** Who else reads nodes. */
const READERS = ["src/render", "src/devices"];
const MOST = 50;
/** What lower/ reads are the ops of the schedule, which are not nodes: most of them have one source. */
const OTHER_SOURCES = "src/codegen/lower/";

interface Line {
  readonly place: string;
  readonly code: string;
}
/** The lines of a program without comments and strings. */
function codeOf(path: string): Line[] {
  const text = readFileSync(path, "utf8");
  const lines = text.split("\n");
  for (const { line, text: part } of scan(text)) {
    lines[line - 1] = (lines[line - 1] ?? "").replace(part, "");
  }
  return lines.map((code, i) => ({ place: `${path}:${i + 1}`, code }));
}
const linesOf = (folders: readonly string[]): Line[] =>
  folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts"))
      .flatMap((file) => codeOf(join(folder, file).replaceAll("\\", "/"))),
  );
const LINES = linesOf(FOLDERS);

/** A cast: `as const` and a renamed import are something else. */
const CAST = /\bas (?!const\b)[\w"({[]/g;
const castsIn = ({ code }: Line): number =>
  /^\s*(?:import|export) [^=]*from|^\s*(?:type )?\w+ as \w+,$/.test(code)
    ? 0
    : [...code.matchAll(CAST)].length;

test(`codegen and uop have fewer than ${MOST} casts`, () => {
  const casts = LINES.filter((line) => castsIn(line) > 0);
  const total = casts.reduce((n, line) => n + castsIn(line), 0);
  const shown = casts.map(({ place, code }) => `${place}: ${code.trim()}`).join("\n");
  expect(total, `narrow with \`u.op === …\` or take a typed parameter instead:\n${shown}`).toBeLessThan(MOST);
  // node.ts gives nodes their types, so there are some
  expect(total).toBeGreaterThan(5);
});

test("no source is taken by its position outside node.ts", () => {
  const taken = [...LINES, ...linesOf(READERS)].filter(({ place, code }) => {
    if (place.startsWith("src/uop/node.ts") || place.startsWith(OTHER_SOURCES)) return false;
    return /\bsrcs\[\d+\]|\bsrcs\.at\(-?\d+\)|\[[^\]]+\] = \w+\.srcs\b/.test(code);
  });
  expect(
    taken.map(({ place, code }) => `${place}: ${code.trim()}`),
    "use the name of the source",
  ).toEqual([]);
});
