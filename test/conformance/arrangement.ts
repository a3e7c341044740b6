// Views, joins and indices.

import { Tensor } from "gradloom";
import { type Call, type Handler, invoke, method, type Table, Unsupported } from "./call.ts";
import type { Arg } from "./sample.ts";

/** A plain number out of a tensor that holds one, where torch takes either. */
const plain = async (x: Arg): Promise<Arg> => (x instanceof Tensor ? Number(await x.item()) : x);
const joined =
  (name: "cat" | "stack" | "hstack" | "vstack" | "dstack" | "columnStack"): Handler =>
  (c) => {
    const { dim } = c.named("dim");
    return invoke(Tensor, name, c.tensors, dim);
  };
const roll: Handler = (c) => {
  const { shifts, dims } = c.named("shifts", "dims");
  return c.tensor.roll(shifts as number, dims as number | undefined);
};
const flattenList: Handler = (c) => {
  const { start_dim, end_dim } = c.named("start_dim", "end_dim");
  return c.tensor.flatten((start_dim as number | undefined) ?? 0, (end_dim as number | undefined) ?? -1);
};
const narrow: Handler = async (c) => {
  const { dim, start, length } = c.named("dim", "start", "length");
  return c.tensor.narrow(dim as number, (await plain(start)) as number, length as number);
};
const repeatInterleave: Handler = async (c) => {
  const { repeats, dim, output_size } = c.named("repeats", "dim", "output_size");
  const counts =
    repeats instanceof Tensor && output_size === undefined
      ? [...(await repeats.reshape(-1).data())].map(Number)
      : (repeats as number | Tensor);
  const options = output_size === undefined ? {} : { outputSize: output_size as number };
  return c.tensor.repeatInterleave(counts, dim as number | undefined, options);
};
const pad: Handler = (c) => {
  const { pad: amounts, mode, value } = c.named("pad", "mode", "value");
  const how = (mode ?? "constant") as "constant" | "reflect" | "replicate" | "circular";
  return c.tensor.pad(amounts as number[], how, (value as number | undefined) ?? 0);
};
const embedding: Handler = (c) => {
  const a = c.named("input", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse");
  return (a.input as Tensor).embedding(c.tensor, {
    paddingIdx: a.padding_idx as number | undefined,
    maxNorm: a.max_norm as number | undefined,
    normType: a.norm_type as number | undefined,
    scaleGradByFreq: a.scale_grad_by_freq as boolean | undefined,
  });
};
/** torch lets a scatter take a number or a source under either name. */
const scatter: Handler = (c) => {
  const { dim, index, src, value, reduce } = c.named("dim", "index", "src", "value", "reduce");
  const options = reduce === undefined ? {} : { reduce: reduce as "add" | "multiply" };
  return c.tensor.scatter(dim as number, index as Tensor, (src ?? value) as Tensor, options);
};
const scatterReduce: Handler = (c) => {
  const { dim, index, src, reduce, include_self } = c.named("dim", "index", "src", "reduce", "include_self");
  return c.tensor.scatterReduce(dim as number, index as Tensor, src as Tensor, reduce as "sum", {
    includeSelf: include_self !== false,
  });
};
/** A mask among the indices has to be counted first, except where it stands alone. */
const indexPut: Handler = async (c) => {
  const { indices, values, accumulate } = c.named("indices", "values", "accumulate");
  const list = (indices as readonly Arg[]).map((i) => (i as Tensor | undefined) ?? null);
  const ready =
    list.length === 1
      ? list
      : (
          await Promise.all(
            list.map(async (i) => (i?.dtype.kind === "bool" ? (await i.nonzero()).unbind(1) : [i])),
          )
        ).flat();
  return c.tensor.indexPut(ready, values as Tensor, { accumulate: accumulate === true });
};
const split: Handler = (c) => {
  const { split_size_or_sections: size, dim } = c.named("split_size_or_sections", "dim");
  return c.tensor.split(size as number | number[], (dim as number | undefined) ?? 0);
};
const maskedFill: Handler = (c) => {
  const { mask, value } = c.named("mask", "value");
  return c.tensor.maskedFill(mask as Tensor, value as Tensor);
};
const rot90: Handler = (c) => {
  const { k, dims } = c.named("k", "dims");
  return c.tensor.rot90((k as number | undefined) ?? 1, (dims as [number, number] | undefined) ?? [0, 1]);
};
/** The tensors of a call that takes any number of them one after the other. */
const spread = (c: Call, ...options: readonly string[]): [Tensor[], Record<string, Arg>] => {
  const names = Array.from({ length: c.positional }, (_, i) => String(i));
  const given = c.named(...names, ...options);
  return [[...c.tensors, ...(names.map((n) => given[n]) as Tensor[])], given];
};
const meshgrid: Handler = (c) => {
  const [tensors, { indexing }] = spread(c, "indexing");
  return Tensor.meshgrid(tensors, (indexing as "ij" | "xy" | undefined) ?? "ij");
};
/** torch reads the places out of a tensor on the host; we are given numbers. */
const tensorSplit: Handler = async (c) => {
  const { indices_or_sections: at, dim } = c.named("indices_or_sections", "dim");
  const places = at instanceof Tensor ? await at.cast("int32").tolist() : at;
  return c.tensor.tensorSplit(places as number | number[], (dim as number | undefined) ?? 0);
};
const nonzero: Handler = async (c) => {
  const found = await c.tensor.nonzero();
  if (c.named("as_tuple").as_tuple !== true) return found;
  // as a tuple a scalar counts as a vector
  return c.tensor.ndim === 0 ? [found.sum(1)] : found.unbind(1);
};
const atLeast =
  (dims: 1 | 2 | 3): Handler =>
  (c) => {
    const [tensors] = spread(c);
    const made = tensors.map((t) => invoke(t, `atleast${dims}d`) as Tensor);
    return Array.isArray(c.input) || made.length > 1 ? made : (made[0] as Tensor);
  };
const select: Handler = (c) => {
  const { dim, index } = c.named("dim", "index");
  return c.tensor.select(dim as number, index as number);
};
/** x[i, j, …]: numbers, lists of numbers and tensors; slices have no form in the file. */
const getitem: Handler = (c) => {
  const { index } = c.named("index");
  const parts = (Array.isArray(index) ? index : [index]).map((i) => {
    if (Array.isArray(i)) return new Tensor(i as number[]);
    if (i === undefined) return null;
    if (typeof i === "number" || i instanceof Tensor) return i;
    throw new Unsupported(`x[${String(i)}] has no form in the file that we know`);
  });
  return c.tensor.getAsync(...parts);
};

export const arrangement: Table = {
  __getitem__: getitem,
  atleast_1d: atLeast(1),
  atleast_2d: atLeast(2),
  atleast_3d: atLeast(3),
  block_diag: (c) => Tensor.blockDiag(spread(c)[0]),
  broadcast_to: "shape",
  bucketize: "boundaries *right ~out_int32",
  cat: joined("cat"),
  chunk: "chunks dim",
  column_stack: joined("columnStack"),
  contiguous: "",
  diag: "diagonal",
  diag_embed: "offset dim1 dim2",
  diagonal: "offset dim1 dim2",
  dstack: joined("dstack"),
  expand: "size",
  expand_as: "other",
  flatten: flattenList,
  flip: "dims",
  fliplr: "",
  flipud: "",
  gather: "dim index ~sparse_grad",
  hstack: joined("hstack"),
  index_add: "dim index source *alpha",
  index_copy: "dim index source",
  index_fill: "dim index value",
  index_put: indexPut,
  index_select: "dim index",
  masked_fill: maskedFill,
  masked_scatter: "mask source",
  masked_select: "mask",
  meshgrid,
  moveaxis: "source destination",
  movedim: "source destination",
  narrow,
  "nn.functional.embedding": embedding,
  "nn.functional.one_hot": "num_classes",
  "nn.functional.pad": pad,
  nonzero,
  permute: "dims",
  put: "index source *accumulate",
  ravel: "",
  repeat: "repeats",
  repeat_interleave: repeatInterleave,
  reshape: "shape",
  reshape_as: "other",
  roll,
  rot90,
  scatter,
  scatter_add: "dim index src",
  scatter_reduce: scatterReduce,
  searchsorted: "input *right *side *sorter ~out_int32",
  select,
  split,
  split_with_sizes: "split_sizes dim",
  squeeze: "dim",
  stack: joined("stack"),
  swapaxes: "axis0 axis1",
  swapdims: "dim0 dim1",
  t: "",
  take: "index",
  take_along_dim: "indices dim",
  tensor_split: tensorSplit,
  tile: "dims",
  transpose: "dim0 dim1",
  tril: "diagonal",
  triu: "diagonal",
  unbind: "dim",
  unflatten: "dim sizes",
  unfold: "dimension size step",
  unsqueeze: "dim",
  view: method("view", "size"),
  view_as: "other",
  vstack: joined("vstack"),
};
