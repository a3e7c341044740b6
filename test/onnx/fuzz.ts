// npm run onnx-fuzz -- [--files 100000] [--seed 1]: mutated models. Bytes change, lengths lie, parts repeat
// or disappear. Each file must load or be refused with an OnnxError, in little time and memory, and so must a
// run of what loads. As a module: `fuzz`.

import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { Tensor } from "gradloom";
import { load, OnnxError, type OnnxModel } from "gradloom/onnx";
import { prod } from "../../src/helpers.ts";
import { type ElementType, TYPES } from "../../src/onnx/elements.ts";
import { branches, bytesOf, flattens, quantised, steps, twoLayers } from "./models.ts";

export interface FuzzReport {
  loaded: number;
  /** of them, those that ran */
  ran: number;
  refused: number;
  /** what went wrong: the seed of the file, and how */
  readonly strange: string[];
}
const SEEDS = [twoLayers, branches, flattens, quantised, steps];
/** A file of a few hundred bytes takes neither. */
const MAX_MS = 2000;
const MAX_BYTES = 64 * 2 ** 20;
/** A run compiles kernels, and a device takes memory in large pieces. */
const RUN_MS = 30_000;
const RUN_BYTES = 512 * 2 ** 20;

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

/** More elements are the wish of a file that is not damaged where it counts. */
const MAX_FED = 4096;
/** Ones for each input, two for a size that is open; undefined where the file wants something else. */
function feeds(model: OnnxModel): Record<string, Tensor> | undefined {
  const all: Record<string, Tensor> = {};
  for (const { name, type, dims } of model.inputs) {
    const element = (TYPES as Readonly<Record<string, ElementType>>)[type];
    const shape = (dims ?? []).map((d) => (typeof d === "number" ? d : 2));
    if (element === undefined || element === TYPES.string || prod(shape) > MAX_FED) return undefined;
    all[name] = Tensor.ones(shape, { dtype: element.dtype });
  }
  return all;
}
async function tryRun(model: OnnxModel): Promise<boolean> {
  const inputs = feeds(model);
  if (inputs === undefined) return false;
  await model.run(inputs);
  return true;
}

/** File `i` of a seed. */
export async function mutated(i: number, seed: number): Promise<Uint8Array> {
  const seeds = await originals();
  const random = generator(seed * 1_000_003 + i);
  let bytes = seeds[random() % seeds.length] as Uint8Array;
  const count = 1 + (random() % 4);
  for (let k = 0; k < count && bytes.length > 0; k++)
    bytes = (MUTATIONS[random() % MUTATIONS.length] as Mutation)(bytes, random);
  return bytes;
}
let files: Promise<readonly Uint8Array[]> | undefined;
const originals = (): Promise<readonly Uint8Array[]> =>
  (files ??= Promise.all(SEEDS.map((graph) => bytesOf(graph))));

/** What has been too much since it was made. */
function meter(): (what: string, file: number, maxMs: number, maxBytes: number) => string[] {
  const [before, memory] = [performance.now(), process.memoryUsage().rss];
  return (what, file, maxMs, maxBytes) => {
    const [ms, grown] = [performance.now() - before, process.memoryUsage().rss - memory];
    return [
      ...(ms > maxMs ? [`file ${file}: ${what} took ${ms} ms`] : []),
      ...(grown > maxBytes ? [`file ${file}: ${what} allocated ${grown} bytes`] : []),
    ];
  };
}

export async function fuzz(count: number, seed: number): Promise<FuzzReport> {
  const report: FuzzReport = { loaded: 0, ran: 0, refused: 0, strange: [] };
  for (let i = 0; i < count; i++) {
    const bytes = await mutated(i, seed);
    const look = meter();
    let model: OnnxModel | undefined;
    try {
      model = await load(bytes);
      report.loaded++;
      report.strange.push(...look("loading", i, MAX_MS, MAX_BYTES));
      if (await tryRun(model)) report.ran++;
    } catch (e) {
      if (!(e instanceof OnnxError)) report.strange.push(`file ${i}: ${(e as Error).stack}`);
      else if (model === undefined) report.refused++;
    }
    const isLoaded = model !== undefined;
    report.strange.push(...look("all", i, isLoaded ? RUN_MS : MAX_MS, isLoaded ? RUN_BYTES : MAX_BYTES));
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
    `${report.loaded} loaded, of which ${report.ran} ran, ${report.refused} refused, ${report.strange.length} strange in ${seconds} s`,
  );
  process.exitCode = report.strange.length === 0 ? 0 : 1;
}
