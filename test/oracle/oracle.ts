// Runs the oracle's programs (programs.jsonl.gz, made by scripts/oracle with numpy) on a device under a
// setting. In: which programs, where and how. Out: nothing, or an error that shows the first programs that
// are wrong.

import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { Tensor, withEnv } from "gradloom";
import { build, check, place, read, SETTINGS, type Setting, wrong } from "../../scripts/fuzz/execute.ts";
import {
  fromJson,
  type JsonScalar,
  type Program,
  snippet,
  type TypeName,
} from "../../scripts/fuzz/language.ts";
import type { Expected } from "../../scripts/fuzz/reference/interpreter.ts";
import { keepsZeros } from "../../scripts/fuzz/suited.ts";

/** As the file has it: bounds are powers of two, one for all or one a piece; none means exactly. */
type Written = readonly [
  type: TypeName,
  shape: readonly number[],
  values: readonly JsonScalar[],
  bounds?: number | readonly (number | null)[],
];
export interface Case {
  readonly program: Program;
  readonly want: readonly Expected[];
}

function decode([d, s, v, b]: Written): Expected {
  const power = (i: number): number | null => (typeof b === "number" ? b : (b?.[i] ?? null));
  const big = d === "int64" || d === "uint64";
  const bound = v.map((_, i) => {
    const p = power(i);
    return p === null ? 0 : 2 ** p;
  });
  return { d, s, v: v.map((x) => (big ? BigInt(fromJson(x)) : fromJson(x))), bound };
}
export function load(): Case[] {
  const text = gunzipSync(readFileSync(new URL("programs.jsonl.gz", import.meta.url))).toString();
  return text
    .trim()
    .split("\n")
    .map((line) => {
      const { want, ...program } = JSON.parse(line) as Program & { want: readonly Written[] };
      return { program, want: want.map(decode) };
    });
}

/**
 * This many programs are computed in one schedule: a device that compiles aside does so with many kernels at
 * once.
 */
const TOGETHER = 40;

/** Runs the cases and throws where any is wrong. */
export async function runCases(cases: readonly Case[], device: string, how: Setting): Promise<void> {
  const bad: string[] = [];
  const note = (c: Case, what: string | undefined): void => {
    if (what !== undefined) bad.push(`${what}\n${snippet(c.program, device, how.env)}`);
  };
  for (let i = 0; i < cases.length; i += TOGETHER) {
    const some = cases.slice(i, i + TOGETHER);
    const results = how.jit ? undefined : await together(some, device, how);
    for (const [k, c] of some.entries()) {
      const result = results?.[k];
      note(
        c,
        result === undefined
          ? await check(c.program, device, how, c.want)
          : wrong(c.program, result, c.want, keepsZeros(device)),
      );
    }
  }
  if (bad.length > 0)
    throw new Error(
      `${bad.length} of ${cases.length} programs on ${device} with ${how.name}:\n${bad.slice(0, 5).join("\n\n")}`,
    );
}
/** The results of all, computed together; undefined where that fails: then one by one, to see which. */
async function together(cases: readonly Case[], device: string, { env }: Setting) {
  try {
    return await withEnv(env, async () => {
      const outs: Tensor[][] = [];
      for (const { program } of cases) outs.push(await build(program, place(program.in, device)));
      await Tensor.realize(...outs.flat());
      const results = [];
      for (const o of outs) results.push(await read(o));
      return results;
    });
  } catch {
    return undefined;
  }
}

/** The settings apart from the default, which some devices run on all programs. */
export const OTHERS = SETTINGS.filter((s) => s.name !== "default");
