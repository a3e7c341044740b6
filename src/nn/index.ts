// The names of `nn`: layers, optimisers, the state of a model and files of weights; all of optimisers and
// schedules as `nn.optim`, data as `nn.datasets`.

export * from "./attention.ts";
export * as datasets from "./datasets.ts";
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
export * from "./norms.ts";
export * from "./npy.ts";
export * as optim from "./optimizers.ts";
// the same by themselves: a bundler keeps all of a namespace, and of these what a page uses
export {
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
  OneCycleLR,
  Optimizer,
  SGD,
  StepLR,
} from "./optimizers.ts";
export * from "./quantize.ts";
export { GRUCell, LSTMCell, RNNCell } from "./recurrent.ts";
export * from "./rnn.ts";
export * from "./safetensors.ts";
export * from "./state.ts";
export * from "./weights.ts";
