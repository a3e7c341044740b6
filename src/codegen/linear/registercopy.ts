// Copies through registers, for a target whose hardware does not copy to shared memory by itself: each thread
// loads its share of a tile and stores it. With two stages (double buffering) a thread loads the share of the
// next iteration before it computes this one, and stores it afterwards: the latency of memory is hidden
// behind the arithmetic, and an iteration has one barrier.

import { InternalError } from "../../errors.ts";
import type { Expr, Loop } from "../../uop/node.ts";
import { type Move, TileCopies } from "./tilecopies.ts";

/** Stages that such copies can use: the tile that is read, and the one that is written. */
export const REGISTER_STAGES = 2;

/** A vector on its way from memory to shared memory, in registers. */
interface VectorInFlight extends Pick<Move, "to" | "gate"> {
  readonly value: Expr;
}

export class RegisterCopies extends TileCopies {
  #held: readonly VectorInFlight[] = [];

  override start(end: Expr | undefined, isInLoop: boolean): void {
    const { emit } = this;
    if (isInLoop) emit.barrier();
    if (end === undefined || this.stages > 1) {
      const first = emit.const(0);
      this.#store(this.#load(first, first, end));
    }
    if (end === undefined) emit.barrier();
  }
  override iteration(loop: Loop, end: Expr): Expr[] {
    const { emit, stages } = this;
    if (stages > REGISTER_STAGES) throw new InternalError(`copies through registers in ${stages} stages`);
    emit.barrier();
    if (stages === 1) {
      this.#store(this.#load(loop, emit.const(0), undefined));
      emit.barrier();
      return this.offsets(emit.const(0));
    }
    const next = emit.int("ADD", loop, emit.const(1));
    this.#held = this.#load(next, emit.int("MOD", next, emit.const(stages)), end);
    return this.offsets(emit.int("MOD", loop, emit.const(stages)));
  }
  override finish(): void {
    this.#store(this.#held);
    this.#held = [];
  }

  #load(iteration: Expr, stage: Expr, end: Expr | undefined): VectorInFlight[] {
    const held: VectorInFlight[] = [];
    this.eachMove(iteration, stage, end, ({ to, from, elements, gate }) => {
      held.push({ to, gate, value: this.emit.load(from.memory, from.index, elements, gate) });
    });
    return held;
  }
  #store(held: readonly VectorInFlight[]): void {
    for (const { to, value, gate } of held) this.emit.store(to.memory, to.index, value, gate);
  }
}
