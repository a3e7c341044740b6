// Where several elements are equal, which of them an argmax, a sort or a median names is not specified:
// places may differ from torch's if the elements at both are equal.

import { isTensor, type Raw, type RawTensor, type Sample, toNumber } from "./sample.ts";

/** Which argument is the dim, by operator; none means that places count in the flat tensor. */
const DIM_AT: Readonly<Record<string, number>> = {
  argmax: 0,
  argmin: 0,
  argsort: 0,
  cummax: 0,
  cummin: 0,
  kthvalue: 1,
  max: 0,
  median: 0,
  min: 0,
  mode: 0,
  sort: 0,
  topk: 1,
};
const DEFAULT_LAST = new Set(["argsort", "kthvalue", "mode", "sort", "topk"]);

export function tiesAt(sample: Sample, got: ArrayLike<number | bigint>, want: RawTensor): boolean {
  const at = DIM_AT[sample.op];
  if (at === undefined || !isTensor(sample.input) || got.length !== want.v.length) return false;
  const { s, v } = sample.input;
  const named: Raw | undefined = at < sample.args.length ? sample.args[at] : sample.kwargs.dim;
  const dim = named ?? (DEFAULT_LAST.has(sample.op) ? -1 : null);
  const shape = dim === null || s.length === 0 ? [v.length] : s;
  const d = dim === null || s.length === 0 ? 0 : Number(dim) < 0 ? Number(dim) + s.length : Number(dim);
  const n = shape[d] as number;
  const inner = shape.slice(d + 1).reduce((a, b) => a * b, 1);
  const rows = got.length / ((v.length / n / inner) * inner);
  for (let p = 0; p < got.length; p++) {
    const start = Math.floor(p / (rows * inner)) * n * inner + (p % inner);
    const [ours, theirs] = [Number(got[p]), toNumber(want.v[p] as number)];
    const element = (i: number): number => toNumber(v[start + i * inner] as number);
    if (ours < 0 || ours >= n || !Object.is(element(ours), element(theirs))) return false;
  }
  return true;
}
