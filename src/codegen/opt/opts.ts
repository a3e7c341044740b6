// An OptOp changes how a kernel is run and never what it computes. A kernel's optimisation is a list of them:
// a value that lowering takes as input, that can be stored, searched and shown. Here: what ops there are and
// what they take. Each has a record (record.ts) in a file of its own, which says what it does.

/**
 * The parameters of each op, all of them whole numbers. Axes are named by number: output axes count from 0,
 * the outermost first; reduce axes go on from there, in the order of the AST.
 */
export interface OptParams {
  UPCAST: { axis: number; lanes: number };
  UNROLL: { axis: number; factor: number };
  GROUP: { axis: number; accumulators: number };
  LOCAL: { axis: number; threads: number };
  GROUPTOP: { axis: number; threads: number };
  NOLOCALS: Record<never, never>;
  THREAD: { axis: number };
  PADTO: { axis: number; multiple: number };
  SWAP: { axis: number; with: number };
  COLLAPSE: { first: number; second: number };
  INTERCHANGE: { axis: number; reduce: number };
  KEEP: { axis: number; elements: number };
  PACK: { axis: number };
  DOT: { axis: number };
  TC: { axis: number; core: number };
  SHARED: { axis: number; stages: number };
}

export type OptOpName = keyof OptParams;
/** One step of a kernel's optimisation. */
export type OptOp<K extends OptOpName = OptOpName> = {
  [P in K]: { readonly op: P } & Readonly<OptParams[P]>;
}[K];

/** The axis that an op names; undefined: it is about the whole kernel. */
export const axisOf = (o: OptOp): number | undefined => ("axis" in o ? o.axis : undefined);

/** The ops that take a factor of an axis. */
export type SplitName = "UPCAST" | "UNROLL" | "GROUP" | "LOCAL" | "GROUPTOP";

/** An op that takes this factor of an axis, by its name. */
export function splitBy(op: SplitName, axis: number, factor: number): OptOp<SplitName> {
  switch (op) {
    case "UPCAST":
      return { op, axis, lanes: factor };
    case "UNROLL":
      return { op, axis, factor };
    case "GROUP":
      return { op, axis, accumulators: factor };
    case "LOCAL":
    case "GROUPTOP":
      return { op, axis, threads: factor };
  }
}
/** The factor of its axis that an op takes; 1: none. */
export function factorOf(o: OptOp): number {
  switch (o.op) {
    case "UPCAST":
      return o.lanes;
    case "UNROLL":
      return o.factor;
    case "GROUP":
      return o.accumulators;
    case "LOCAL":
    case "GROUPTOP":
      return o.threads;
    default:
      return 1;
  }
}
/** What the ops of this name take of these axes, of all if none are named. */
export function factorsOf(opts: readonly OptOp[], op: SplitName, axes?: readonly number[]): number {
  return opts.reduce(
    (n, o) => (o.op === op && (axes === undefined || axes.includes(o.axis)) ? n * factorOf(o) : n),
    1,
  );
}

/** UPCAST(0, lanes=4) PACK(1) NOLOCALS: the axis first, then the other parameters by name. */
export const showOpts = (opts: readonly OptOp[]): string => opts.map(showOpt).join(" ");
function showOpt(o: OptOp): string {
  const shown = Object.entries(o).flatMap(([name, value]) =>
    name === "op" ? [] : [name === "axis" ? String(value) : `${name}=${value}`],
  );
  return shown.length === 0 ? o.op : `${o.op}(${shown.join(", ")})`;
}
