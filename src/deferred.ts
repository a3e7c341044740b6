// The functions of functions.ts, in a page, where each file of them is a piece that loads before the first
// kernel that has one of its ops: the op's record names the piece (`piece` in ops.ts), engine/ondemand loads
// it and puts it here. `#functions` is this file in a page, and functions.ts elsewhere. To add a file: a line
// in Pieces, one for each function here, one in LOADERS of engine/ondemand, two in engine/ondemand/sync.ts.

import { ArgumentError } from "./errors.ts";

export interface Pieces {
  readonly transcendental: typeof import("./transcendental.ts");
  readonly trigonometry: typeof import("./trigonometry.ts");
  readonly power: typeof import("./power.ts");
}
export type Piece = keyof Pieces;
const loaded: { -readonly [K in Piece]?: Pieces[K] } = {};

export function setPiece<K extends Piece>(name: K, functions: Pieces[K]): void {
  loaded[name] = functions;
}
export const hasPiece = (name: Piece): boolean => loaded[name] !== undefined;

function piece<K extends Piece>(name: K): Pieces[K] {
  const functions = loaded[name];
  if (functions !== undefined) return functions;
  throw new ArgumentError(
    `kernel: a page loads ${name} functions with the first kernel that is awaited; compute a value of such a function ` +
      'with await first, or import "gradloom/sync"',
  );
}

type Transcendental = Pieces["transcendental"];
export const exp2: Transcendental["exp2"] = (a, x) => piece("transcendental").exp2(a, x);
export const log2: Transcendental["log2"] = (a, x) => piece("transcendental").log2(a, x);
export const erf: Transcendental["erf"] = (a, x) => piece("transcendental").erf(a, x);
export const erfOfNumber: Transcendental["erfOfNumber"] = (x) => piece("transcendental").erfOfNumber(x);
type Trigonometry = Pieces["trigonometry"];
export const sin: Trigonometry["sin"] = (a, x) => piece("trigonometry").sin(a, x);
export const cos: Trigonometry["cos"] = (a, x) => piece("trigonometry").cos(a, x);
export const pow: Pieces["power"]["pow"] = (a, x, y) => piece("power").pow(a, x, y);
