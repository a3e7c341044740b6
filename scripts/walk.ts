// `npm run walk`: one kernel after every pass, written into ARCHITECTURE.md between its two marks. The kernel
// is a softmax with a list of OptOps that gives most passes something to do; the target is C with vectors of
// four.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { resetKernelNames, toKernel } from "../src/codegen/kernel.ts";
import { type OptOp, showOpts } from "../src/codegen/opt/opts.ts";
import { type PassRecord, withPassRecorder } from "../src/codegen/pass.ts";
import { clangRenderer } from "../src/render/languages.ts";
import { createSchedule } from "../src/schedule/schedule.ts";
import { Tensor } from "../src/tensor/tensor.ts";

const OPTS: readonly OptOp[] = [
  { op: "KEEP", axis: 3, elements: 8 },
  { op: "UPCAST", axis: 1, lanes: 4 },
  { op: "GROUP", axis: 2, accumulators: 4 },
  { op: "GROUP", axis: 3, accumulators: 4 },
];
const TARGET = clangRenderer({ widths: [4], accumulators: 8, registers: 16, fused: true });
const WIDTH = 108;

/** What each pass of the walk did, in a sentence. A pass that is not named here had nothing to do. */
const WHY: Readonly<Record<string, string>> = {
  lower: "Loops are ranges; UPCAST and GROUP have split them. The exp is computed in two of them.",
  "kept values":
    "KEEP: the exp is computed once, into an array, summed from where it is computed and divided from where " +
    "it is kept.",
  decompose:
    "C has no vector instruction for exp2: it becomes a polynomial, by the record of the op in src/ops.ts.",
  expand:
    "The lanes are written out: upcast and group ranges are gone, `data1[i .. +4]` is a vector, and `t.0` is " +
    "one lane of it. The four accumulators of a GROUP are combined at the end.",
};

const fence = (language: string, text: string): string => `\`\`\`${language}\n${text}\n\`\`\``;

/** Long lines go on in the next one, further in: after a space, or a comma. */
function wrapped(text: string): string {
  const wrap = (line: string, indent: string): string[] => {
    const at = Math.max(line.lastIndexOf(" ", WIDTH), line.lastIndexOf(",", WIDTH));
    if (line.length <= WIDTH || at <= indent.length) return [line];
    return [line.slice(0, at + 1).trimEnd(), ...wrap(indent + line.slice(at + 1), indent)];
  };
  const further = (line: string): string => `${/^ */.exec(line)?.[0]}    `;
  return text
    .split("\n")
    .flatMap((line) => wrap(line, further(line)))
    .join("\n");
}

/** Passes whose graph is so much like that of the next pass that a sentence does. */
const UNSHOWN: ReadonlySet<string> = new Set(["lower"]);

/** What a pass left, without the line of loops where that is the one before it. */
function shown({ pass, text }: PassRecord, before: PassRecord | undefined): string[] {
  if (UNSHOWN.has(pass)) return [];
  const loops = (r: PassRecord | undefined): string | undefined =>
    r === undefined || UNSHOWN.has(r.pass) ? undefined : r.text().split("\n")[0];
  const lines = text().split("\n");
  return [fence("text", wrapped((lines[0] === loops(before) ? lines.slice(1) : lines).join("\n")))];
}

/** A paragraph. */
function prose(text: string): string {
  const lines = [""];
  for (const word of text.split(" ")) {
    const last = lines.at(-1) ?? "";
    if (last.length + 1 + word.length > WIDTH) lines.push(word);
    else lines[lines.length - 1] = last === "" ? word : `${last} ${word}`;
  }
  return lines.join("\n");
}

/** The section as Markdown. */
export function walk(): string {
  resetKernelNames();
  const item = createSchedule([Tensor.empty([16, 8]).softmax(-1).lazydata]).at(-1);
  if (item === undefined) throw new Error("a softmax schedules nothing");
  const records: PassRecord[] = [];
  const kernel = withPassRecorder(
    (r) => void records.push(r),
    () => toKernel(item.ast, OPTS, TARGET),
  );
  const { code } = TARGET.render(kernel.name, kernel.uops);
  const body = String(code).slice(String(code).lastIndexOf("\nvoid ") + 1);
  const graphs = records.slice(0, -1);
  const idle = graphs.filter((r) => !r.isChanged).map((r) => r.pass);
  return [
    prose(
      "`x.softmax(-1)` of 16 rows of 8 is one kernel. The schedule hands over its AST (`DEBUG=3` prints it). " +
        `A heuristic or a search chooses OptOps; here they are ${showOpts(OPTS)}. The target is C with vectors of ` +
        "four. `DEBUG=7` prints what follows for any kernel.",
    ),
    ...graphs
      .filter((r) => r.isChanged)
      .flatMap((r, i, all) => [prose(`**${r.pass}.** ${WHY[r.pass] ?? ""}`), ...shown(r, all[i - 1])]),
    prose(
      `Nothing to do for: ${idle.join(", ")}. **linearize** places each node in the outermost loop it can stand ` +
        `in, and **render** spells the list of ${kernel.uops.uops.length} UOps (\`DEBUG=5\` prints it):`,
    ),
    fence("c", wrapped(body.trimEnd())),
  ].join("\n\n");
}

const START = /(<!-- walk[^\n]*-->\n)[\s\S]*(<!-- end of walk -->)/;
export const ARCHITECTURE = join(import.meta.dirname, "..", "ARCHITECTURE.md");
export const withWalk = (text: string): string =>
  text.replace(START, (_, start: string, end: string) => `${start}\n${walk()}\n\n${end}`);

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  writeFileSync(ARCHITECTURE, withWalk(readFileSync(ARCHITECTURE, "utf8")));
}
