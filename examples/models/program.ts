// The command lines of the programs that run models: one file or text, and options that have values. What
// means nothing is refused in words.

import { existsSync } from "node:fs";
import { parseArgs } from "node:util";
import { Complaint } from "./packages.ts";

/** What was given: the file or text, the options with values, and the names of those without. */
export interface Given {
  readonly file: string | undefined;
  readonly options: Readonly<Record<string, string | undefined>>;
  readonly flags: ReadonlySet<string>;
}

export function optionsOf(
  usage: string,
  names: readonly string[],
  flags: readonly string[] = [],
  args: readonly string[] = process.argv.slice(2),
): Given {
  const config = {
    ...Object.fromEntries(names.map((name) => [name, { type: "string" as const }])),
    ...Object.fromEntries(flags.map((name) => [name, { type: "boolean" as const }])),
  };
  try {
    const { values, positionals } = parseArgs({ args: [...args], options: config, allowPositionals: true });
    if (positionals.length > 1) throw new Error(`more than one: ${positionals.join(", ")}`);
    const given = Object.entries(values);
    return {
      file: positionals[0],
      options: Object.fromEntries(given.flatMap(([k, v]) => (typeof v === "string" ? [[k, v]] : []))),
      flags: new Set(given.flatMap(([k, v]) => (v === true ? [k] : []))),
    };
  } catch (error) {
    throw new Complaint(`${(error as Error).message}\nDo: ${usage}`);
  }
}

export function existing(path: string): string {
  if (!existsSync(path)) throw new Complaint(`there is no file ${path}`);
  return path;
}

export function numberOf(name: string, text: string, least: number, most: number): number {
  const value = Number(text);
  if (text.trim() === "" || !(value >= least && value <= most))
    throw new Complaint(`${name} is ${text}, expected a number from ${least} to ${most}`);
  return value;
}
