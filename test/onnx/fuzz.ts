// npm run onnx-fuzz -- [--files 100000] [--seed 1]: mutated models. Bytes change, lengths lie, parts repeat
// or disappear. Each file must load or be refused with an OnnxError, in little time and memory. As a module:
// `fuzz`.

import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { load, OnnxError } from "gradloom/onnx";
import { branches, bytesOf, flattens, twoLayers } from "./models.ts";

export interface FuzzReport {
  loaded: number;
  refused: number;
  /** what went wrong: the seed of the file, and how */
  readonly strange: string[];
}
/** A file of a few hundred bytes takes neither. */
const MAX_MS = 2000;
const MAX_BYTES = 64 * 2 ** 20;

/** Numbers from 0 to below 2^32 (mulberry32). */
function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return (t ^ (t >>> 14)) >>> 0;
  };
}

type Mutation = (bytes: Uint8Array, random: () => number) => Uint8Array;
const at = (bytes: Uint8Array, random: () => number): number => random() % Math.max(1, bytes.length);
const MUTATIONS: readonly Mutation[] = [
  (b, r) => b.with(at(b, r), r() & 255),
  (b, r) => b.with(at(b, r), [0, 1, 0x7f, 0x80, 0xff][r() % 5] as number),
  (b, r) => {
    const i = at(b, r);
    return b.with(i, (b[i] as number) ^ (1 << (r() & 7)));
  },
  (b, r) => b.slice(0, at(b, r)),
  (b, r) => {
    const [i, n] = [at(b, r), r() % 40];
    return Uint8Array.from([...b.slice(0, i), ...b.slice(i + n)]);
  },
  (b, r) => {
    const [i, j, n] = [at(b, r), at(b, r), r() % 60];
    return Uint8Array.from([...b.slice(0, i), ...b.slice(j, j + n), ...b.slice(i)]);
  },
  // a length of many bytes in the place of a short one
  (b, r) => {
    const i = at(b, r);
    return Uint8Array.from([...b.slice(0, i), 0xff, 0xff, 0xff, r() & 0x7f, ...b.slice(i + 1)]);
  },
];

export async function fuzz(files: number, seed: number): Promise<FuzzReport> {
  const seeds = await Promise.all([twoLayers, branches, flattens].map((graph) => bytesOf(graph)));
  const report: FuzzReport = { loaded: 0, refused: 0, strange: [] };
  for (let i = 0; i < files; i++) {
    const random = generator(seed * 1_000_003 + i);
    let bytes = seeds[random() % seeds.length] as Uint8Array;
    const count = 1 + (random() % 4);
    for (let k = 0; k < count && bytes.length > 0; k++)
      bytes = (MUTATIONS[random() % MUTATIONS.length] as Mutation)(bytes, random);
    const [before, memory] = [performance.now(), process.memoryUsage().arrayBuffers];
    try {
      await load(bytes);
      report.loaded++;
    } catch (e) {
      if (e instanceof OnnxError) report.refused++;
      else report.strange.push(`file ${i}: ${(e as Error).stack}`);
    }
    const [ms, grown] = [performance.now() - before, process.memoryUsage().arrayBuffers - memory];
    if (ms > MAX_MS) report.strange.push(`file ${i}: took ${ms} ms`);
    if (grown > MAX_BYTES) report.strange.push(`file ${i}: allocated ${grown} bytes`);
  }
  return report;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const options = {
    files: { type: "string", default: "100000" },
    seed: { type: "string", default: "1" },
  } as const;
  const { values } = parseArgs({ options });
  const started = performance.now();
  const report = await fuzz(Number(values.files), Number(values.seed));
  for (const line of report.strange.slice(0, 20)) console.log(line);
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(
    `${report.loaded} loaded, ${report.refused} refused, ${report.strange.length} strange in ${seconds} s`,
  );
  process.exitCode = report.strange.length === 0 ? 0 : 1;
}
