// What every text renderer keeps while it walks a kernel: lines and their indentation, the text of each
// value, and the numbered names (val0, alu0, acc0, ridx0). It knows no language; cstyle.ts and wgsl.ts extend
// it.

import { Pointer } from "../dtype.ts";
import { InternalError } from "../errors.ts";
import type { UOp } from "../uop/node.ts";
import { type ByLane, planInlining } from "./inline.ts";

export type Prefix = "acc" | "ridx" | "val" | "alu" | "cast" | "vec";

export const lanesOf = (u: UOp | undefined): number =>
  u?.dtype instanceof Pointer ? 1 : (u?.dtype?.count ?? 1);

export const refuseUOp = (_: KernelWriter, u: UOp): never => {
  throw new InternalError(`${u.op} reached a renderer; linearize replaces it`);
};

/** `(a+b)` without its outer parentheses, where they are a pair. */
export function stripParens(text: string): string {
  if (!text.startsWith("(") || !text.endsWith(")")) return text;
  let depth = 0;
  for (let i = 0; i < text.length - 1; i++) {
    if (text[i] === "(") depth++;
    else if (text[i] === ")") depth--;
    if (depth === 0) return text;
  }
  return text.slice(1, -1);
}

export abstract class KernelWriter {
  readonly lines: string[] = [];
  readonly helpers = new Set<string>();
  readonly #texts = new Map<UOp, string>();
  readonly #parameters = new Set<string>();
  readonly #counts = new Map<Prefix, number>();
  readonly #inlined: ReadonlySet<UOp>;
  #depth = 1;

  constructor(uops: readonly UOp[], byLane: ByLane = (user) => user.op !== "STORE") {
    this.#inlined = planInlining(uops, byLane);
  }

  line(text: string): void {
    this.lines.push("  ".repeat(this.#depth) + text);
  }
  open(text: string): void {
    this.line(text);
    this.#depth++;
  }
  close(): void {
    this.#depth--;
    this.line("}");
  }

  fresh(prefix: Prefix): string {
    const n = this.#counts.get(prefix) ?? 0;
    this.#counts.set(prefix, n + 1);
    return `${prefix}${n}`;
  }
  /** A name for a parameter of the kernel, which no other one has. */
  parameter(identifier: string): string {
    let name = identifier;
    for (let n = 1; this.#parameters.has(name); n++) name = `${identifier}_${n}`;
    this.#parameters.add(name);
    return name;
  }
  set(u: UOp, text: string): void {
    this.#texts.set(u, text);
  }
  text(u: UOp | undefined): string {
    const t = u === undefined ? undefined : this.#texts.get(u);
    if (t === undefined) throw new InternalError(`${u?.op ?? "a source"} is used before it is rendered`);
    return t;
  }

  /** Names the value, unless the plan says that its text may stand where it is used. */
  value(u: UOp, prefix: Prefix, text: string): void {
    this.set(u, this.#inlined.has(u) ? text : this.declare(u, prefix, text));
  }
  /** Writes a declaration and returns the new name. */
  abstract declare(u: UOp, prefix: Prefix, text: string): string;
}
