// What few programs need, loaded on first use, in one piece: the search of BEAM, the source that DEBUG=4
// shows, the graph that GRAPH=1 writes, the checks of SPEC=1, the trace of PROFILE=1. Parts of codegen that
// only some kernels need are pieces of their own. A sync call in a page cannot wait for them, and says so; of
// what only makes kernels fast it goes without.

import { setDiagnostics } from "../../codegen/diagnostics/browser.ts";
import type { Kernel } from "../../codegen/kernel.ts";
import { hasNarrow, setNarrow } from "../../codegen/narrow/browser.ts";
import type { Renderer, Source } from "../../codegen/target.ts";
import { hasTuning, setTuning } from "../../codegen/tuning/browser.ts";
import { hasPiece, type Piece, type Pieces, setPiece } from "../../deferred.ts";
import { env } from "../../env.ts";
import { type Step, settle, toposort, waitable } from "../../helpers.ts";
import type { KeptKernel } from "../../host/kernelstore.ts";
import type { LazyBuffer } from "../../lazy/lazybuffer.ts";
import { isAluOp, opRecord } from "../../ops.ts";
import { setSimd } from "../../render/wasm/simdlater.ts";
import type { Compiled } from "../../runtime/device.ts";
import type { LazyOp } from "../../schedule/lazyop.ts";
import { onManySchedules, useReuse, useTuning } from "../../schedule/schedule.ts";
import { smax, sprod } from "../../shape/symbolic.ts";
import type { Kept } from "../kept.ts";
import type * as all from "./node.ts";

const SYNC = 'import "gradloom/sync"';
/** Code that is on its way; a sync call is refused with the reason. */
const loading = <T>(code: Promise<T>, why: string): Promise<T> => Object.assign(code, { why });

/** A kernel of fewer elements is as fast without OptOps. */
const LARGE = 4096;
const isLarge = ({ shape }: LazyOp): boolean => !(smax(sprod(shape)) < LARGE);

// a program that makes many schedules makes the same ones again
onManySchedules(() => void import("../../schedule/reuse.ts").then(useReuse, () => {}));

/** Kernels that were compiled before this changed are compiled again. */
export const isTuned = hasTuning;

/** The build of the package; nothing is kept of code that has no number. */
declare const GRADLOOM_BUILD: string | undefined;
let kept: Promise<Kept | undefined> | undefined;
let store: Kept | undefined;
/**
 * The code of the kernel, if an earlier visit kept it. Small kernels are compiled in no time; a page that has
 * others asks. A sync call goes on without.
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

/** What the kernel needs and few others do. */
export function* loadFor(ast: readonly LazyOp[]): Step<void> {
  const ops = toposort(ast, (u) => u.srcs);
  if (!hasTuning() && (env.BEAM > 0 || ops.some(isLarge))) {
    const schedules = import("../../schedule/tuning.ts").then(useTuning);
    const vectors = import("../../render/wasm/simd.ts").then(setSimd);
    const code = Promise.all([import("../../codegen/tuning/node.ts"), schedules, vectors]);
    // a sync call goes on without
    yield* settle(
      waitable(
        code.then(([tuning]) => setTuning(tuning)),
        () => {},
      ),
    );
  }
  const narrow = ops.find(({ dtype }) => dtype.isPacked || (dtype.isFloat && dtype.bits < 32));
  if (narrow !== undefined && !hasNarrow()) {
    const code = import("../../codegen/narrow/node.ts");
    setNarrow(yield* settle(loading(code, notYet(`the arithmetic of ${narrow.dtype.name}`, SYNC))));
  }
  for (const { op } of ops) {
    const piece = isAluOp(op) ? opRecord(op).piece : undefined;
    if (piece === undefined || hasPiece(piece)) continue;
    yield* loadPiece(piece, op);
  }
}
function* loadPiece<K extends Piece>(piece: K, op: string): Step<void> {
  setPiece(piece, yield* settle(loading(LOADERS[piece](), notYet(op, SYNC))));
}
const LOADERS: { readonly [K in Piece]: () => Promise<Pieces[K]> } = {
  transcendental: () => import("../../transcendental.ts"),
  trigonometry: () => import("../../trigonometry.ts"),
  power: () => import("../../power.ts"),
};
const notYet = (what: string, instead = "await a value first"): string =>
  `a page loads ${what} with the first kernel that is awaited; ${instead}`;

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
