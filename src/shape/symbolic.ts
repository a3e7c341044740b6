// Symbolic integers, the public interface. A Sint is a plain number or an immutable, interned expression of
// Variables. Here: making variables and walking over expressions (substitute, evaluate, fold, vars, unbind,
// coefficients). `expression.ts` has the nodes, `arithmetic.ts` simplifies while it builds them, `intern.ts`
// has the table that makes structural equality `===`.
import { SymbolicError } from "../errors.ts";
import { isPrintable, printable } from "../printable.ts";
import { add, and, idiv, lt, mod, mul, sub } from "./arithmetic.ts";
import {
  All,
  Bound,
  intern,
  Less,
  type Sint,
  type Sum,
  type Sym,
  type SymNode,
  smax,
  smin,
  Var,
} from "./expression.ts";

export { add, and, eq, ge, gt, idiv, le, lt, mod, mul, neg, sub } from "./arithmetic.ts";
export { type Bound, internedCount, type Sint, Sym, smax, smin } from "./expression.ts";

export type Variable = Var;

/** Names of the compiler's own variables begin with this, and no other names do. */
const OWN = "~";

/**
 * A symbolic integer between `min` and `max`, both included. The same arguments give the same variable. With
 * a symbolic `max` (a loop over a symbolic size) the simplifier can prove more.
 *
 * @example
 * const n = Variable("n", 1, 4).bind(3);
 * const x = Tensor.arange(8).reshape(4, 2);
 * await x.shrink([[0, n], [0, 2]]).sum(0).tolist() // => [6, 9]
 */
export function Variable(name: string, min: number, max: Sint): Variable {
  const top = smax(max ?? NaN);
  if (
    typeof name !== "string" ||
    !Number.isSafeInteger(min) ||
    !Number.isSafeInteger(top) ||
    min > top ||
    name === ""
  ) {
    throw new SymbolicError(
      `Variable: ${JSON.stringify(name)} from ${min} to ${max} is not a range; give a name and safe integers min <= max`,
    );
  }
  if (!isPrintable(name) || name.startsWith(OWN)) {
    throw new SymbolicError(
      `Variable: ${printable(JSON.stringify(name))} is not a name; use at most 200 printable characters, the first of which is not ${OWN}`,
    );
  }
  return interned(name, min, max);
}
/** A variable of the compiler: never the same as one of the user, whatever names and ranges those have. */
export const ownVariable = (name: string, min: number, max: Sint): Variable => interned(OWN + name, min, max);

function interned(name: string, min: number, max: Sint): Variable {
  return intern(new Var(name, min, smax(max), typeof max === "number" ? undefined : max));
}

export const sprod = (shape: readonly Sint[]): Sint => {
  let total: Sint = 1;
  for (let i = 0; i < shape.length; i++) {
    const s = shape[i]!;
    total = typeof total === "number" && typeof s === "number" ? total * s : mul(total, s);
  }
  return total;
};

const fixed = new WeakSet<Variable>();
/** The value of this variable belongs to one launch of a kernel: a capture keeps it, and no call gives it. */
export const markFixed = (v: Variable): void => void fixed.add(v);
export const isFixed = (v: Variable): boolean => fixed.has(v);

const exact = new WeakSet<Variable>();
/**
 * Memory of a size with this variable has room for the value that it is bound to, not for the largest: a
 * capture makes room for more when more comes. Nothing outside of captures may keep such sizes.
 */
export const markExact = (v: Variable): void => void exact.add(v);
/** The elements that memory of this shape has room for. */
export function roomOf(shape: readonly Sint[]): number {
  const size = sprod(shape);
  if (typeof size === "number") return size;
  return (isExact(size) ? boundValue(size) : undefined) ?? smax(size);
}
export const isExact = (size: Sint): boolean => [...vars(size)].every((v) => exact.has(v));

export const ssum = (xs: readonly Sint[]): Sint => xs.reduce(add, 0);

/**
 * Rebuilds an expression bottom up, once per node. Every node goes through the arithmetic and is simplified
 * again.
 */
function rebuild(x: Sint, memo: Map<Sym, Sint>, leaf: (node: SymNode) => Sint): Sint {
  if (typeof x === "number") return x;
  const known = memo.get(x);
  if (known !== undefined) return known;
  const again = (y: Sint): Sint => rebuild(y, memo, leaf);
  const node = x as SymNode;
  let made: Sint;
  switch (node.kind) {
    case "variable":
    case "bound":
      made = leaf(node);
      break;
    case "product":
      made = node.factors.reduce<Sint>((p, f) => mul(p, again(f)), 1);
      break;
    case "div":
      made = idiv(again(node.x), again(node.by));
      break;
    case "mod":
      made = mod(again(node.x), again(node.by));
      break;
    case "less":
      made = lt(again(node.x), node.limit);
      break;
    case "all":
      made = and(...node.parts.map(again));
      break;
    case "sum":
      made = node.terms.reduce<Sint>((s, t, i) => add(s, mul(again(t), node.coefs[i]!)), node.k);
  }
  memo.set(x, made);
  return made;
}

/** Replaces every occurrence of the keys (variables or whole subexpressions) and simplifies the result. */
export function substitute(x: Sint, values: ReadonlyMap<Sym, Sint>): Sint {
  if (typeof x === "number" || values.size === 0) return x;
  return rebuild(x, new Map(values), (leaf) => leaf);
}

/** The value of x. Variables are looked up by node or by name; a bound variable falls back to its value. */
export function evaluate(x: Sint, values: ReadonlyMap<Sym | string, number> = new Map()): number {
  if (typeof x === "number") return x;
  const node = x as SymNode;
  switch (node.kind) {
    case "variable":
    case "bound": {
      const variable = node.kind === "bound" ? node.variable : node;
      const value = values.get(node) ?? values.get(variable) ?? values.get(variable.name);
      if (value !== undefined) return value;
      if (node.kind === "bound") return node.value;
      throw new SymbolicError(
        `evaluate: no value for variable ${node.name}; pass one by variable or name, or bind it`,
      );
    }
    case "product":
      return node.factors.reduce((p, f) => p * evaluate(f, values), 1);
    case "div":
      return idiv(evaluate(node.x, values), evaluate(node.by, values)) as number;
    case "mod":
      return mod(evaluate(node.x, values), evaluate(node.by, values)) as number;
    case "less":
      return evaluate(node.x, values) < node.limit ? 1 : 0;
    case "all":
      return node.parts.every((p) => evaluate(p, values) !== 0) ? 1 : 0;
    case "sum":
      return node.terms.reduce((s, t, i) => s + node.coefs[i]! * evaluate(t, values), node.k);
  }
}

/**
 * How to translate an expression into something else; `fold` calls it bottom up, once per distinct
 * subexpression.
 */
export interface Visitor<T> {
  const(n: number): T;
  variable(v: Variable): T;
  add(a: T, b: T): T;
  mul(a: T, b: T): T;
  /** rounds down; if `lift` times b is added to a, rounding towards zero gives the same */
  idiv(a: T, b: T, lift: number): T;
  mod(a: T, b: T, lift: number): T;
  lt(a: T, b: T): T;
  and(a: T, b: T): T;
}

/**
 * Folds x bottom up; sums go left to right, positive terms first. A bound variable counts as its variable. To
 * fold several expressions, pass the same `memo`, so that shared parts are visited once.
 */
export function fold<T>(x: Sint, visitor: Visitor<T>, memo: Map<Sint, T> = new Map()): T {
  const known = memo.get(x);
  if (known !== undefined) return known;
  const visit = (y: Sint): T => {
    let made = memo.get(y);
    if (made === undefined) {
      made = typeof y === "number" ? visitor.const(y) : visitNode(y as SymNode);
      memo.set(y, made);
    }
    return made;
  };
  const visitSum = (node: Sum): T => {
    let total: T | undefined;
    for (const i of node.order()) {
      const t = visit(node.terms[i]!),
        c = node.coefs[i]!;
      const term = c === 1 ? t : visitor.mul(t, visit(c));
      total = total === undefined ? term : visitor.add(total, term);
    }
    return node.k === 0 ? total! : visitor.add(total!, visit(node.k));
  };
  const visitNode = (node: SymNode): T => {
    switch (node.kind) {
      case "variable":
        return visitor.variable(node);
      case "bound":
        return visit(node.variable);
      case "product":
        return node.factors.map(visit).reduce((a, b) => visitor.mul(a, b));
      case "div":
        return visitor.idiv(visit(node.x), visit(node.by), lift(node));
      case "mod":
        return visitor.mod(visit(node.x), visit(node.by), lift(node));
      case "less": {
        const [left, right] = node.sides();
        return visitor.lt(visit(left), visit(right));
      }
      case "all":
        return node.parts.map(visit).reduce((a, b) => visitor.and(a, b));
      case "sum":
        return visitSum(node);
    }
  };
  return visit(x);
}

/** How many times the divisor must be added to make every dividend at least 0. */
const lift = ({ x, by }: { readonly x: Sint; readonly by: Sint }): number =>
  Math.max(0, Math.ceil(-smin(x) / smin(by)));

/** Readable text; equal structures give equal text: `((ridx0*4)+ridx1)`. */
export const render = (x: Sint): string => x.toString();

const partsOf = (x: SymNode): readonly Sint[] => {
  if (x.kind === "sum") return x.terms;
  if (x.kind === "product") return x.factors;
  if (x.kind === "all") return x.parts;
  if (x.kind === "less") return [x.x];
  return x.kind === "div" || x.kind === "mod" ? [x.x, x.by] : [];
};

/** Calls `see` once for every node in x, a node before its parts. */
function eachNode(x: Sint, see: (node: SymNode) => void, seen = new Set<Sym>()): void {
  if (typeof x === "number" || seen.has(x)) return;
  seen.add(x);
  see(x as SymNode);
  for (const part of partsOf(x as SymNode)) eachNode(part, see, seen);
}

function eachLeaf(x: Sint, leaf: (node: Var | Bound) => void): void {
  eachNode(x, (node) => {
    if (node.kind === "variable" || node.kind === "bound") leaf(node);
  });
}

/**
 * A rough count of the operations needed to compute x. Divisions count more, because they are slow
 * everywhere.
 */
export function complexity(x: Sint): number {
  let total = 0;
  eachNode(x, (node) => {
    if (node.kind === "div" || node.kind === "mod") total += 4;
    else if (node.kind === "sum") total += node.terms.length + node.coefs.filter((c) => c !== 1).length;
    else if (node.kind !== "variable" && node.kind !== "bound") total += partsOf(node).length;
  });
  return total;
}

/** The variables of x. A bound variable counts as its variable. */
export function vars(x: Sint): Set<Variable> {
  const found = new Set<Variable>();
  if (typeof x !== "number") eachLeaf(x, (leaf) => found.add(leaf instanceof Bound ? leaf.variable : leaf));
  return found;
}

/** x with plain variables instead of bound ones, and their values. */
export function unbind(x: Sint): [Sint, Map<Variable, number>] {
  const values = new Map<Variable, number>();
  if (typeof x === "number") return [x, values];
  const bare = rebuild(x, new Map(), (leaf) => {
    if (leaf.kind !== "bound") return leaf;
    const before = values.get(leaf.variable);
    if (before !== undefined && before !== leaf.value) {
      throw new SymbolicError(
        `unbind: ${leaf.name} is bound to both ${before} and ${leaf.value} in ${x}; bind it to one value per kernel`,
      );
    }
    values.set(leaf.variable, leaf.value);
    return leaf.variable;
  });
  return [bare, values];
}

/** x with new values for bound variables; those without a new value keep theirs. */
export function rebind(x: Sint, values: ReadonlyMap<Variable, number>): Sint {
  return rebuild(x, new Map(), (leaf) => {
    const value = leaf.kind === "bound" ? values.get(leaf.variable) : undefined;
    return leaf.kind === "bound" && value !== undefined ? leaf.variable.bind(value) : (leaf as Sym);
  });
}

/** The value of x if every variable is bound; otherwise undefined. */
export function boundValue(x: Sint): number | undefined {
  if (typeof x === "number") return x;
  const result = rebuild(x, new Map(), (leaf) => (leaf.kind === "bound" ? leaf.value : leaf));
  return typeof result === "number" ? result : undefined;
}

/**
 * x as offset + sum(coefs[i] * over[i]), with `over` in neither offset nor coefs; undefined if x is not
 * affine.
 */
export function coefficients(x: Sint, over: readonly Sym[]): { coefs: Sint[]; offset: Sint } | undefined {
  const coefs: Sint[] = over.map(() => 0);
  if (typeof x === "number") return { coefs, offset: x };
  let offset: Sint = x.k;
  for (let i = 0; i < x.terms.length; i++) {
    const term = x.terms[i] as SymNode,
      c = x.coefs[i]!;
    const factors: readonly Sym[] = term.kind === "product" ? term.factors : [term];
    const at = factors.findIndex((f) => over.includes(f));
    const others = factors.filter((_, j) => j !== at);
    if (others.some((f) => mentions(f, over))) return undefined;
    const rest = others.reduce<Sint>(mul, c);
    if (at < 0) offset = add(offset, rest);
    else {
      const which = over.indexOf(factors[at]!);
      coefs[which] = add(coefs[which]!, rest);
    }
  }
  return { coefs, offset };
}

/** Whether one of the symbols occurs anywhere in x. */
export function mentions(x: Sint, symbols: readonly Sym[]): boolean {
  let found = false;
  if (typeof x !== "number") eachLeaf(x, (leaf) => (found ||= symbols.includes(leaf)));
  return found;
}

/**
 * A key that is equal only for equal expressions: names alone would confuse variables with different ranges.
 */
export function keyOf(x: Sint): string {
  if (typeof x === "number") return `${x}`;
  let ranges = "";
  eachLeaf(x, (leaf) => (ranges += `;${leaf}:${leaf.min}:${leaf.max}`));
  return x.toString() + ranges;
}

/**
 * For each symbol the interval [lo, hi) that a 0/1 value requires; undefined if it requires anything else.
 */
export function intervals(valid: Sint, over: readonly Sym[]): [lo?: Sint, hi?: Sint][] | undefined {
  const found: [lo?: Sint, hi?: Sint][] = over.map(() => []);
  if (typeof valid === "number") return found;
  for (const part of valid instanceof All ? valid.parts : [valid]) {
    const form = part instanceof Less ? coefficients(part.x, over) : undefined;
    const at = form?.coefs.findIndex((c) => c !== 0) ?? -1;
    if (form === undefined || at < 0 || form.coefs.some((c, i) => c !== 0 && i !== at)) return undefined;
    const { limit } = part as Less;
    const side = form.coefs[at] === 1 ? 1 : form.coefs[at] === -1 ? 0 : undefined;
    // `and` keeps one comparison per form, so a second one on the same side has a symbolic part: give up.
    if (side === undefined || found[at]![side] !== undefined) return undefined;
    found[at]![side] = side === 1 ? sub(limit, form.offset) : sub(add(form.offset, 1), limit);
  }
  return found;
}
