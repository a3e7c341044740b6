// A list of OptOps that is good without a search: which axes become vectors, how large the tile of results is that stays
// in registers, what is unrolled, what threads share. In goes the kernel lowered without any, out comes the list. All
// it looks at is how far each load and store moves along each axis. The numbers are cycles of a plain 128-bit core.

import { getOrMake, prod, toposort } from "../helpers.ts";
import type { AluOp } from "../ops.ts";
import type { LazyOp } from "../schedule/lazyop.ts";
import { smax } from "../shape/symbolic.ts";
import { MAX_RUN } from "./blocks.ts";
import { isNext, strideOf } from "./expand.ts";
import type { Axis, Lowered } from "./lower.ts";
import type { OptOp } from "./opts.ts";
import { costOf, opCost, STAGE_COST, type Stage } from "./stage.ts";
import type { Target } from "./target.ts";
import { type UOp, valueType } from "./uops.ts";

/** How much more may be computed so that vectors fit: an axis of 6 takes 8 lanes. */
const MAX_WASTE = 1.4;
/** Vector operations in the innermost loop: more would only be slower to compile. */
const MAX_BODY = 72;
/** A body of so many vector operations hides what its loop costs. */
const BUSY_BODY = 16;
/** Kernels with fewer turns than this stay as they are: nothing is gained, and they are the ones people read. */
const MIN_TURNS = 64;
/** What was read is still near if it was not more than this since. */
const CACHE = 1 << 19;
/** An array that a row is kept in may be as large: it stays in the nearest cache, or next to it. */
const STAGE_BYTES = 1 << 16;
/** A loop with fewer turns than this does not pay for packing before it. */
const PACK_TURNS = 16;
/** Operands that are not larger stay in the nearest cache wherever they lie. */
const NEAR_BYTES = 1 << 14;
/** Cycles that a turn waits for an operand that jumps as far, in bytes, and how far that is. */
const FAR = { bytes: 1024, cycles: 2 } as const;
/** How a matrix is read row by row: lanes at once, rows at once, and parts of the columns for threads to share. */
const STREAM = { lanes: [16, 8], rows: [8, 6, 4], parts: [4, 6, 5, 8, 3, 10, 12] } as const;
/** A loop that threads share has at least so many turns for each part to be of the same size. */
const SHARED_TURNS = 8;
/** Less work than this is done before a second thread would have woken up. */
const THREAD_WORK = 1 << 16;

/** Code that runs in the same loops: the body of a reduce, or what leads to the stores. */
interface Scope {
  readonly reduce: UOp | undefined;
  /** the loops it runs in, by the number of their axis */
  readonly axes: ReadonlySet<number>;
  /** LOADs and STOREs */
  readonly memory: readonly UOp[];
  readonly alus: readonly UOp[];
  /** the operations that these are */
  readonly weight: number;
  readonly turns: number;
}

/** Operands that are copied before the loop over an output axis (operands.ts). */
interface Packing {
  /** the axis of that loop */
  readonly axis: number;
  /** all that the sum reads again in every turn of it */
  readonly loads: ReadonlySet<UOp>;
}
/** Lanes of each axis, of the wide one vectors. */
type Tile = ReadonlyMap<number, number>;

/** Lanes of an axis worth trying. */
const AMOUNTS = [1, 2, 3, 4, 5, 6, 7, 8] as const;
const sizeOf = (tile: Tile): number => prod([...tile.values()]);

/** How an access meets an axis: it stays where it is, goes to the neighbour, or jumps. */
type Step = "stays" | "next" | "jumps";

/** `inPlace`: the kernel writes what it reads, so it must not compute anything twice. */
export function chooseOpts(lowered: Lowered, target: Target, inPlace: boolean): OptOp[] {
  return new Heuristic(lowered, target, inPlace).choose();
}

class Heuristic {
  readonly #axes: readonly Axis[];
  readonly #ranges = new Map<number, UOp>();
  readonly #order: readonly Axis[];
  readonly #target: Target;
  readonly #inPlace: boolean;
  readonly #free = new Map<UOp, ReadonlySet<number>>();
  readonly #scopes: readonly Scope[];
  readonly #stages: readonly Stage[];
  readonly #steps = new Map<UOp, Map<number, Step>>();
  /** bytes that are left for arrays */
  #room: number;
  /** what was chosen to be packed before, if anything */
  #packed: Packing | undefined;

  constructor({ sink, axes, order, stages }: Lowered, target: Target, inPlace: boolean) {
    this.#inPlace = inPlace;
    this.#axes = axes;
    this.#stages = stages;
    this.#order = order;
    this.#target = target;
    this.#room = target.sharedMax;
    const nodes = toposort([sink], (x) => x.srcs);
    for (const u of nodes) this.#free.set(u, this.#freeOf(u));
    const reduces = nodes.filter((u) => u.op === "REDUCE");
    this.#scopes = [
      this.#scope(undefined, sink.srcs),
      ...reduces.map((r) => this.#scope(r, [r.srcs[0] as UOp])),
    ];
  }

  choose(): OptOp[] {
    const { simd } = this.#target;
    const opts: OptOp[] = [];
    const hot = this.#scopes.reduce((a, b) => (b.turns > a.turns ? b : a));
    if (hot.turns < MIN_TURNS) return opts;
    const streamed = simd === undefined ? undefined : this.#streamed(hot);
    if (streamed !== undefined) opts.push(...streamed);
    else if (simd !== undefined) {
      for (const axis of this.#wideAxes(hot)) opts.push(...this.#tile(axis, hot));
      opts.push(...this.#unrolled(hot, opts));
    }
    return [...opts, ...this.#staged(opts), ...this.#threads(opts, hot)];
  }

  // ---- the kernel seen from its loops ----

  #freeOf(u: UOp): ReadonlySet<number> {
    if (u.op === "RANGE") {
      this.#ranges.set(u.arg, u);
      return new Set([u.arg]);
    }
    const free = new Set<number>();
    for (const s of u.srcs) for (const id of this.#free.get(s) as ReadonlySet<number>) free.add(id);
    if (u.op === "REDUCE") for (const r of u.srcs.slice(1)) free.delete(r.arg as number);
    return free;
  }
  #scope(reduce: UOp | undefined, roots: readonly UOp[]): Scope {
    const inner = toposort(roots, (u) => (u.op === "REDUCE" ? [] : u.srcs));
    const alus = inner.filter((u) => u.op === "ALU" && valueType(u.srcs.at(-1) as UOp).isFloat);
    const axes = new Set(roots.flatMap((r) => [...(this.#free.get(r) as ReadonlySet<number>)]));
    for (const r of reduce?.srcs.slice(1) ?? []) axes.add(r.arg as number);
    return {
      reduce,
      axes,
      memory: inner.filter((u) => u.op === "LOAD" || u.op === "STORE"),
      alus,
      weight: this.#weight(reduce, roots),
      turns: [...axes].reduce((n, id) => n * this.#size(id), 1),
    };
  }
  /** Operations of a turn. What is kept by an earlier loop counts there. */
  #weight(reduce: UOp | undefined, roots: readonly UOp[]): number {
    const kept = new Set(this.#stages.flatMap((s) => s.later.map((p) => p.done.get(s.value))));
    const isHere = (u: UOp): boolean => u.op !== "REDUCE" && !kept.has(u);
    const alus = toposort(roots, (u) => (isHere(u) ? u.srcs : [])).filter(
      (u) => u.op === "ALU" && isHere(u) && valueType(u.srcs.at(-1) as UOp).isFloat,
    );
    // vectors have no instruction for a maximum that keeps NaN
    const combine = reduce?.arg === "REDUCE_MAX" && valueType(reduce).isFloat ? 2 : 0;
    return alus.reduce((n, u) => n + opCost(u.arg as AluOp), combine);
  }
  #size(id: number): number {
    return smax((this.#axes[id] as Axis).size);
  }
  #divides(id: number, n: number): boolean {
    const { size } = this.#axes[id] as Axis;
    return typeof size === "number" && size % n === 0;
  }
  /** Whether `n` lanes of the axis at once make sense, the last of them computed twice where `n` does not divide it. */
  #fits(id: number, n: number): boolean {
    const { size, kind } = this.#axes[id] as Axis;
    if (typeof size !== "number" || this.#divides(id, n)) return this.#divides(id, n);
    return kind === "output" && !this.#inPlace && n <= size && this.#waste(id, n) <= MAX_WASTE;
  }
  /** The widest vectors that fit the axis. */
  #widthOf(id: number): number {
    return this.#target.simd?.widths.find((w) => this.#fits(id, w)) ?? 1;
  }
  #waste(id: number, n: number): number {
    return (Math.ceil(this.#size(id) / n) * n) / this.#size(id);
  }
  #step(u: UOp, id: number): Step {
    const known = getOrMake(this.#steps, u, () => new Map<number, Step>());
    return getOrMake(known, id, () => {
      if (!this.#free.get(u)?.has(id)) return "stays";
      return isNext(u, this.#ranges.get(id) as UOp, this.#target.simd) ? "next" : "jumps";
    });
  }

  // ---- vectors ----

  /** Axes along which vectors save most, no two of them in one scope. */
  #wideAxes(hot: Scope): number[] {
    const gains = [...this.#ranges.keys()]
      .map((id) => {
        const width = this.#widthOf(id);
        return { id, gain: ((width - 1) * this.#gain(id, hot)) / this.#waste(id, width) };
      })
      .filter(({ gain }) => gain > 0);
    const chosen: number[] = [];
    for (const { id } of gains.sort((a, b) => b.gain - a.gain)) {
      const meets = this.#scopes.some((s) => s.axes.has(id) && chosen.some((c) => s.axes.has(c)));
      if (!meets) chosen.push(id);
    }
    return chosen;
  }
  /** What vectors save of a turn: a load and an operation do for all lanes, a jump gains nothing and is put together. */
  #gain(id: number, hot: Scope): number {
    const packing = this.#packing(id, hot);
    const saved = { stays: 3, next: 3, jumps: -3 } as const;
    let gain = 0;
    for (const s of this.#scopes) {
      if (!s.axes.has(id)) continue;
      const memory = s.memory.reduce((n, u) => n + saved[this.#stepIn(u, id, packing)], 0);
      const alus = s.alus.filter((u) => this.#free.get(u)?.has(id)).length;
      gain += s.turns * (memory + alus);
    }
    return gain;
  }

  /** How many vectors along the axis, and beside them how many lanes of other output axes, are computed at once. */
  #tile(wide: number, hot: Scope): OptOp[] {
    const width = this.#widthOf(wide);
    const isOutput = this.#axes[wide]?.kind === "output";
    const op = isOutput ? "UPCAST" : "GROUP";
    const axis = this.#number(wide);
    const lanes = (vectors: number): OptOp[] => {
      const amount = width * vectors;
      return [
        ...(this.#divides(wide, amount) ? [] : [{ op: "PADTO", axis, amount } as const]),
        { op, axis, amount },
      ];
    };
    if (hot.reduce === undefined || !hot.axes.has(wide)) {
      const body = this.#scopes
        .filter((s) => s.axes.has(wide))
        .reduce((n, s) => n + s.weight + s.memory.length, 0);
      const vectors = [4, 2].find((v) => v * body <= MAX_BODY && this.#divides(wide, v * width)) ?? 1;
      return lanes(vectors);
    }
    const others = [...hot.axes].filter((id) => id !== wide && this.#axes[id]?.kind === "output");
    // a load that stays along an axis is what a tile of that axis saves
    const reused = others.filter((id) => hot.memory.some((u) => this.#step(u, id) === "stays"));
    // nothing is shared: each vector takes registers for its sum, what it loads and what it makes of it
    const most =
      reused.length > 0 || isOutput
        ? Infinity
        : (this.#target.simd?.registers ?? 1) / (1 + hot.memory.length + hot.weight);
    const tiles = this.#tiles(wide, reused).filter((t) => sizeOf(t) <= Math.max(1, most));
    const found = this.#packing(wide, hot);
    const ways = tiles.map((tile) => ({ tile, packing: undefined as Packing | undefined }));
    if (found !== undefined) {
      const fitting = tiles.filter((t) => this.#packedBytes(t, wide, found, hot) <= this.#room);
      // long runs are copied faster than short ones
      ways.push(...fitting.reverse().map((tile) => ({ tile, packing: found })));
    }
    const costs = ways.map((way) => ({ ...way, cost: this.#cost(way.tile, wide, hot, way.packing) }));
    const { tile, packing } = costs.reduce((a, b) => (b.cost < a.cost - 1e-9 ? b : a));
    const opts = [...tile].flatMap(([id, n]): OptOp[] =>
      id === wide ? lanes(n) : [{ op: "UPCAST", axis: this.#number(id), amount: n }],
    );
    if (packing === undefined) return opts;
    this.#packed = packing;
    this.#room -= this.#packedBytes(tile, wide, packing, hot);
    return [...opts, { op: "STAGE", axis: this.#number(packing.axis), amount: 1 }];
  }
  /** Vectors along the wide axis, and lanes of at most two others, as many as there are registers for. */
  #tiles(wide: number, others: readonly number[]): Tile[] {
    const most = this.#target.simd?.accumulators ?? 1;
    const width = this.#widthOf(wide);
    const vectors = (t: Tile): number => t.get(wide) as number;
    let tiles = AMOUNTS.filter((n) => this.#fits(wide, n * width)).map((n) => new Map([[wide, n]]));
    for (const id of others) {
      const amounts = AMOUNTS.filter((n) => n > 1 && this.#divides(id, n));
      const narrow = tiles.filter((t) => t.size < 3);
      tiles = [...tiles, ...narrow.flatMap((t) => amounts.map((n) => new Map(t).set(id, n)))];
    }
    // of tiles that cost the same the first is taken: the one with the fewest vectors
    return tiles.filter((t) => sizeOf(t) <= most).sort((a, b) => vectors(a) - vectors(b));
  }
  /** Cycles for one vector of results in one turn: arithmetic, loads or waiting for the sum before, whichever is longest. */
  #cost(tile: Tile, wide: number, hot: Scope, packing: Packing | undefined): number {
    const accumulators = sizeOf(tile);
    let loads = 0;
    let waits = 0;
    for (const u of hot.memory) {
      let n = 1;
      const isPacked = packing?.loads.has(u) === true;
      for (const [id, lanes] of tile) {
        const step = this.#stepIn(u, id, packing);
        // one value for all lanes is loaded and spread, values that jump are loaded and put together
        if (id === wide) n *= { stays: 1.3, next: lanes, jumps: 6 * lanes }[step];
        else if (step !== "stays") n *= lanes;
      }
      loads += n;
      if (packing !== undefined && isPacked) {
        // it is read and written, one by one where it is put together, once for all turns of the loop
        const each = this.#step(u, wide) === "jumps" ? 2 * this.#widthOf(wide) : 2;
        waits += (each * n * (tile.get(packing.axis) ?? 1)) / this.#size(packing.axis);
      } else waits += this.#wait(u, hot);
    }
    const sum = hot.reduce;
    const isProduct = sum?.srcs[0]?.op === "ALU" && sum.srcs[0].arg === "MUL";
    const { simd } = this.#target;
    const fused = isProduct && simd?.fuses(valueType(sum).vec(this.#widthOf(wide))) === true;
    const alus = accumulators * (hot.weight + (fused ? 0 : 1));
    const waste = this.#waste(wide, (tile.get(wide) as number) * this.#widthOf(wide));
    return (waste * (Math.max(alus / 2, loads / 2, 4) + loads / 10 + 1 + waits)) / accumulators;
  }

  // ---- packing ----

  #stepIn(u: UOp, id: number, packing: Packing | undefined): Step {
    const step = this.#step(u, id);
    return step === "jumps" && packing?.loads.has(u) ? "next" : step;
  }
  /** For an operand whose next element is far away, or found by several loops inside each other. */
  #wait(u: UOp, hot: Scope): number {
    const loops = hot.reduce?.srcs.slice(1) ?? [];
    const stride = strideOf(u.srcs[1] as UOp, loops.at(-1) as UOp);
    const isFar = Math.abs(stride ?? 0) * valueType(u).itemsize >= FAR.bytes;
    const nested = loops.filter((r) => this.#free.get(u)?.has(r.arg as number)).length > 1;
    return this.#bytes(u) > NEAR_BYTES && (isFar || nested) ? FAR.cycles : 0;
  }
  /**
   * The longest loop of results that does not move along operands with vectors of the axis in them. One sum is all there is in
   * the kernel: another one could be computed again in every turn, as the loops change places.
   */
  #packing(wide: number, hot: Scope): Packing | undefined {
    const { hasLocal, hasThreads } = this.#target;
    const sums = hot.reduce?.srcs.slice(1).map((r) => r.arg as number) ?? [];
    const isConstant = (id: number): boolean => typeof this.#axes[id]?.size === "number";
    if (sums.length === 0 || this.#inPlace || hasLocal || this.#scopes.length !== 2) return undefined;
    if (this.#axes[wide]?.kind !== "output" || ![...sums, wide].every(isConstant)) return undefined;
    const outputs = [...hot.axes].filter((id) => this.#axes[id]?.kind === "output" && isConstant(id));
    // threads share another loop: the one after the packing is theirs each
    const isShared = (id: number): boolean =>
      this.#size(id) / (id === wide ? 4 * this.#widthOf(id) : 1) >= SHARED_TURNS;
    const found = outputs
      .filter((id) => id !== wide && this.#size(id) >= PACK_TURNS)
      .filter(
        (id) => !hasThreads || this.#work() < THREAD_WORK || outputs.some((o) => o !== id && isShared(o)),
      )
      .map((axis): Packing => {
        const loads = hot.memory.filter((u) => {
          const free = this.#free.get(u) as ReadonlySet<number>;
          return !free.has(axis) && sums.some((id) => free.has(id));
        });
        return { axis, loads: new Set(loads) };
      })
      .filter(({ loads }) =>
        [...loads].some((u) => this.#free.get(u)?.has(wide) && this.#bytes(u) > NEAR_BYTES),
      );
    return found.reduce<Packing | undefined>(
      (a, b) => (a === undefined || this.#size(b.axis) > this.#size(a.axis) ? b : a),
      undefined,
    );
  }
  /** What the arrays take that a tile reads from. */
  #packedBytes(tile: Tile, wide: number, { loads }: Packing, hot: Scope): number {
    const sum = hot.reduce as UOp;
    const lanes = (id: number): number => (tile.get(id) ?? 1) * (id === wide ? this.#widthOf(id) : 1);
    return [...loads].reduce((bytes, u) => {
      const axes = [...(this.#free.get(u) as ReadonlySet<number>)];
      const sizes = axes.map((id) => (this.#axes[id]?.kind === "output" ? lanes(id) : this.#size(id)));
      // it may be packed as the wider type that it is cast to
      const itemsize = Math.max(valueType(u).itemsize, valueType(sum).itemsize);
      return bytes + Math.ceil((prod(sizes) * itemsize) / 64) * 64;
    }, 0);
  }
  /**
   * A row times a matrix that is read from memory once: rows of the matrix one after the other, several at a time, with all
   * sums of a part of the columns in an array. Undefined: it is no such thing.
   */
  #streamed(hot: Scope): OptOp[] | undefined {
    const { hasLocal, hasThreads } = this.#target;
    const outputs = [...hot.axes].filter((id) => this.#axes[id]?.kind === "output");
    const [wide] = outputs;
    const sums = hot.reduce?.srcs.slice(1) ?? [];
    const last = sums.at(-1);
    if (outputs.length !== 1 || wide === undefined || last === undefined || sums.length !== 1)
      return undefined;
    if (this.#inPlace || hasLocal || this.#scopes.length !== 2) return undefined;
    const isFar = (u: UOp): boolean =>
      this.#step(u, wide) === "next" && this.#wait(u, hot) > 0 && this.#bytes(u) > CACHE;
    const lanes = STREAM.lanes.find((n) => n % this.#widthOf(wide) === 0 && this.#divides(wide, n));
    const rows = STREAM.rows.find((n) => this.#divides(last.arg as number, n));
    if (!hot.memory.some(isFar) || lanes === undefined || rows === undefined) return undefined;
    const turns = this.#size(wide) / lanes;
    const parts = hasThreads ? STREAM.parts.find((n) => turns % n === 0 && turns > n) : 1;
    if (parts === undefined || this.#size(last.arg as number) / rows > MAX_RUN) return undefined;
    const bytes = (this.#size(wide) / parts) * valueType(hot.reduce as UOp).itemsize;
    if (bytes > Math.min(STAGE_BYTES, this.#room)) return undefined;
    const [axis, sum] = [this.#number(wide), this.#number(last.arg as number)];
    return [
      { op: "UPCAST", axis, amount: lanes },
      ...(parts === 1 ? [] : [{ op: "LOCAL", axis, amount: turns / parts } as const]),
      { op: "UNROLL", axis: sum, amount: rows },
      { op: "SWAP", axis, amount: sum },
    ];
  }
  /** The part of a buffer that is read or written. */
  #bytes(u: UOp): number {
    const { itemsize } = valueType((u.op === "LOAD" ? u : u.srcs[2]) as UOp);
    return [...(this.#free.get(u) as ReadonlySet<number>)].reduce((n, id) => n * this.#size(id), itemsize);
  }
  #work(): number {
    return this.#scopes.reduce((n, s) => n + s.turns * (1 + s.alus.length), 0);
  }

  /** The innermost reduce loop, where its body is small enough to be written several times. */
  #unrolled(hot: Scope, opts: readonly OptOp[]): OptOp[] {
    // what is packed is read in one long loop
    if (hot.reduce === undefined || this.#packed !== undefined) return [];
    const last = hot.reduce.srcs.at(-1) as UOp;
    const amounts = opts.filter((o) => o.op === "UPCAST").map((o) => o.amount);
    const id = last.arg as number;
    const { size, kind } = this.#axes[id] ?? { size: 0, kind: "reduce" };
    if (kind !== "reduce" || typeof size !== "number") return [];
    const grouped = opts.find((o) => o.op === "GROUP" && o.axis === this.#number(id))?.amount ?? 1;
    // lanes of a vector are one operation; where the sum has the vectors, the tile has none
    const summed = opts.some((o) => o.op === "GROUP");
    const lanes = summed || amounts.length === 0 ? 1 : (this.#target.simd?.widths[0] ?? 1);
    // a tile shares what it loads, a plain sum loads for each of its vectors
    const vectors = amounts.length === 0 ? grouped / this.#widthOf(id) : 1;
    const loads = amounts.length === 0 ? hot.memory.length : 0;
    const body = ((hot.weight + 1 + loads) * vectors * prod(amounts)) / lanes;
    const left = size / grouped;
    const most = Math.max(1, Math.floor(MAX_BODY / body));
    // a tile that keeps the machine busy gains nothing from more of the same, but for a loop that is gone altogether
    const busy = body >= BUSY_BODY;
    const some = busy ? undefined : [4, 2].find((n) => n <= most && left % n === 0);
    const amount = left <= Math.min(busy ? 3 : 8, most) ? left : (some ?? 1);
    return amount === 1 ? [] : [{ op: "UNROLL", axis: this.#number(id), amount }];
  }

  /** What is cheaper kept than computed again, as long as it stays near: each value in the first loop that has it. */
  #staged(opts: readonly OptOp[]): OptOp[] {
    let room = Math.min(STAGE_BYTES, this.#room);
    const kept = new Set<LazyOp>();
    const axes = new Set<number>();
    return this.#stages.flatMap(({ home, value, elements }): OptOp[] => {
      const own = home.ranges.map((r) => this.#number(r.arg as number));
      const amounts = (op: OptOp["op"], of: readonly number[]): number =>
        prod(opts.filter((o) => o.op === op && of.includes(o.axis)).map((o) => o.amount));
      // a longer sum goes in blocks, which are other loops
      const isCut = elements / amounts("GROUP", own) > MAX_RUN;
      if (axes.has(home.axis) || isCut || costOf(value, kept) <= STAGE_COST) return [];
      const around = this.#free.get(home.place.done.get(value) as UOp) ?? this.#ranges.keys();
      const lanes = amounts(
        "UPCAST",
        [...around].map((id) => this.#number(id)),
      );
      room -= elements * lanes * value.dtype.itemsize;
      if (room < 0) return [];
      axes.add(home.axis);
      kept.add(value);
      return [{ op: "STAGE", axis: home.axis, amount: elements }];
    });
  }

  /** A loop that is long enough to be shared, in kernels with enough to do; it becomes the outermost. */
  #threads(opts: readonly OptOp[], hot: Scope): OptOp[] {
    if (!this.#target.hasThreads || this.#work() < THREAD_WORK) return [];
    const left = (a: Axis): number => {
      const taken = opts
        .filter((o) => o.axis === a.of && o.op === "UPCAST")
        .reduce((n, o) => n * o.amount, 1);
      return Math.ceil(smax(a.size) / taken);
    };
    // a reduce that does not depend on the loop would be computed again in every part of it
    const everywhere = (a: Axis): boolean => this.#scopes.every((s) => s.axes.has(a.id));
    const outputs = this.#order.filter(
      (a) => a.kind === "output" && left(a) > 1 && everywhere(a) && a.id !== this.#packed?.axis,
    );
    const long = outputs.filter((a) => left(a) >= 16);
    const read = (a: Axis): number => this.#readAgain(a, left(a), hot);
    const axis = long.sort((a, b) => read(a) - read(b))[0] ?? outputs.sort((a, b) => left(b) - left(a))[0];
    return axis === undefined ? [] : [{ op: "THREAD", axis: axis.of, amount: 1 }];
  }
  /** Bytes that come from memory if this loop of so many turns is around all others: what it does not move along, each turn. */
  #readAgain(a: Axis, turns: number, hot: Scope): number {
    return hot.memory.reduce((sum, u) => {
      const bytes = this.#bytes(u);
      return this.#free.get(u)?.has(a.id) || bytes <= CACHE ? sum : sum + bytes * turns;
    }, 0);
  }
  #number(id: number): number {
    return (this.#axes[id] as Axis).of;
  }
}
