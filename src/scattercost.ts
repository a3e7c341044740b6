// The cost rule of scatters: whether a sum whose terms choose their result is better run as a loop over its
// terms. In: how many of both there are. The schedule gives such a sum a kernel to itself, codegen turns the
// loops around: both ask here.

/** Adding to an element of memory takes as long as this many steps of a sum that is a vector of results. */
const UPDATE = 16;
/** The same for an element of a row: its neighbours are updated with it. */
const ROW_UPDATE = 4;
const MIN_ROW = 8;
/** A scatter has a kernel to itself: it must save this many steps. */
const MIN_SAVED = 1 << 14;

export interface ScatterSizes {
  /** how many results a term may go to, and how many terms there are for these */
  readonly results: number;
  readonly terms: number;
  /** the elements of a result, and how often there are results and terms of their own */
  readonly width: number;
  readonly batch: number;
}
/**
 * The cost rule of scatters. As a sum every pair of a result and a term takes a step; as a scatter every
 * result is set once and every term is added once.
 */
export function isBetterScattered({ results, terms, width, batch }: ScatterSizes): boolean {
  const update = width < MIN_ROW ? UPDATE : ROW_UPDATE;
  return (results * terms - results - update * terms) * width * batch > MIN_SAVED;
}
