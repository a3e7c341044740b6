// The names of the types that the methods of Tensor speak of: their options and what they take.

export type { ConvOptions, ConvTransposeOptions, PerDim } from "./conv/conv.ts";
export type { LpPoolOptions, UnpoolOptions, WindowOptions } from "./conv/image.ts";
export type { AvgPoolOptions, MaxPoolOptions, OutputSize } from "./conv/pool.ts";
export type { InterpolateMode, InterpolateOptions } from "./conv/resample.ts";
export type { Element, NestedArray } from "./core.ts";
export type { Like, SizeArgs } from "./creation/creation.ts";
export type { BackwardOptions } from "./gradients.ts";
export type { CanvasLike, CanvasOptions } from "./image/canvas.ts";
export type { ImageFile, ImageFileOptions, ImageOptions, ImagePicture, ImageSource } from "./image/image.ts";
export type { TensorSource } from "./image/pixels.ts";
export type { EmbeddingOptions, Index, SearchOptions, Slice } from "./indexing/getitem.ts";
export type { ScatterReduce, ScatterReduceOptions } from "./indexing/scatter.ts";
export type { PutOptions } from "./indexing/select.ts";
export type { Cutoff, LeastSquares, MatrixOrd } from "./linalg/linalg.ts";
export type { Scales } from "./linalg/products.ts";
export type { CholeskyOptions, SolveOptions, TriangularOptions } from "./linalg/solve.ts";
export type { NormalizeOptions, PairwiseOptions } from "./losses/distance.ts";
export type { GaussianOptions, KlDivOptions, PoissonOptions } from "./losses/likelihood.ts";
export type {
  BceOptions,
  ClassLossOptions,
  CrossEntropyOptions,
  LossOptions,
  MarginOptions,
  Reduction,
  TripletOptions,
  WeightedLossOptions,
} from "./losses/loss.ts";
export type { MultiMarginOptions } from "./losses/margin.ts";
export type { Rounded, Scaled } from "./math/arithmetic.ts";
export type { Closeness } from "./math/rounding.ts";
export type { PadAmounts, PadMode } from "./movement/arrange.ts";
export type { ShapeArgs } from "./movement/views.ts";
export type {
  AffineOptions,
  AttentionOptions,
  BatchNormOptions,
  InstanceNormOptions,
  RmsNormOptions,
} from "./neural/layers.ts";
export type { InitOptions } from "./random/random.ts";
export type { Interpolation, QuantileOptions } from "./reduce/order.ts";
export type { Axes, Typed } from "./reduce/reduce.ts";
export type { DiffOptions } from "./reduce/totals.ts";
