// Asynchronous copies: the hardware moves tiles to shared memory, and the copies for later iterations are
// under way while this one is computed. An iteration begins by waiting for its stage. A barrier follows,
// after which no thread reads the stage of the previous iteration. Where an iteration reads the first
// operands of the next (pipeline.ts), the wait and the barrier come before that instead: `firstStage`,
// `copyAhead`, `nextStage`, `advance`.

import { dtypes } from "../../dtype.ts";
import { InternalError } from "../../errors.ts";
import { range } from "../../helpers.ts";
import type { DefineAcc, Expr, Loop } from "../../uop/node.ts";
import { TileCopies } from "./tilecopies.ts";

export class AsyncCopies extends TileCopies {
  /** the stage of this iteration and of the next, when software pipelining is on */
  #stage: { readonly now: DefineAcc; next: Expr } | undefined;

  override start(end: Expr | undefined, isInLoop: boolean): void {
    const { emit, stages } = this;
    if (isInLoop) emit.barrier();
    for (const s of range(end === undefined ? 1 : stages - 1)) {
      this.#copy(emit.const(s), emit.const(s), end);
      emit.commit();
    }
    if (end === undefined) this.#arrive(0);
  }
  override iteration(loop: Loop, end: Expr): Expr[] {
    const { emit, stages } = this;
    if (stages === 1) {
      emit.barrier();
      this.#copy(loop, emit.const(0), undefined);
      emit.commit();
      this.#arrive(0);
      return this.offsets(emit.const(0));
    }
    this.#arrive(stages - 2);
    const later = emit.int("ADD", loop, emit.const(stages - 1));
    this.#copy(later, emit.int("MOD", later, emit.const(stages)), end);
    emit.commit();
    return this.offsets(emit.int("MOD", loop, emit.const(stages)));
  }
  /** The copies go on. */
  override finish(): void {}

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
    emit.commit();
  }
  /** After the last read of an iteration: waits for the stage of the next one, which is at these offsets. */
  nextStage(): Expr[] {
    const { emit, stages } = this;
    const counter = this.#counter();
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
    this.emit.wait(pending);
    this.emit.barrier();
  }
  #copy(iteration: Expr, stage: Expr, end: Expr | undefined): void {
    this.eachMove(iteration, stage, end, ({ to, from, elements, gate }) =>
      this.emit.asyncCopy(to, from, elements, gate),
    );
  }
}
