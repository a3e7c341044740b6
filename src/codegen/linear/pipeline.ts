// A loop over products of matrices whose turns read what the next one multiplies first: nobody waits for operands after the
// barrier between two turns. Those of the first turn are read before the loop, and from then on held in accumulators. Made
// by linearize, which places what does not come from tiles and says where in a turn each step goes; fetch.ts fills the tiles.

import { dtypes } from "../../dtype.ts";
import { InternalError } from "../../errors.ts";
import { getOrMake, toposort } from "../../helpers.ts";
import { makeUOp, type UOp, type UOpGraph } from "../../uop/uops.ts";
import type { Fetch } from "./asynccopy.ts";

export const readsFrom = (u: UOp, tiles: readonly UOp[]): boolean =>
  toposort([u], (x) => x.srcs).some((x) => tiles.includes(x));

/** An index into a tile, in the part of it that is at this place. */
export function inPart(index: UOp, place: UOp | undefined, list: UOpGraph): UOp {
  if (place === undefined || (place.op === "CONST" && place.arg === 0)) return index;
  return list.add("ALU", dtypes.int32, [index, place], "ADD");
}

export class Ahead {
  /** operands, and the accumulators that hold them when a turn starts */
  readonly carried = new Map<UOp, UOp>();
  readonly #list: UOpGraph;
  readonly #fetch: Fetch;
  /** and the shared memory that they are in */
  readonly #tiles: ReadonlyMap<UOp, UOp>;
  readonly #place: (u: UOp) => UOp;
  #loop: { readonly loop: UOp; readonly end: UOp } | undefined;
  #next: readonly UOp[] = [];

  constructor(list: UOpGraph, fetch: Fetch, tiles: ReadonlyMap<UOp, UOp>, place: (u: UOp) => UOp) {
    this.#list = list;
    this.#fetch = fetch;
    this.#tiles = tiles;
    this.#place = place;
  }

  /** Before the loop. */
  start(operands: readonly UOp[]): void {
    const first = this.#read(operands, this.#fetch.readAhead());
    operands.forEach((u, i) => {
      const acc = this.#list.add("DEFINE_ACC", u.dtype, [], 0);
      this.#list.add("PHI", u.dtype, [acc, first[i] as UOp]);
      this.carried.set(u, acc);
    });
  }
  /** When the loop is open. */
  enter(loop: UOp, end: UOp): void {
    this.#loop = { loop, end };
  }
  /** Early in a turn: what later ones need is fetched. */
  copy(): void {
    const { loop, end } = this.#entered();
    this.#fetch.copyAhead(loop, end);
  }
  /** After this turn has read all it needs. */
  readNext(): void {
    this.#next = this.#read([...this.carried.keys()], this.#fetch.next());
  }
  /** At the end of a turn. */
  finish(): void {
    const { loop } = this.#entered();
    [...this.carried.values()].forEach((acc, i) => {
      this.#list.add("PHI", acc.dtype, [acc, this.#next[i] as UOp, loop]);
    });
    this.#fetch.advance(loop);
  }

  #entered(): { readonly loop: UOp; readonly end: UOp } {
    if (this.#loop === undefined) throw new InternalError("a turn reads ahead before its loop is open");
    return this.#loop;
  }
  /** Operands from the parts of the tiles that are at these places. */
  #read(operands: readonly UOp[], places: readonly UOp[]): UOp[] {
    const tiles = [...this.#tiles.keys()];
    const done = new Map(this.#tiles);
    const visit = (u: UOp): UOp =>
      getOrMake(done, u, () => {
        if (!readsFrom(u, tiles)) return this.#place(u);
        const srcs = u.srcs.map(visit);
        const tile = tiles.indexOf(u.srcs[0] as UOp);
        if (tile >= 0) srcs[1] = inPart(srcs[1] as UOp, places[tile], this.#list);
        const made = makeUOp(u.op, u.dtype, srcs, u.arg) as UOp;
        this.#list.push(made);
        return made;
      });
    return operands.map(visit);
  }
}
