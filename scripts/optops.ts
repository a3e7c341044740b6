// docs/reference/optops.md: a page about the OptOps, made of their records. scripts/reference.ts writes it
// with the other pages; test/docs/reference.test.ts compares it.

import type { OptDoc, OptRecord, Param } from "../src/codegen/opt/record.ts";
import { OPT_OPS } from "../src/codegen/opt/registry.ts";

export const TITLE = "OptOps";
export const ABOUT =
  "How a kernel's loops are changed, without changing what it computes. A heuristic chooses a list of them for " +
  "each kernel, `BEAM` searches one; `DEBUG=4` prints it.";

/** A line such as `UPCAST(axis, lanes)`. */
const call = ({ name, params }: OptRecord): string => {
  const names = Object.keys(params);
  return names.length === 0 ? name : `${name}(${names.join(", ")})`;
};

function section(op: OptRecord & OptDoc): string {
  const params = Object.entries<Param>(op.params).map(
    ([name, { meaning, least }]) => `| \`${name}\` | ${meaning} | ${least} or more |`,
  );
  const table = ["| parameter | meaning | a whole number |", "|---|---|---|", ...params].join("\n");
  return [
    `## ${op.name}`,
    `*${op.textbook}.* ${op.summary}`,
    `\`\`\`text\n${op.picture.trim()}\n\`\`\``,
    ...(params.length === 0 ? [] : [table]),
    ...(op.once ? ["A list has at most one."] : []),
    ...(op.excludes === undefined ? [] : [`A list that has it does not have ${op.excludes.join(" or ")}.`]),
  ].join("\n\n");
}

export function optOpsPage(): string {
  const rows = OPT_OPS.map((op) => `| [${call(op)}](#${op.name.toLowerCase()}) | ${op.textbook} |`);
  return [
    `# ${TITLE}`,
    `${ABOUT} [All names](README.md).`,
    "Output axes count from 0, the outermost first; reduce axes go on from there, in the order of the kernel's AST. " +
      "Ops are applied in the order of the list. What does not fit is refused. In the pictures, what is above the op " +
      "becomes what is below it.",
    ["| op | textbook name |", "|---|---|", ...rows].join("\n"),
    ...OPT_OPS.map(section),
  ].join("\n\n");
}
