// From a ScheduleItem to something that runs: lower, render, compile, once for each kernel and device. The
// second kernel of the same structure costs a look-up.

import { isObserved, optimized, optimizedSteps, render } from "#engine/compiler";
import {
  isTuned,
  keepKernel,
  keptKernel,
  loadCompiler,
  loadDiagnostics,
  loadFor,
  searchKernel,
  smallKernel,
} from "#engine/ondemand";
import { type Renderer, type Source, sourceOf } from "../codegen/target.ts";
import { env } from "../env.ts";
import { DeviceError, InternalError } from "../errors.ts";
import { chain, getOrMake, isPromise, type MaybePromise, type Step, settle, together } from "../helpers.ts";
import { PAUSE } from "../pace.ts";
import type { Buffer } from "../runtime/buffer.ts";
import type { Compiled } from "../runtime/device.ts";
import {
  BufferCopy,
  BufferRead,
  BufferXfer,
  CompiledRunner,
  CustomOp,
  type Runner,
} from "../runtime/runner.ts";
import { astKey, type LazyOp } from "../schedule/lazyop.ts";
import type { ScheduleItem } from "../schedule/schedule.ts";
import { Device } from "./devices.ts";
import { Progress } from "./progress.ts";

const compiled = new Map<string, CompiledRunner>();
/** A program whose shapes never repeat must not keep every kernel it ever had: the oldest goes. */
const MAX_KERNELS = 4096;
/** Kernels compiled ahead must not push each other out of the cache. */
const MAX_AHEAD = MAX_KERNELS / 2;

/** The runner that an AST had last, and for what: a schedule that is known has the same ASTs again. */
let recent = new WeakMap<readonly LazyOp[], { readonly use: string; readonly runner: CompiledRunner }>();

/** Forgets all compiled kernels, so that the next run compiles again (for measuring). */
export function clearKernelCache(): void {
  compiled.clear();
  recent = new WeakMap();
}

/** What executes this item; undefined for EMPTY, which only wants memory. */
export function* runnerFor(si: ScheduleItem): Step<Runner | undefined> {
  const first = si.ast[0] as LazyOp;
  const out = si.outputs[0] as Buffer;
  switch (first.op) {
    case "STORE":
      return smallKernel(si) ?? (yield* kernelRunner(out.device, si.ast, writesWhatItReads(si)));
    case "COPY": {
      const src = si.inputs[0] as Buffer;
      if (canTransfer(out.device, src.device)) return new BufferXfer();
      return Device.storageOf(src.device) === "file" ? new BufferRead() : new BufferCopy();
    }
    case "CUSTOM":
      return new CustomOp(first.arg);
    case "EMPTY":
      return undefined;
    default:
      throw new InternalError(`a ScheduleItem cannot start with ${first.op}`);
  }
}

/** An assign may share memory with what it is computed from. */
function writesWhatItReads({ outputs, inputs }: ScheduleItem): boolean {
  const memory = (b: Buffer): Buffer => b.base ?? b;
  return outputs.some((o) => inputs.some((i) => memory(i) === memory(o)));
}

/** Whether the devices copy without the host. */
function canTransfer(to: string, from: string): boolean {
  const dest = Device.get(to);
  return dest.allocator.canTransfer && Device.isOpen(from) && Device.get(from).space === dest.space;
}

/** What a kernel depends on besides its AST. */
const useOf = (name: string, inPlace: boolean): string =>
  `${name}|${Device.timesLost(name)}|${isTuned()}|${env.NOOPT}|${env.BEAM}|${env.ALLOW_TF32}|${inPlace ? "in place|" : ""}`;

/** The runner of an AST that was looked up before for the same use. */
function recentRunner(ast: readonly LazyOp[], use: string): CompiledRunner | undefined {
  const last = recent.get(ast);
  return last?.use === use ? last.runner : undefined;
}

export function* kernelRunner(name: string, ast: readonly LazyOp[], inPlace: boolean): Step<CompiledRunner> {
  const last = recentRunner(ast, useOf(name, inPlace));
  if (last !== undefined) return last;
  const key = astKey(ast);
  const isKnown = isTuned() && compiled.has(useOf(name, inPlace) + key);
  const isLast = isKnown || (yield* loadFor(yield* Device.opened(name), ast));
  const use = useOf(name, inPlace); // it may depend on what was loaded
  const runner = yield* lookedUp(use + key, name, ast, inPlace);
  // a kernel that was compiled without a piece is compiled again once that piece is loaded
  if (isLast) recent.set(ast, { use, runner });
  return runner;
}
function* lookedUp(
  key: string,
  name: string,
  ast: readonly LazyOp[],
  inPlace: boolean,
): Step<CompiledRunner> {
  const known = compiled.get(key);
  if (known !== undefined) return known;
  const device = yield* Device.opened(name);
  const renderer = rendererOf(device);
  if (env.SPEC || env.DEBUG >= 5) yield* loadDiagnostics();
  yield PAUSE;
  // what someone wants to look at, or to measure, is made
  const isKept = env.BEAM === 0 && env.DEBUG < 4 && !isObserved();
  const kept = isKept ? yield* keptKernel(device, key) : undefined;
  if (kept !== undefined)
    return yield* settle(compile(key, { ...kept, vars: [] }, sourceOf(kept.code, kept), device));
  const kernel =
    env.BEAM > 0 && !env.NOOPT
      ? yield* searchKernel(ast, device, renderer, inPlace, env.BEAM)
      : yield* optimizedSteps(ast, renderer, inPlace);
  yield PAUSE;
  const source = render(renderer, kernel);
  if (isKept) keepKernel(device, key, kernel, source);
  yield PAUSE;
  return yield* settle(compile(key, kernel, source, device));
}

/**
 * Compiles all new kernels of these items at once, on devices that compile beside the host, and waits for
 * them together. A kernel that fails is left out: it is compiled again when it is needed, and then the error
 * is thrown.
 */
export function* compileAhead(device: Compiled, items: readonly ScheduleItem[]): Step<void> {
  // a search measures: nothing else may run
  if (!device.compilesAside || env.BEAM > 0) return;
  yield* loadCompiler(device);
  const started = new Map<string, MaybePromise<CompiledRunner>>();
  for (const si of items) {
    if (si.ast[0]?.op !== "STORE" || si.outputs.some((b) => b.size === 0)) continue;
    const inPlace = writesWhatItReads(si);
    const use = useOf(device.name, inPlace);
    if (recentRunner(si.ast, use) !== undefined) continue;
    const key = use + astKey(si.ast);
    if (compiled.has(key) || started.has(key) || started.size >= MAX_AHEAD) continue;
    try {
      const renderer = rendererOf(device);
      const kernel = optimized(si.ast, renderer, inPlace);
      started.set(key, compile(key, kernel, render(renderer, kernel), device));
    } catch {}
  }
  const pending = [...started.values()].filter(isPromise);
  if (pending.length === 0) return;
  const progress = new Progress(pending.length);
  progress.begin();
  const step = (): void => progress.step();
  for (const p of pending) p.then(step, step);
  yield together(pending);
  progress.end();
}

function rendererOf({ name, renderer }: Compiled): Renderer {
  if (renderer !== undefined) return renderer;
  throw new DeviceError(
    `${name} holds data and cannot compute; move the tensor first: t.to("${Device.DEFAULT}")`,
  );
}

function compile(
  key: string,
  kernel: Launchable,
  source: Source,
  device: Compiled,
): MaybePromise<CompiledRunner> {
  return chain(device.compile(kernel.name, source), (program) =>
    getOrMake(compiled, key, () => {
      program.cost = { ops: kernel.ops, bytes: kernel.bytes };
      if (compiled.size >= MAX_KERNELS) compiled.delete(compiled.keys().next().value as string);
      // a Kernel has its graph too, which nobody needs any more
      const facts = { ...kernel, uops: undefined, floats: undefined, device: device.name, program };
      return new CompiledRunner(facts);
    }),
  );
}

/** What launches must know of a kernel. */
type Launchable = Omit<CompiledRunner["kernel"], "device" | "program">;
