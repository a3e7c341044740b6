// Asynchronous copies: how a TILE gets into shared memory. Every thread of the workgroup copies a share of
// it, and the copies for later iterations are under way while this one is computed. linearize calls `start`
// before the loop of a reduction and `iteration` at the start of each. An iteration begins with the wait for
// its stage and a barrier, after which no thread reads the stage of the one before. Where an iteration reads
// the first operands of the next (pipeline.ts), the wait and the barrier come before that instead:
// `firstStage`, `copyAhead`, `nextStage`, `advance`.

import { dtypes } from "../../dtype.ts";
import { InternalError } from "../../errors.ts";
import { prod, range } from "../../helpers.ts";
import type { Swizzle } from "../../uop/matrix.ts";
import type { DefineAcc, DefineLocal, Expr, Loop, Memory, TileNode } from "../../uop/node.ts";
import type { Emitter } from "./emitter.ts";
import type { ThreadAxis } from "./workgroup.ts";

/**
 * One copy by a thread: from where (the loop's offset is added later), to where, and a gate if not every
 * thread copies.
 */
interface Copy {
  readonly from: Expr;
  readonly to: Expr;
  readonly gate: Expr | undefined;
}
/** A tile and the shared memory that it is copied to. */
interface Destination {
  readonly tile: TileNode;
  readonly buffer: Memory;
  readonly local: DefineLocal;
  readonly copies: readonly Copy[];
}
/**
 * A dim of a tile, in vectors along the innermost: two neighbours are `by` times stride, or pitch, elements
 * apart.
 */
interface CopyDim {
  readonly size: number;
  readonly stride: number;
  readonly pitch: number;
  readonly by: number;
}

export class AsyncCopies {
  readonly #emit: Emitter;
  readonly #threads: readonly ThreadAxis[];
  readonly #tiles: Destination[] = [];
  /** the stage of this iteration and of the next, when software pipelining is on */
  #stage: { readonly now: DefineAcc; next: Expr } | undefined;

  /** `threads`: innermost first. */
  constructor(emit: Emitter, threads: readonly ThreadAxis[]) {
    this.#emit = emit;
    this.#threads = threads;
  }

  /** Makes room for a tile and works out which thread copies what. */
  prepare(tile: TileNode, buffer: Memory, base: Expr): DefineLocal {
    const { size, stages } = tile.tile;
    const local = this.#emit.local(tile.dtype.base, size * stages);
    this.#tiles.push({ tile, buffer, local, copies: this.#copiesOf(tile, base) });
    return local;
  }
  /**
   * Starts the copies of the first iterations, or the only copies where no loop is around them (`end` is
   * undefined). `isInLoop`: other threads may still read this memory.
   */
  start(end: Expr | undefined, isInLoop: boolean): void {
    const stages = this.#stages();
    if (isInLoop) this.#emit.barrier();
    for (const s of range(end === undefined ? 1 : stages - 1)) {
      this.#copy(this.#emit.const(s), this.#emit.const(s), end);
      this.#emit.commit();
    }
    if (end === undefined) this.#arrive(0);
  }
  /**
   * At the start of an iteration: the offset of its stage in the memory of each tile, in the order of
   * `prepare`.
   */
  iteration(loop: Loop, end: Expr): Expr[] {
    const emit = this.#emit;
    const stages = this.#stages();
    if (stages === 1) {
      emit.barrier();
      this.#copy(loop, emit.const(0), undefined);
      emit.commit();
      this.#arrive(0);
      return this.#tiles.map(() => emit.const(0));
    }
    this.#arrive(stages - 2);
    const later = emit.int("ADD", loop, emit.const(stages - 1));
    this.#copy(later, emit.int("MOD", later, emit.const(stages)), end);
    emit.commit();
    return this.#offsets(emit.int("MOD", loop, emit.const(stages)));
  }

  /** After `start`: waits for the first iteration, so that its operands can be read before the loop. */
  firstStage(): Expr[] {
    this.#arrive(this.#stages() - 2);
    const now = this.#emit.accumulator(dtypes.int32, 0);
    this.#stage = { now, next: now };
    return this.#offsets(this.#emit.const(0));
  }
  /** The offsets of this iteration. */
  currentStage(): Expr[] {
    return this.#offsets(this.#counter().now);
  }
  /** Early in an iteration: copies for a later one, into the stage the previous iteration has released. */
  copyAhead(loop: Loop, end: Expr): void {
    const emit = this.#emit;
    const last = this.#stages() - 1;
    const { now } = this.#counter();
    const isFirst = emit.compare("CMPLT", now, emit.const(1));
    const before = emit.int("ADD", now, emit.const(-1));
    const free = emit.alu("WHERE", now.dtype, isFirst, emit.const(last), before);
    this.#copy(emit.int("ADD", loop, emit.const(last)), free, end);
    emit.commit();
  }
  /** After the last read of an iteration: waits for the stage of the next one, which is at these offsets. */
  nextStage(): Expr[] {
    const emit = this.#emit;
    const stages = this.#stages();
    const counter = this.#counter();
    this.#arrive(stages - 2);
    const isInner = emit.compare("CMPLT", counter.now, emit.const(stages - 1));
    const after = emit.int("ADD", counter.now, emit.const(1));
    counter.next = emit.alu("WHERE", counter.now.dtype, isInner, after, emit.const(0));
    return this.#offsets(counter.next);
  }
  /** At the end of an iteration. */
  advance(loop: Loop): void {
    const { now, next } = this.#counter();
    this.#emit.phi(now, next, loop);
  }
  #counter(): { readonly now: DefineAcc; next: Expr } {
    if (this.#stage === undefined) throw new InternalError("an iteration goes on without firstStage");
    return this.#stage;
  }
  #offsets(stage: Expr): Expr[] {
    return this.#tiles.map(({ tile }) => this.#emit.int("MUL", stage, this.#emit.const(tile.tile.size)));
  }

  #stages(): number {
    return this.#tiles[0]?.tile.tile.stages ?? 1;
  }
  #arrive(pending: number): void {
    this.#emit.wait(pending);
    this.#emit.barrier();
  }

  /** The copies of all tiles for one iteration, if there is such an iteration, into one of the stages. */
  #copy(iteration: Expr, stage: Expr, end: Expr | undefined): void {
    const emit = this.#emit;
    const inTime = this.#isBefore(iteration, end);
    if (inTime === false) return;
    for (const { tile, buffer, local, copies } of this.#tiles) {
      const { step, size, vector } = tile.tile;
      const shift = emit.int("MUL", iteration, emit.const(step));
      const offset = emit.int("MUL", stage, emit.const(size));
      for (const { from, to, gate } of copies) {
        const condition = emit.and([gate, inTime].filter((g) => g !== undefined));
        emit.asyncCopy(
          { memory: local, index: emit.int("ADD", to, offset) },
          { memory: buffer, index: emit.int("ADD", from, shift) },
          vector,
          condition,
        );
      }
    }
  }
  /** false: never; undefined: always. */
  #isBefore(iteration: Expr, end: Expr | undefined): Expr | false | undefined {
    if (end === undefined) return undefined;
    if (iteration.op === "CONST" && end.op === "CONST")
      return iteration.value < end.value ? undefined : false;
    return this.#emit.compare("CMPLT", iteration, end);
  }

  /** Which vectors of a tile a thread copies: neighbouring threads copy neighbouring vectors. */
  #copiesOf({ tile: { dims, vector, swizzle } }: TileNode, base: Expr): Copy[] {
    const emit = this.#emit;
    const steps = dims.map(
      (d, i): CopyDim => (i === 0 ? { ...d, size: d.size / vector, by: vector } : { ...d, by: 1 }),
    );
    const total = prod(steps.map((d) => d.size));
    const width = prod(this.#threads.map((t) => t.size));
    const thread = emit.flatten(this.#threads);
    const lastDim = steps.at(-1);
    return range(Math.ceil(total / width)).map((round) => {
      const number = (): Expr => emit.int("ADD", thread, emit.const(round * width));
      // a round of whole rows adds a constant to the index: all rounds share one address computation
      const rows = rowsBefore(steps, width, round);
      const digits = steps.map((dim, i) => ({
        dim,
        at: this.#digit(rows === undefined ? number() : thread, steps, i),
      }));
      const sum = (start: Expr, distance: (dim: CopyDim) => number): Expr =>
        digits.reduce(
          (x, { dim, at }) => emit.int("ADD", x, emit.int("MUL", at, emit.const(distance(dim) * dim.by))),
          start,
        );
      const far = (distance: (dim: CopyDim) => number): number =>
        lastDim === undefined ? 0 : (rows ?? 0) * distance(lastDim) * lastDim.by;
      const [stride, pitch] = [(d: CopyDim) => d.stride, (d: CopyDim) => d.pitch];
      const from = emit.int("ADD", sum(base, stride), emit.const(far(stride)));
      const to = this.#swizzled(sum(emit.const(0), pitch), far(pitch), swizzle);
      const isFull = (round + 1) * width <= total;
      const gate = isFull ? undefined : emit.compare("CMPLT", number(), emit.const(total));
      return { from, to, gate };
    });
  }
  /** The swizzled index of element x + k; the permutation of pieces repeats after a few rows. */
  #swizzled(x: Expr, k: number, swizzle: Swizzle | undefined): Expr {
    const emit = this.#emit;
    const plus = emit.const(k);
    if (swizzle === undefined) return emit.int("ADD", x, plus);
    const { unit, pieces, every } = swizzle;
    const moved = k % (every * pieces) === 0 ? x : emit.int("ADD", x, plus);
    const way = emit.int("MOD", emit.int("IDIV", moved, emit.const(every)), emit.const(pieces));
    const at = emit.int("XOR", moved, emit.int("MUL", way, emit.const(unit)));
    return moved === x ? emit.int("ADD", at, plus) : at;
  }
  /** One digit of a number in mixed radix: its index along one dim. */
  #digit(number: Expr, steps: readonly CopyDim[], i: number): Expr {
    const below = prod(steps.slice(0, i).map((d) => d.size));
    const high = this.#emit.int("IDIV", number, this.#emit.const(below));
    const size = steps[i]?.size;
    return i === steps.length - 1 || size === undefined
      ? high
      : this.#emit.int("MOD", high, this.#emit.const(size));
  }
}

/**
 * Rows of the last dim that come before this round; undefined where a round is not a whole number of rows.
 */
function rowsBefore(steps: readonly CopyDim[], width: number, round: number): number | undefined {
  const below = prod(steps.slice(0, -1).map((d) => d.size));
  return width % below === 0 ? (round * width) / below : undefined;
}
