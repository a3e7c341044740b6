// Arithmetic on symbolic integers: chooses the node that represents a value. In: plain numbers and nodes.
// Out: a plain number if the value is known, else one interned node in canonical form: constant + sum of
// coefficient * atom, atoms in a fixed order. Division and modulo round down, as in Python. The rules use
// only the numeric bounds of the nodes, so each result holds for every value of the variables.
import { SymbolicError } from "../errors.ts";
import { mapped } from "../helpers.ts";
import {
  All,
  compare,
  Div,
  intern,
  Less,
  Mod,
  Product,
  type Sint,
  Sum,
  type Sym,
  type SymNode,
  smax,
  smin,
  Var,
} from "./expression.ts";

const NO_TERMS: readonly Sym[] = [];
const NO_COEFS: readonly number[] = [];
const termsOf = (x: Sint): readonly Sym[] => (typeof x === "number" ? NO_TERMS : x.terms);
const coefsOf = (x: Sint): readonly number[] => (typeof x === "number" ? NO_COEFS : x.coefs);
const constOf = (x: Sint): number => (typeof x === "number" ? x : x.k);
const floorMod = (a: number, b: number): number => a - Math.floor(a / b) * b;

function gcd(a: number, b: number): number {
  a = Math.abs(a);
  b = Math.abs(b);
  while (b !== 0) [a, b] = [b, a % b];
  return a;
}

/** k + sum(coefs[i] * terms[i]). The terms are sorted, distinct and not sums; the coefficients are not 0. */
export function linear(terms: readonly Sym[], coefs: readonly number[], k: number): Sint {
  k += 0; // no -0
  if (terms.length === 0) return k;
  if (terms.length === 1 && k === 0 && coefs[0] === 1) return terms[0]!;
  let hasMod = false;
  for (const t of terms) if (t instanceof Mod) hasMod = true;
  const sum = intern(new Sum(terms, coefs, k, hasMod));
  return hasMod && terms.length > 1 ? recombine(sum) : sum;
}

/** a * ca + b * cb, by merging the two sorted lists of terms. */
function combine(a: Sint, ca: number, b: Sint, cb: number): Sint {
  const ta = termsOf(a),
    tb = termsOf(b),
    xa = coefsOf(a),
    xb = coefsOf(b);
  const terms: Sym[] = [],
    coefs: number[] = [];
  let i = 0,
    j = 0;
  while (i < ta.length || j < tb.length) {
    const order = i === ta.length ? 1 : j === tb.length ? -1 : compare(ta[i]!, tb[j]!);
    const term = order > 0 ? tb[j]! : ta[i]!;
    let c = 0;
    if (order <= 0) c += ca * xa[i++]!;
    if (order >= 0) c += cb * xb[j++]!;
    if (c === 0) continue;
    terms.push(term);
    coefs.push(c);
  }
  return linear(terms, coefs, constOf(a) * ca + constOf(b) * cb);
}

/**
 * Recombines a quotient and its remainder: (y//m)*m + y%m -> y, and ((x//d)%m)*d + x%d -> x%(d*m). Both only
 * if the coefficients match exactly.
 */
function recombine(sum: Sym): Sint {
  for (let i = 0; i < sum.terms.length; i++) {
    const t = sum.terms[i] as SymNode,
      c = sum.coefs[i]!;
    if (t.kind !== "mod") continue;
    t.quotient ??= idiv(t.x, t.by);
    const whole = mul(t.quotient, t.by);
    if (contains(sum, whole, c)) return combine(drop(sum, [t, ...termsOf(whole)]), 1, t.x, c);
    if (typeof t.by !== "number") continue;
    for (let j = 0; j < sum.terms.length; j++) {
      const u = sum.terms[j] as SymNode;
      if (u.kind !== "mod" || u === t || sum.coefs[j] !== c * t.by || typeof u.by !== "number") continue;
      if (u.x !== t.quotient) continue;
      return combine(drop(sum, [t, u]), 1, mod(t.x, t.by * u.by), c);
    }
  }
  return sum;
}

/** The sum without these terms. */
function drop(sum: Sym, gone: readonly Sym[]): Sint {
  const stays = sum.terms.map((t) => !gone.includes(t));
  return linear(
    sum.terms.filter((_, i) => stays[i]),
    sum.coefs.filter((_, i) => stays[i]),
    sum.k,
  );
}

/** Whether the sum contains every term of `part` with `c` times its coefficient. */
function contains(sum: Sym, part: Sint, c: number): boolean {
  if (typeof part === "number" || part.k !== 0) return false;
  for (let i = 0; i < part.terms.length; i++) {
    const at = sum.terms.indexOf(part.terms[i]!);
    if (at < 0 || sum.coefs[at] !== c * part.coefs[i]!) return false;
  }
  return true;
}

export function add(a: Sint, b: Sint): Sint {
  if (typeof a === "number") {
    if (typeof b === "number") return a + b;
    return a === 0 ? b : combine(b, 1, a, 1);
  }
  return b === 0 ? a : combine(a, 1, b, 1);
}

export function sub(a: Sint, b: Sint): Sint {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return b === 0 ? a : combine(a, 1, b, -1);
}

export const neg = (a: Sint): Sint => mul(a, -1);

export function mul(a: Sint, b: Sint): Sint {
  if (typeof a === "number") {
    if (typeof b === "number") return a * b + 0;
    return scale(b, a);
  }
  if (typeof b === "number") return scale(a, b);
  let total: Sint = mul(a, b.k);
  for (let j = 0; j < b.terms.length; j++) {
    for (let i = 0; i < a.terms.length; i++) {
      total = combine(total, 1, product(a.terms[i]!, b.terms[j]!), a.coefs[i]! * b.coefs[j]!);
    }
    total = combine(total, 1, b.terms[j]!, a.k * b.coefs[j]!);
  }
  return total;
}

function scale(a: Sym, c: number): Sint {
  if (c === 0) return 0;
  if (c === 1) return a;
  return linear(
    a.terms,
    mapped(a.coefs, (x) => x * c),
    a.k * c,
  );
}

const factorsOf = (t: Sym): readonly Sym[] => (t instanceof Product ? t.factors : [t]);

function product(a: Sym, b: Sym): Sym {
  return intern(new Product([...factorsOf(a), ...factorsOf(b)].sort(compare)));
}

function checkDivisor(op: string, x: Sint, d: Sint): void {
  if (smin(d) > 0) return;
  throw new SymbolicError(
    `${op}: cannot divide ${x} by ${d}, which can be ${smin(d)}; the divisor must be positive`,
  );
}

export function idiv(x: Sint, d: Sint): Sint {
  if (smin(d) <= 0) checkDivisor("idiv", x, d);
  if (typeof d !== "number") return divideBySymbol(x, d);
  if (typeof x === "number") return Math.floor(x / d) + 0;
  if (d === 1) return x;
  const low = Math.floor(x.min / d) + 0;
  if (low === Math.floor(x.max / d)) return low;
  const [whole, rest] = pull(x, d);
  return whole === 0 ? divideRest(x, d) : add(whole, idiv(rest, d));
}

export function mod(x: Sint, d: Sint): Sint {
  if (smin(d) <= 0) checkDivisor("mod", x, d);
  if (typeof d !== "number") return modBySymbol(x, d);
  if (typeof x === "number") return floorMod(x, d) + 0;
  if (d === 1) return 0;
  const low = Math.floor(x.min / d);
  if (low === Math.floor(x.max / d)) return add(x, -low * d);
  const [whole, rest] = pull(x, d);
  return whole === 0 ? modRest(x, d) : mod(rest, d);
}

/** x = whole * d + rest, with |coefficients of rest| < d and the constant of rest in [0, d). */
function pull(x: Sym, d: number): [whole: Sint, rest: Sint] {
  let easy = x.k >= 0 && x.k < d;
  for (const c of x.coefs) if (c >= d || c <= -d) easy = false;
  if (easy) return [0, x];
  const terms: Sym[] = [],
    coefs: number[] = [],
    wholeTerms: Sym[] = [],
    wholeCoefs: number[] = [];
  for (let i = 0; i < x.terms.length; i++) {
    const c = x.coefs[i]!,
      r = c % d;
    if (r !== 0) {
      terms.push(x.terms[i]!);
      coefs.push(r);
    }
    if (c === r) continue;
    wholeTerms.push(x.terms[i]!);
    wholeCoefs.push((c - r) / d);
  }
  const q = Math.floor(x.k / d);
  return [linear(wholeTerms, wholeCoefs, q), linear(terms, coefs, x.k - q * d)];
}

/**
 * rest = g * inner + low with 0 <= low < g and g a divisor of d: a division by d then depends only on
 * `inner`.
 */
function block(x: Sym, d: number): { g: number; inner: Sint; low: Sint } | undefined {
  let tried = d;
  for (;;) {
    let g = 1;
    for (const c of x.coefs) {
      const common = gcd(c, d);
      if (common < tried && common > g) g = common;
    }
    if (g === 1) return undefined;
    tried = g;
    let lo = x.k,
      hi = x.k;
    for (let i = 0; i < x.terms.length; i++) {
      const c = x.coefs[i]!,
        t = x.terms[i]!;
      if (c % g === 0) continue;
      lo += c * (c > 0 ? t.min : t.max);
      hi += c * (c > 0 ? t.max : t.min);
    }
    const q = Math.floor(lo / g);
    if (q !== Math.floor(hi / g)) continue;
    const inner = linear(
      x.terms.filter((_, i) => x.coefs[i]! % g === 0),
      x.coefs.filter((c) => c % g === 0).map((c) => c / g),
      q,
    );
    const low = linear(
      x.terms.filter((_, i) => x.coefs[i]! % g !== 0),
      x.coefs.filter((c) => c % g !== 0),
      x.k - q * g,
    );
    return { g, inner, low };
  }
}

/** The single term of a node of the form term + k. */
const only = (x: Sint): SymNode | undefined =>
  typeof x !== "number" && x.terms.length === 1 && x.coefs[0] === 1 ? (x.terms[0] as SymNode) : undefined;

/** x // d for an x that `pull` cannot reduce. */
function divideRest(x: Sym, d: number): Sint {
  const part = block(x, d);
  return part === undefined ? quotientNode(x, d) : idiv(part.inner, d / part.g);
}

/** x % d for an x that `pull` cannot reduce. */
function modRest(x: Sym, d: number): Sint {
  const part = block(x, d);
  if (part === undefined) return remainderNode(x, d);
  return add(mul(mod(part.inner, d / part.g), part.g), part.low);
}

/** (x//a)//b -> x//(a*b) and (x%(a*b))//a -> (x//a)%b, else a node. */
function quotientNode(x: Sint, d: Sint): Sint {
  const t = only(x);
  if (t?.kind === "div") return idiv(add(t.x, mul(t.by, constOf(x))), mul(t.by, d));
  if (t?.kind === "mod" && constOf(x) === 0) {
    const times = exactly(t.by, d);
    if (times !== undefined && smin(times) > 0) return mod(idiv(t.x, d), times);
  }
  return intern(new Div(x, d));
}

/** (x%(a*b))%a -> x%a, else a node. */
function remainderNode(x: Sint, d: Sint): Sint {
  const t = only(x);
  if (t?.kind === "mod" && exactly(t.by, d) !== undefined) return mod(add(t.x, constOf(x)), d);
  return intern(new Mod(x, d));
}

/** x / d if the division is exact. */
function exactly(x: Sint, d: Sint): Sint | undefined {
  if (typeof x === "number") return typeof d === "number" && x % d === 0 ? x / d : undefined;
  const [whole, rest] = typeof d === "number" ? pull(x, d) : pullSymbol(x, d);
  return rest === 0 ? whole : undefined;
}

/** x = whole * d + rest by polynomial division, continued only while it makes the rest shorter. */
function pullSymbol(x: Sint, d: Sym): [whole: Sint, rest: Sint] {
  let whole: Sint = 0,
    rest = x;
  const lead = factorsOf(d.terms[0]!),
    leadCoef = d.coefs[0]!;
  for (let i = 0; i < termsOf(x).length; i++) {
    const c = coefsOf(x)[i]!;
    const q = c % leadCoef === 0 ? without(termsOf(x)[i]!, lead) : undefined;
    if (q === undefined) continue;
    const quotient = mul(q, c / leadCoef);
    const shorter = sub(rest, mul(quotient, d));
    if (size(shorter) >= size(rest)) continue;
    whole = add(whole, quotient);
    rest = shorter;
  }
  return [whole, rest];
}

const size = (x: Sint): number => termsOf(x).length + (constOf(x) === 0 ? 0 : 1);

/** The monomial divided by the factors, or undefined if one is missing. */
function without(t: Sym, factors: readonly Sym[]): Sint | undefined {
  const left = [...factorsOf(t)];
  for (const f of factors) {
    const at = left.indexOf(f);
    if (at < 0) return undefined;
    left.splice(at, 1);
  }
  return left.length === 0 ? 1 : left.length === 1 ? left[0]! : intern(new Product(left));
}

function divideBySymbol(x: Sint, d: Sym): Sint {
  const [whole, rest] = pullSymbol(x, d);
  if (smin(rest) >= 0 && isNegative(sub(rest, d))) return whole;
  if (smax(rest) < 0 && isNegative(sub(-1, add(rest, d)))) return sub(whole, 1);
  return add(whole, quotientNode(rest, d));
}

function modBySymbol(x: Sint, d: Sym): Sint {
  const rest = pullSymbol(x, d)[1];
  if (smin(rest) >= 0 && isNegative(sub(rest, d))) return rest;
  if (smax(rest) < 0 && isNegative(sub(-1, add(rest, d)))) return add(rest, d);
  return remainderNode(rest, d);
}

/** Whether x < 0 always. To prove it, a variable with a symbolic limit is replaced by that limit. */
function isNegative(x: Sint): boolean {
  let raised = x;
  for (let round = 0; smax(raised) >= 0; round++) {
    const next = round < 4 ? raise(raised) : raised;
    if (next === raised) return isBelowQuotient(raised);
    raised = next;
  }
  return true;
}
/** x//d + rest < 0 is x + rest*d < 0, where products with d may cancel. */
function isBelowQuotient(x: Sint): boolean {
  const at = termsOf(x).findIndex((t, i) => isSymbolicQuotient(t) && coefsOf(x)[i] === 1);
  const t = termsOf(x)[at];
  return t instanceof Div && isNegative(add(t.x, mul(sub(x, t), t.by)));
}
const isSymbolicQuotient = (t: Sym): boolean => t instanceof Div && typeof t.by !== "number";

const isLimited = (f: Sym): boolean => f instanceof Var && f.limit !== undefined;
/** Whether numeric bounds alone say too little about a term. */
const isCorrelated = (t: Sym): boolean => t instanceof Product || isLimited(t) || isSymbolicQuotient(t);

/** An upper bound of x: in each positive term one factor is replaced by its limit or its maximum. */
function raise(x: Sint): Sint {
  const terms = termsOf(x),
    coefs = coefsOf(x);
  let raised = x;
  for (let i = 0; i < terms.length; i++) {
    const t = terms[i]!,
      c = coefs[i]!;
    const factors = factorsOf(t);
    if (c < 0 || isSymbolicQuotient(t) || !isCorrelated(t) || factors.some((f) => f.min < 0)) continue;
    // A factor that also occurs in negative terms must stay, so that the two can cancel.
    const against = (f: Sym): boolean => terms.some((u, j) => coefs[j]! < 0 && factorsOf(u).includes(f));
    const top = factors.find(isLimited) ?? factors.find((f) => !against(f));
    if (top === undefined) continue;
    const most = isLimited(top) ? (top as Var).limit! : top.max;
    raised = add(raised, mul(mul(sub(most, top), without(t, [top])!), c));
  }
  return raised;
}

/** a < b as 0 or 1. */
export function lt(a: Sint, b: Sint): Sint {
  if (typeof a === "number" && typeof b === "number") return a < b ? 1 : 0;
  const x = sub(a, b);
  if (typeof x === "number") return x < 0 ? 1 : 0;
  if (x.min >= 0) return 0;
  if (x.max < 0) return 1;
  if (x.terms.some(isCorrelated)) {
    if (isNegative(x)) return 1;
    if (isNegative(sub(-1, x))) return 0;
  }
  let g = 0;
  for (const c of x.coefs) g = gcd(g, c);
  const limit = Math.ceil(-x.k / g) + 0;
  const bare = linear(x.terms, g === 1 ? x.coefs : x.coefs.map((c) => c / g), 0);
  // Removing the constant can let terms recombine, which may produce a constant and a factor again.
  if (typeof bare === "number" || bare.k !== 0) return lt(bare, limit);
  return lessByBlock(bare, limit) ?? lessByQuotient(bare, limit) ?? intern(new Less(bare, limit));
}

/** g*a + b < limit -> a < limit', if b cannot carry the sum past a multiple of g. */
function lessByBlock(x: Sym, limit: number): Sint | undefined {
  if (x.terms.length < 2) return undefined;
  for (const coef of x.coefs) {
    const g = Math.abs(coef);
    if (g === 1) continue;
    let lo = limit - 1,
      hi = limit - 1;
    for (let i = 0; i < x.terms.length; i++) {
      const c = x.coefs[i]!,
        t = x.terms[i]!;
      if (c % g === 0) continue;
      lo -= c * (c > 0 ? t.max : t.min);
      hi -= c * (c > 0 ? t.min : t.max);
    }
    const q = Math.floor(lo / g);
    if (q !== Math.floor(hi / g)) continue;
    const keep = x.terms.filter((_, i) => x.coefs[i]! % g === 0);
    return lt(
      linear(
        keep,
        x.coefs.filter((c) => c % g === 0).map((c) => c / g),
        0,
      ),
      q + 1,
    );
  }
  return undefined;
}

/** x//d < n -> x < n*d, and the same for x//d > n. */
function lessByQuotient(x: Sym, limit: number): Sint | undefined {
  const t = x.terms[0] as SymNode;
  if (x.terms.length !== 1 || t.kind !== "div") return undefined;
  return x.coefs[0] === 1 ? lt(t.x, mul(t.by, limit)) : ge(t.x, mul(t.by, 1 - limit));
}

export const gt = (a: Sint, b: Sint): Sint => lt(b, a);
export const le = (a: Sint, b: Sint): Sint => lt(a, add(b, 1));
export const ge = (a: Sint, b: Sint): Sint => le(b, a);
export const eq = (a: Sint, b: Sint): Sint => and(le(a, b), ge(a, b));

/** 1 if all of the 0/1 values are 1, else 0. */
export function and(...xs: readonly Sint[]): Sint {
  const parts = new Set<Sym>();
  for (const x of xs) {
    if (smin(x) < 0 || smax(x) > 1) {
      throw new SymbolicError(
        `and: ${x} ranges from ${smin(x)} to ${smax(x)}; expected 0/1 values, compare first`,
      );
    }
    if (x === 0) return 0;
    if (typeof x === "number") continue;
    for (const part of x instanceof All ? x.parts : [x]) parts.add(part);
  }
  if (parts.size > 1) {
    for (const p of parts) {
      for (const q of parts) {
        if (p === q || !(p instanceof Less) || !(q instanceof Less)) continue;
        if (p.x === q.x) parts.delete(p.limit < q.limit ? q : p);
        else if (contradicts(p, q)) return 0;
      }
    }
  }
  if (parts.size === 0) return 1;
  const list = [...parts].sort(compare);
  return list.length === 1 ? list[0]! : intern(new All(list));
}

/** Whether x < a and -x < b, that is -b < x < a, leaves no integer. */
function contradicts(p: Less, q: Less): boolean {
  const opposite =
    p.x.terms.length === q.x.terms.length && p.x.coefs[0] === -q.x.coefs[0]! && neg(p.x) === q.x;
  return opposite && p.limit - 1 <= -q.limit;
}
