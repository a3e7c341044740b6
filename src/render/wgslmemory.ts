// How WGSL kernels reach the elements of a buffer. Elements of 8 and 16 bits lie several to a word; where one
// word is written by several threads, its bytes are changed atomically. Elements of 32 bits that are only
// accessed several at a time are vectors. In go the accesses of a kernel, out come the type that a buffer is
// declared with and the texts of its loads and stores.

import { type DType, dtypes, scalarOf } from "../dtype.ts";
import { range } from "../helpers.ts";
import type { DefineGlobal, Load, LoadFragment, Memory, Store, UOp } from "../uop/node.ts";
import { typeName } from "./wgslops.ts";
import { lanesOf } from "./writer.ts";

const WORD_BITS = 32;

/** How the elements of a buffer are reached. */
export interface Layout {
  /** elements of a word; 1: an element is not packed */
  readonly perWord: number;
  /** words whose bytes belong to several threads */
  readonly isAtomic: boolean;
  /** elements of a vector that the array is made of; 1: of elements */
  readonly width: number;
}

const isPacked = (d: DType): boolean => d !== dtypes.float16 && d.itemsize < 4;
type BufferAccess = Load | Store | LoadFragment;
/** Elements that an access names; matrices are loaded from arrays of elements. */
export function laneCount(u: BufferAccess): number {
  if (u.op === "LDFRAGMENT") return 1;
  return u.op === "LOAD" ? lanesOf(u) : lanesOf(u.value);
}

/** What the index of an access of so many elements is divided by; 1: nothing. */
export const dividedBy = ({ perWord, width }: Layout, count: number): number =>
  perWord === 1 ? width : count % perWord === 0 ? perWord : 1;

/** The layouts of all buffers; `sameAs` maps those that are one to the first of them. */
export function layoutsOf(
  uops: readonly UOp[],
  sameAs: (buffer: DefineGlobal) => DefineGlobal,
): ReadonlyMap<Memory, Layout> {
  const accesses = new Map<Memory, BufferAccess[]>();
  for (const u of uops) {
    if (u.op === "DEFINE_GLOBAL") accesses.set(u, accesses.get(sameAs(u)) ?? []);
    else if (u.op === "DEFINE_LOCAL") accesses.set(u, []);
    else if (u.op === "LOAD" || u.op === "LDFRAGMENT" || u.op === "STORE") accesses.get(u.buffer)?.push(u);
  }
  return new Map(
    [...accesses].map(
      ([memory, all]) =>
        [memory, layoutOf(scalarOf(memory.dtype.base), memory.op === "DEFINE_LOCAL", all)] as const,
    ),
  );
}
/** Workgroup memory holds a value as a kernel has it, of whatever type, if single elements are stored. */
function layoutOf(d: DType, isLocal: boolean, all: readonly BufferAccess[]): Layout {
  const perWord = isPacked(d) ? WORD_BITS / (8 * d.itemsize) : 1;
  const isAtomic = all.some((u) => u.op === "STORE" && laneCount(u) % perWord !== 0);
  if (perWord > 1 && !(isLocal && isAtomic)) return { perWord, isAtomic, width: 1 };
  const least = all.reduce((n, u) => Math.min(n, laneCount(u)), 4);
  return { perWord: 1, isAtomic: false, width: d.isBig || all.length === 0 ? 1 : least };
}

/** The layout for kernels that share a buffer of one type: vectors as narrow as any of them needs. */
export const joinedLayout = (all: readonly Layout[]): Layout => ({
  perWord: Math.max(1, ...all.map((l) => l.perWord)),
  isAtomic: all.some((l) => l.isAtomic),
  width: Math.min(4, ...all.map((l) => l.width)),
});

/** What the array of a buffer is declared with. */
export function elementType(d: DType, { perWord, isAtomic, width }: Layout): string {
  if (perWord > 1) return isAtomic ? "atomic<u32>" : "u32";
  return typeName(width === 1 ? d : d.vec(width));
}

/** What a text needs of its surroundings: a name for a value that is used more than once. */
type Named = (text: string) => string;

/** The index of an access. */
export interface AccessIndex {
  readonly text: string;
  /** of the vector or word of so many elements that it is in */
  over(elements: number): string;
}
const shifted = (index: string, by: number): string => (by === 0 ? index : `(${index})>>${by}u`);
const later = (at: string, k: number): string => (k === 0 ? at : `(${at})+${k}`);

/** The value of `count` elements from `index` on, a multiple of `count`. */
export function loadText(
  name: string,
  d: DType,
  layout: Layout,
  index: AccessIndex,
  count: number,
  named: Named,
): string {
  if (layout.perWord > 1) return packedLoad(name, d, layout, index, count, named);
  const { width } = layout;
  const at = index.over(width);
  const pieces = range(count / width).map((k) => `${name}[${later(at, k)}]`);
  if (pieces.length === 1) return pieces[0] as string;
  if (count <= 4) return `${typeName(d.vec(count))}(${pieces.join(",")})`;
  const vectors = pieces.map((p) => (width === 1 ? p : named(p)));
  const lanes = range(count).map((i) =>
    width === 1 ? vectors[i] : `${vectors[Math.floor(i / width)]}[${i % width}]`,
  );
  return `${typeName(d.vec(count))}(${lanes.join(",")})`;
}
function packedLoad(
  name: string,
  d: DType,
  { perWord, isAtomic }: Layout,
  index: AccessIndex,
  count: number,
  named: Named,
): string {
  const word = (at: string): string => (isAtomic ? `atomicLoad(&${name}[${at}])` : `${name}[${at}]`);
  const bits = WORD_BITS / perWord;
  if (count % perWord !== 0) {
    const lanes = range(count).map((i) => {
      const at = later(index.text, i);
      const first = `(u32(${at})&${perWord - 1}u)*${bits}u`;
      return unpacked(d, word(shifted(at, Math.log2(perWord))), first, bits);
    });
    return joined(d, lanes);
  }
  const place = index.over(perWord);
  const words = range(count / perWord).map((k) => named(word(later(place, k))));
  return joined(
    d,
    range(count).map((i) =>
      unpacked(d, words[Math.floor(i / perWord)] as string, `${(i % perWord) * bits}u`, bits),
    ),
  );
}
const joined = (d: DType, lanes: readonly string[]): string =>
  lanes.length === 1 ? (lanes[0] as string) : `${typeName(d.vec(lanes.length))}(${lanes.join(",")})`;
function unpacked(d: DType, word: string, first: string, bits: number): string {
  if (d.kind === "int") return `extractBits(bitcast<i32>(${word}),${first},${bits}u)`;
  const value = `extractBits(${word},${first},${bits}u)`;
  return d.kind === "bool" ? `(${value}!=0u)` : value;
}
/** The bits of a value, in the low end of a word. */
function packed(d: DType, value: string, bits: number): string {
  if (d.kind === "bool") return `select(0u,1u,${value})`;
  return `(${d.kind === "int" ? `bitcast<u32>(${value})` : value}&${2 ** bits - 1}u)`;
}

/**
 * The statements that store these lanes, or one whole vector of them, from `index` on, a multiple of their
 * number.
 */
export function storeTexts(
  name: string,
  d: DType,
  layout: Layout,
  index: AccessIndex,
  lanes: readonly string[],
): string[] {
  const { perWord, isAtomic, width } = layout;
  if (perWord === 1) {
    const at = index.over(width);
    if (lanes.length === 1) return [`${name}[${at}] = ${lanes[0]};`];
    return range(lanes.length / width).map((k) => {
      const piece = lanes.slice(k * width, (k + 1) * width);
      const value = width === 1 ? piece[0] : `${typeName(d.vec(width))}(${piece.join(",")})`;
      return `${name}[${later(at, k)}] = ${value};`;
    });
  }
  const bits = WORD_BITS / perWord;
  if (lanes.length % perWord !== 0) {
    // neighbours in a word belong to other threads
    return lanes.flatMap((lane, i) => {
      const at = later(index.text, i);
      const place = `&${name}[${shifted(at, Math.log2(perWord))}]`;
      const first = `((u32(${at})&${perWord - 1}u)*${bits}u)`;
      return [
        `atomicAnd(${place}, ~(${2 ** bits - 1}u<<${first}));`,
        `atomicOr(${place}, ${packed(d, lane, bits)}<<${first});`,
      ];
    });
  }
  const at = index.over(perWord);
  return range(lanes.length / perWord).map((k) => {
    const parts = lanes.slice(k * perWord, (k + 1) * perWord).map((lane, i) => {
      const value = packed(d, lane, bits);
      return i === 0 ? value : `(${value}<<${i * bits}u)`;
    });
    const [place, word] = [`${name}[${later(at, k)}]`, parts.join("|")];
    return isAtomic ? `atomicStore(&${place}, ${word});` : `${place} = ${word};`;
  });
}
