// The elements of a tile that is computed as it is copied: casts, products, loads that a gate excludes, loads
// whose index is divided (a convolution as a product of matrices). The node has an expression of the position
// in the tile (Tile.coordinates); here it is emitted for one position of a thread. What does not depend on
// the iteration comes before the loop. An expression that is a load of 4 bytes or more is left to the
// hardware, which writes zeros where its gate is closed.

import { getOrMake } from "../../helpers.ts";
import type { UOpArena } from "../../uop/arena.ts";
import { UOpMap } from "../../uop/map.ts";
import {
  copyUOp,
  type Expr,
  isExpr,
  type Load,
  type Memory,
  makeUOp,
  type TileNode,
  type UOp,
} from "../../uop/node.ts";
import type { CopySource, Emitter } from "./emitter.ts";

/** The fewest bytes that the hardware copies by itself. */
const MIN_ASYNC = 4;

/** What a thread copies to one place of the tile. */
export interface TileElement {
  /** where the hardware finds it; undefined: it has to be computed */
  source(iteration: Expr): CopySource | undefined;
  /** `condition`: whether this thread copies in this iteration; where it is false nothing is loaded */
  value(iteration: Expr, condition: Expr | undefined): Expr;
}

/** What this needs from the linearizer: `place` puts what no tile's loop changes before that loop. */
export interface CopyPlacer {
  readonly emit: Emitter;
  readonly arena: UOpArena;
  place(u: Expr): Expr;
  place(u: Memory): Memory;
}
/** Nodes of the graph, and what they became at one position. */
type Known = Map<UOp, UOp>;

export class TileValues {
  readonly #placer: CopyPlacer;
  readonly #tile: TileNode;
  /** nodes that depend on the position or the iteration: whether on the iteration */
  readonly #moving: UOpMap<boolean>;

  constructor(tile: TileNode, placer: CopyPlacer) {
    this.#placer = placer;
    this.#tile = tile;
    this.#moving = new UOpMap<boolean>(placer.arena);
    const { coordinates } = tile.tile;
    for (const u of placer.arena.nodes(tile.base)) {
      const below = u.srcs.map((s) => this.#moving.get(s));
      const isLoop = u === tile.loop || below.includes(true);
      if (isLoop || coordinates.some((c) => c === u) || below.includes(false)) this.#moving.set(u, isLoop);
    }
  }

  /** What is at this position; `gate`: whether the thread has such a position. */
  at(position: readonly Expr[], gate: Expr | undefined): TileElement {
    const { base, loop, tile } = this.#tile;
    const fixed: Known = new Map(tile.coordinates.map((c, i) => [c, position[i] ?? c]));
    this.#before(base, fixed, gate);
    const now = (iteration: Expr): Known =>
      new Map(loop === undefined ? fixed : [...fixed, [loop, iteration]]);
    return {
      source: (iteration) => {
        if (base.op !== "LOAD" || !isCopied(this.#tile)) return undefined;
        const known = now(iteration);
        const inside = base.gate && this.#visit(base.gate, known, undefined);
        const index = this.#visit(base.index, known, undefined);
        return { memory: this.#placer.place(base.buffer), index, elements: base.dtype.count, inside };
      },
      value: (iteration, condition) => this.#visit(base, now(iteration), condition),
    };
  }

  /** Emits all that is the same in every iteration. */
  #before(u: UOp, known: Known, gate: Expr | undefined): void {
    const { base, loop } = this.#tile;
    if (known.has(u) || u === loop) return;
    // a vector that may be copied by the hardware is not loaded here
    if (this.#moving.get(u) !== true && u !== base) this.#visit(u, known, gate);
    else for (const s of u.srcs) this.#before(s, known, gate);
  }
  #visit(u: Expr, known: Known, condition: Expr | undefined): Expr;
  #visit(u: UOp, known: Known, condition: Expr | undefined): UOp;
  #visit(u: UOp, known: Known, condition: Expr | undefined): UOp {
    const { emit } = this.#placer;
    return getOrMake(known, u, () => {
      if (this.#moving.get(u) === undefined) return isExpr(u) ? this.#placer.place(u) : u;
      if (u.op === "LOAD") return this.#load(u, known, condition);
      return emit.push(
        copyUOp(
          u,
          u.srcs.map((s) => this.#visit(s, known, condition)),
        ),
      );
    });
  }
  /** Where the condition is false nothing is loaded. */
  #load(u: Load, known: Known, condition: Expr | undefined): UOp {
    const { emit } = this.#placer;
    const visit = (x: Expr): Expr => this.#visit(x, known, condition);
    const gate = emit.and([u.gate && visit(u.gate), condition].filter((g) => g !== undefined));
    const otherwise = u.otherwise && visit(u.otherwise);
    const gated = gate === undefined ? [] : [gate, otherwise ?? emit.zero(u.dtype)];
    return emit.push(
      makeUOp("LOAD", u.dtype, [this.#placer.place(u.buffer), visit(u.index), ...gated], undefined),
    );
  }
}

/** Whether the hardware can copy the tile, if it copies at all: only addresses and a gate are computed. */
export function isCopied({ base, tile }: TileNode): boolean {
  if (tile.coordinates.length === 0) return true;
  if (base.op !== "LOAD" || base.dtype.itemsize < MIN_ASYNC) return false;
  const { otherwise } = base;
  return otherwise === undefined || (otherwise.op === "CONST" && otherwise.is(0));
}
