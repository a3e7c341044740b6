// Arguments and results of a jitted function are pytrees: arrays and plain objects with leaves in them. A
// TreeDef is such a tree without its leaves: it can be kept, compared with another one, and filled again. The
// caller says what a leaf is; everything else has to be equal from call to call.

import { JitError } from "../../errors.ts";
import { isPlain } from "../../helpers.ts";

export type TreeDef =
  /** `what` it is, in words; the leaves are counted from left to right */
  | { readonly kind: "leaf"; readonly path: string; readonly what: string; readonly index: number }
  | { readonly kind: "value"; readonly path: string; readonly value: unknown }
  | { readonly kind: "list"; readonly path: string; readonly parts: readonly TreeDef[] }
  | {
      readonly kind: "record";
      readonly path: string;
      readonly keys: readonly string[];
      readonly parts: readonly TreeDef[];
    };

export interface Leaf<L> {
  readonly path: string;
  readonly leaf: L;
}
/** Says what leaf a value is, in words too, if it is one. */
export type LeafOf<L> = (x: unknown, path: string) => { readonly what: string; readonly leaf: L } | undefined;

/** The inner nodes of a tree: arrays and plain objects. */
export const isContainer = (x: object): boolean => Array.isArray(x) || isPlain(x);

/** Separates a value into its tree and its leaves, which are added to `leaves`. */
export function flatten<L>(
  value: unknown,
  path: string,
  leafOf: LeafOf<L>,
  leaves: Leaf<L>[],
  above: readonly object[] = [],
): TreeDef {
  const found = leafOf(value, path);
  if (found !== undefined)
    return { kind: "leaf", path, what: found.what, index: leaves.push({ path, leaf: found.leaf }) - 1 };
  if (typeof value !== "object" || value === null) return { kind: "value", path, value };
  if (above.includes(value)) throw new JitError(`TinyJit: ${path} contains itself`);
  const part = (x: unknown, where: string): TreeDef => flatten(x, where, leafOf, leaves, [...above, value]);
  if (Array.isArray(value))
    return { kind: "list", path, parts: value.map((x, i) => part(x, `${path}[${i}]`)) };
  if (!isPlain(value)) return { kind: "value", path, value };
  const keys = Object.keys(value);
  const parts = keys.map((k) => part(value[k], `${path}.${k}`));
  return { kind: "record", path, keys, parts };
}

/** The value again, with `leaf(i)` in the place of leaf i. */
export function unflatten(t: TreeDef, leaf: (index: number) => unknown): unknown {
  switch (t.kind) {
    case "leaf":
      return leaf(t.index);
    case "value":
      return t.value;
    case "list":
      return t.parts.map((p) => unflatten(p, leaf));
    case "record":
      return Object.fromEntries(t.keys.map((k, i) => [k, unflatten(t.parts[i] as TreeDef, leaf)]));
  }
}

interface Difference {
  readonly path: string;
  readonly expected: string;
  readonly got: string;
}

/** The first place where two trees differ, whatever their leaves are. */
export function difference(expected: TreeDef, got: TreeDef): Difference | undefined {
  if (isSame(expected, got)) {
    if (expected.kind !== "list" && expected.kind !== "record") return undefined;
    const { parts } = got as typeof expected;
    for (let i = 0; i < expected.parts.length; i++) {
      const found = difference(expected.parts[i] as TreeDef, parts[i] as TreeDef);
      if (found !== undefined) return found;
    }
    return undefined;
  }
  return { path: expected.path, expected: show(expected), got: show(got) };
}

/** Parts aside. */
function isSame(a: TreeDef, b: TreeDef): boolean {
  if (a.kind === "leaf") return b.kind === "leaf" && a.what === b.what;
  if (a.kind === "value") return b.kind === "value" && Object.is(a.value, b.value);
  if (a.kind === "list") return b.kind === "list" && a.parts.length === b.parts.length;
  return b.kind === "record" && a.keys.length === b.keys.length && a.keys.every((k, i) => k === b.keys[i]);
}

function show(t: TreeDef): string {
  if (t.kind === "leaf") return t.what;
  if (t.kind === "list") return `a list of ${t.parts.length}`;
  if (t.kind === "record") return `an object with ${t.keys.join(", ") || "no keys"}`;
  const { value } = t;
  if (typeof value === "function") return `the function ${value.name || "without a name"}`;
  if (typeof value === "object" && value !== null)
    return `one certain ${value.constructor?.name ?? "object"}`;
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}
