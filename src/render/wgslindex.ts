// Indexes of vectors and words. An index counts elements; memory of several elements to a vector or word
// is indexed by the quotient. A sum of multiples is divided term by term: behind a shift, a compiler could
// not see that two indexes are a constant apart, and would compute each of them. Sums that have a name in
// the text get one for their quotient.

import { getOrMake } from "../helpers.ts";
import { type Alu, type Expr, isProduct, type UOp } from "../uop/node.ts";

/** Whether each term of an index is a multiple of `n`. */
function isMultiple(u: Expr, n: number): boolean {
  if (u.dtype.isBig) return false;
  if (u.op === "CONST") return Number(u.value) % n === 0;
  if (isProduct(u)) return u.operands[1].op === "CONST" && isMultiple(u.operands[1], n);
  return isSum(u) && u.operands.every((x) => isMultiple(x, n));
}
const isSum = (u: UOp): u is Alu<"ADD"> => u.op === "ALU" && u.fn === "ADD";

export class IndexQuotients {
  /** the sums of which quotients are needed, with the names of these, once they have one */
  readonly #names = new Map<UOp, Map<number, string | undefined>>();
  readonly #textOf: (u: Expr) => string;

  constructor(textOf: (u: Expr) => string) {
    this.#textOf = textOf;
  }

  /** Says that an index will be divided by `n`. */
  need(index: Expr, n: number): void {
    if (n === 1 || !isMultiple(index, n)) return;
    const note = (u: Expr): void => {
      if (!isSum(u)) return;
      getOrMake(this.#names, u, () => new Map()).set(n, undefined);
      u.operands.forEach(note);
    };
    note(index);
  }
  /** Declares the quotients of a sum that has just got a name. */
  declare(u: Expr, declare: (text: string) => string): void {
    const names = this.#names.get(u);
    for (const n of names?.keys() ?? []) names?.set(n, declare(this.#sum(u, n)));
  }
  /** The text of an index divided by `n`, a power of two that divides it. */
  of(index: Expr, n: number): string | undefined {
    return isMultiple(index, n) ? this.#sum(index, n) : undefined;
  }
  /** Constants come last, so that neighbours have the rest in common. */
  #sum(index: Expr, n: number): string {
    const terms: string[] = [];
    let constant = 0;
    const add = (u: Expr): void => {
      const name = this.#names.get(u)?.get(n);
      if (name !== undefined) terms.push(name);
      else if (u.op === "CONST") constant += Number(u.value) / n;
      else if (isSum(u)) u.operands.forEach(add);
      else if (isProduct(u)) terms.push(this.#product(u.operands, n));
    };
    add(index);
    return [...terms, ...(constant === 0 && terms.length > 0 ? [] : [constant])].join("+");
  }
  #product([a, b]: readonly [Expr, Expr], n: number): string {
    const factor = b.op === "CONST" ? Number(b.value) / n : 0;
    return factor === 1 ? this.#textOf(a) : `(${this.#textOf(a)}*${factor})`;
  }
}
