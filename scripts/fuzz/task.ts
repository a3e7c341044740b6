// One program of the fuzzer: made from a seed, run on a device under a setting, and made smaller if it fails.

import { type Case, load } from "../../test/oracle/oracle.ts";
import { check, type Setting } from "./execute.ts";
import { generate } from "./generate/generate.ts";
import { type ClassName, classOf, type Program, snippet } from "./language.ts";
import { expected } from "./reference/interpreter.ts";
import { shrink } from "./shrink.ts";
import { unsuited } from "./suited.ts";

export interface Failure {
  readonly seed: number;
  readonly c: ClassName;
  readonly device: string;
  readonly setting: string;
  /** what is wrong with the smallest program */
  readonly what: string;
  /** the smallest program as a script, and how many calls it has */
  readonly script: string;
  readonly calls: number;
  /** the seed is the number of a program of the oracle */
  readonly isOracle?: true;
}

/** The device cannot be held to the program. */
export interface LeftOut {
  readonly leftOut: string;
}
export const isLeftOut = (x: Failure | LeftOut | undefined): x is LeftOut =>
  x !== undefined && "leftOut" in x;

/** What is wrong with a program, or undefined; a program that the reference does not take is not wrong. */
async function wrongWith(p: Program, device: string, how: Setting): Promise<string | undefined> {
  let want: ReturnType<typeof expected>;
  try {
    want = expected(p);
  } catch {
    return undefined;
  }
  return check(p, device, how, want);
}

export async function runSeed(
  seed: number,
  device: string,
  how: Setting,
  c: ClassName = classOf(seed),
): Promise<Failure | LeftOut | undefined> {
  const { program, want } = generate(seed, c);
  const reason = unsuited(program, device);
  if (reason !== undefined) return { leftOut: reason };
  const what = await check(program, device, how, want);
  if (what === undefined) return undefined;
  const kind = kindOf(what);
  const least = await shrink(program, async (p) => {
    const now = await wrongWith(p, device, how);
    return now !== undefined && kindOf(now) === kind;
  });
  return {
    seed,
    c,
    device,
    setting: how.name,
    what: (await wrongWith(least, device, how)) ?? what,
    script: snippet(least, device, how.env),
    calls: least.ops.length,
  };
}
/** A program of the oracle, whose values are known, as it is. */
export async function runOracle(
  at: number,
  device: string,
  how: Setting,
): Promise<Failure | LeftOut | undefined> {
  const { program, want } = cases()[at] as Case;
  const reason = unsuited(program, device);
  if (reason !== undefined) return { leftOut: reason };
  const what = await check(program, device, how, want);
  if (what === undefined) return undefined;
  const script = snippet(program, device, how.env);
  return {
    seed: at,
    c: program.c,
    device,
    setting: how.name,
    what,
    script,
    calls: program.ops.length,
    isOracle: true,
  };
}
let loaded: readonly Case[] | undefined;
const cases = (): readonly Case[] => {
  loaded ??= load();
  return loaded;
};
/** A wrong value must not become an error of another kind on the way to the smallest program. */
const kindOf = (what: string): string =>
  /^[A-Za-z]*Error/.exec(what)?.[0] ?? (what.includes("element") ? "value" : "form");
