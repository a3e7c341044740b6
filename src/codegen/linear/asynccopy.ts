// How a TILE gets into shared memory: every item of the workgroup copies a share of it, the copies of later turns while
// this one is computed. Called by linearize around the loop of a reduce: `open` before it, `turn` at the start of each turn.
// A turn begins with the wait for its part and a barrier, after which nobody reads the part of the turn before any more. Where
// a turn reads the first operands of the next (`readAhead`), the wait and the barrier are before that instead: `copyAhead`, `next`.

import { dtypes, type Pointer } from "../../dtype.ts";
import { InternalError } from "../../errors.ts";
import { prod, range } from "../../helpers.ts";
import {
  makeUOp,
  type Swizzle,
  type UOp,
  type UOpArgs,
  type UOpGraph,
  type UOpName,
  type UType,
} from "../../uop/uops.ts";
import type { ItemAxis } from "./workgroup.ts";

const { int32, bool } = dtypes;

/** One copy of an item: from where, without the loop's part, to where, and a condition if not every item does it. */
interface Copy {
  readonly from: UOp;
  readonly to: UOp;
  readonly gate: UOp | undefined;
}
/** An axis of the workgroup. */
type Item = Pick<ItemAxis, "index" | "size">;
interface Fetched {
  readonly tile: UOp<"TILE">;
  readonly buffer: UOp;
  readonly local: UOp;
  readonly copies: readonly Copy[];
}

export class Fetch {
  readonly #list: UOpGraph;
  readonly #items: readonly Item[];
  readonly #tiles: Fetched[] = [];
  /** counts the stages, and the one of the next turn, where turns read ahead */
  #stage: { readonly now: UOp; next: UOp } | undefined;

  /** `items`: the innermost first. */
  constructor(list: UOpGraph, items: readonly Item[]) {
    this.#list = list;
    this.#items = items;
  }

  /** Makes room for a tile and works out who copies what. */
  prepare(tile: UOp<"TILE">, buffer: UOp, base: UOp): UOp {
    const { size, stages } = tile.arg;
    const n = this.#list.uops.filter((u) => u.op === "DEFINE_LOCAL").length;
    const local = this.#add("DEFINE_LOCAL", tile.dtype as Pointer, [], [`shared${n}`, size * stages]);
    this.#tiles.push({ tile, buffer, local, copies: this.#copies(tile, base) });
    return local;
  }
  /** The parts of the first turns; all of it where there is no loop (`end` is undefined). `again`: memory was in use before. */
  open(end: UOp | undefined, again: boolean): void {
    const stages = this.#stages();
    if (again) this.#add("BARRIER", undefined, [], undefined);
    for (const s of range(end === undefined ? 1 : stages - 1)) {
      this.#copy(this.#const(s), this.#const(s), end);
      this.#add("COMMIT", undefined, [], undefined);
    }
    if (end === undefined) this.#arrive(0);
  }
  /** At the start of a turn: gives the place of each tile's part of this turn, in the order of `prepare`. */
  turn(loop: UOp, end: UOp): UOp[] {
    const stages = this.#stages();
    if (stages === 1) {
      this.#add("BARRIER", undefined, [], undefined);
      this.#copy(loop, this.#const(0), undefined);
      this.#add("COMMIT", undefined, [], undefined);
      this.#arrive(0);
      return this.#tiles.map(() => this.#const(0));
    }
    this.#arrive(stages - 2);
    const ahead = this.#int("ADD", loop, this.#const(stages - 1));
    this.#copy(ahead, this.#int("MOD", ahead, this.#const(stages)), end);
    this.#add("COMMIT", undefined, [], undefined);
    return this.#places(this.#int("MOD", loop, this.#const(stages)));
  }

  /** After `open`: waits for the first turn, so that its operands can be read before the loop; gives their places. */
  readAhead(): UOp[] {
    this.#arrive(this.#stages() - 2);
    const now = this.#add("DEFINE_ACC", int32, [], 0);
    this.#stage = { now, next: now };
    return this.#places(this.#const(0));
  }
  /** The places of this turn. */
  now(): UOp[] {
    return this.#places(this.#counter().now);
  }
  /** Somewhere in a turn: the parts of a later one, to where the turn before this one had its own. */
  copyAhead(loop: UOp, end: UOp): void {
    const last = this.#stages() - 1;
    const { now } = this.#counter();
    const isFirst = this.#add("ALU", bool, [now, this.#const(1)], "CMPLT");
    const before = this.#int("ADD", now, this.#const(-1));
    const free = this.#add("ALU", int32, [isFirst, this.#const(last), before], "WHERE");
    this.#copy(this.#int("ADD", loop, this.#const(last)), free, end);
    this.#add("COMMIT", undefined, [], undefined);
  }
  /** After the last read of a turn: from here on the part of the next turn can be read, at these places. */
  next(): UOp[] {
    const stages = this.#stages();
    const counter = this.#counter();
    this.#arrive(stages - 2);
    const isInner = this.#add("ALU", bool, [counter.now, this.#const(stages - 1)], "CMPLT");
    const after = this.#int("ADD", counter.now, this.#const(1));
    counter.next = this.#add("ALU", int32, [isInner, after, this.#const(0)], "WHERE");
    return this.#places(counter.next);
  }
  #places(stage: UOp): UOp[] {
    return this.#tiles.map(({ tile }) => this.#int("MUL", stage, this.#const(tile.arg.size)));
  }
  /** At the end of a turn. */
  advance(loop: UOp): void {
    const { now, next } = this.#counter();
    this.#add("PHI", int32, [now, next, loop], undefined);
  }
  #counter(): { readonly now: UOp; next: UOp } {
    if (this.#stage === undefined) throw new InternalError("fetch: a turn goes on without readAhead");
    return this.#stage;
  }

  #stages(): number {
    return this.#tiles[0]?.tile.arg.stages ?? 1;
  }
  #arrive(left: number): void {
    this.#add("WAIT", undefined, [], left);
    this.#add("BARRIER", undefined, [], undefined);
  }

  /** The copies of all tiles for one turn, if there is such a turn, into one of the stages. */
  #copy(turn: UOp, stage: UOp, end: UOp | undefined): void {
    const inTime = this.#isThere(turn, end);
    if (inTime === false) return;
    for (const { tile, buffer, local, copies } of this.#tiles) {
      const { step, size, vector } = tile.arg;
      const shift = this.#int("MUL", turn, this.#const(step));
      const place = this.#int("MUL", stage, this.#const(size));
      for (const { from, to, gate } of copies) {
        const gates = [gate, inTime].filter((g) => g !== undefined);
        const both = gates.length === 2 ? [this.#add("ALU", bool, gates, "AND")] : gates;
        const at = [local, this.#int("ADD", to, place), buffer, this.#int("ADD", from, shift)];
        this.#add("ASYNC", undefined, [...at, ...both], vector);
      }
    }
  }
  /** false: never; undefined: always. */
  #isThere(turn: UOp, end: UOp | undefined): UOp | false | undefined {
    if (end === undefined) return undefined;
    if (turn.op === "CONST" && end.op === "CONST") return turn.arg < end.arg ? undefined : false;
    return this.#add("ALU", bool, [turn, end], "CMPLT");
  }

  /** Which vectors of a tile an item copies: neighbours copy neighbours. */
  #copies({ arg: { dims, vector, swizzle } }: UOp<"TILE">, base: UOp): Copy[] {
    const steps = dims.map((d, i) =>
      i === 0 ? { ...d, size: d.size / vector, by: vector } : { ...d, by: 1 },
    );
    const total = prod(steps.map((d) => d.size));
    const width = prod(this.#items.map((i) => i.size));
    const me = this.#me();
    return range(Math.ceil(total / width)).map((round) => {
      const number = (): UOp => this.#int("ADD", me, this.#const(round * width));
      // a round that is whole rows is a number at the end of the index: all rounds count from one place
      const rows = rowsBefore(steps, width, round);
      const digits = steps.map((_, i) => this.#digit(rows === undefined ? number() : me, steps, i));
      type Step = (typeof steps)[number];
      const sum = (start: UOp, by: (step: Step) => number): UOp =>
        digits.reduce((x, d, i) => {
          const step = steps[i] as Step;
          return this.#int("ADD", x, this.#int("MUL", d, this.#const(by(step) * step.by)));
        }, start);
      const last = steps.at(-1) as Step;
      const far = (by: number): number => (rows ?? 0) * by * last.by;
      const from = this.#int(
        "ADD",
        sum(base, (s) => s.stride),
        this.#const(far(last.stride)),
      );
      const to = this.#swizzled(
        sum(this.#const(0), (s) => s.pitch),
        far(last.pitch),
        swizzle,
      );
      const isFull = (round + 1) * width <= total;
      const gate = isFull ? undefined : this.#add("ALU", bool, [number(), this.#const(total)], "CMPLT");
      return { from, to, gate };
    });
  }
  /** Where element x + k lies; pieces change places in the same way everywhere after a few rows. */
  #swizzled(x: UOp, k: number, swizzle: Swizzle | undefined): UOp {
    const plus = this.#const(k);
    if (swizzle === undefined) return this.#int("ADD", x, plus);
    const { unit, pieces, every } = swizzle;
    const moved = k % (every * pieces) === 0 ? x : this.#int("ADD", x, plus);
    const way = this.#int("MOD", this.#int("IDIV", moved, this.#const(every)), this.#const(pieces));
    const at = this.#int("XOR", moved, this.#int("MUL", way, this.#const(unit)));
    return moved === x ? this.#int("ADD", at, plus) : at;
  }
  /** The place of a number along one dim. */
  #digit(number: UOp, steps: readonly { readonly size: number }[], i: number): UOp {
    const below = prod(steps.slice(0, i).map((d) => d.size));
    const high = this.#int("IDIV", number, this.#const(below));
    return i === steps.length - 1
      ? high
      : this.#int("MOD", high, this.#const((steps[i] as { size: number }).size));
  }
  /** The item's number in its workgroup. */
  #me(): UOp {
    return this.#items.reduceRight<UOp>(
      (outer, i) => this.#int("ADD", this.#int("MUL", outer, this.#const(i.size)), i.index),
      this.#const(0),
    );
  }

  #add<K extends UOpName>(op: K, dtype: UType, srcs: readonly UOp[], arg: UOpArgs[K]): UOp {
    const made = makeUOp(op, dtype, srcs, arg) as UOp;
    this.#list.push(made);
    return made;
  }
  #const(n: number): UOp {
    return this.#add("CONST", int32, [], n);
  }
  /** What is 0, or stays as it is, needs no op: a list is not folded any more. */
  #int(op: "ADD" | "MUL" | "IDIV" | "MOD" | "XOR", x: UOp, y: UOp): UOp {
    const is = (u: UOp, n: number): boolean => u.op === "CONST" && u.arg === n;
    const isSum = op === "ADD" || op === "XOR";
    if (is(y, isSum ? 0 : 1)) return op === "MOD" ? this.#const(0) : x;
    if (is(x, 0)) return isSum ? y : x;
    if (is(y, 0) && op === "MUL") return y;
    return this.#add("ALU", int32, [x, y], op);
  }
}

/** Rows further in the last dim with each round; undefined where a round is no whole number of rows. */
function rowsBefore(
  steps: readonly { readonly size: number }[],
  width: number,
  round: number,
): number | undefined {
  const below = prod(steps.slice(0, -1).map((d) => d.size));
  return width % below === 0 ? (round * width) / below : undefined;
}
