// CLANG compiles together what is asked for together: how often the compiler is started, which kernel a
// mistake belongs to, what a sync caller gets, and that nothing is left behind.

import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { CompileError, withEnv } from "gradloom";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type Source, sourceOf } from "../../src/codegen/target.ts";
import { compileTogether } from "../../src/devices/clang/batch.ts";
import { type CCompiler, findCompiler, linker } from "../../src/devices/clang/compiler.ts";
import type { MaybePromise, Waitable } from "../../src/helpers.ts";
import { type Koffi, openKoffi } from "../../src/host/koffi.ts";
import { load } from "../host/native.ts";

async function ready(): Promise<{ compiler: CCompiler; koffi: Koffi } | string> {
  try {
    return { compiler: findCompiler(), koffi: await openKoffi("CLANG") };
  } catch (e) {
    return (e as Error).message;
  }
}
const found = await ready();

/** A kernel that stores `what`, after some definitions. */
const source = (name: string, what: string, before = ""): Source<string> =>
  sourceOf(`${before}void ${name}(int* data0) {\n  data0[0] = ${what};\n}`, { buffers: 1 });

if (typeof found === "string") test("CLANG compiles together", ({ skip }) => skip(found));
else
  describe("kernels of one batch", () => {
    const { compiler, koffi } = found;
    let folder = "";
    let counted: CCompiler;
    beforeEach(() => {
      folder = mkdtempSync(join(tmpdir(), "gradloom-test-"));
      const script = join(folder, "cc with a space");
      writeFileSync(
        script,
        `#!/bin/sh\necho started >> '${folder}/log'\nexec ${compiler.command.join(" ")} "$@"\n`,
      );
      chmodSync(script, 0o755);
      counted = { ...compiler, command: [script] };
    });
    afterEach(() => {
      rmSync(folder, { recursive: true, force: true });
      linker.present = process.platform === "linux";
    });
    const starts = (): number => readFileSync(join(folder, "log"), "utf8").trim().split("\n").length;
    const stored = (code: Uint8Array): number => {
      const memory = koffi.alloc("uint8_t", 4);
      load(koffi, code).run([memory], []);
      const [value] = new Int32Array(koffi.view(memory, 4));
      koffi.free(memory);
      return value as number;
    };
    const many = (n: number): MaybePromise<Uint8Array>[] =>
      Array.from({ length: n }, (_, i) => compileTogether(counted, `E_${i}`, source(`E_${i}`, String(i))));
    const uncached = <T>(fn: () => T): T => withEnv({ CACHE: "0" }, fn);
    const numbers = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

    test("share compilers, and each does what it should", async () => {
      const codes = await uncached(() => Promise.all(many(24)));
      expect(codes.map(stored)).toEqual(numbers(24));
      // ten at most in one text, and as many texts for each core
      const cores = availableParallelism();
      if (linker.present) expect(starts()).toBe(Math.min(24, cores * Math.ceil(24 / cores / 10)));
    });
    test("where no linker is, have a compiler each", async () => {
      linker.present = false;
      const codes = await uncached(() => Promise.all(many(5)));
      expect(codes.map(stored)).toEqual(numbers(5));
      expect(starts()).toBe(5);
    });
    test("are compiled together also for who cannot await", () => {
      uncached(() => {
        const orders = many(6) as Waitable<Uint8Array>[];
        expect(stored(orders[3]?.waitSync() as Uint8Array)).toBe(3);
        const before = starts();
        expect(orders.map((o) => stored(o.waitSync()))).toEqual(numbers(6));
        expect(starts()).toBe(before);
      });
    });
    test("that are begun can still be waited for without the event loop", async () => {
      await uncached(async () => {
        const [first] = many(1) as Waitable<Uint8Array>[];
        await Promise.resolve();
        expect(stored(first?.waitSync() as Uint8Array)).toBe(0);
        expect(stored((await first) as Uint8Array)).toBe(0);
      });
    });
    test("go to whichever core is free", async ({ skip }) => {
      const cores = availableParallelism();
      if (cores < 2) return skip("one core takes all of them");
      // two texts for each core; the first does not end before one that a fixed share would leave to its core
      const script = join(folder, "waits");
      const wait = `i=0; while [ ! -e ${cores}.o ] && [ $i -lt 300 ]; do sleep 0.1; i=$((i+1)); done`;
      writeFileSync(
        script,
        `#!/bin/sh\nfor last; do :; done\nif [ "$last" = 0.c ]; then ${wait}\n[ -e ${cores}.o ] || exit 1; fi\n` +
          `echo "$last" >> '${folder}/log'\nexec ${compiler.command.join(" ")} "$@"\n`,
      );
      chmodSync(script, 0o755);
      const waits = { ...compiler, command: [script] };
      const n = 10 * cores + 1;
      const codes = await uncached(() =>
        Promise.all(numbers(n).map((i) => compileTogether(waits, `E_${i}`, source(`E_${i}`, String(i))))),
      );
      expect(codes.map(stored)).toEqual(numbers(n));
      if (linker.present) expect(starts()).toBe(2 * cores);
    });
    test("may have helpers of the same name, equal or not", async () => {
      const helper = (n: number) =>
        `static inline int helper(int x) {\n#if __GNUC__\n  return x+${n};\n#endif\n}\n`;
      const texts = [1, 1, 2].map((n, i) =>
        source(`E_${i}`, `helper(${i * 10})`, `#include <math.h>\n${helper(n)}`),
      );
      const codes = await uncached(() =>
        Promise.all(texts.map((t, i) => compileTogether(counted, `E_${i}`, t))),
      );
      expect(codes.map(stored)).toEqual([1, 11, 22]);
    });
    test("of which one is wrong: that one says so, the others are there", async () => {
      const texts = ["1", "wrong", "3"].map((what, i) => source(`E_${i}`, what));
      const results = await uncached(() =>
        Promise.allSettled(texts.map(async (t, i) => compileTogether(counted, `E_${i}`, t))),
      );
      expect(results.map((r) => r.status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
      const { reason } = results[1] as PromiseRejectedResult;
      expect(reason).toBeInstanceOf(CompileError);
      expect(reason.message).toMatch(/refused the kernel E_1:[\s\S]*'wrong'/);
      expect(stored((results[2] as PromiseFulfilledResult<Uint8Array>).value)).toBe(3);
    });
    test("that are the same are compiled once, and kept", async () => {
      await withEnv({ CACHE: join(folder, "kept") }, async () => {
        const same = ["E_1", "E_1n1"].map((name) => compileTogether(counted, name, source(name, "7")));
        expect(same[0]).toBe(same[1]);
        await Promise.all(same);
        expect(starts()).toBe(1);
        expect(readdirSync(join(folder, "kept", "clang")).length).toBe(1);
        expect(stored(compileTogether(counted, "E_2", source("E_2", "7")) as Uint8Array)).toBe(7);
        expect(starts()).toBe(1);
      });
    });
    test("leave no files behind", async () => {
      vi.stubEnv("TMPDIR", folder);
      const before = readdirSync(folder);
      await uncached(() => Promise.all(many(3)));
      vi.unstubAllEnvs();
      const all = [...before, "log"].sort();
      // the last one is handed out before its folder is removed
      await vi.waitFor(() => expect(readdirSync(folder).sort()).toEqual(all));
    });
  });
