// The arguments of a scan as trees: tensors in arrays and plain objects. In: what the user gave or the body
// returned. Out: the tensors in order, checked; and the tree again with other tensors.

import {
  difference,
  flatten,
  type Leaf,
  type TreeDef,
  unflatten as unflattenTree,
} from "../engine/jit/pytree.ts";
import { ArgumentError, DTypeError, ShapeError, SymbolicError } from "../errors.ts";
import { TensorHandle } from "./core.ts";
import { showShape } from "./show.ts";
import type { Tensor } from "./tensor.ts";

/** A tensor, or arrays and objects of such trees. */
export type Tree =
  | Tensor
  | readonly (Tree | undefined | null)[]
  | { readonly [key: string]: Tree | undefined | null };

export interface TensorTree {
  readonly tree: TreeDef;
  readonly leaves: readonly Tensor[];
  readonly paths: readonly string[];
}

export function treeOf(what: string, value: unknown): TensorTree {
  const found: Leaf<Tensor>[] = [];
  const leafOf = (x: unknown) =>
    x instanceof TensorHandle ? { what: "a tensor", leaf: x as unknown as Tensor } : undefined;
  const tree = flatten(value, what, leafOf, found);
  requireTensors(tree);
  return { tree, leaves: found.map((f) => f.leaf), paths: found.map((f) => f.path) };
}
/** Whatever is not a tensor would be the same in every step without saying so. */
function requireTensors(t: TreeDef): void {
  if (t.kind === "list" || t.kind === "record") for (const part of t.parts) requireTensors(part);
  if (t.kind !== "value" || t.value === undefined || t.value === null) return;
  const got =
    typeof t.value === "object" ? `a ${t.value.constructor?.name}` : `${typeof t.value} ${String(t.value)}`;
  throw new ArgumentError(
    `scan: ${t.path} is ${got}, expected a tensor, or arrays and plain objects of tensors; use new Tensor(…)`,
  );
}

export const unflatten = ({ tree }: TensorTree, leaves: readonly Tensor[]): unknown =>
  unflattenTree(tree, (i) => leaves[i]);

/** The number of steps. */
export function lengthOf(xs: readonly Tensor[], paths: readonly string[], given: number | undefined): number {
  const sizes = xs.map((x, i) => {
    const size = x.lazydata.shape[0];
    if (size === undefined) {
      throw new ShapeError(`scan: ${paths[i]} has no dims, expected one row for each step`);
    }
    if (typeof size === "number") return size;
    throw new SymbolicError(
      `scan: ${paths[i]} has ${size} rows, and the number of steps must be a plain number; pad it to its largest size and ` +
        "let the body ignore the rest (the layers of nn take lengths)",
    );
  });
  const all = given === undefined ? sizes : [given, ...sizes];
  const [length] = all;
  if (length === undefined)
    throw new ArgumentError("scan: xs has no tensors; give the number of steps: { length: n }");
  const other = all.findIndex((n) => n !== length);
  if (other >= 0) {
    const named = given === undefined ? paths : ["the length", ...paths];
    throw new ShapeError(`scan: ${named[0]} asks for ${length} steps, ${named[other]} for ${all[other]}`);
  }
  if (!Number.isSafeInteger(length) || length < 1) {
    throw new ArgumentError(`scan: ${length} steps; expected at least 1, with a row of xs for each`);
  }
  return length;
}

/** All tensors on one device, of plain sizes. */
export function requireLeaves(a: TensorTree, b: TensorTree): void {
  const [leaves, paths] = [
    [...a.leaves, ...b.leaves],
    [...a.paths, ...b.paths],
  ];
  const device = leaves[0]?.device;
  leaves.forEach((t, i) => {
    if (t.lazydata.parts.length !== 1 || t.device !== device) {
      throw new ArgumentError(
        `scan: ${paths[i]} is on ${t.device}${t.device === device ? "" : `, ${paths[0]} on ${device}`}; a scan runs on one ` +
          "device: move the tensors to it with to(), or scan the part of each device",
      );
    }
    if (t.lazydata.shape.every((d) => typeof d === "number")) return;
    throw new SymbolicError(
      `scan: ${paths[i]} has the symbolic shape [${t.lazydata.shape}]; a scan takes plain sizes`,
    );
  });
}

/** The carry that the body returns must be like the one that it was given. */
export function requireCarry(from: TensorTree, next: TensorTree): void {
  const other = difference(from.tree, next.tree);
  if (other !== undefined) {
    throw new ArgumentError(
      `scan: ${other.path.replace(/^init/, "the carry")} is ${other.expected}, and the body returned ${other.got} for it; ` +
        "the next carry must have the structure of init",
    );
  }
  from.leaves.forEach((a, i) => {
    const b = next.leaves[i] as Tensor;
    const path = (from.paths[i] as string).replace(/^init/, "the carry");
    if (showShape(a.shape) !== showShape(b.shape)) {
      throw new ShapeError(
        `scan: ${path} has shape ${showShape(a.shape)}, and the body returned shape ${showShape(b.shape)} for it`,
      );
    }
    if (a.dtype === b.dtype) return;
    throw new DTypeError(
      `scan: ${path} is ${a.dtype.name}, and the body returned ${b.dtype.name} for it; cast one of them`,
    );
  });
}
