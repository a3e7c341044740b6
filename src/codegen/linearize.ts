// The graph becomes a list: every node is placed in the outermost loop it can stand in, RANGE nodes become LOOPs (or
// SPECIALs where the target runs a grid), a REDUCE becomes an accumulator, its loops and a PHI, a STAGE the loops that fill
// an array. Comes after everything that changes the graph; renderers read the result from top to bottom.

import { dtypes, scalarOf } from "../dtype.ts";
import { InternalError } from "../errors.ts";
import { getOrMake, toposort } from "../helpers.ts";
import { REDUCE } from "../ops.ts";
import { type Sint, smax } from "../shape/symbolic.ts";
import type { Axis, Lowered } from "./lower.ts";
import type { OptOp } from "./opts.ts";
import { changedSrcs } from "./rewrite.ts";
import type { Target } from "./target.ts";
import { makeUOp, type UOp, UOpGraph, valueType } from "./uops.ts";

export interface Linear {
  readonly uops: UOpGraph;
  /** work groups and work items of a grid; empty where the kernel is all loops */
  readonly globalSize: readonly Sint[];
  readonly localSize: readonly number[];
}

export function linearize(lowered: Lowered, opts: readonly OptOp[], target: Target): Linear {
  return new Linearizer(lowered, opts, target).run();
}

/** Ids of axes. Most nodes depend on what one of their sources depends on, and share its list. */
type Axes = readonly number[];
const NONE: Axes = [];
const covers = (a: Axes, b: Axes): boolean => b.every((x) => a.includes(x));
function union(a: Axes, b: Axes): Axes {
  if (a === b || b.length === 0) return a;
  if (a.length === 0 || covers(b, a)) return b;
  return covers(a, b) ? a : [...new Set([...a, ...b])];
}
/** What runs in loops of its own. */
type Looping = UOp<"REDUCE" | "STAGE">;
const isReduce = (u: Looping): u is UOp<"REDUCE"> => u.op === "REDUCE";
const rangesOf = (u: Looping): readonly UOp[] =>
  u.srcs.slice(1).filter((s) => s.op === "RANGE" || isReduce(u));
const keyOf = (ranges: readonly UOp[]): string => ranges.map((r) => r.arg).join();

class Linearizer {
  readonly #lowered: Lowered;
  readonly #target: Target;
  /** the axis whose loop is the grid of a target that has none of its own */
  readonly #thread: number | undefined;
  readonly #list: UOpGraph;
  /** the axes a node depends on */
  readonly #free = new Map<UOp, Axes>();
  readonly #ranges = new Map<number, UOp>();
  /** by the ranges they run over */
  readonly #looping = new Map<string, Looping[]>();
  /** graph node -> list node; what was placed inside a loop is forgotten when the loop closes */
  readonly #placed = new Map<UOp, UOp>();
  readonly #scopes: UOp[][] = [[]];
  readonly #open = new Set<number>();
  readonly #global: Sint[] = [];
  readonly #local: number[] = [];

  constructor(lowered: Lowered, opts: readonly OptOp[], target: Target) {
    this.#lowered = lowered;
    this.#thread = opts.findLast((o) => o.op === "THREAD")?.axis;
    this.#target = target;
    this.#list = new UOpGraph(lowered.arena);
    for (const u of toposort([lowered.sink], (x) => x.srcs)) {
      let free = NONE;
      for (let i = 0; i < u.srcs.length; i++) free = union(free, this.#free.get(u.srcs[i]!) as Axes);
      if (u.op === "RANGE") {
        free = union(free, [u.arg]);
        this.#ranges.set(u.arg, u);
      } else if (u.op === "REDUCE" || u.op === "STAGE") {
        const ranges = rangesOf(u);
        free = free.filter((axis) => !ranges.some((r) => r.arg === axis));
        getOrMake(this.#looping, keyOf(ranges), () => []).push(u);
      }
      this.#free.set(u, free);
    }
  }

  run(): Linear {
    const nodes = [...this.#free.keys()];
    const globals = nodes.filter((u) => u.op === "DEFINE_GLOBAL").sort((a, b) => a.arg[0] - b.arg[0]);
    const vars = nodes
      .filter((u) => u.op === "DEFINE_VAR")
      .sort((a, b) => (a.arg.name < b.arg.name ? -1 : 1));
    const arrays = nodes.filter((u) => u.op === "DEFINE_LOCAL");
    for (const u of [...globals, ...vars, ...arrays]) this.#put(u, u);
    const stores = this.#lowered.sink.srcs;
    const { grid, loops } = this.#arrange();
    if (grid.length > 0 && !this.#target.hasLocal) this.#hoist(stores);
    this.#openGrid(grid);
    const opened = loops.map((axis) => {
      this.#hoist(stores);
      return this.#openLoop(this.#rangeOf(axis));
    });
    // all that is read, then all that is written: one output may be the old value of another
    if (stores.length > 1) for (const s of stores) this.#place(s.srcs[2] as UOp);
    for (const s of stores) this.#place(s);
    for (const loop of opened.reverse()) this.#close(loop);
    return { uops: this.#list, globalSize: this.#global, localSize: this.#local };
  }

  /**
   * Axes that some reduce does not depend on go inside, so that the reduce runs once and not for each of their
   * elements; there they are loops even where the target has a grid.
   */
  #arrange(): { grid: readonly Axis[]; loops: readonly Axis[] } {
    const { order } = this.#lowered;
    const looping = [...this.#looping.values()].flat();
    const everywhere = (a: Axis): boolean => looping.every((r) => this.#free.get(r)?.includes(a.id));
    const outer = order.filter(everywhere);
    const inner = order.filter((a) => !everywhere(a));
    if (this.#target.hasLocal) return { grid: outer, loops: inner };
    const loops = [...outer, ...inner];
    const threads = loops.filter((a) => a.of === this.#thread && a.kind === "output");
    return { grid: threads, loops: loops.filter((a) => !threads.includes(a)) };
  }

  #rangeOf(axis: Axis): UOp {
    const range = this.#ranges.get(axis.id);
    if (range === undefined) throw new InternalError(`axis ${axis.id} is used nowhere`);
    return range;
  }

  /** All loops that the node depends on are open. */
  #isReady(u: UOp): boolean {
    const free = this.#free.get(u) as Axes;
    for (let i = 0; i < free.length; i++) if (!this.#open.has(free[i]!)) return false;
    return true;
  }

  // ---- placing ----

  #put(graph: UOp, made: UOp): UOp {
    this.#list.push(made);
    this.#placed.set(graph, made);
    this.#scopes.at(-1)?.push(graph);
    return made;
  }

  /** Places a node and what it needs, here; the loops it depends on are open. */
  #place(u: UOp): UOp {
    const known = this.#placed.get(u);
    if (known !== undefined) return known;
    if (u.op === "RANGE") throw new InternalError(`axis ${u.arg} is used outside its loop`);
    if (u.op === "REDUCE" || u.op === "STAGE") return this.#placeLooping(u);
    // a STORE reads best value first: the accumulator and its loop, then the address
    if (u.op === "STORE") this.#place(u.srcs[2] as UOp);
    const srcs = changedSrcs(u, (s) => this.#place(s));
    // nothing is left to fold, and the loops make each node the only one of its kind
    return this.#put(u, srcs === undefined ? u : (makeUOp(u.op, u.dtype, srcs, u.arg) as UOp));
  }

  /** Places, before a loop is opened, all that does not depend on it. */
  #hoist(roots: readonly UOp[]): void {
    const seen = new Set<UOp>();
    const visit = (u: UOp): void => {
      if (seen.has(u) || this.#placed.has(u)) return;
      seen.add(u);
      if (u.op !== "STORE" && this.#isReady(u)) this.#place(u);
      else for (let i = 0; i < u.srcs.length; i++) visit(u.srcs[i]!);
    };
    for (const r of roots) visit(r);
  }

  /** A reduce, and with it what runs over the same ranges: one set of loops, an accumulator or an array each. */
  #placeLooping(first: Looping): UOp {
    const ranges = rangesOf(first);
    const ready = this.#together(first);
    const reduces = ready.filter(isReduce);
    const stages = ready.filter((r) => !isReduce(r));
    const accs = reduces.map((r) => {
      const acc = this.#lowered.arena.make(
        "DEFINE_ACC",
        r.dtype,
        [],
        REDUCE[r.arg].identity(scalarOf(valueType(r))),
      );
      this.#list.push(acc);
      return acc;
    });
    const bodies = reduces.map((r) => r.srcs[0] as UOp);
    const stores = stages.flatMap((r) => r.srcs.filter((s) => s.op === "STORE"));
    const loops = ranges.map((r) => {
      this.#hoist([...bodies, ...stores, ...ranges]);
      return this.#openLoop(r);
    });
    // before the sums: a product that is stored is not fused into one of them
    for (const s of stores) this.#place(s);
    const phis = reduces.map((r, i) => {
      const acc = accs[i] as UOp;
      const next = this.#accumulate(r, bodies[i] as UOp, acc);
      return this.#list.add("PHI", r.dtype, [acc, next, ...loops]);
    });
    for (const loop of [...loops].reverse()) this.#close(loop);
    ready.forEach((r) => {
      const made = isReduce(r) ? phis[reduces.indexOf(r)] : this.#placed.get(r.srcs[0] as UOp);
      this.#placed.set(r, made as UOp);
      this.#scopes.at(-1)?.push(r);
    });
    return this.#placed.get(first) as UOp;
  }
  /** What can run in the loops of `first`; not what waits for an array that these loops fill, or fills one that they read. */
  #together(first: Looping): Looping[] {
    const all = this.#looping.get(keyOf(rangesOf(first))) ?? [];
    const ready = all.filter((r) => r === first || (!this.#placed.has(r) && this.#isReady(r)));
    if (ready.every(isReduce)) return ready;
    const needs = (a: UOp, b: UOp): boolean => toposort([a], (x) => x.srcs).includes(b);
    const chosen = [first];
    for (const r of ready) if (!chosen.some((c) => c === r || needs(c, r) || needs(r, c))) chosen.push(r);
    return chosen;
  }

  /** The accumulator after one turn. Where the target can, each product of a sum is added to it in one step. */
  #accumulate(r: UOp<"REDUCE">, body: UOp, acc: UOp): UOp {
    const { arena } = this.#lowered;
    const push = (u: UOp): UOp => {
      this.#list.push(u);
      return u;
    };
    const fuses = r.arg === "SUM" && this.#target.simd?.fuses(valueType(r)) === true;
    const terms = fuses ? this.#terms(body) : [body];
    return terms.reduce((sum, t) => {
      if (fuses && t.op === "ALU" && t.arg === "MUL" && !this.#placed.has(t)) {
        return push(arena.alu("MULACC", this.#place(t.srcs[0] as UOp), this.#place(t.srcs[1] as UOp), sum));
      }
      return push(arena.alu(REDUCE[r.arg].combine, this.#place(t), sum));
    }, acc);
  }
  /** What a sum of lanes adds up; a part of it that is needed elsewhere too stays whole. */
  #terms(u: UOp): UOp[] {
    if (u.op !== "ALU" || u.arg !== "ADD" || this.#placed.has(u)) return [u];
    return u.srcs.flatMap((s) => this.#terms(s));
  }

  // ---- loops ----

  #openLoop(range: UOp): UOp {
    const ends = range.srcs.map((s) => this.#place(s));
    const loop = this.#list.add("LOOP", dtypes.int32, ends);
    this.#scopes.push([]);
    this.#placed.set(range, loop);
    this.#scopes.at(-1)?.push(range);
    this.#open.add(range.arg as number);
    return loop;
  }
  #close(loop: UOp): void {
    this.#list.add("ENDLOOP", undefined, [loop]);
    for (const u of this.#scopes.pop() ?? []) {
      if (u.op === "RANGE") this.#open.delete(u.arg);
      this.#placed.delete(u);
    }
  }

  /** Output axes as the dimensions of a grid, innermost first; more than three share one and are taken apart. */
  #openGrid(axes: readonly Axis[]): void {
    const kinds = { output: ["gidx", this.#global], local: ["lidx", this.#local] } as const;
    for (const [kind, [name, sizes]] of Object.entries(kinds)) {
      const mine = axes.filter((a) => a.kind === kind);
      const kept = mine.length <= 3 ? mine : mine.slice(-2);
      const packed = mine.length <= 3 ? [] : mine.slice(0, -2);
      kept.reverse().forEach((a, dim) => {
        (sizes as Sint[]).push(a.size);
        this.#bind(a, this.#list.add("SPECIAL", dtypes.int32, [], [dim, `${name}${dim}`, smax(a.size)]));
      });
      if (packed.length > 0) this.#unpack(packed, name, sizes as Sint[]);
    }
  }
  #unpack(axes: readonly Axis[], name: string, sizes: Sint[]): void {
    const { arena } = this.#lowered;
    const total = axes.reduce((n, a) => n * smax(a.size), 1);
    sizes.push(total);
    let rest = this.#list.add("SPECIAL", dtypes.int32, [], [2, `${name}2`, total]);
    for (const a of [...axes].reverse()) {
      const size = arena.constant(dtypes.int32, smax(a.size));
      this.#list.push(size);
      const index = arena.alu("MOD", rest, size);
      this.#list.push(index);
      this.#bind(a, index);
      rest = arena.alu("IDIV", rest, size);
      this.#list.push(rest);
    }
  }
  #bind(axis: Axis, index: UOp): void {
    this.#placed.set(this.#rangeOf(axis), index);
    this.#open.add(axis.id);
  }
}
