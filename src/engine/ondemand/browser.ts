// `#engine/ondemand` in a page: code that few programs need is a piece of its own, loaded on first use. One
// piece has the search of BEAM, the source that DEBUG=4 shows, the graph that GRAPH=1 writes, the checks of
// SPEC=1 and the trace of PROFILE=1; others have parts of codegen that only some kernels need. A sync call
// cannot wait for a piece: it throws and says so, or, if the piece only makes kernels fast, goes on without
// it. node.ts has the same functions where everything is loaded at the start.

import { setDiagnostics } from "../../codegen/diagnostics/browser.ts";
import type { Kernel } from "../../codegen/kernel.ts";
import { hasNarrow, setNarrow } from "../../codegen/narrow/browser.ts";
import type { Renderer, Source } from "../../codegen/target.ts";
import { hasTuning, setTuning } from "../../codegen/tuning/browser.ts";
import {
  hasPiece,
  notYet,
  type Piece,
  type Pieces,
  pieceFor,
  SYNC,
  setPiece,
  withCompiler,
  withTuning,
} from "../../deferred.ts";
import { env } from "../../env.ts";
import { DeviceError } from "../../errors.ts";
import { type Step, settle, waitable } from "../../helpers.ts";
import type { KeptKernel } from "../../host/kernelstore.ts";
import type { LazyBuffer } from "../../lazy/lazybuffer.ts";
import { isAluOp, opRecord } from "../../ops.ts";
import { setSimd } from "../../render/wasm/simdlater.ts";
import type { Buffer } from "../../runtime/buffer.ts";
import type { Compiled } from "../../runtime/device.ts";
import type { Runner } from "../../runtime/runner.ts";
import { astNodes, type LazyOp } from "../../schedule/lazyop.ts";
import { onManySchedules, type ScheduleItem, useReuse, useTuning } from "../../schedule/schedule.ts";
import { smax, sprod } from "../../shape/symbolic.ts";
import { hasCompiler, setCompiler } from "../compilerlater.ts";
import { Device } from "../devices.ts";
import { interpreter, isSmall } from "../interpret.ts";
import { CacheCollector } from "../jit/collector.ts";
import { loadedPlanner, usePlanner } from "../jit/planner.ts";
import type { KernelKeeper } from "../kept.ts";
import type * as all from "./node.ts";

/** Code that is on its way; a sync call is refused with the reason. */
const loading = <T>(code: Promise<T>, why: string): Promise<T> =>
  Object.assign(
    code.catch((cause) => {
      throw new DeviceError(`${why}: ${cause.message}; call again`, { cause });
    }),
    { why },
  );
/** Code that only makes things fast: a sync call goes on without it, and so does a page that is offline. */
const optional = (code: Promise<unknown>) =>
  waitable<unknown>(
    code.catch(() => {}),
    () => {},
  );

/** A kernel with fewer elements is as fast without OptOps. */
const LARGE = 4096;
const isLarge = ({ shape }: LazyOp): boolean => !(smax(sprod(shape)) < LARGE);

// a program that makes many schedules makes the same ones again
onManySchedules(() => void import("../../schedule/reuse.ts").then(useReuse, () => {}));

/** Kernels that were compiled before this changed are compiled again. */
export const isTuned = hasTuning;

/** The build of the package; nothing is kept of code that has no number. */
declare const GRADLOOM_BUILD: string | undefined;
let kept: Promise<KernelKeeper | undefined> | undefined;
let store: KernelKeeper | undefined;
/**
 * The code of the kernel, if an earlier visit to the page kept it. Compiling small kernels takes no time, so
 * only a page that has larger ones asks. A sync call goes on without it.
 */
export function* keptKernel(device: Compiled, key: string): Step<KeptKernel | undefined> {
  if (!hasTuning() || env.CACHE === "0" || typeof GRADLOOM_BUILD !== "string") return undefined;
  kept ??= import("../kept.ts").then(
    (m) => m.openKept(GRADLOOM_BUILD),
    () => undefined,
  );
  store ??= yield* settle(waitable(kept, () => undefined));
  const { codeVariant } = device;
  return codeVariant === undefined ? undefined : store?.recall(codeVariant + key);
}
/** Keeps it for the next visit. */
export function keepKernel(device: Compiled, key: string, kernel: Kernel, source: Source): void {
  if (store === undefined || device.codeVariant === undefined) return;
  store.keep(device.codeVariant + key, kernel, source);
}

/** The memory of a step that makes less is not worth a plan: WebAssembly's memory grows by this much. */
const PAGE_BYTES = 1 << 16;
/** Loads the memory planner for a step whose kernels write so many bytes. A sync call goes on without it. */
export function* loadPlanner(bytes: number): Step<void> {
  if (loadedPlanner() !== undefined || bytes < PAGE_BYTES) return;
  yield* settle(optional(import("../jit/memoryplan.ts").then(usePlanner)));
}

let interpreted = 0;
/** After this many kernels it pays to start codegen, which takes longer than interpreting all of them. */
const MOST_INTERPRETED = 16;
/**
 * A page that has not compiled a kernel yet interprets small ones, unless someone wants to look at what is
 * compiled.
 */
export function smallKernel(item: ScheduleItem): Runner | undefined {
  const { canInterpret } = Device.get((item.outputs[0] as Buffer).device);
  if (interpreted >= MOST_INTERPRETED || !canInterpret || isWatched() || !isSmall(item)) return;
  interpreted++;
  return interpreter(item.ast);
}
const isWatched = (): boolean => CacheCollector.collecting || env.DEBUG + env.PROFILE + env.SPEC > 0;

let compiler: Promise<unknown> | undefined;
/** A page whose small results were all interpreted has no compiler. */
export function* loadCompiler(device: Compiled): Step<void> {
  interpreted = MOST_INTERPRETED;
  const part = device.loadCompiler?.();
  if (hasCompiler() && part === undefined) return;
  compiler ??= Promise.all([
    import("../compiler.ts").then(setCompiler),
    ...withCompiler.map((load) => load()),
  ]).catch((e) => {
    compiler = undefined;
    throw e;
  });
  const all = Promise.all([compiler, part]);
  yield* settle(loading(all, notYet("the compiler", SYNC)));
}

/**
 * Loads what this kernel needs and few others do. False: a sync call goes on without what would make it fast.
 */
export function* loadFor(device: Compiled, ast: readonly LazyOp[]): Step<boolean> {
  yield* loadCompiler(device);
  const ops = astNodes(ast);
  if (!hasTuning() && (env.BEAM > 0 || ops.some(isLarge))) {
    const schedules = import("../../schedule/tuning.ts").then(useTuning);
    const vectors = import("../../render/wasm/simd.ts").then(setSimd);
    const parts = [...withTuning].map((load) => load().then(() => withTuning.delete(load)));
    const code = Promise.all([import("../../codegen/tuning/node.ts"), schedules, vectors, ...parts]);
    yield* settle(optional(code.then(([tuning]) => setTuning(tuning))));
  }
  const narrow = ops.find(({ dtype }) => dtype.isPacked || (dtype.isFloat && dtype.bits < 32));
  if (narrow !== undefined && !hasNarrow()) {
    const code = import("../../codegen/narrow/node.ts");
    setNarrow(yield* settle(loading(code, notYet(`the arithmetic of ${narrow.dtype.name}`, SYNC))));
  }
  for (const { op, dtype } of ops) {
    if (!isAluOp(op)) continue;
    const { piece: name, isEvaluatedByPiece } = opRecord(op);
    if (name === undefined) continue;
    const piece = pieceFor(name, dtype);
    if (hasPiece(piece)) continue;
    const isNative = device.renderer?.support(dtype) === "native" && device.renderer.has(op, dtype);
    if (!isNative || isEvaluatedByPiece) yield* loadPiece(piece, op);
  }
  return hasTuning() || !ops.some(isLarge);
}
function* loadPiece<K extends Piece>(piece: K, op: string): Step<void> {
  setPiece(piece, yield* settle(loading(LOADERS[piece](), notYet(op, SYNC))));
}
const LOADERS: { readonly [K in Piece]: () => Promise<Pieces[K]> } = {
  transcendental: () => import("../../transcendental.ts"),
  transcendental64: () => import("../../transcendental64.ts"),
  trigonometry: () => import("../../trigonometry.ts"),
  trigonometry64: () => import("../../trigonometry64.ts"),
  erf: () => import("../../errorfunction.ts"),
  power: () => import("../../power.ts"),
};

const load = (): Promise<typeof all> =>
  loading(import("./node.ts"), notYet("what SPEC, BEAM, DEBUG and PROFILE need"));

export function* searchKernel(
  ...args: Parameters<typeof all.searchKernel>
): ReturnType<typeof all.searchKernel> {
  const loaded = yield* settle(load());
  return yield* loaded.searchKernel(...args);
}
export function* logGraph(outs: readonly LazyBuffer[]): Step<void> {
  const loaded = yield* settle(load());
  yield* loaded.logGraph(outs);
}
/** A little later than in Node; the order of the kernels stays. */
export function showSource(renderer: Renderer, source: Source, kernel: Kernel): void {
  void load().then((loaded) => loaded.showSource(renderer, source, kernel));
}
/** For SPEC, DEBUG=7 and PROFILE. */
export function* loadDiagnostics(): Step<void> {
  const loaded = yield* settle(load());
  setDiagnostics(loaded.diagnostics);
}
