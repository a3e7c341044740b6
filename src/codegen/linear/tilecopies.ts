// How the threads of a workgroup copy a TILE into shared memory: which thread copies which vectors, from
// where and to where. A tile is a box of a buffer, or is computed element by element (tilevalues.ts). In go
// the tiles of a loop, out come the moves of one iteration; stagedcopies.ts says when they happen.

import { InternalError } from "../../errors.ts";
import { prod, range } from "../../helpers.ts";
import type { Swizzle } from "../../uop/matrix.ts";
import type { DefineLocal, Expr, Memory, TileNode } from "../../uop/node.ts";
import type { CopyAddress, CopySource, Emitter } from "./emitter.ts";
import { type CopyPlacer, isCopied, type TileElement, TileValues } from "./tilevalues.ts";
import type { ThreadAxis } from "./workgroup.ts";

/** One copy by a thread: to where, of what, and a gate if not every thread copies. */
interface Copy {
  readonly to: Expr;
  /** where the vector is in its buffer at iteration 0, or how it is computed */
  readonly from: Expr | TileElement;
  readonly gate: Expr | undefined;
}
/** A tile and the shared memory that it is copied to. */
interface Destination {
  readonly tile: TileNode;
  readonly buffer: Memory;
  readonly local: DefineLocal;
  readonly copies: readonly Copy[];
}
/** One vector that a thread moves, in one iteration. */
export interface Move {
  readonly to: CopyAddress;
  readonly gate: Expr | undefined;
  /** what the hardware copies; undefined: the value goes through registers */
  readonly from: CopySource | undefined;
  /** emits the value, as it is in registers */
  readonly value: () => Expr;
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

export abstract class TileCopies {
  protected readonly emit: Emitter;
  /** the hardware copies by itself */
  protected readonly hasAsync: boolean;
  readonly #threads: readonly ThreadAxis[];
  readonly #placer: CopyPlacer;
  readonly #tiles: Destination[] = [];

  /** `threads`: innermost first. */
  constructor(placer: CopyPlacer, threads: readonly ThreadAxis[], hasAsync: boolean) {
    this.emit = placer.emit;
    this.#placer = placer;
    this.#threads = threads;
    this.hasAsync = hasAsync;
  }

  /** Makes room for a tile and works out which thread copies what. */
  prepare(tile: TileNode): DefineLocal {
    const { size, stages, coordinates } = tile.tile;
    const buffer = this.#placer.place(tile.buffer);
    if (coordinates.length === 0) this.#placer.place(tile.base);
    const local = this.emit.local(tile.dtype.base, size * stages);
    this.#tiles.push({ tile, buffer, local, copies: this.#copiesOf(tile) });
    return local;
  }
  /** Iterations whose tiles are in shared memory at once. */
  protected get stages(): number {
    return this.#tiles[0]?.tile.tile.stages ?? 1;
  }
  /** The hardware makes some of these copies. */
  protected get isAsync(): boolean {
    return this.hasAsync && this.#tiles.some(({ tile }) => isCopied(tile));
  }
  /** Where this stage of each tile starts. */
  protected offsets(stage: Expr): Expr[] {
    return this.#tiles.map(({ tile }) => this.emit.int("MUL", stage, this.emit.const(tile.tile.size)));
  }

  /** Each move of all tiles for one iteration, if there is such an iteration, into one of the stages. */
  protected eachMove(iteration: Expr, stage: Expr, end: Expr | undefined, move: (m: Move) => void): void {
    const { emit } = this;
    const inTime = this.#isBefore(iteration, end);
    if (inTime === false) return;
    for (const { tile, buffer, local, copies } of this.#tiles) {
      const { step, size, vector } = tile.tile;
      const shift = emit.int("MUL", iteration, emit.const(step));
      const offset = emit.int("MUL", stage, emit.const(size));
      for (const { from, to, gate } of copies) {
        const condition = emit.and([gate, inTime].filter((g) => g !== undefined));
        const target = { memory: local, index: emit.int("ADD", to, offset) };
        if ("value" in from && "source" in from) {
          const source = this.hasAsync ? from.source(iteration) : undefined;
          move({ to: target, gate: condition, from: source, value: () => from.value(iteration, condition) });
          continue;
        }
        const index = emit.int("ADD", from, shift);
        const source = { memory: buffer, index, elements: vector };
        const value = (): Expr => emit.load(buffer, index, vector, condition);
        move({ to: target, gate: condition, from: this.hasAsync ? source : undefined, value });
      }
    }
  }
  /** false: never; undefined: always. */
  #isBefore(iteration: Expr, end: Expr | undefined): Expr | false | undefined {
    if (end === undefined) return undefined;
    if (iteration.op === "CONST" && end.op === "CONST")
      return iteration.value < end.value ? undefined : false;
    return this.emit.compare("CMPLT", iteration, end);
  }

  /** Which vectors of a tile a thread copies: neighbouring threads copy neighbouring vectors. */
  #copiesOf(node: TileNode): Copy[] {
    const { emit } = this;
    const { dims, vector, swizzle, coordinates } = node.tile;
    const isComputed = coordinates.length > 0;
    const values = isComputed ? new TileValues(node, this.#placer) : undefined;
    const base = isComputed ? undefined : this.#placer.place(node.base);
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
      const address = base && emit.int("ADD", sum(base, stride), emit.const(far(stride)));
      const to = this.#swizzled(sum(emit.const(0), pitch), far(pitch), swizzle);
      const isFull = (round + 1) * width <= total;
      const gate = isFull ? undefined : emit.compare("CMPLT", number(), emit.const(total));
      const position = (): Expr[] =>
        digits.map(({ dim, at }) => (dim === lastDim ? emit.int("ADD", at, emit.const(rows ?? 0)) : at));
      const from = address ?? values?.at(position(), gate);
      if (from === undefined) throw new InternalError("a tile is neither a box nor computed");
      return { from, to, gate };
    });
  }
  /** The swizzled index of element x + k; the permutation of pieces repeats after a few rows. */
  #swizzled(x: Expr, k: number, swizzle: Swizzle | undefined): Expr {
    const { emit } = this;
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
    const high = this.emit.int("IDIV", number, this.emit.const(below));
    const size = steps[i]?.size;
    return i === steps.length - 1 || size === undefined
      ? high
      : this.emit.int("MOD", high, this.emit.const(size));
  }
}

/**
 * Rows of the last dim that come before this round; undefined where a round is not a whole number of rows.
 */
function rowsBefore(steps: readonly CopyDim[], width: number, round: number): number | undefined {
  const below = prod(steps.slice(0, -1).map((d) => d.size));
  return width % below === 0 ? (round * width) / below : undefined;
}
