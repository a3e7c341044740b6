// The names of the types that the methods of Tensor speak of: their options and what they take.

export type { PadAmounts, PadMode } from "./arrange.ts";
export type { Element, NestedArray } from "./base.ts";
export type { ConvOptions, ConvTransposeOptions, PerDim } from "./conv.ts";
export type { SizeArgs } from "./creation.ts";
export type { NormalizeOptions, PairwiseOptions } from "./distance.ts";
export type { EmbeddingOptions, Index, SearchOptions, Slice } from "./getitem.ts";
export type { LpPoolOptions, UnpoolOptions, WindowOptions } from "./image.ts";
export type { LeastSquares, MatrixOrd } from "./linalg.ts";
export type {
  BceOptions,
  ClassLossOptions,
  CrossEntropyOptions,
  GaussianOptions,
  KlDivOptions,
  LossOptions,
  MarginOptions,
  PoissonOptions,
  Reduction,
  TripletOptions,
  WeightedLossOptions,
} from "./loss.ts";
export type { MultiMarginOptions } from "./margin.ts";
export type { Rounded, Scaled } from "./math.ts";
export type { ShapeArgs } from "./movement.ts";
export type {
  AffineOptions,
  AttentionOptions,
  BatchNormOptions,
  InstanceNormOptions,
  RmsNormOptions,
} from "./neural.ts";
export type { Interpolation, QuantileOptions } from "./order.ts";
export type { AvgPoolOptions, MaxPoolOptions, OutputSize } from "./pool.ts";
export type { Scales } from "./products.ts";
export type { InitOptions } from "./random.ts";
export type { Axes, Typed } from "./reduce.ts";
export type { InterpolateMode, InterpolateOptions } from "./resample.ts";
export type { Closeness, Like } from "./rounding.ts";
export type { ScatterReduce } from "./scatter.ts";
export type { DiffOptions } from "./totals.ts";
