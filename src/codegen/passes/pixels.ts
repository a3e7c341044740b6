// Accesses to images (src/images.ts) become those of the hardware: a pixel, a vector of four, at (x, y).
// Comes after everything that takes an image for an array in rows. An index is divided into row, column and
// lane as an affine sum; loads of one pixel become one node, stores of its four values one store. What is
// outside of an image reads as zeros, so what a gate asks only to find out whether a pixel is inside is
// dropped.

import { dtypes, type ImageShape } from "../../dtype.ts";
import { ArgumentError, InternalError } from "../../errors.ts";
import { getOrMake, range } from "../../helpers.ts";
import { ImageDType } from "../../images.ts";
import type { UOpArena } from "../../uop/arena.ts";
import type { Expr, Load, Sink, Store, UOp } from "../../uop/node.ts";
import { mapGraph } from "../../uop/rewrite.ts";
import { type Affine, affine, toIndex } from "../analysis/affine.ts";
import { rangesOf, type ValueBounds } from "../analysis/ranges.ts";

const LANES = 4;

export function pixels(sink: Sink, arena: UOpArena): Sink {
  const nodes = arena.nodes(sink);
  if (!nodes.some((u) => u.op === "DEFINE_GLOBAL" && u.dtype.image !== undefined)) return sink;
  return new Pixels(arena, rangesOf(nodes)).run(sink);
}

/** Where an access goes. */
interface PixelPlace {
  readonly x: Expr;
  readonly y: Expr;
  /** which of the four values; not a CONST where that depends on a loop */
  readonly lane: Expr;
  /** what is left of the gate: where the rest does not hold, the pixel is outside of the image */
  readonly gate: Expr | undefined;
}
/** A part of a gate: the sum of these terms is at most that. */
interface Constraint {
  readonly condition: Expr;
  readonly terms: Affine["terms"];
  readonly most: number;
}

const modulo = (k: number, n: number): number => ((k % n) + n) % n;
const shapeOf = (u: Load | Store): ImageShape | undefined =>
  u.buffer.dtype.image instanceof ImageDType ? u.buffer.dtype.image.shape : undefined;

class Pixels {
  readonly #arena: UOpArena;
  readonly #bounds: ReadonlyMap<UOp, ValueBounds>;
  readonly #forms = new Map<Expr, Affine>();

  constructor(arena: UOpArena, bounds: ReadonlyMap<UOp, ValueBounds>) {
    this.#arena = arena;
    this.#bounds = bounds;
  }

  run(sink: Sink): Sink {
    const read = mapGraph(sink, this.#arena, (u) => {
      if (u.op === "LOAD") return this.#load(u);
      return u.op === "VECTORIZE" ? this.#vector(u.lanes) : undefined;
    });
    return this.#arena.sink(this.#stores(read.stores));
  }

  // ---- loads ----

  #load(u: Load): Expr | undefined {
    const shape = shapeOf(u);
    if (shape === undefined) return undefined;
    const values = range(u.dtype.count).map((i) => this.#value(u, i, shape));
    return values.length === 1 ? values[0] : this.#vector(values);
  }
  /** One value: the lane of a pixel. */
  #value({ buffer, index, gate, otherwise }: Load, i: number, shape: ImageShape): Expr {
    const a = this.#arena;
    const zero = otherwise === undefined || (otherwise.op === "CONST" && otherwise.is(0));
    const place = this.#place(index, i, gate, shape, zero);
    const pixel = a.load(buffer, a.vectorize([place.x, place.y]), { lanes: LANES });
    const value = this.#laneOf(pixel, place.lane);
    if (place.gate === undefined) return value;
    const other = otherwise === undefined ? a.constant(value.dtype, 0) : a.gep(otherwise, i);
    return a.alu("WHERE", place.gate, value, otherwise?.dtype.count === 1 ? otherwise : other);
  }
  #laneOf(pixel: Expr, lane: Expr): Expr {
    const a = this.#arena;
    if (lane.op === "CONST") return a.gep(pixel, Number(lane.value));
    return range(LANES - 1).reduceRight<Expr>(
      (rest, i) => a.alu("WHERE", a.alu("CMPEQ", lane, a.int(i)), a.gep(pixel, i), rest),
      a.gep(pixel, LANES - 1),
    );
  }
  /** Scalars as a vector: the one that they were taken from, if they are all of its lanes in order. */
  #vector(lanes: readonly Expr[]): Expr {
    const [first] = lanes;
    const from = first?.op === "GEP" ? first.vector : undefined;
    const isWhole =
      from?.dtype.count === lanes.length &&
      lanes.every((l, i) => l.op === "GEP" && l.vector === from && l.lane === i);
    return isWhole && from !== undefined ? from : this.#arena.vectorize(lanes);
  }

  // ---- stores ----

  /** The four values of a pixel are stored together, where the first of them was. */
  #stores(stores: readonly Store[]): Store[] {
    const a = this.#arena;
    const found = new Map<string, { store: Store; place: PixelPlace; values: Expr[] }>();
    const order: (Store | string)[] = [];
    for (const u of stores) {
      const shape = shapeOf(u);
      if (shape === undefined) {
        order.push(u);
        continue;
      }
      const { count } = u.value.dtype;
      for (const i of range(count)) {
        const place = this.#place(u.index, i, u.gate, shape, false);
        if (place.lane.op !== "CONST") throw apart();
        const key = [u.buffer, place.x, place.y, place.gate].map((s) => s?.id).join();
        if (!found.has(key)) order.push(key);
        const pixel = getOrMake(found, key, () => ({ store: u, place, values: [] }));
        pixel.values[Number(place.lane.value)] = count === 1 ? u.value : a.gep(u.value, i);
      }
    }
    return order.map((x) => {
      if (typeof x !== "string") return x;
      const pixel = found.get(x);
      if (pixel === undefined) throw new InternalError("a pixel was lost");
      const values = range(LANES).flatMap((i) => pixel.values[i] ?? []);
      if (values.length < LANES) throw apart();
      const { store, place } = pixel;
      return a.store(store.buffer, a.vectorize([place.x, place.y]), this.#vector(values), place.gate);
    });
  }

  // ---- addresses ----

  /** `reads0`: outside of the gate the value is 0. */
  #place(
    index: Expr,
    plus: number,
    gate: Expr | undefined,
    [height, width]: ImageShape,
    reads0: boolean,
  ): PixelPlace {
    const a = this.#arena;
    const form = affine(index, this.#forms);
    const { pixel, lane } = this.#split({ terms: form.terms, k: form.k + plus });
    const inside = gate === undefined ? [] : this.#constraints(gate);
    const column = this.#column(pixel, width, inside);
    if (column === undefined) {
      const at = toIndex(pixel, a);
      const [x, y] = [a.alu("MOD", at, a.int(width)), a.alu("IDIV", at, a.int(width))];
      return { x, y, lane, gate };
    }
    const row = rowOf(pixel, column, width);
    const isClamped = (c: Constraint): boolean =>
      this.#leaves(column, c, width) || this.#leaves(row, c, height);
    const kept = reads0 ? inside.filter((c) => !isClamped(c)) : inside;
    const left = kept.length === inside.length ? gate : a.and(kept.map((c) => c.condition));
    return { x: toIndex(column, a), y: toIndex(row, a), lane, gate: kept.length === 0 ? undefined : left };
  }

  /** An index as pixel and lane. */
  #split({ terms, k }: Affine): { pixel: Affine; lane: Expr } {
    const a = this.#arena;
    const byLane = new Map([...terms].filter(([, c]) => c % LANES !== 0));
    const rest = { terms: [...terms].filter(([, c]) => c % LANES === 0), k: Math.floor(k / LANES) };
    const pixel = { terms: new Map(rest.terms.map(([t, c]) => [t, c / LANES] as const)), k: rest.k };
    const lane = { terms: byLane, k: modulo(k, LANES) };
    if (byLane.size === 0) return { pixel, lane: a.int(lane.k) };
    const [least, most] = this.#boundsOf(lane, []);
    if (least >= 0 && most < LANES) return { pixel, lane: toIndex(lane, a) };
    const index = toIndex({ terms, k }, a);
    const opaque = { terms: new Map([[a.alu("IDIV", index, a.int(LANES)), 1]]), k: 0 };
    return { pixel: opaque, lane: a.alu("MOD", index, a.int(LANES)) };
  }
  /**
   * The part of a pixel's number that stays within a row where the gate holds; undefined: none is known to.
   */
  #column({ terms, k }: Affine, width: number, inside: readonly Constraint[]): Affine | undefined {
    const own = new Map([...terms].filter(([, c]) => c % width !== 0));
    const ks = [modulo(k, width), modulo(k, width) - width];
    return ks
      .map((at) => ({ terms: own, k: at }))
      .find((form) => {
        const [least, most] = this.#boundsOf(form, inside);
        return least >= 0 && most < width;
      });
  }

  // ---- proofs ----

  /** Between which numbers a sum stays, where these constraints hold. */
  #boundsOf({ terms, k }: Affine, inside: readonly Constraint[]): ValueBounds {
    let [least, most] = [k, k];
    for (const [t, c] of terms) {
      const [lo, hi] = this.#bounds.get(t) ?? [-Infinity, Infinity];
      least += Math.min(c * lo, c * hi);
      most += Math.max(c * lo, c * hi);
    }
    for (const constraint of inside) {
      const part = partOf(terms, constraint.terms);
      if (part === undefined) continue;
      const [lo, hi] = this.#boundsOf({ terms: part.rest, k }, []);
      if (part.times > 0) most = Math.min(most, part.times * constraint.most + hi);
      else least = Math.max(least, part.times * constraint.most + lo);
    }
    return [least, most];
  }
  /** Whether a coordinate is outside of the image wherever the constraint does not hold. */
  #leaves({ terms, k }: Affine, { terms: limited, most }: Constraint, size: number): boolean {
    const part = partOf(terms, limited);
    if (part === undefined) return false;
    const [lo, hi] = this.#boundsOf({ terms: part.rest, k }, []);
    const from = part.times * (most + 1);
    return part.times > 0 ? from + lo >= size : from + hi < 0;
  }
  /** A gate as sums that are limited; one that is none of these is a constraint that nothing follows from. */
  #constraints(gate: Expr): Constraint[] {
    if (gate.op === "ALU" && gate.fn === "AND") return gate.operands.flatMap((x) => this.#constraints(x));
    if (gate.op !== "ALU" || gate.fn !== "CMPLT" || gate.operandType !== dtypes.int32)
      return [{ condition: gate, terms: new Map([[gate, 1]]), most: 0 }];
    const [x, y] = [affine(gate.operands[0], this.#forms), affine(gate.operands[1], this.#forms)];
    const terms = new Map(x.terms);
    for (const [t, c] of y.terms) terms.set(t, (terms.get(t) ?? 0) - c);
    return [{ condition: gate, terms, most: y.k - x.k - 1 }];
  }
}

/** What is left of a pixel's number, in rows. */
function rowOf({ terms, k }: Affine, column: Affine, width: number): Affine {
  const whole = [...terms].filter(([, c]) => c % width === 0).map(([t, c]) => [t, c / width] as const);
  return { terms: new Map(whole), k: (k - column.k) / width };
}
/** A sum as a multiple of another one, and the rest. */
function partOf(
  terms: Affine["terms"],
  of: Affine["terms"],
): { times: number; rest: Affine["terms"] } | undefined {
  const factors = [...of].filter(([, c]) => c !== 0).map(([t, c]) => (terms.get(t) ?? 0) / c);
  const [times = 0] = factors;
  if (times === 0 || !factors.every((f) => f === times)) return undefined;
  return { times, rest: new Map([...terms].filter(([t]) => (of.get(t) ?? 0) === 0)) };
}

const apart = (): ArgumentError =>
  new ArgumentError(
    "images: the four values of a pixel are not stored by one thread; leave the innermost axis to UPCAST",
  );
