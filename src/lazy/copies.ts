// Views that are copies to their users. `flip`, `pad`, `repeat` and others move nothing here, yet in torch
// they copy: their results must not change with their operand. Such a view is marked (`asCopy`), and so are
// views of it. It costs nothing until the memory that it sees is about to be overwritten (`keepCopies`), when
// it gets memory of its own.

import type { ShapeTracker } from "../shape/shapetracker.ts";
import type { LazyBuffer } from "./lazybuffer.ts";

/** What has happened to a copy: nothing, an op or another view reads it, its user has asked for its value. */
export type CopyState = "unread" | "read" | "asked";

/** This many copies of a node are remembered before the collected ones are removed. */
const MAX_COPIES = 64;

/** The node as the result of an op that copies. */
export function asCopy(node: LazyBuffer): LazyBuffer {
  const isApart = (p: LazyBuffer): boolean => p.copied !== undefined || p.isUnrealizedConst || p.onlyHolds;
  return node.assembler(node.parts.map((p) => (isApart(p) ? p : copyOf(p, p.st))));
}
/** A view of the node's base that is a copy. */
export function copyOf(node: LazyBuffer, st: ShapeTracker): LazyBuffer {
  const { base } = node;
  const made = node.viewed(st);
  markRead(node);
  made.copied = "unread";
  base.copies ??= new Set();
  // a weight that is flipped in every step: remove the collected ones from time to time
  if (base.copies.size >= MAX_COPIES)
    for (const r of base.copies) if (r.deref()?._base !== base) base.copies.delete(r);
  base.copies.add(new WeakRef(made));
  return made;
}
export function markRead(node: LazyBuffer): void {
  if (node.copied === "unread") node.copied = "read";
}
/** Called when somebody asks for the value of a node. */
export function asked(node: LazyBuffer): LazyBuffer {
  for (const p of node.parts) if (p.copied !== undefined) p.copied = "asked";
  return node;
}

/** Gives a copy memory of its own, which is computed with whatever is computed next. */
export function makeOwn(node: LazyBuffer): void {
  for (const p of node.parts) {
    if (p.copied === undefined) continue;
    const made = p.viewed(p.st).duplicate();
    made.id = p.id; // as old as the copy, for a jit that runs now
    p._base = made;
    p.st = made.st;
    p.copied = undefined;
  }
}
/**
 * Called before the memory of `base` is overwritten: copies keep the value they have. Not those that
 * something reads and whose value nobody asked for: most of them are steps on the way to something else, and
 * using them again is an error.
 */
export function keepCopies(base: LazyBuffer): void {
  for (const r of base.copies ?? []) {
    const copy = r.deref();
    if (copy !== undefined && copy._base === base && copy.copied !== "read") makeOwn(copy);
  }
  base.copies = undefined;
}
