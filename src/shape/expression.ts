// The nodes of symbolic integers: their parts, numeric bounds, text and order. In: parts that are canonical
// already. Out: nodes; `intern` returns the one node of a structure. `arithmetic.ts` decides which node
// represents a value; `symbolic.ts` is the public interface.
import { SymbolicError } from "../errors.ts";
import { arraysEqual } from "../helpers.ts";
// An intended import cycle: the methods below call the functions there, but neither file runs the other's
// code on load.
import { add, eq, ge, gt, idiv, le, linear, lt, mod, mul, neg, sub } from "./arithmetic.ts";
import { type Internable, InternTable } from "./intern.ts";

/** A size or index: a number, or an expression of Variables. */
export type Sint = number | Sym;
type Atom = Var | Bound | Product | Div | Mod | Less | All;
export type SymNode = Atom | Sum;

const table = new InternTable();
export const intern = <T extends Sym>(node: T): T => table.get(node);
/** The number of nodes in the intern table, for tests and leak reports. */
export const internedCount = (): number => table.size;

const ONES: readonly number[] = [1];
const MAX = Number.MAX_SAFE_INTEGER;
const clamp = (n: number): number => (n > MAX ? MAX : n < -MAX ? -MAX : n);
const mix = (h: number, x: number): number => {
  const m = Math.imul(h ^ x, 0x9e3779b1);
  return m ^ (m >>> 15);
};
const mixNumber = (h: number, n: number): number => mix(mix(h, n | 0), (n / 4294967296) | 0);

export const smin = (x: Sint): number => (typeof x === "number" ? x : x.min);
export const smax = (x: Sint): number => (typeof x === "number" ? x : x.max);

/** An immutable, interned symbolic integer: equal structure means `===`. */
export abstract class Sym implements Internable {
  abstract readonly kind: "variable" | "bound" | "product" | "div" | "mod" | "less" | "all" | "sum";
  // `declare`: otherwise each of the eight subclasses would define these fields again, ten times slower in
  // V8.
  declare readonly min: number;
  declare readonly max: number;
  declare readonly hash: number;
  declare next: Internable | undefined;
  /**
   * The linear form k + sum(coefs[i] * terms[i]). For any node but a Sum, the node itself is the only term.
   */
  declare readonly terms: readonly Sym[];
  declare readonly coefs: readonly number[];
  declare readonly k: number;

  constructor(
    min: number,
    max: number,
    hash: number,
    terms?: readonly Sym[],
    coefs?: readonly number[],
    k = 0,
  ) {
    this.min = min;
    this.max = max;
    this.hash = hash;
    this.next = undefined;
    this.terms = terms ?? [this];
    this.coefs = coefs ?? ONES;
    this.k = k;
  }

  abstract sameAs(other: Internable): boolean;
  abstract toString(): string;

  add(other: Sint): Sint {
    return add(this, other);
  }
  sub(other: Sint): Sint {
    return sub(this, other);
  }
  mul(other: Sint): Sint {
    return mul(this, other);
  }
  neg(): Sint {
    return neg(this);
  }
  idiv(other: Sint): Sint {
    return idiv(this, other);
  }
  mod(other: Sint): Sint {
    return mod(this, other);
  }
  lt(other: Sint): Sint {
    return lt(this, other);
  }
  le(other: Sint): Sint {
    return le(this, other);
  }
  gt(other: Sint): Sint {
    return gt(this, other);
  }
  ge(other: Sint): Sint {
    return ge(this, other);
  }
  eq(other: Sint): Sint {
    return eq(this, other);
  }
}

export class Var extends Sym {
  readonly kind = "variable";
  readonly name: string;
  /** An inclusive symbolic upper bound, for a loop over a symbolic size; `max` is its numeric bound. */
  readonly limit: Sym | undefined;
  /** The name split into text and trailing number, so that ridx2 sorts before ridx10. */
  readonly stem: string;
  readonly serial: number;

  constructor(name: string, min: number, max: number, limit: Sym | undefined) {
    let h = mixNumber(mixNumber(limit?.hash ?? 1, min), max);
    for (let i = 0; i < name.length; i++) h = mix(h, name.charCodeAt(i));
    super(min, max, h);
    this.name = name;
    this.limit = limit;
    let digits = name.length;
    while (digits > 0 && name.charCodeAt(digits - 1) >= 48 && name.charCodeAt(digits - 1) <= 57) digits--;
    this.stem = name.slice(0, digits);
    this.serial = digits === name.length ? -1 : Number(name.slice(digits));
  }

  sameAs(o: Internable): boolean {
    return (
      o instanceof Var &&
      o.name === this.name &&
      o.min === this.min &&
      o.max === this.max &&
      o.limit === this.limit
    );
  }

  /** This variable with a value. Arithmetic treats it as a variable; `unbind` returns the value. */
  bind(value: number): Bound {
    if (!Number.isSafeInteger(value) || value < this.min || value > this.max) {
      throw new SymbolicError(
        `bind: ${this.name} cannot be ${value}; ` +
          `it was declared as an integer from ${this.min} to ${this.max}, bind a value in that range`,
      );
    }
    return intern(new Bound(this, value));
  }

  toString(): string {
    return this.name;
  }
}

export class Bound extends Sym {
  readonly kind = "bound";
  readonly variable: Var;
  readonly value: number;

  constructor(variable: Var, value: number) {
    super(variable.min, variable.max, mixNumber(mix(variable.hash, 2), value));
    this.variable = variable;
    this.value = value;
  }

  get name(): string {
    return this.variable.name;
  }
  sameAs(o: Internable): boolean {
    return o instanceof Bound && o.variable === this.variable && o.value === this.value;
  }

  toString(): string {
    return `${this.variable.name}[${this.value}]`;
  }
}

/** A product of two or more atoms, in atom order. The sum above holds the constant factor as coefficient. */
export class Product extends Sym {
  readonly kind = "product";
  readonly factors: readonly Sym[];

  constructor(factors: readonly Sym[]) {
    let h = 3,
      lo = 1,
      hi = 1;
    for (const f of factors) {
      h = mix(h, f.hash);
      const a = lo * f.min,
        b = lo * f.max,
        c = hi * f.min,
        d = hi * f.max;
      lo = clamp(Math.min(a, b, c, d)) + 0;
      hi = clamp(Math.max(a, b, c, d)) + 0;
    }
    super(lo, hi, h);
    this.factors = factors;
  }

  sameAs(o: Internable): boolean {
    return o instanceof Product && arraysEqual(o.factors, this.factors);
  }
  toString(): string {
    return `(${this.factors.join("*")})`;
  }
}

export class Div extends Sym {
  readonly kind = "div";
  readonly x: Sint;
  readonly by: Sint;

  constructor(x: Sint, by: Sint) {
    const lo = smin(by),
      hi = smax(by);
    const least = smin(x),
      most = smax(x);
    super(
      Math.floor(least / (least < 0 ? lo : hi)),
      Math.floor(most / (most < 0 ? hi : lo)),
      mix(mix(hashOf(x), 4), hashOf(by)),
    );
    this.x = x;
    this.by = by;
  }

  sameAs(o: Internable): boolean {
    return o instanceof Div && o.x === this.x && o.by === this.by;
  }
  toString(): string {
    return `(${this.x.toString()}//${this.by.toString()})`;
  }
}

export class Mod extends Sym {
  readonly kind = "mod";
  readonly x: Sint;
  readonly by: Sint;
  /** idiv(x, by), cached because every sum with this node needs it. */
  quotient: Sint | undefined = undefined;

  constructor(x: Sint, by: Sint) {
    const inside = smin(x) >= 0;
    super(0, inside ? Math.min(smax(x), smax(by) - 1) : smax(by) - 1, mix(mix(hashOf(x), 5), hashOf(by)));
    this.x = x;
    this.by = by;
  }

  sameAs(o: Internable): boolean {
    return o instanceof Mod && o.x === this.x && o.by === this.by;
  }
  toString(): string {
    return `(${this.x.toString()}%${this.by.toString()})`;
  }
}

/** x < limit, as 0 or 1. x has no constant and no common factor. */
export class Less extends Sym {
  readonly kind = "less";
  readonly x: Sym;
  readonly limit: number;

  constructor(x: Sym, limit: number) {
    super(0, 1, mixNumber(mix(x.hash, 6), limit));
    this.x = x;
    this.limit = limit;
  }

  sameAs(o: Internable): boolean {
    return o instanceof Less && o.x === this.x && o.limit === this.limit;
  }

  /** The two sides as a person would write them: no negative terms, a positive constant. */
  sides(): [Sint, Sint] {
    const left: Sym[] = [],
      right: Sym[] = [],
      leftCoefs: number[] = [],
      rightCoefs: number[] = [];
    this.x.terms.forEach((t, i) => {
      const c = this.x.coefs[i] as number;
      (c > 0 ? left : right).push(t);
      (c > 0 ? leftCoefs : rightCoefs).push(Math.abs(c));
    });
    const onLeft = this.limit < 0;
    return [
      linear(left, leftCoefs, onLeft ? -this.limit : 0),
      linear(right, rightCoefs, onLeft ? 0 : this.limit),
    ];
  }

  toString(): string {
    const [left, right] = this.sides();
    return `(${left.toString()}<${right.toString()})`;
  }
}

/** 1 if all of several 0/1 values are 1. */
export class All extends Sym {
  readonly kind = "all";
  readonly parts: readonly Sym[];

  constructor(parts: readonly Sym[]) {
    let h = 7;
    for (const p of parts) h = mix(h, p.hash);
    super(0, 1, h);
    this.parts = parts;
  }

  sameAs(o: Internable): boolean {
    return o instanceof All && arraysEqual(o.parts, this.parts);
  }
  toString(): string {
    return `(${this.parts.join(" and ")})`;
  }
}

export class Sum extends Sym {
  readonly kind = "sum";
  /** Whether a term is a Mod: only then can terms recombine. */
  readonly hasMod: boolean;

  constructor(terms: readonly Sym[], coefs: readonly number[], k: number, hasMod: boolean) {
    let lo = k,
      hi = k,
      h = mixNumber(8, k);
    for (let i = 0; i < terms.length; i++) {
      const t = terms[i] as Sym,
        c = coefs[i] as number;
      lo += c * (c > 0 ? t.min : t.max);
      hi += c * (c > 0 ? t.max : t.min);
      h = mixNumber(mix(h, t.hash), c);
    }
    super(clamp(lo), clamp(hi), h, terms, coefs, k);
    this.hasMod = hasMod;
  }

  sameAs(o: Internable): boolean {
    return (
      o instanceof Sum &&
      o.k === this.k &&
      arraysEqual(o.terms, this.terms) &&
      arraysEqual(o.coefs, this.coefs)
    );
  }

  /** The order of terms for printing: positive terms first. */
  order(): number[] {
    const at = this.coefs.map((_, i) => i);
    return [
      ...at.filter((i) => (this.coefs[i] as number) > 0),
      ...at.filter((i) => (this.coefs[i] as number) < 0),
    ];
  }

  toString(): string {
    let text = "";
    for (const i of this.order()) {
      const c = this.coefs[i] as number,
        t = String(this.terms[i]);
      const term = Math.abs(c) === 1 ? t : `(${t}*${Math.abs(c)})`;
      text = text === "" ? (c < 0 ? `(-${term})` : term) : `(${text}${c < 0 ? "-" : "+"}${term})`;
    }
    return this.k === 0 ? text : `(${text}${this.k < 0 ? "-" : "+"}${Math.abs(this.k)})`;
  }
}

const hashOf = (x: Sint): number => (typeof x === "number" ? mixNumber(9, x) : x.hash);

const RANK: Record<Sym["kind"], number> = {
  variable: 0,
  bound: 1,
  product: 2,
  div: 3,
  mod: 4,
  less: 5,
  all: 6,
  sum: 7,
};

/**
 * The order of terms. It depends only on structure, so that a program always gives the same text and cache
 * keys.
 */
export function compare(a: Sym, b: Sym): number {
  if (a === b) return 0;
  const x = a as SymNode,
    y = b as SymNode;
  if (x.kind === "variable" && y.kind === "variable") return compareVariables(x, y);
  if (x.kind === "bound" && y.kind === "bound")
    return compareVariables(x.variable, y.variable) || x.value - y.value;
  if (x.kind === "product" && y.kind === "product") return compareLists(x.factors, y.factors);
  if (x.kind === "all" && y.kind === "all") return compareLists(x.parts, y.parts);
  if (x.kind === "less" && y.kind === "less") return compare(x.x, y.x) || x.limit - y.limit;
  if ((x.kind === "div" || x.kind === "mod") && x.kind === y.kind) {
    return compareInts(x.x, (y as Div | Mod).x) || compareInts(x.by, (y as Div | Mod).by);
  }
  if (x.kind === "sum" && y.kind === "sum") {
    const order = compareLists(x.terms, y.terms) || x.k - y.k;
    for (let i = 0; order === 0 && i < x.coefs.length; i++) {
      if (x.coefs[i] !== y.coefs[i]) return x.coefs[i]! - y.coefs[i]!;
    }
    return order;
  }
  return RANK[x.kind] - RANK[y.kind];
}

function compareInts(a: Sint, b: Sint): number {
  if (typeof a === "number") return typeof b === "number" ? a - b : -1;
  return typeof b === "number" ? 1 : compare(a, b);
}

function compareVariables(a: Var, b: Var): number {
  if (a === b) return 0;
  if (a.stem !== b.stem) return a.stem < b.stem ? -1 : 1;
  if (a.name !== b.name) return a.serial - b.serial || (a.name < b.name ? -1 : 1);
  return a.min - b.min || a.max - b.max || compareInts(a.limit ?? 0, b.limit ?? 0);
}

function compareLists(a: readonly Sym[], b: readonly Sym[]): number {
  for (let i = 0; i < a.length && i < b.length; i++) {
    const order = compare(a[i]!, b[i]!);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}
