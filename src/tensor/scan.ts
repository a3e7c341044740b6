// scan: a loop over the first dim of its inputs, as a node of the lazy graph. The body is traced once on
// placeholders; engine/scan/ makes a loop of the trace. For gradients the body's backward pass is traced
// once, too, and becomes a loop in the opposite direction. It reads what the forward loop saved: results of
// reductions and the carries, a row for each step. Cheaper values are computed again.

import { checker } from "../arguments.ts";
import { type Carry, makeLoop, type Row } from "../engine/scan/loop.ts";
import { placeholder, REFUSED } from "../engine/scan/template.ts";
import { loopVariable } from "../engine/scan/variable.ts";
import { scopes } from "../engine/scope.ts";
import { ArgumentError } from "../errors.ts";
import { isPromise, range } from "../helpers.ts";
import { LazyBuffer, nodesMade } from "../lazy/lazybuffer.ts";
import { copyTo } from "../lazy/placement.ts";
import type { Buffer } from "../runtime/buffer.ts";
import { ShapeTracker } from "../shape/shapetracker.ts";
import { type Sint, smax } from "../shape/symbolic.ts";
import { gradientsOf, isRecording, withRecording } from "./autograd.ts";
import { make } from "./core.ts";
import { add } from "./math/arithmetic.ts";
import { drawSteps, noteDraws, state as random } from "./random/threefry.ts";
import { boundariesOf, nodesBelow, type SavedValues, savedFor } from "./residuals.ts";
import type { Tensor } from "./tensor.ts";
import { type Total, totalOf } from "./totals.ts";
import { depth, withinBody } from "./tracing.ts";
import { lengthOf, requireCarry, requireLeaves, type Tree, treeOf, unflatten } from "./trees.ts";

export interface ScanOptions {
  /** from the last row of `xs` to the first; results stay in the order of `xs` */
  readonly reverse?: boolean;
  /** the number of steps; necessary where `xs` is undefined */
  readonly length?: number;
  /** save only the carries for the gradient, and compute the rest of each step again; default: false */
  readonly checkpoint?: boolean;
}

/** The body, as a function of lists of tensors. */
type ScanStep = (carries: readonly Tensor[], rows: readonly Tensor[]) => StepResults;
interface StepResults {
  readonly nexts: readonly Tensor[];
  readonly outs: readonly Tensor[];
}

/** One traced call of the body. */
interface StepTrace extends StepResults {
  readonly step: ScanStep;
  /** the number of the step, where the body uses it */
  readonly counter?: Sint;
  readonly since: number;
  readonly depth: number;
  readonly length: number;
  readonly reverse: boolean;
  readonly carries: readonly Tensor[];
  readonly rows: readonly Tensor[];
  /** random draws of the body, and how many numbers they take together */
  readonly draws: readonly Buffer[];
  readonly taken: number;
}
/** A tensor from outside that wants a gradient: what a step adds to it, and the sum before and after that. */
interface Closure {
  readonly tensor: Tensor;
  readonly flow: Tensor;
  readonly sum: Tensor;
  readonly next: Tensor;
}
/** The traced backward pass of a body. */
interface BackwardTrace {
  /** the gradients that come in: of each carry and each output of the body, where one flows */
  readonly ofNexts: readonly (Tensor | undefined)[];
  readonly ofOuts: readonly (Tensor | undefined)[];
  readonly closures: readonly Closure[];
  readonly ofCarries: readonly (Tensor | undefined)[];
  readonly ofRows: readonly (Tensor | undefined)[];
  readonly saved: SavedValues;
}

const checkScan = checker("scan", "body:f init:z xs:z? {length:n,reverse:b,checkpoint:b}?");

/**
 * Runs `body` for each row of `xs`: it takes the carry and a row, and returns the next carry and an output.
 * The result is the last carry and the outputs, stacked. `init`, `xs`, carries and outputs are tensors, or
 * arrays and objects of tensors; `xs` and outputs may be undefined.
 *
 * The body is called once, to see what it does; its kernels are compiled once and run for each step, also
 * within a jitted function. So it must not have side effects or look at values. What it closes over, such as
 * weights, gets its gradient. Random numbers are new in every step.
 * @example
 * const add = (sum, x) => [sum.add(x), sum.add(x)];
 * const [last, sums] = scan(add, new Tensor([0]), new Tensor([[1], [2], [3]]));
 * await sums.tolist() // => [[1], [3], [6]]
 */
export function scan<const C extends Tree, X extends Tree | undefined, Y extends Tree | undefined | null>(
  body: (carry: C, x: X) => readonly [C, Y],
  init: C,
  xs: X,
  options: ScanOptions = {},
): [carry: C, ys: Y] {
  checkScan([body, init, xs, options]);
  const from = treeOf("init", init);
  const over = treeOf("xs", xs);
  const length = lengthOf(over.leaves, over.paths, options.length);
  requireLeaves(from, over);
  const { reverse = false, checkpoint = false } = options;
  let outTree = over;
  const { autocast } = scopes.current;
  const step: ScanStep = (carries, rows) => {
    // a gradient that can be differentiated calls the body again later
    const call = () => body(unflatten(from, carries) as C, unflatten(over, rows) as X);
    const result = scopes.sync({ autocast }, call);
    requirePair(result);
    const next = treeOf("the carry that the body returned", result[0]);
    requireCarry(from, next);
    outTree = treeOf("the output of the body", result[1]);
    requireLeaves(next, outTree);
    return { nexts: next.leaves, outs: outTree.leaves };
  };
  const trace = traceOf(step, from.leaves, over.leaves, { length, reverse });
  random.drawn += trace.taken * (length - 1);
  const { carries, ys } = new Scan(trace, from.leaves, over.leaves, checkpoint).run();
  return [unflatten(from, carries) as C, unflatten(outTree, ys) as Y];
}

/**
 * `step` applied so many times, without a gradient: a loop whose body is traced once, where one device has
 * all. The body also takes the number of the step, for the bounds of views.
 */
export function repeated(self: Tensor, length: number, step: (x: Tensor, at: Sint) => Tensor): Tensor {
  if (length === 0) return self;
  if (self.lazydata.parts.length > 1) return range(length).reduce((x, i) => step(x, i), self);
  const counter = loopVariable(depth(), length, true);
  const body: ScanStep = ([x]) => ({ nexts: [step(x as Tensor, counter)], outs: [] });
  return withRecording(false, () => {
    const init = [make(self.lazydata)];
    const trace = { ...traceOf(body, init, [], { length, reverse: false }), counter };
    return new Scan(trace, init, [], false).run().carries[0] as Tensor;
  });
}

function requirePair(result: unknown): asserts result is readonly [unknown, unknown] {
  if (Array.isArray(result) && result.length === 2) return;
  const isAsync = isPromise(result);
  if (isAsync) result.then(undefined, () => {});
  const got = isAsync ? "a Promise" : Array.isArray(result) ? `an array of ${result.length}` : typeof result;
  throw new ArgumentError(
    `scan: the body returned ${got}, expected [carry, y]${isAsync ? "; it must not be async" : ""}`,
  );
}

/** Calls the body once, on placeholders. */
function traceOf(
  step: ScanStep,
  init: readonly Tensor[],
  xs: readonly Tensor[],
  { length, reverse }: { readonly length: number; readonly reverse: boolean },
): StepTrace {
  const level = depth();
  return withinBody((since) => {
    const carries = init.map((t) => standIn(t, t.shape, isRecording() && isFloat(t)));
    const rows = xs.map((t) => standIn(t, t.shape.slice(1), t.requiresGrad));
    const given = [...carries, ...rows];
    const nodes = given.map((t) => t.lazydata);
    const { result, made, taken } = noteDraws(() => step(carries, rows));
    if (given.some((t, i) => t.lazydata !== nodes[i])) throw new ArgumentError(REFUSED.ASSIGN);
    return { step, since, depth: level, length, reverse, carries, rows, ...result, draws: made, taken };
  });
}

const UNKNOWN =
  "a tensor of the body of a scan has no value: the body is traced once, before any step runs. Values cannot be read in " +
  "it, and tensors of it cannot be used after it; return them as carry or output";

/** What stands for a tensor while the body is traced. */
function standIn({ lazydata }: Tensor, shape: readonly number[], requiresGrad: boolean): Tensor {
  const node = placeholder(lazydata.device, ShapeTracker.fromShape(shape), lazydata.dtype);
  node.stale = `scan: ${UNKNOWN}`;
  return make(node, { requiresGrad });
}

const isFloat = (t: Tensor): boolean => t.dtype.isFloat;

class Scan {
  readonly #trace: StepTrace;
  readonly #init: readonly Tensor[];
  readonly #xs: readonly Tensor[];
  readonly #draws: readonly Row[];
  readonly #back: BackwardTrace | undefined;
  readonly #checkpoint: boolean;

  constructor(trace: StepTrace, init: readonly Tensor[], xs: readonly Tensor[], checkpoint: boolean) {
    this.#trace = trace;
    this.#init = init;
    this.#xs = xs;
    this.#checkpoint = checkpoint;
    const roots = [...trace.nexts, ...trace.outs].filter((t) => t.requiresGrad);
    const closures = boundariesOf(roots, trace.since).filter((t) => t.requiresGrad);
    const wanted = isRecording() && [...init, ...xs, ...closures].some((t) => t.requiresGrad);
    this.#back = wanted ? withinBody(() => this.#traceBackward(closures)) : undefined;
    this.#draws = this.#drawRows();
  }

  /** The rows of random keys: steps draw one after the other, as an unrolled loop would. */
  #drawRows(): Row[] {
    const { draws, length, taken, reverse, nexts, outs } = this.#trace;
    if (draws.length === 0) return [];
    const places = copiesOf(
      [...nexts, ...outs].map((t) => t.lazydata),
      new Set(draws),
    );
    return places.map(([place, buffer]) => {
      const steps = drawSteps(buffer, length, taken, reverse);
      const stack = LazyBuffer.fromBuffer(steps, [length, ...place.shape]);
      return { place, stack: copyTo(stack, place.device) };
    });
  }

  run(): { carries: Tensor[]; ys: Tensor[] } {
    const { since, depth, length, reverse, carries, rows, nexts, outs, counter } = this.#trace;
    const saved = this.#back?.saved;
    const kept = carries.map((c) => saved?.places.has(c.lazydata.base) ?? false);
    const made = makeLoop({
      since,
      depth,
      length,
      reverse,
      step: counter,
      carries: carries.map((c, i): Carry => {
        const init = (this.#init[i] as Tensor).lazydata;
        return { place: c.lazydata, init, next: (nexts[i] as Tensor).lazydata, kept: kept[i] as boolean };
      }),
      rows: [...this.#rowsOf(rows, this.#xs), ...this.#draws],
      outs: [...outs.map((t) => t.lazydata), ...(saved?.values ?? [])],
    });
    const ends = made.carries.map((lb) => make(lb));
    const ys = made.outs.slice(0, outs.length).map((lb) => make(lb));
    if (this.#back !== undefined) {
      const before: Row[] = carries.flatMap((c, i) => {
        const stack = made.before[i];
        return stack === undefined || !kept[i] ? [] : [{ place: c.lazydata, stack }];
      });
      const values = (saved as SavedValues).values.map((place, i): Row => {
        return { place, stack: made.outs[outs.length + i] as LazyBuffer };
      });
      this.#record(this.#back, { ends, ys, rows: [...before, ...values] });
    }
    return { carries: ends, ys };
  }
  #rowsOf(places: readonly Tensor[], stacks: readonly Tensor[]): Row[] {
    return places.map((p, i) => ({ place: p.lazydata, stack: (stacks[i] as Tensor).lazydata }));
  }

  // ---- backward ----

  #traceBackward(closures: readonly Tensor[]): BackwardTrace {
    const { carries, rows, nexts, outs, since } = this.#trace;
    const first = nodesMade();
    const seeds = new Map<Tensor, Tensor>();
    return withRecording(false, () => {
      const seed = (t: Tensor): Tensor | undefined => {
        if (!t.requiresGrad || !isFloat(t)) return undefined;
        const made = standIn(t, t.shape, false);
        const other = seeds.get(t);
        seeds.set(t, other === undefined ? made : add(other, made));
        return made;
      };
      const [ofNexts, ofOuts] = [nexts.map(seed), outs.map(seed)];
      const found = gradientsOf(seeds, add, new Set([...closures, ...carries, ...rows]));
      const ofCarries = carries.map((c) => found.get(c));
      const ofRows = rows.map((r) => (r.requiresGrad ? found.get(r) : undefined));
      const sums = closures.flatMap((tensor) => {
        const flow = found.get(tensor);
        if (flow === undefined) return [];
        const sum = standIn(tensor, tensor.shape, false);
        return [{ tensor, flow, sum, next: add(sum, flow) }];
      });
      const roots = [...ofCarries, ...ofRows, ...sums.map((s) => s.next)].flatMap((t) =>
        t ? [t.lazydata] : [],
      );
      const saved = savedFor(roots, {
        since,
        first,
        checkpoint: this.#checkpoint,
        places: [...carries, ...rows],
      });
      return { ofNexts, ofOuts, closures: sums, ofCarries, ofRows, saved };
    });
  }

  /** Lets gradients flow from the results to what the scan was given, through one record for all of them. */
  #record(
    back: BackwardTrace,
    made: { readonly ends: readonly Tensor[]; readonly ys: readonly Tensor[]; readonly rows: readonly Row[] },
  ): void {
    const [example] = [...made.ends, ...made.ys] as [Tensor];
    const hub = make(LazyBuffer.constant(example.device, [], example.dtype, 0));
    hub.requiresGrad = true;
    const parents = [...this.#init, ...this.#xs, ...back.closures.map((c) => c.tensor)];
    hub.context = {
      parents,
      run: (_g, _hub, found) => {
        const incoming = { ends: made.ends.map((t) => found.get(t)), ys: made.ys.map((t) => found.get(t)) };
        return isRecording() ? this.#recordedFlows(back, incoming) : this.#flows(back, incoming, made.rows);
      },
    };
    const link = (t: Tensor, i: number, seeds: readonly (Tensor | undefined)[]): void => {
      if (seeds[i] === undefined) return;
      t.requiresGrad = true;
      t.context = { parents: [hub], run: () => [make(hub.lazydata)] };
    };
    made.ends.forEach((t, i) => void link(t, i, back.ofNexts));
    made.ys.forEach((t, i) => void link(t, i, back.ofOuts));
  }

  #flows(back: BackwardTrace, { ends, ys }: Incoming, saved: readonly Row[]): (Tensor | undefined)[] {
    const { since, depth, length, reverse, carries, rows } = this.#trace;
    const zeros = (t: Tensor, shape: readonly number[]): LazyBuffer =>
      LazyBuffer.constant(t.device, shape, t.dtype, 0);
    // the gradient of a carry passes from step to step, against the direction of the scan
    const passed = carries.flatMap((c, i): (Carry & { readonly at: number })[] => {
      const place = back.ofNexts[i];
      if (place === undefined) return [];
      const init = ends[i]?.lazydata ?? zeros(c, c.shape);
      const next = back.ofCarries[i]?.lazydata ?? zeros(c, c.shape);
      return [{ at: i, place: place.lazydata, init, next, kept: false }];
    });
    const incoming = back.ofOuts.flatMap((place, j): Row[] => {
      if (place === undefined) return [];
      return [{ place: place.lazydata, stack: ys[j]?.lazydata ?? zeros(place, [length, ...place.shape]) }];
    });
    const outs = back.ofRows.flatMap((t) => (t === undefined ? [] : [t.lazydata]));
    const read = [...incoming, ...saved, ...this.#rowsOf(rows, this.#xs), ...this.#draws];
    const afterwards = this.#totals(back, read, outs);
    const sums = back.closures.flatMap(({ tensor, sum, next }, i): Carry[] => {
      const init = zeros(tensor, tensor.shape);
      return afterwards.totals[i] ? [] : [{ place: sum.lazydata, init, next: next.lazydata, kept: false }];
    });
    const made = makeLoop({
      since,
      depth,
      length,
      reverse: !reverse,
      carries: [...passed, ...sums],
      rows: read,
      outs: [...outs, ...afterwards.leaves],
    });
    const ofInit = this.#init.map((t, i) => {
      const at = passed.findIndex((p) => p.at === i);
      return at < 0 || !t.requiresGrad ? undefined : make(made.carries[at] as LazyBuffer);
    });
    let next = 0;
    const ofXs = back.ofRows.map((t) =>
      t === undefined ? undefined : make(made.outs[next++] as LazyBuffer),
    );
    const stackOf = (leaf: LazyBuffer): LazyBuffer =>
      read.find(({ place }) => place.base === leaf)?.stack ??
      (made.outs[outs.length + afterwards.leaves.indexOf(leaf)] as LazyBuffer);
    let carried = passed.length;
    const ofClosures = afterwards.totals.map(
      (t) => t?.sum(stackOf) ?? (made.carries[carried++] as LazyBuffer),
    );
    return [...ofInit, ...ofXs, ...ofClosures.map((lb) => make(lb))];
  }
  /** The gradients of closures that are summed after the loop, and what is stacked for them, too. */
  #totals(back: BackwardTrace, read: readonly Row[], outs: readonly LazyBuffer[]): BodyTotals {
    const { since, length } = this.#trace;
    const given = new Set(read.map((r) => r.place.base));
    const stacked = new Set([...given, ...outs.filter((lb) => lb.isWhole).map((lb) => lb.base)]);
    const elements = (nodes: Iterable<LazyBuffer>): number =>
      [...nodes].reduce((n, lb) => n + smax(lb.size), 0);
    const leaves = new Set<LazyBuffer>();
    const totals = back.closures.map(({ tensor, flow }) => {
      const total = this.#checkpoint ? undefined : totalOf(flow.lazydata, { length, since, stacked });
      if (total === undefined) return undefined;
      const more = [...total.leaves].filter((l) => !stacked.has(l));
      // the loop would read and write the sum in every step; and stacks may double the memory, no more
      const isLess = elements(total.leaves) < 2 * smax(tensor.lazydata.size);
      if (!isLess || elements(more) > elements(stacked)) return undefined;
      for (const leaf of total.leaves) if (!given.has(leaf)) leaves.add(leaf);
      return total;
    });
    return { totals, leaves: [...leaves] };
  }

  /** The same as a scan that is recorded, for gradients of gradients: each step calls the body again. */
  #recordedFlows(back: BackwardTrace, { ends, ys }: Incoming): (Tensor | undefined)[] {
    const { step, length, reverse, carries, draws, outs } = this.#trace;
    if (draws.length > 0) {
      throw new ArgumentError(
        "backward: createGraph through a scan whose body draws random numbers is not possible; draw them before the " +
          "scan and pass them as rows of xs",
      );
    }
    const zeros = (t: Tensor, shape: readonly number[]): Tensor =>
      make(LazyBuffer.constant(t.device, shape, t.dtype, 0));
    const [, before] = scan(
      (c: readonly Tensor[], x: readonly Tensor[]) => [step(c, x).nexts, c],
      this.#init,
      this.#xs,
      { length, reverse },
    );
    const closures = back.closures.map((c) => c.tensor);
    const first = {
      ofCarries: carries.map((c, i) => (isFloat(c) ? (ends[i] ?? zeros(c, c.shape)) : undefined)),
      sums: closures.map((t) => zeros(t, t.shape)),
    };
    const ofOuts = outs.map((t, j) => (isFloat(t) ? (ys[j] ?? zeros(t, [length, ...t.shape])) : undefined));
    const [last, ofRows] = scan(
      ({ ofCarries, sums }: Backwards, at: RowsBack) => {
        const made = step(at.carries, at.rows);
        const seeds = new Map<Tensor, Tensor>();
        const seed = (t: Tensor, g: Tensor | undefined): void => {
          if (g === undefined || !t.requiresGrad) return;
          const other = seeds.get(t);
          seeds.set(t, other === undefined ? g : add(other, g));
        };
        made.nexts.forEach((t, i) => void seed(t, ofCarries[i]));
        made.outs.forEach((t, j) => void seed(t, at.ofOuts[j]));
        const found = gradientsOf(seeds, add, new Set([...closures, ...at.carries, ...at.rows]));
        const next = {
          ofCarries: at.carries.map((c) => (isFloat(c) ? (found.get(c) ?? zeros(c, c.shape)) : undefined)),
          sums: sums.map((s, k) => add(s, found.get(closures[k] as Tensor) ?? zeros(s, s.shape))),
        };
        return [next, at.rows.map((r) => (isFloat(r) ? (found.get(r) ?? zeros(r, r.shape)) : undefined))];
      },
      first as Backwards,
      { carries: before, rows: this.#xs, ofOuts } as RowsBack,
      { length, reverse: !reverse },
    );
    return [...last.ofCarries, ...ofRows, ...last.sums];
  }
}

/** What is summed after a loop: one entry for each closure. */
interface BodyTotals {
  readonly totals: readonly (Total | undefined)[];
  readonly leaves: readonly LazyBuffer[];
}
/** The gradients that flow into a scan. */
interface Incoming {
  readonly ends: readonly (Tensor | undefined)[];
  readonly ys: readonly (Tensor | undefined)[];
}
/** What a recorded backward scan carries, and its rows. */
type Backwards = { readonly ofCarries: readonly (Tensor | undefined)[]; readonly sums: readonly Tensor[] };
type RowsBack = {
  readonly carries: readonly Tensor[];
  readonly rows: readonly Tensor[];
  readonly ofOuts: readonly (Tensor | undefined)[];
};

/** The nodes that copy these host buffers to a device, below these nodes. */
function copiesOf(roots: readonly LazyBuffer[], buffers: ReadonlySet<Buffer>): [LazyBuffer, Buffer][] {
  const found: [LazyBuffer, Buffer][] = [];
  for (const b of nodesBelow(roots)) {
    const src = b.op === "COPY" ? b.srcs?.[0]?.base.realized : undefined;
    if (src !== undefined && buffers.has(src)) found.push([b, src]);
  }
  return found;
}
