// Software pipelining of a loop over products of matrices: an iteration reads what the next one multiplies
// first, so that no thread waits for operands after the barrier between two iterations. The operands of the
// first iteration are read before the loop (the prologue), and from then on held in accumulators. linearize
// places what does not come from tiles and says where in an iteration each step goes; stagedcopies.ts fills
// the tiles.

import { InternalError } from "../../errors.ts";
import { getOrMake, toposort } from "../../helpers.ts";
import type { UOpGraph } from "../../uop/list.ts";
import {
  copyUOp,
  type DefineAcc,
  type DefineLocal,
  type Expr,
  isLoad,
  type Loop,
  type TileNode,
  type UOp,
  withIndex,
} from "../../uop/node.ts";
import type { Emitter } from "./emitter.ts";
import type { StagedCopies } from "./stagedcopies.ts";

export const readsFrom = (u: UOp, tiles: readonly UOp[]): boolean =>
  toposort([u], (x) => x.srcs).some((x) => tiles.includes(x));

/** An index into a tile, in the stage that is at this offset. */
export function inStage(index: Expr, offset: Expr | undefined, list: UOpGraph): Expr {
  if (offset === undefined || (offset.op === "CONST" && offset.value === 0)) return index;
  return list.add("ALU", index.dtype, [index, offset], "ADD");
}

/** A tile, and the shared memory that it is in. */
export type PlacedTiles = ReadonlyMap<TileNode, DefineLocal>;

export class SoftwarePipeline {
  /** operands, and the accumulators that hold them when an iteration starts */
  readonly carried = new Map<Expr, DefineAcc>();
  readonly #emit: Emitter;
  readonly #copies: StagedCopies;
  readonly #tiles: PlacedTiles;
  readonly #place: (u: UOp) => UOp;
  #loop: { readonly loop: Loop; readonly end: Expr } | undefined;
  #next: readonly Expr[] = [];

  constructor(emit: Emitter, copies: StagedCopies, tiles: PlacedTiles, place: (u: UOp) => UOp) {
    this.#emit = emit;
    this.#copies = copies;
    this.#tiles = tiles;
    this.#place = place;
  }

  /** Before the loop. */
  prologue(operands: readonly Expr[]): void {
    const first = this.#read(operands, this.#copies.firstStage());
    first.forEach(({ operand, value }) => {
      const acc = this.#emit.accumulator(operand.dtype, 0);
      this.#emit.phi(acc, value);
      this.carried.set(operand, acc);
    });
  }
  /** Once the loop is open. */
  enter(loop: Loop, end: Expr): void {
    this.#loop = { loop, end };
  }
  /** The offsets of this iteration's stage, by tile. */
  currentStage(): Expr[] {
    return this.#copies.currentStage();
  }
  /** Early in an iteration: starts the copies that later ones need. */
  copyAhead(): void {
    const { loop, end } = this.#entered();
    this.#copies.copyAhead(loop, end);
  }
  /** After this iteration has read all it needs. */
  readNext(): void {
    this.#next = this.#read([...this.carried.keys()], this.#copies.nextStage()).map((r) => r.value);
  }
  /** At the end of an iteration. */
  finish(): void {
    const { loop } = this.#entered();
    [...this.carried.values()].forEach((acc, i) => {
      const value = this.#next[i];
      if (value === undefined)
        throw new InternalError("an iteration ends before it read the operands of the next");
      this.#emit.phi(acc, value, loop);
    });
    this.#copies.advance(loop);
  }

  #entered(): { readonly loop: Loop; readonly end: Expr } {
    if (this.#loop === undefined) throw new InternalError("an iteration reads ahead before its loop is open");
    return this.#loop;
  }
  /** Operands from the stages of the tiles that are at these offsets. */
  #read(operands: readonly Expr[], offsets: readonly Expr[]): { operand: Expr; value: Expr }[] {
    const tiles = [...this.#tiles.keys()];
    const done = new Map<UOp, UOp>(this.#tiles);
    const visit = (u: UOp): UOp =>
      getOrMake(done, u, () => {
        if (!readsFrom(u, tiles)) return this.#place(u);
        const srcs = u.srcs.map(visit);
        const buffer = isLoad(u) ? u.buffer : undefined;
        const offset = buffer?.op === "TILE" ? offsets[tiles.indexOf(buffer)] : undefined;
        const here = (index: Expr): Expr => inStage(index, offset, this.#emit.list);
        return this.#emit.push(copyUOp(u, offset === undefined ? srcs : withIndex(srcs, here)));
      });
    return operands.map((operand) => ({ operand, value: visit(operand) as Expr }));
  }
}
