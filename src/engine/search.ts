// BEAM=n: the list of OptOps for a kernel, found by measuring on the device. From the n best lists so far
// every op that fits is tried; it ends when nothing gets faster, or time is up. What was found is kept for
// the next process, or the next visit of a page. Without BEAM the heuristic decides (codegen/opt/heuristics),
// which is also where the search starts.

import { recall, remember, showProgress } from "#host";
import { fitting, type Kernel, prepare, toFastKernel } from "../codegen/kernel.ts";
import { extended } from "../codegen/opt/list.ts";
import { type OptOp, showOpts } from "../codegen/opt/opts.ts";
import { parseOpts } from "../codegen/opt/stored.ts";
import type { Renderer, Target } from "../codegen/target.ts";
import { env } from "../env.ts";
import { getOrMake, range, type Step, settle, timestamp, toposort } from "../helpers.ts";
import { Buffer } from "../runtime/buffer.ts";
import type { Compiled } from "../runtime/device.ts";
import { kindOf } from "../runtime/registry.ts";
import { astKey, type LazyOp } from "../schedule/lazyop.ts";
import { evaluate, type Variable } from "../shape/symbolic.ts";
import { listing } from "../uop/listing.ts";

/** Longer lists of UOps take longer to compile than a search could gain. */
const MAX_UOPS = 4000;
/** The runs of one candidate; the fastest counts. */
const RUNS = 4;
/** A round that gains less than this is the last. */
const LEAST_GAIN = 0.02;

interface TimedKernel {
  readonly kernel: Kernel;
  readonly seconds: number;
}

/** The kernel with the fastest list of a beam search that keeps the `width` best lists of each round. */
export function* searchKernel(
  ast: readonly LazyOp[],
  device: Compiled,
  renderer: Renderer,
  inPlace: boolean,
  width: number,
): Step<Kernel> {
  const key = keyOf(ast, device, renderer, inPlace, width);
  const known = yield* settle(recall(key));
  const list = known === undefined ? undefined : parseOpts(known, renderer);
  if (list !== undefined) {
    const kernel = fitting(ast, list, renderer);
    if (kernel !== undefined) return kernel;
  }
  const buffers = scratch(ast, device.name);
  // memory that was never written may be one page of zeros, mapped many times, which reads faster than other
  // memory
  for (const b of buffers) yield* settle(b.copyin(new Uint8Array(b.nbytes)));
  const found = yield* new Search(ast, device, renderer, inPlace, buffers).run(width);
  yield* settle(remember(key, JSON.stringify(found.opts)));
  return found;
}

function keyOf(
  ...[ast, device, renderer, inPlace, width]: [readonly LazyOp[], Compiled, Renderer, boolean, number]
) {
  const facts = [kindOf(device.name), inPlace, width, env.ALLOW_TF32, identityOf(renderer)];
  return `gradloom 4|${facts.join("|")}|${astKey(ast)}`;
}
/** All figures of a target, as text: a list that is fast on one GPU may not even fit another. */
function identityOf(target: Target): string {
  const named = (list: readonly { readonly name: string }[] = []) => list.map(({ name }) => name);
  const { optOps, gpu } = target;
  return JSON.stringify({
    ...target,
    optOps: named(optOps),
    gpu: { ...gpu, tensorCores: named(gpu?.tensorCores) },
  });
}

class Search {
  readonly #ast: readonly LazyOp[];
  readonly #device: Compiled;
  readonly #renderer: Renderer;
  readonly #inPlace: boolean;
  readonly #buffers: readonly Buffer[];
  readonly #actions: readonly OptOp[];
  readonly #seen = new Set<string>();
  readonly #start = timestamp();
  #tried = 0;

  constructor(
    ast: readonly LazyOp[],
    device: Compiled,
    renderer: Renderer,
    inPlace: boolean,
    buffers: readonly Buffer[],
  ) {
    this.#ast = ast;
    this.#device = device;
    this.#renderer = renderer;
    this.#inPlace = inPlace;
    this.#buffers = buffers;
    const plain = prepare(ast, [], renderer);
    const context = { target: renderer, inPlace };
    this.#actions = renderer.optOps.flatMap((op) => op.candidates(plain, context));
  }

  *run(width: number): Step<Kernel> {
    let best: TimedKernel[] = [];
    const starts = [toFastKernel(this.#ast, this.#renderer, this.#inPlace).opts, []];
    for (const opts of starts) best.push(...(yield* this.#measure(opts, best)));
    for (;;) {
      best = best.sort((a, b) => a.seconds - b.seconds).slice(0, width);
      const [first] = best as [TimedKernel];
      const next: TimedKernel[] = [];
      for (const { kernel } of best) {
        for (const action of this.#actions) {
          if (this.#isLate()) break;
          next.push(
            ...(yield* this.#measure(extended(kernel.opts, action, this.#renderer), [...best, ...next])),
          );
        }
      }
      const fastest = Math.min(...next.map((c) => c.seconds));
      best.push(...next);
      if (this.#isLate() || !(fastest < first.seconds * (1 - LEAST_GAIN))) break;
    }
    showProgress("");
    return best.reduce((a, b) => (b.seconds < a.seconds ? b : a)).kernel;
  }
  #isLate(): boolean {
    return timestamp() - this.#start > env.BEAM_SECONDS * 1000;
  }

  /**
   * Compiles and times a list. The result is empty for a list that does not fit or gives a known kernel.
   */
  *#measure(opts: readonly OptOp[], others: readonly TimedKernel[]): Step<TimedKernel[]> {
    const kernel = fitting(this.#ast, opts, this.#renderer);
    if (kernel === undefined || kernel.uops.uops.length > MAX_UOPS) return [];
    const text = `${kernel.globalSize}|${listing(kernel.uops)}`;
    if (this.#seen.has(text)) return [];
    this.#seen.add(text);
    const best = Math.min(...others.map((c) => c.seconds));
    const took = ((timestamp() - this.#start) / 1000).toFixed(0);
    const so = best === Infinity ? "" : `best ${(best * 1e6).toFixed(0)} µs, `;
    showProgress(`BEAM ${kernel.name}: ${++this.#tried} lists in ${took} s, ${so}${showOpts(opts)}`);
    const program = yield* settle(
      this.#device.compile(kernel.name, this.#renderer.render(kernel.name, kernel.uops)),
    );
    const vals = new Map<Variable, number>(kernel.vars.map((v) => [v, v.max]));
    const launch = {
      globalSize: kernel.globalSize.map((s) => evaluate(s, vals)),
      localSize: kernel.localSize,
      vals: [...vals.values()],
      work: kernel.ops + kernel.bytes,
    };
    const handles = kernel.globals.map((i) => (this.#buffers[i] as Buffer).handle);
    let seconds = Infinity;
    for (let i = 0; i < RUNS; i++) {
      const time = yield* settle(program.run(handles, launch, true));
      seconds = Math.min(seconds, time ?? Infinity);
      // the first run is slower than the others, but not by this much
      if (seconds > 4 * best) break;
    }
    return [{ kernel, seconds }];
  }
}

/** Buffers of the sizes that the kernel needs, to time it. */
function scratch(ast: readonly LazyOp[], device: string): Buffer[] {
  const made = new Map<number, Buffer>();
  for (const u of toposort(ast, (x) => x.srcs)) {
    if (u.op !== "LOAD" && u.op !== "STORE") continue;
    const { idx, dtype, st } = u.arg;
    const before = made.get(idx);
    if (before === undefined || before.size < st.realSize())
      made.set(idx, new Buffer(device, st.realSize(), dtype));
  }
  return range(Math.max(...made.keys()) + 1).map((i) => {
    const buffer = getOrMake(made, i, () => new Buffer(device, 1, (ast[0] as LazyOp).dtype));
    return buffer.allocate();
  });
}
