// Whether vectors of 512 bits are faster than those of 256. Processors with AVX-512 differ: some have units
// of 512 bits, others take two steps for such a vector, and no macro of a compiler tells them apart. So the
// same arithmetic is timed in both widths, once for a processor; the disk cache keeps the answer.

import { sourceOf } from "../../codegen/target.ts";
import { range } from "../../helpers.ts";
import { builtin } from "../../host/builtin.ts";
import { cached, keyOf } from "../../host/diskcache.ts";
import type { Koffi } from "../../host/koffi.ts";
import type { Native } from "../../host/native.ts";
import { type CCompiler, compileAlone, hasMacro } from "./compiler.ts";

/** Chains of arithmetic that do not wait for each other: more than all units have in flight. */
const CHAINS = 12;
/** Iterations of a measurement, and how often each width is measured: about half a millisecond in all. */
const ITERATIONS = 4000;
const ROUNDS = 8;
/** Units of 512 bits are twice as fast; those that take two steps are as fast, or slower. */
const PAYS = 1.5;

const loop = (lanes: number): string => {
  const chains = range(CHAINS).map((i) => `a${i}`);
  const [type, each] = [`float${lanes}`, (f: (a: string) => string): string => chains.map(f).join(" ")];
  return `{ ${type} ${chains.map((a, i) => `${a} = start${lanes} + ${i}`).join(", ")};
    for (int i = 0; i < n; i++) { ${each((a) => `${a} = ${a} * 0.5f + 1.0f;`)} }
    *(${type}*)data0 = ${chains.join(" + ")}; }`;
};
const vectors = [8, 16];
const PROBE = `${vectors.map((n) => `typedef float float${n} __attribute__((vector_size(${4 * n}), aligned(4)));`).join("\n")}
void probe(float* data0, int lanes, int n) {
  ${vectors.map((n) => `float${n} start${n} = *(float${n}*)data0;`).join("\n  ")}
  if (lanes == 16) ${loop(16)}
  else ${loop(8)}
}`;

export function hasWideUnits(compiler: CCompiler, koffi: Koffi, native: Native): boolean {
  if (!hasMacro(compiler, "__AVX512VL__")) return false;
  const key = keyOf("wide", PROBE, compiler.macros, builtin.os.cpus()[0]?.model ?? "");
  const [answer] = cached("clang", key, () => Uint8Array.of(measure(compiler, koffi, native) ? 1 : 0));
  return answer === 1;
}

function measure(compiler: CCompiler, koffi: Koffi, native: Native): boolean {
  const source = sourceOf(PROBE, { buffers: 1, vals: 2 });
  const probe = native.load(compileAlone({ compiler, name: "probe", source, key: "" }));
  const memory = koffi.alloc("uint8_t", 64);
  try {
    new Uint8Array(koffi.view(memory, 64)).fill(0);
    const [low, high] = [Number(memory & 0xffffffffn) | 0, Number(memory >> 32n) | 0];
    // products and additions are twice as many in a vector of twice the lanes
    const time = (lanes: number): number => {
      const start = performance.now();
      native.call(probe, Int32Array.of(low, high, lanes, ITERATIONS), 0, 1, 2, -1, -1);
      return (performance.now() - start) / lanes;
    };
    const rounds = range(ROUNDS).map(() => vectors.map(time));
    const [narrow = 0, wide = 0] = vectors.map((_, i) => Math.min(...rounds.map((r) => r[i] ?? Infinity)));
    return narrow > PAYS * wide;
  } finally {
    koffi.free(memory);
  }
}
