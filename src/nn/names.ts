// The names of `nn`: layers, losses, optimisers, the state of a model and files of weights; all of optimisers
// and schedules as `nn.optim`, initial values as `nn.init`, data as `nn.datasets`.

export * from "./activations.ts";
export * from "./attention.ts";
export * from "./bags.ts";
export * from "./checkpoint.ts";
export {
  type Collated,
  DataLoader,
  type DataLoaderOptions,
  type LoaderData,
  type MapDataset,
} from "./dataloader.ts";
export * as datasets from "./datasets.ts";
export * from "./dropouts.ts";
export * from "./gradscaler.ts";
export * as init from "./init.ts";
export {
  type BiasOptions,
  Conv1d,
  Conv2d,
  Conv3d,
  type ConvLayerOptions,
  ConvTranspose1d,
  ConvTranspose2d,
  ConvTranspose3d,
  type ConvTransposeLayerOptions,
  Dropout,
  Embedding,
  type EmbeddingOptions,
  type Layer,
  type LayerOptions,
  Linear,
  parameter,
  Sequential,
} from "./layers.ts";
export * from "./losses.ts";
export * from "./marginlosses.ts";
export * as metrics from "./metrics.ts";
export { evaluate, Module, train } from "./module.ts";
export * from "./norms.ts";
export * from "./npy.ts";
export * as optim from "./optimizers.ts";
// the same by themselves: a bundler keeps all of a namespace, and of these what a page uses
export {
  Adadelta,
  Adagrad,
  Adam,
  AdamW,
  CosineAnnealingLR,
  clipGradNorm,
  LAMB,
  LARS,
  LambdaLR,
  LinearLR,
  LRScheduler,
  Muon,
  NAdam,
  OneCycleLR,
  Optimizer,
  RMSprop,
  SGD,
  StepLR,
} from "./optimizers.ts";
export * from "./padding.ts";
export * as plot from "./plot.ts";
export * from "./pooling.ts";
export * from "./profile.ts";
export * from "./progress.ts";
export * from "./quantize.ts";
export { GRUCell, LSTMCell, RNNCell } from "./recurrent.ts";
export * from "./rnn.ts";
export * from "./safetensors.ts";
export * from "./state.ts";
export * from "./summary.ts";
export * as transforms from "./transforms.ts";
export * from "./weights.ts";
