// `#functions` in a page; elsewhere it is functions.ts. Math functions that few pages need are in files
// ("pieces") that load before the first kernel with one of their ops: the record of the op names the piece
// (`piece` in ops.ts), engine/ondemand loads it, and setPiece puts it here. To add a file: a line in Pieces,
// one for each function here, one in LOADERS of engine/ondemand, two in engine/ondemand/sync.ts.

import type { DType } from "./dtype.ts";
import { ArgumentError } from "./errors.ts";
import type { Algebra } from "./ops.ts";

type Functions = typeof import("./functions.ts");

export interface Pieces {
  readonly transcendental: typeof import("./transcendental.ts");
  readonly transcendental64: typeof import("./transcendental64.ts");
  readonly trigonometry: typeof import("./trigonometry.ts");
  readonly trigonometry64: typeof import("./trigonometry64.ts");
  readonly erf: typeof import("./errorfunction.ts");
  readonly power: typeof import("./power.ts");
}
export type Piece = keyof Pieces;
/** As the record of an op names it: two of them have another piece for float64. */
export type OpPiece = Exclude<Piece, `${string}64`>;
type ByWidth = "transcendental" | "trigonometry";
/** The piece that has an op for this type. */
export const pieceFor = (name: OpPiece, { itemsize }: DType): Piece =>
  itemsize === 8 && (name === "transcendental" || name === "trigonometry") ? `${name}64` : name;
const loaded: { -readonly [K in Piece]?: Pieces[K] } = {};

export function setPiece<K extends Piece>(name: K, functions: Pieces[K]): void {
  loaded[name] = functions;
}
export const hasPiece = (name: Piece): boolean => loaded[name] !== undefined;

export const SYNC = 'import "gradloom/sync"';
/** Says what a page has not loaded yet, and what to do about it. */
export const notYet = (what: string, instead = "await a value first"): string =>
  `a page loads ${what} with the first kernel that is awaited; ${instead}`;
/** Returns what was loaded, and throws if it was not. */
export function requireLoaded<T>(there: T | undefined, op: string, ...what: Parameters<typeof notYet>): T {
  if (there !== undefined) return there;
  throw new ArgumentError(`${op}: ${notYet(...what)}`);
}

/** Load what devices of a page need for large kernels; each is taken out when it has. */
export const withTuning = new Set<() => Promise<void>>();
/** Load what a page needs together with the compiler. */
export const withCompiler: (() => Promise<void>)[] = [];

/**
 * What a page loads later of a module: `set` puts it there, `get` gives what it exports, and `call` makes the
 * function that stands for one of its functions until then.
 */
export function laterIn<M>(what: string) {
  let module: M | undefined;
  const get = <K extends keyof M>(name: K): M[K] =>
    requireLoaded<M>(module, "kernel", what, `await one first, or ${SYNC}`)[name];
  return {
    set: (m: M): void => {
      module = m;
    },
    has: (): boolean => module !== undefined,
    get,
    call: <K extends keyof M>(name: K): M[K] =>
      ((...args: never[]) => (get(name) as (...given: never[]) => unknown)(...args)) as M[K],
  };
}

const piece = <K extends Piece>(name: K): Pieces[K] =>
  requireLoaded<Pieces[K]>(
    loaded[name],
    "kernel",
    `${name} functions`,
    `await such a value first, or ${SYNC}`,
  );
const byWidth = <T, K extends ByWidth>(name: K, a: Algebra<T>, x: T): Pieces[K] =>
  piece(pieceFor(name, a.dtypeOf(x)) as K);

export const exp2: Functions["exp2"] = (a, x) => byWidth("transcendental", a, x).exp2(a, x);
export const log2: Functions["log2"] = (a, x) => byWidth("transcendental", a, x).log2(a, x);
export const sin: Functions["sin"] = (a, x) => byWidth("trigonometry", a, x).sin(a, x);
export const cos: Functions["cos"] = (a, x) => byWidth("trigonometry", a, x).cos(a, x);
export const erf: Functions["erf"] = (a, x) => piece("erf").erf(a, x);
export const erfOfNumber: Functions["erfOfNumber"] = (x) => piece("erf").erfOfNumber(x);
export const pow: Functions["pow"] = (a, x, y) => piece("power").pow(a, x, y);
