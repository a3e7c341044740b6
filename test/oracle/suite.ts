// The tests of one device: which of the oracle's programs it runs, and under which settings. All programs run
// by default on WASM and JS; every other setting gets every twelfth program of each class at least. `npm run
// fuzz -- --oracle all` runs all programs under all settings.

import { describe, test } from "vitest";
import { type Setting, settingOf } from "../../scripts/fuzz/execute.ts";
import { CLASSES } from "../../scripts/fuzz/language.ts";
import { unsuited } from "../../scripts/fuzz/suited.ts";
import { whyClosed } from "../device/harness.ts";
import { type Case, load, OTHERS, runCases } from "./oracle.ts";

export interface Extent {
  /** of the default: all programs, or as many as another setting gets */
  readonly everything: boolean;
  /** programs under another setting */
  readonly programs: number;
  /** programs under BEAM=2, which compiles and measures many kernels for each */
  readonly searched: number;
  /**
   * each setting has other programs, so that more are seen; or the same, so that kernels are compiled once
   */
  readonly rotates: boolean;
  /** the settings that make a difference there; undefined: all */
  readonly settings?: readonly string[];
}

/** Nothing here depends on time: a machine with other work may take as long as it needs, in milliseconds. */
const PATIENCE = 1_800_000;

/** `count` programs, all classes in equal parts, another selection for each `turn`. */
function select(cases: readonly Case[], turn: number, count: number): Case[] {
  const per = Math.ceil(count / CLASSES.length);
  return CLASSES.flatMap((c) => {
    const own = cases.filter(({ program }) => program.c === c);
    const from = (turn * per) % own.length;
    return [...own, ...own].slice(from, from + Math.min(per, own.length));
  });
}

export async function oracleSuite(device: string, extent: Extent): Promise<void> {
  const reason = await whyClosed(device);
  const cases = load().filter(
    ({ program }) => reason !== undefined || unsuited(program, device) === undefined,
  );
  const run = (title: string, some: readonly Case[], how: Setting): void =>
    test(`${device}: ${title}`, { timeout: PATIENCE }, async ({ skip }) => {
      skip(reason !== undefined, reason);
      await runCases(some, device, how);
    });
  describe("programs with values by numpy", () => {
    // SPEC=1 checks kernels while they are compiled: before others have compiled them
    const settings = [settingOf("SPEC=1"), ...OTHERS.filter((s) => s.name !== "SPEC=1")].filter(
      ({ name }) => extent.settings?.includes(name) !== false,
    );
    settings.forEach((how, i) => {
      const count = how.name === "BEAM=2" ? extent.searched : extent.programs;
      run(`${how.name}, ${count} programs`, select(cases, extent.rotates ? i : 0, count), how);
    });
    const all = extent.everything ? cases : select(cases, 0, extent.programs);
    for (const c of CLASSES)
      run(
        c,
        all.filter(({ program }) => program.c === c),
        settingOf("default"),
      );
  });
}
