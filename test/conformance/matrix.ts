// Products of tensors and linear algebra.

import { Tensor } from "gradloom";
import { type Handler, invoke, method, type Table } from "./call.ts";
import type { Arg } from "./sample.ts";

const drop = (options: Readonly<Record<string, Arg>>): Record<string, Arg>[] => {
  const given = Object.entries(options).filter(([, v]) => v !== undefined);
  return given.length === 0 ? [] : [Object.fromEntries(given)];
};
const einsum: Handler = (c) => invoke(Tensor, "einsum", c.named("equation").equation, ...c.tensors);
const tensordot: Handler = (c) => {
  const { other, dims } = c.named("other", "dims");
  return invoke(c.tensor, "tensordot", other, dims);
};
const norm: Handler = (c) => {
  const { ord, dim, keepdim, dtype } = c.named("ord", "dim", "keepdim", "dtype");
  return invoke(c.tensor, "linalgNorm", ord, dim, keepdim ?? false, ...drop({ dtype }));
};
const vectorNorm: Handler = (c) => {
  const { ord, dim, keepdim, dtype } = c.named("ord", "dim", "keepdim", "dtype");
  const all = Array.isArray(dim) && dim.length === 0 ? undefined : dim;
  return invoke(c.tensor, "vectorNorm", ord, all, keepdim ?? false, ...drop({ dtype }));
};

export const matrix: Table = {
  addbmm: "batch1 batch2 *beta *alpha",
  addmm: "mat1 mat2 *beta *alpha",
  addmv: "mat vec *beta *alpha",
  addr: "vec1 vec2 *beta *alpha",
  baddbmm: "batch1 batch2 *beta *alpha",
  bmm: "mat2",
  cdist: "x2 p ~compute_mode",
  cross: "other dim",
  dot: "other",
  einsum,
  inner: "other",
  kron: "other",
  "linalg.cholesky": "*upper",
  "linalg.det": "",
  "linalg.inv": "",
  "linalg.matrix_norm": "ord dim keepdim",
  "linalg.norm": norm,
  "linalg.qr": "mode",
  "linalg.slogdet": "",
  "linalg.solve": "b *left",
  "linalg.svd": "full_matrices",
  "linalg.vector_norm": vectorNorm,
  matmul: "other",
  mm: method("mm", "mat2"),
  mv: "vec",
  outer: "vec2",
  tensordot,
  trace: "",
  vdot: "other",
};
