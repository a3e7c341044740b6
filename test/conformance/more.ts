// Operators beyond those of the open file, so that a wider one can be run: losses,
// unpooling, linear algebra, areas.

import { Tensor } from "gradloom";
import { type Handler, invoke, method, type Table } from "./call.ts";
import type { Arg } from "./sample.ts";

const OLD = "~size_average ~reduce";
const loss = (spec: string): string => `${spec} ${OLD} *reduction`;
const given = (options: Readonly<Record<string, Arg>>): Record<string, Arg> =>
  Object.fromEntries(Object.entries(options).filter(([, v]) => v !== undefined));

const asTensor = (x: Arg): Tensor => (x instanceof Tensor ? x : new Tensor(x as number));
const polygamma: Handler = (c) => {
  const { self } = c.named("self");
  // either may come first
  return self instanceof Tensor ? invoke(self, "polygamma", c.input) : invoke(c.tensor, "polygamma", self);
};
const unpool =
  (dims: number): Handler =>
  (c) => {
    const a = c.named("indices", "kernel_size", "stride", "padding", "output_size");
    const options = given({ stride: a.stride, padding: a.padding, outputSize: a.output_size });
    return invoke(c.tensor, `maxUnpool${dims}d`, a.indices, a.kernel_size, options);
  };
const swapped =
  (name: string): Handler =>
  (c) =>
    invoke(asTensor(c.named("other").other), name, c.tensor);
const norm: Handler = (c) => {
  const { p, dim, keepdim, dtype } = c.named("p", "dim", "keepdim", "dtype");
  return invoke(c.tensor, "norm", p, dim, keepdim ?? false, dtype === undefined ? {} : { dtype });
};
const trapezoid: Handler = (c) => {
  const { x, dx, dim } = c.named("x", "dx", "dim");
  return invoke(c.tensor, "trapezoid", given({ x, dx, dim }));
};
const upsample =
  (name: string): Handler =>
  (c) => {
    const { size, scale_factor } = c.named("size", "scale_factor");
    return invoke(c.tensor, name, given({ size, scaleFactor: scale_factor }));
  };

export const more: Table = {
  __radd__: swapped("add"),
  __rmul__: swapped("mul"),
  __rpow__: swapped("pow"),
  __rsub__: method("rsub", "other"),
  __rdiv__: swapped("div"),
  __rmod__: swapped("remainder"),
  cartesian_prod: (c) => {
    const rest = c.named(...Array.from({ length: c.positional }, (_, i) => String(i)));
    return Tensor.cartesianProd([...c.tensors, ...(Object.values(rest) as Tensor[])]);
  },
  diff: (c) => {
    const { n, dim, prepend, append } = c.named("n", "dim", "prepend", "append");
    return invoke(c.tensor, "diff", n ?? 1, dim ?? -1, given({ prepend, append }));
  },
  frexp: "",
  "linalg.cross": method("cross", "other dim"),
  "linalg.eigvalsh": method("eigvalsh", "UPLO"),
  "linalg.matrix_power": method("matrixPower", "n"),
  "linalg.matrix_rank": method("matrixRank", "tol *hermitian"),
  "linalg.multi_dot": (c) => Tensor.multiDot(c.tensors),
  "linalg.pinv": method("pinv", "rcond *hermitian"),
  "linalg.solve_triangular": "b *upper *left *unitriangular",
  "linalg.svdvals": "",
  logdet: "",
  nanquantile: "q dim keepdim *interpolation",
  "nn.functional.channel_shuffle": "groups",
  "nn.functional.cosine_embedding_loss": loss("input2 target *margin"),
  "nn.functional.gaussian_nll_loss": "target var *full *eps *reduction",
  "nn.functional.hinge_embedding_loss": loss("target *margin"),
  "nn.functional.margin_ranking_loss": loss("input2 target *margin"),
  "nn.functional.max_unpool1d": unpool(1),
  "nn.functional.max_unpool2d": unpool(2),
  "nn.functional.max_unpool3d": unpool(3),
  "nn.functional.multi_margin_loss": loss("target *p *margin *weight"),
  "nn.functional.multilabel_margin_loss": loss("target"),
  "nn.functional.multilabel_soft_margin_loss": loss("target *weight"),
  "nn.functional.pairwise_distance": "x2 *p *eps *keepdim",
  "nn.functional.poisson_nll_loss": `target *log_input *full ~size_average *eps ~reduce *reduction`,
  "nn.functional.soft_margin_loss": loss("target"),
  "nn.functional.triplet_margin_loss": loss("positive negative *margin *p *eps *swap"),
  "nn.functional.upsample_bilinear": upsample("upsampleBilinear"),
  "nn.functional.upsample_nearest": upsample("upsampleNearest"),
  norm,
  "special.i1": method("i1"),
  polygamma,
  "special.polygamma": polygamma,
  trapezoid,
  trapz: trapezoid,
};
