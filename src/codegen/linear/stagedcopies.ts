// When tiles are copied to shared memory: copies for later iterations are under way while this one is
// computed. The hardware makes them where it can (ASYNC); the others go through registers: a thread loads its
// share early in an iteration and stores it at the end. An iteration begins by waiting for its stage. A
// barrier follows, after which no thread reads the stage of the previous iteration. Where an iteration reads
// the first operands of the next (pipeline.ts), the wait and the barrier come before that instead:
// `firstStage`, `copyAhead`, `nextStage`, `advance`.

import { dtypes } from "../../dtype.ts";
import { InternalError } from "../../errors.ts";
import { range } from "../../helpers.ts";
import type { DefineAcc, Expr, Loop } from "../../uop/node.ts";
import { type Move, TileCopies } from "./tilecopies.ts";

/** Stages that copies through registers can use: the tile that is read, and the one that is written. */
export const REGISTER_STAGES = 2;

/** A vector on its way from memory to shared memory, in registers. */
interface VectorInFlight extends Pick<Move, "to" | "gate"> {
  readonly value: Expr;
}

export class StagedCopies extends TileCopies {
  #held: VectorInFlight[] = [];
  /** the stage of this iteration and of the next, when software pipelining is on */
  #stage: { readonly now: DefineAcc; next: Expr } | undefined;

  /**
   * Starts the copies of the first iterations, or the only copies where no loop is around them (`end` is
   * undefined). `isInLoop`: other threads may still read this memory.
   */
  start(end: Expr | undefined, isInLoop: boolean): void {
    const { emit, stages } = this;
    if (isInLoop) emit.barrier();
    for (const s of range(end === undefined ? 1 : stages - 1)) {
      this.#copy(emit.const(s), emit.const(s), end);
      this.#land();
    }
    if (end === undefined) this.#arrive(0);
  }
  /**
   * At the start of an iteration: the offset of its stage in the memory of each tile, in the order of
   * `prepare`.
   */
  iteration(loop: Loop, end: Expr): Expr[] {
    const { emit, stages } = this;
    if (stages > REGISTER_STAGES && !this.hasAsync)
      throw new InternalError(`copies through registers in ${stages} stages`);
    if (stages === 1) {
      emit.barrier();
      this.#copy(loop, emit.const(0), undefined);
      this.#land();
      this.#arrive(0);
      return this.offsets(emit.const(0));
    }
    this.#arrive(stages - 2);
    const later = emit.int("ADD", loop, emit.const(stages - 1));
    this.#copy(later, emit.int("MOD", later, emit.const(stages)), end);
    return this.offsets(emit.int("MOD", loop, emit.const(stages)));
  }
  /** At the end of an iteration: what was loaded is stored. The hardware's copies go on. */
  finish(): void {
    this.#land();
  }

  /** After `start`: waits for the first iteration, so that its operands can be read before the loop. */
  firstStage(): Expr[] {
    this.#arrive(this.stages - 2);
    const now = this.emit.accumulator(dtypes.int32, 0);
    this.#stage = { now, next: now };
    return this.offsets(this.emit.const(0));
  }
  /** The offsets of this iteration. */
  currentStage(): Expr[] {
    return this.offsets(this.#counter().now);
  }
  /** Early in an iteration: copies for a later one, into the stage the previous iteration has released. */
  copyAhead(loop: Loop, end: Expr): void {
    const { emit } = this;
    const last = this.stages - 1;
    const { now } = this.#counter();
    const isFirst = emit.compare("CMPLT", now, emit.const(1));
    const before = emit.int("ADD", now, emit.const(-1));
    const free = emit.alu("WHERE", now.dtype, isFirst, emit.const(last), before);
    this.#copy(emit.int("ADD", loop, emit.const(last)), free, end);
  }
  /** After the last read of an iteration: waits for the stage of the next one, which is at these offsets. */
  nextStage(): Expr[] {
    const { emit, stages } = this;
    const counter = this.#counter();
    this.#land();
    this.#arrive(stages - 2);
    const isInner = emit.compare("CMPLT", counter.now, emit.const(stages - 1));
    const after = emit.int("ADD", counter.now, emit.const(1));
    counter.next = emit.alu("WHERE", counter.now.dtype, isInner, after, emit.const(0));
    return this.offsets(counter.next);
  }
  /** After the next stage has been read: it is that of the next iteration. */
  advance(loop: Loop): void {
    const { now, next } = this.#counter();
    this.emit.phi(now, next, loop);
  }
  #counter(): { readonly now: DefineAcc; next: Expr } {
    if (this.#stage === undefined) throw new InternalError("an iteration goes on without firstStage");
    return this.#stage;
  }

  #arrive(pending: number): void {
    if (this.isAsync) this.emit.wait(pending);
    this.emit.barrier();
  }
  /** Starts the copies of an iteration. */
  #copy(iteration: Expr, stage: Expr, end: Expr | undefined): void {
    this.eachMove(iteration, stage, end, ({ to, gate, from, value }) => {
      if (from !== undefined) this.emit.asyncCopy(to, from, gate);
      else this.#held.push({ to, gate, value: value() });
    });
    if (this.isAsync) this.emit.commit();
  }
  /** Stores what was loaded. */
  #land(): void {
    for (const { to, value, gate } of this.#held) this.emit.store(to.memory, to.index, value, gate);
    this.#held = [];
  }
}
