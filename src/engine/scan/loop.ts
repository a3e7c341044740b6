// A loop as a node of the lazy graph. Its body is a template: a graph of its own, scheduled once, whose
// kernels run for each step. What differs from step to step is which row of a stacked buffer a kernel reads
// or writes, and that is a Variable of the kernel; so a loop of any length compiles the same kernels. A loop
// has several results. Each is a SCAN node; they share one Loop and are computed together.

import { ArgumentError, InternalError } from "../../errors.ts";
import { getOrMake, range, toposort } from "../../helpers.ts";
import { LazyBuffer } from "../../lazy/lazybuffer.ts";
import { Buffer } from "../../runtime/buffer.ts";
import { astNodes, type LazyOp, MemBuffer } from "../../schedule/lazyop.ts";
import { createSchedule, type ScheduleItem } from "../../schedule/schedule.ts";
import { ShapeTracker } from "../../shape/shapetracker.ts";
import { add, type Sint, smax, type Variable } from "../../shape/symbolic.ts";
import type { Interval, Shape } from "../../shape/view.ts";
import { LoopTemplate, placeholder, Sources } from "./template.ts";
import { loopVariable } from "./variable.ts";

/** A value that passes from each step to the next. */
export interface Carry {
  /** the placeholder in the traced body */
  readonly place: LazyBuffer;
  readonly init: LazyBuffer;
  /** the value after a step, in the traced body */
  readonly next: LazyBuffer;
  /** whether the value before each step is wanted afterwards */
  readonly kept: boolean;
}
/** One row of a stack for each step. */
export interface Row {
  readonly place: LazyBuffer;
  readonly stack: LazyBuffer;
}
export interface LoopSpec {
  readonly length: number;
  /** from the last row to the first */
  readonly reverse: boolean;
  /** how many loops this one is inside of */
  readonly depth: number;
  /** the variable that counts the steps, where the body was traced with it */
  readonly step?: Sint | undefined;
  /** nodes of the trace have ids from here on */
  readonly since: number;
  readonly carries: readonly Carry[];
  readonly rows: readonly Row[];
  /** values of the traced body that are stacked, a row for each step */
  readonly outs: readonly LazyBuffer[];
}
export interface LoopResults {
  /** the carries after the last step */
  readonly carries: readonly LazyBuffer[];
  /** the carries before each step, stacked, of those that are kept */
  readonly before: readonly (LazyBuffer | undefined)[];
  readonly outs: readonly LazyBuffer[];
}

/** What a buffer of the template is in a step: a source or a result, or one of the two sides of a carry. */
export type Place = { readonly row: ShapeTracker | undefined; readonly stack?: ShapeTracker } & (
  | { readonly kind: "source" | "result"; readonly index: number }
  | { readonly kind: "before" | "after"; readonly index: number }
);
/** A kernel of the body with its views of stacked buffers. */
interface BodyItem {
  readonly ast: readonly LazyOp[];
  readonly outputs: readonly Buffer[];
  readonly inputs: readonly Buffer[];
  readonly varVals: ReadonlyMap<Variable, number>;
}
/** The kernels of a loop: those that run once, before the steps, and those of a step. */
interface LoopKernels {
  readonly first: readonly BodyItem[];
  readonly body: readonly BodyItem[];
}

/** A result: the nodes of the template that are written to it. */
interface ResultFacts {
  readonly shape: Shape;
  readonly of: LazyBuffer;
}

export interface Body {
  readonly length: number;
  readonly reverse: boolean;
  readonly step: Sint;
  readonly places: ReadonlyMap<Buffer, Place>;
  /** copies of the first values of carries, and what is stored in a step */
  readonly inits: readonly LazyBuffer[];
  readonly stored: readonly LazyBuffer[];
  readonly results: readonly ResultFacts[];
  /** carries that are not kept: the result that has the last value; the other side is spare memory */
  readonly swapped: readonly number[];
  plan?: LoopKernels;
}

/** A loop that is part of the lazy graph; `results` are its nodes. */
export class ScanLoop {
  readonly #body: Body;
  results: readonly LazyBuffer[];
  #spare: readonly Buffer[];

  constructor(body: Body, srcs: readonly LazyBuffer[]) {
    this.#body = body;
    this.results = body.results.map(({ shape, of: { dtype, device } }) =>
      LazyBuffer.loadop("SCAN", shape, dtype, device, this as never, srcs),
    );
    this.#spare = body.swapped.map((r) => {
      const { device, buffer } = this.results[r] as LazyBuffer;
      return new Buffer(device, buffer.size, buffer.dtype);
    });
  }
  /** The same loop over other memory. */
  withSources(srcs: readonly LazyBuffer[]): ScanLoop {
    return new ScanLoop(this.#body, srcs);
  }
  /** Once the results are computed, one that is held must not keep the others. */
  release(): void {
    this.results = [];
    this.#spare = [];
  }
  /** What a step does, for who writes the loop down instead of running it. */
  get body(): Body {
    return this.#body;
  }

  /** All launches in order. The last one completes the results. */
  items(): ScheduleItem[] {
    const body = this.#body;
    body.plan ??= planOf(body);
    const { length, reverse, step } = body;
    const [node] = this.results;
    if (node === undefined) throw new InternalError("a loop that has run is scheduled again");
    const srcs = node.sources;
    const items: ScheduleItem[] = [];
    const addItem = ({ ast, outputs, inputs, varVals }: BodyItem, i: number): void => {
      const at = reverse ? length - 1 - i : i;
      const bound = typeof step === "number" ? varVals : new Map([...varVals, [step as Variable, at]]);
      const read = inputs.map((b) => this.#memory(b, i));
      items.push({
        ast,
        outputs: outputs.map((b) => this.#memory(b, i)),
        inputs: read,
        varVals: bound,
        lazies: [],
        reads: srcs.filter((s) => read.includes(s.buffer)),
        partOf: node,
      });
    };
    for (const item of body.plan.first) addItem(item, 0);
    for (const i of range(length)) for (const item of body.plan.body) addItem(item, i);
    const last = items.pop() as ScheduleItem;
    return [...items, { ...last, lazies: this.results }];
  }
  /** The memory that a buffer of the template is in step `i`. */
  #memory(b: Buffer, i: number): Buffer {
    const place = this.#body.places.get(b);
    if (place === undefined) return b;
    const { kind, index } = place;
    if (kind === "result") return (this.results[index] as LazyBuffer).buffer;
    if (kind === "source") return ((this.results[0] as LazyBuffer).sources[index] as LazyBuffer).buffer;
    // the last step writes to the result
    const isResult = (this.#body.length - i - (kind === "after" ? 1 : 0)) % 2 === 0;
    const result = this.results[this.#body.swapped[index] as number] as LazyBuffer;
    return isResult ? result.buffer : (this.#spare[index] as Buffer);
  }
}

// ---- making a loop ----

/** Row `at` of a stack. */
function rowOf(stack: ShapeTracker, at: Sint, shape: Shape): ShapeTracker {
  const cut: Interval[] = stack.shape.map((d, i) => (i === 0 ? [at, add(at, 1)] : [0, d]));
  return stack.shrink(cut).reshape(shape);
}

/** Stacks of more elements are not indexed beyond their end, not even in theory. */
const MAX_ROUNDED = 2 ** 28;
/** More kernels of one body with rows of different stacks are not remembered. */
const MAX_REWRITTEN = 64;

/** Builds a loop, and returns its results as they are seen. */
export function makeLoop(spec: LoopSpec): LoopResults {
  return new LoopBuilder(spec).build();
}

/** What a node of the template is stored as. */
type StoredAs = { readonly carry: number } | { readonly result: number };

class LoopBuilder {
  readonly #spec: LoopSpec;
  readonly #step: Sint;
  readonly #sources = new Sources();
  readonly #places = new Map<Buffer, Place>();
  readonly #owners = new Map<LazyBuffer, StoredAs>();
  readonly #results: ResultFacts[] = [];
  readonly #stored: LazyBuffer[] = [];

  constructor(spec: LoopSpec) {
    this.#spec = spec;
    const row = Math.max(...[...spec.outs, ...spec.carries.map((c) => c.next)].map((x) => smax(x.size)));
    const largest = Math.max(row * (spec.length + 1), ...spec.rows.map(({ stack }) => smax(stack.base.size)));
    // a loop around this one sees its rows, which then must end where the stack does
    this.#step = spec.step ?? loopVariable(spec.depth, spec.length, spec.depth > 0 || largest > MAX_ROUNDED);
  }

  build(): LoopResults {
    const { carries, rows, length, reverse } = this.#spec;
    const standIns = new Map<LazyBuffer, LazyBuffer>();
    const ins = carries.map(({ place }) => {
      const made = placeholder(place.device, place.st, place.dtype);
      standIns.set(place.base, made);
      return made;
    });
    for (const row of rows) standIns.set(row.place.base, this.#row(row));
    const template = new LoopTemplate(this.#spec.since, this.#sources, standIns);
    const nexts = carries.map((c, i) => this.#own(template.copy(c.next), { carry: i }));
    const kept = carries.map((c) => c.kept);
    const outs = this.#spec.outs.map((out) => {
      const node = template.copy(out);
      const owner = node.isWhole ? this.#owners.get(node.base) : undefined;
      if (owner === undefined) return { node: this.#own(node, { result: -1 }), isNew: true };
      if ("carry" in owner) kept[owner.carry] = true;
      return { node, isNew: false };
    });
    // a result for each stack, and for each carry
    const stacks = outs.map(({ node, isNew }) => {
      if (!isNew) return this.#owners.get(node.base) as StoredAs;
      const result = this.#addResult([length, ...node.shape], node);
      this.#bind(node, {
        kind: "result",
        index: result,
        row: this.#stackRow(node.shape, length, this.#step),
      });
      this.#owners.set(node.base, { result });
      return { result };
    });
    const inits = carries.map(({ init }) => this.#sources.seen(init).duplicate());
    const swapped: number[] = [];
    const carried = carries.map((_, i) => {
      const parts = {
        before: ins[i] as LazyBuffer,
        after: nexts[i] as LazyBuffer,
        init: inits[i] as LazyBuffer,
      };
      return kept[i] ? this.#keep(parts) : this.#swap(parts, swapped);
    });
    const loop = new ScanLoop(
      {
        length,
        reverse,
        step: this.#step,
        places: this.#places,
        inits,
        stored: this.#stored,
        results: this.#results,
        swapped,
      },
      this.#sources.nodes,
    );
    this.#sources.memory.forEach((b, index) => {
      if (!this.#places.has(b)) this.#places.set(b, { kind: "source", index, row: undefined });
    });
    return this.#resultsOf(loop, carried, kept, stacks);
  }

  /** The results as they are seen: the last values, the rows before each step, the stacks. */
  #resultsOf(
    loop: ScanLoop,
    carried: readonly number[],
    kept: readonly boolean[],
    stacks: readonly StoredAs[],
  ): LoopResults {
    const { length, reverse, outs } = this.#spec;
    const node = (r: number): LazyBuffer => loop.results[r] as LazyBuffer;
    const part = (r: number, from: number, n: number): LazyBuffer =>
      node(r).shrink(node(r).shape.map((d, k) => (k === 0 ? [from, from + n] : [0, d])));
    return {
      carries: carried.map((r, i) => {
        if (!kept[i]) return node(r);
        return part(r, reverse ? 0 : length, 1).reshape(node(r).shape.slice(1));
      }),
      before: carried.map((r, i) => (kept[i] ? part(r, reverse ? 1 : 0, length) : undefined)),
      outs: stacks.map((owner, j) => {
        const after = (i: number): LazyBuffer => part(carried[i] as number, reverse ? 0 : 1, length);
        const all = "result" in owner ? node(owner.result) : after(owner.carry);
        return all.reshape([length, ...(outs[j] as LazyBuffer).shape]);
      }),
    };
  }

  /** What stands for the row of a stack in the template. */
  #row({ place, stack }: Row): LazyBuffer {
    if (stack.isUnrealizedConst && stack.st.views.every((v) => v.mask === undefined))
      return LazyBuffer.constant(stack.device, place.shape, stack.dtype, stack.base.arg as number);
    const made = placeholder(place.device, place.st, place.dtype);
    // rows of a padded constant differ, so that it is stored as any other stack
    const { base, st } = stack.isUnrealizedConst ? stack.duplicate() : stack;
    const index = this.#sources.indexOf(base);
    this.#bind(made, { kind: "source", index, row: rowOf(st, this.#step, place.shape), stack: st });
    return made;
  }

  /** A node of the template that is stored in every step: this one, or a copy where it has no memory. */
  #own(node: LazyBuffer, owner: StoredAs): LazyBuffer {
    const isOwn = node.isWhole && node.base.realized === undefined && !this.#owners.has(node.base);
    const stored = isOwn && node.base.op !== "CONST" && node.base.op !== "ARANGE" ? node : node.duplicate();
    this.#owners.set(stored.base, owner);
    this.#stored.push(stored.base);
    return stored;
  }
  #bind({ base: { buffer } }: LazyBuffer, place: Place): void {
    this.#places.set(buffer, place);
  }
  #addResult(shape: Shape, of: LazyBuffer): number {
    return this.#results.push({ shape, of }) - 1;
  }
  #stackRow(shape: Shape, length: number, at: Sint): ShapeTracker {
    return rowOf(ShapeTracker.fromShape([length, ...shape]), at, shape);
  }

  /** A carry of which all values are kept, in one more row than there are steps. */
  #keep({ before, after, init }: Sides): number {
    const { length, reverse } = this.#spec;
    const { shape } = before;
    const index = this.#addResult([length + 1, ...shape], before);
    const row = (at: Sint): Place => ({ kind: "result", index, row: this.#stackRow(shape, length + 1, at) });
    const next = add(this.#step, 1);
    this.#bind(before, row(reverse ? next : this.#step));
    this.#bind(after, row(reverse ? this.#step : next));
    this.#bind(init, row(reverse ? length : 0));
    return index;
  }
  /** A carry of which only the last value counts: steps read one buffer and write another, in turns. */
  #swap({ before, after, init }: Sides, swapped: number[]): number {
    const result = this.#addResult(before.shape, before);
    const index = swapped.push(result) - 1;
    this.#bind(before, { kind: "before", index, row: undefined });
    this.#bind(after, { kind: "after", index, row: undefined });
    this.#bind(init, { kind: "before", index, row: undefined });
    return result;
  }
}
interface Sides {
  readonly before: LazyBuffer;
  readonly after: LazyBuffer;
  readonly init: LazyBuffer;
}

// ---- the kernels of a loop ----

function planOf({ inits, stored, places, step }: Body): LoopKernels {
  const first = createSchedule(inits).map((item) => inRows(item, places));
  const body: BodyItem[] = [];
  // what is the same in every step is computed once
  const same = new Set<Buffer>();
  const isSame = (b: Buffer): boolean => {
    const place = places.get(b);
    return place === undefined ? same.has(b) : place.kind === "source" && place.row === undefined;
  };
  for (const item of createSchedule(stored)) {
    if (item.ast[0]?.op === "EMPTY") continue;
    if (item.ast[0]?.op !== "STORE") {
      throw new ArgumentError(
        `scan: the body does a ${item.ast[0]?.op}, which is not a kernel, so that the steps cannot repeat it; ` +
          "do it before the scan or after it",
      );
    }
    const once =
      item.varVals.size === 0 &&
      item.inputs.every(isSame) &&
      item.outputs.every((b) => !places.has(b)) &&
      !counts(item.ast, step);
    if (once) for (const b of item.outputs) same.add(b);
    (once ? first : body).push(inRows(item, places));
  }
  return { first, body };
}

/** Whether the kernel has the number of the step in a view. */
const counts = (ast: readonly LazyOp[], step: Sint): boolean =>
  typeof step !== "number" &&
  astNodes(ast).some((u) => {
    const st = u.op === "VIEW" || u.op === "ARANGE" ? u.arg : u.op === "LOAD" ? u.arg.st : undefined;
    return st?.vars().has(step as Variable);
  });

/**
 * Kernels with rows, by the kernel without them and the rows. A body of the same structure has the kernels of
 * the first one (schedule/reuse.ts), so that these have their compiled programs again.
 */
const rewritten = new WeakMap<readonly LazyOp[], Map<string, readonly LazyOp[]>>();

/** The kernel with loads and stores at rows of stacked buffers. */
function inRows(item: ScheduleItem, places: ReadonlyMap<Buffer, Place>): BodyItem {
  const { outputs, inputs, varVals } = item;
  const rows = [...outputs, ...inputs].map((b) => places.get(b)?.row);
  const known = getOrMake(rewritten, item.ast, () => new Map<string, readonly LazyOp[]>());
  if (known.size >= MAX_REWRITTEN) known.clear();
  const ast = getOrMake(known, rows.map((r) => r?.key ?? "").join("|"), () => {
    const done = new Map<LazyOp, LazyOp>();
    for (const u of toposort<LazyOp>(item.ast, (x) => x.srcs)) done.set(u, moved(u, done, rows));
    return item.ast.map((u) => done.get(u) as LazyOp);
  });
  return { ast, outputs, inputs, varVals };
}
function moved(
  u: LazyOp,
  done: ReadonlyMap<LazyOp, LazyOp>,
  rows: readonly (ShapeTracker | undefined)[],
): LazyOp {
  const srcs = u.srcs.map((s) => done.get(s) as LazyOp);
  const changed = srcs.some((s, i) => s !== u.srcs[i]);
  if (u.op === "LOAD" || u.op === "STORE") {
    const row = rows[u.arg.idx];
    if (row !== undefined) {
      const st = row.add(u.arg.st).simplify();
      return { ...u, srcs, arg: new MemBuffer(u.arg.idx, u.arg.dtype, st) } as LazyOp;
    }
  }
  return changed ? ({ ...u, srcs } as LazyOp) : u;
}
