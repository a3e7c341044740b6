// Written by `npm run signatures` from the types of the sources: the names of nn (names.ts), guarded.

import { guard, guardClass } from "../arguments.ts";
import * as raw from "./names.ts";

export * from "./names.ts";
export * as datasets from "./guarded/datasets.ts";
export * as init from "./guarded/init.ts";
export * as metrics from "./guarded/metrics.ts";
export * as optim from "./guarded/optim.ts";
export { Adadelta, Adagrad, Adam, AdamW, CosineAnnealingLR, LAMB, LARS, LRScheduler, LambdaLR, LinearLR, Muon, NAdam, OneCycleLR, RMSprop, SGD, StepLR, clipGradNorm } from "./guarded/optim.ts";
export * as plot from "./guarded/plot.ts";
export * as transforms from "./guarded/transforms.ts";

export const ReLU = /* @__PURE__ */ guardClass(
  "ReLU",
  raw.ReLU,
  "",
  "forward x:t",
);
export type ReLU = raw.ReLU;
export const ReLU6 = /* @__PURE__ */ guardClass(
  "ReLU6",
  raw.ReLU6,
  "",
  "forward x:t",
);
export type ReLU6 = raw.ReLU6;
export const LeakyReLU = /* @__PURE__ */ guardClass(
  "LeakyReLU",
  raw.LeakyReLU,
  "negativeSlope:nk?",
  "forward x:t",
);
export type LeakyReLU = raw.LeakyReLU;
export const ELU = /* @__PURE__ */ guardClass(
  "ELU",
  raw.ELU,
  "alpha:nk?",
  "forward x:t",
);
export type ELU = raw.ELU;
export const CELU = /* @__PURE__ */ guardClass(
  "CELU",
  raw.CELU,
  "alpha:nk?",
  "forward x:t",
);
export type CELU = raw.CELU;
export const SELU = /* @__PURE__ */ guardClass(
  "SELU",
  raw.SELU,
  "",
  "forward x:t",
);
export type SELU = raw.SELU;
export const SiLU = /* @__PURE__ */ guardClass(
  "SiLU",
  raw.SiLU,
  "",
  "forward x:t",
);
export type SiLU = raw.SiLU;
export const Mish = /* @__PURE__ */ guardClass(
  "Mish",
  raw.Mish,
  "",
  "forward x:t",
);
export type Mish = raw.Mish;
export const Sigmoid = /* @__PURE__ */ guardClass(
  "Sigmoid",
  raw.Sigmoid,
  "",
  "forward x:t",
);
export type Sigmoid = raw.Sigmoid;
export const LogSigmoid = /* @__PURE__ */ guardClass(
  "LogSigmoid",
  raw.LogSigmoid,
  "",
  "forward x:t",
);
export type LogSigmoid = raw.LogSigmoid;
export const Tanh = /* @__PURE__ */ guardClass(
  "Tanh",
  raw.Tanh,
  "",
  "forward x:t",
);
export type Tanh = raw.Tanh;
export const Softsign = /* @__PURE__ */ guardClass(
  "Softsign",
  raw.Softsign,
  "",
  "forward x:t",
);
export type Softsign = raw.Softsign;
export const Hardsigmoid = /* @__PURE__ */ guardClass(
  "Hardsigmoid",
  raw.Hardsigmoid,
  "",
  "forward x:t",
);
export type Hardsigmoid = raw.Hardsigmoid;
export const Hardswish = /* @__PURE__ */ guardClass(
  "Hardswish",
  raw.Hardswish,
  "",
  "forward x:t",
);
export type Hardswish = raw.Hardswish;
export const Tanhshrink = /* @__PURE__ */ guardClass(
  "Tanhshrink",
  raw.Tanhshrink,
  "",
  "forward x:t",
);
export type Tanhshrink = raw.Tanhshrink;
export const Softshrink = /* @__PURE__ */ guardClass(
  "Softshrink",
  raw.Softshrink,
  "lambd:nk?",
  "forward x:t",
);
export type Softshrink = raw.Softshrink;
export const Hardshrink = /* @__PURE__ */ guardClass(
  "Hardshrink",
  raw.Hardshrink,
  "lambd:nk?",
  "forward x:t",
);
export type Hardshrink = raw.Hardshrink;
export const GLU = /* @__PURE__ */ guardClass(
  "GLU",
  raw.GLU,
  "dim:nk?",
  "forward x:t",
);
export type GLU = raw.GLU;
export const Softmin = /* @__PURE__ */ guardClass(
  "Softmin",
  raw.Softmin,
  "dim:nk?",
  "forward x:t",
);
export type Softmin = raw.Softmin;
export const Softmax = /* @__PURE__ */ guardClass(
  "Softmax",
  raw.Softmax,
  "dim:nk?",
  "forward x:t",
);
export type Softmax = raw.Softmax;
export const LogSoftmax = /* @__PURE__ */ guardClass(
  "LogSoftmax",
  raw.LogSoftmax,
  "dim:nk?",
  "forward x:t",
);
export type LogSoftmax = raw.LogSoftmax;
export const GELU = /* @__PURE__ */ guardClass(
  "GELU",
  raw.GELU,
  "approximate:{approximate:s}s?",
  "forward x:t",
);
export type GELU = raw.GELU;
export const Softplus = /* @__PURE__ */ guardClass(
  "Softplus",
  raw.Softplus,
  "beta:n? threshold:n?",
  "forward x:t",
);
export type Softplus = raw.Softplus;
export const Hardtanh = /* @__PURE__ */ guardClass(
  "Hardtanh",
  raw.Hardtanh,
  "minVal:n? maxVal:n?",
  "forward x:t",
);
export type Hardtanh = raw.Hardtanh;
export const Threshold = /* @__PURE__ */ guardClass(
  "Threshold",
  raw.Threshold,
  "threshold:n value:e",
  "forward x:t",
);
export type Threshold = raw.Threshold;
export const PReLU = /* @__PURE__ */ guardClass(
  "PReLU",
  raw.PReLU,
  "numParameters:n? options:{device:s,dtype:d,init:n}?",
  "forward x:t",
);
export type PReLU = raw.PReLU;
export const MultiHeadAttention = /* @__PURE__ */ guardClass(
  "MultiHeadAttention",
  raw.MultiHeadAttention,
  "embedDim:n numHeads:n options:{!dropout:n,!bias:b,device:s,dtype:d}?",
  "forward query:t key:t? value:t? mask:{mask:t,isCausal:b}?;train on:b?;eval",
);
export type MultiHeadAttention = raw.MultiHeadAttention;
export const TransformerBlock = /* @__PURE__ */ guardClass(
  "TransformerBlock",
  raw.TransformerBlock,
  "width:n numHeads:n options:{device:s,dtype:d,bias:b,dropout:n,dimFeedforward:n,activation:f,normFirst:b,layerNormEps:n}?",
  "forward x:t mask:{mask:t,isCausal:b}?;train on:b?;eval",
);
export type TransformerBlock = raw.TransformerBlock;
export const EmbeddingBag = /* @__PURE__ */ guardClass(
  "EmbeddingBag",
  raw.EmbeddingBag,
  "numEmbeddings:n embeddingDim:n options:{device:s,dtype:d,paddingIdx:n,mode:s}?",
  "forward x:t offsets:t? perSampleWeights:t?",
);
export type EmbeddingBag = raw.EmbeddingBag;
export const Bilinear = /* @__PURE__ */ guardClass(
  "Bilinear",
  raw.Bilinear,
  "in1Features:n in2Features:n outFeatures:n options:{device:s,dtype:d,bias:b}?",
  "forward x1:t x2:t",
);
export type Bilinear = raw.Bilinear;
export const save = /* @__PURE__ */ guard(
  "save",
  raw.save,
  () => "~parts:r path:?/parts:r path:s",
);
export const load = /* @__PURE__ */ guard(
  "load",
  raw.load,
  () => "~source:cksv parts:r? options:{strict:b,random:b}?",
);
export const Dropout1d = /* @__PURE__ */ guardClass(
  "Dropout1d",
  raw.Dropout1d,
  "p:n?",
  "forward x:t;train on:b?;eval",
);
export type Dropout1d = raw.Dropout1d;
export const Dropout2d = /* @__PURE__ */ guardClass(
  "Dropout2d",
  raw.Dropout2d,
  "p:n?",
  "forward x:t;train on:b?;eval",
);
export type Dropout2d = raw.Dropout2d;
export const Dropout3d = /* @__PURE__ */ guardClass(
  "Dropout3d",
  raw.Dropout3d,
  "p:n?",
  "forward x:t;train on:b?;eval",
);
export type Dropout3d = raw.Dropout3d;
export const AlphaDropout = /* @__PURE__ */ guardClass(
  "AlphaDropout",
  raw.AlphaDropout,
  "p:n?",
  "forward x:t;train on:b?;eval",
);
export type AlphaDropout = raw.AlphaDropout;
export const FeatureAlphaDropout = /* @__PURE__ */ guardClass(
  "FeatureAlphaDropout",
  raw.FeatureAlphaDropout,
  "p:n?",
  "forward x:t;train on:b?;eval",
);
export type FeatureAlphaDropout = raw.FeatureAlphaDropout;
export const GradScaler = /* @__PURE__ */ guardClass(
  "GradScaler",
  raw.GradScaler,
  "options:{initScale:n,growthFactor:n,backoffFactor:n,growthInterval:n,enabled:b,device:s}?",
  "scale loss:t;unscale_ optimizer:c;step ~optimizer:c also:t*;update ~",
);
export type GradScaler = raw.GradScaler;
export const parameter = /* @__PURE__ */ guard(
  "parameter",
  raw.parameter,
  () => "t:t",
);
export const Sequential = /* @__PURE__ */ guardClass(
  "Sequential",
  raw.Sequential,
  "layers:fkm*",
  "forward x:t;train on:b?;eval",
);
export type Sequential = raw.Sequential;
export const Linear = /* @__PURE__ */ guardClass(
  "Linear",
  raw.Linear,
  "inFeatures:n outFeatures:n options:{!bias:b,device:s,dtype:d}?",
  "forward x:t",
);
export type Linear = raw.Linear;
export const Embedding = /* @__PURE__ */ guardClass(
  "Embedding",
  raw.Embedding,
  "numEmbeddings:n embeddingDim:n options:{!paddingIdx:n,device:s,dtype:d}?",
  "forward x:t",
);
export type Embedding = raw.Embedding;
export const Dropout = /* @__PURE__ */ guardClass(
  "Dropout",
  raw.Dropout,
  "p:n?",
  "forward x:t;train on:b?;eval",
);
export type Dropout = raw.Dropout;
export const Conv1d = /* @__PURE__ */ guardClass(
  "Conv1d",
  raw.Conv1d,
  "inChannels:n outChannels:n kernelSize:an options:{!stride:an,!padding:ans,!dilation:an,!groups:n,!bias:b,device:s,dtype:d}?",
  "forward x:t",
);
export type Conv1d = raw.Conv1d;
export const Conv2d = /* @__PURE__ */ guardClass(
  "Conv2d",
  raw.Conv2d,
  "inChannels:n outChannels:n kernelSize:an options:{!stride:an,!padding:ans,!dilation:an,!groups:n,!bias:b,device:s,dtype:d}?",
  "forward x:t",
);
export type Conv2d = raw.Conv2d;
export const Conv3d = /* @__PURE__ */ guardClass(
  "Conv3d",
  raw.Conv3d,
  "inChannels:n outChannels:n kernelSize:an options:{!stride:an,!padding:ans,!dilation:an,!groups:n,!bias:b,device:s,dtype:d}?",
  "forward x:t",
);
export type Conv3d = raw.Conv3d;
export const ConvTranspose1d = /* @__PURE__ */ guardClass(
  "ConvTranspose1d",
  raw.ConvTranspose1d,
  "inChannels:n outChannels:n kernelSize:an options:{!stride:an,!padding:an,!outputPadding:an,!groups:n,!bias:b,!dilation:an,device:s,dtype:d}?",
  "forward x:t",
);
export type ConvTranspose1d = raw.ConvTranspose1d;
export const ConvTranspose2d = /* @__PURE__ */ guardClass(
  "ConvTranspose2d",
  raw.ConvTranspose2d,
  "inChannels:n outChannels:n kernelSize:an options:{!stride:an,!padding:an,!outputPadding:an,!groups:n,!bias:b,!dilation:an,device:s,dtype:d}?",
  "forward x:t",
);
export type ConvTranspose2d = raw.ConvTranspose2d;
export const ConvTranspose3d = /* @__PURE__ */ guardClass(
  "ConvTranspose3d",
  raw.ConvTranspose3d,
  "inChannels:n outChannels:n kernelSize:an options:{!stride:an,!padding:an,!outputPadding:an,!groups:n,!bias:b,!dilation:an,device:s,dtype:d}?",
  "forward x:t",
);
export type ConvTranspose3d = raw.ConvTranspose3d;
export const MSELoss = /* @__PURE__ */ guardClass(
  "MSELoss",
  raw.MSELoss,
  "options:{!reduction:s,weight:0t}?",
  "forward input:t target:t",
);
export type MSELoss = raw.MSELoss;
export const L1Loss = /* @__PURE__ */ guardClass(
  "L1Loss",
  raw.L1Loss,
  "options:{!reduction:s,weight:0t}?",
  "forward input:t target:t",
);
export type L1Loss = raw.L1Loss;
export const SmoothL1Loss = /* @__PURE__ */ guardClass(
  "SmoothL1Loss",
  raw.SmoothL1Loss,
  "options:{!reduction:s,beta:n}?",
  "forward input:t target:t",
);
export type SmoothL1Loss = raw.SmoothL1Loss;
export const HuberLoss = /* @__PURE__ */ guardClass(
  "HuberLoss",
  raw.HuberLoss,
  "options:{!reduction:s,delta:n}?",
  "forward input:t target:t",
);
export type HuberLoss = raw.HuberLoss;
export const CrossEntropyLoss = /* @__PURE__ */ guardClass(
  "CrossEntropyLoss",
  raw.CrossEntropyLoss,
  "options:{!reduction:s,weight:0t,ignoreIndex:n,labelSmoothing:n}?",
  "forward input:t target:t",
);
export type CrossEntropyLoss = raw.CrossEntropyLoss;
export const NLLLoss = /* @__PURE__ */ guardClass(
  "NLLLoss",
  raw.NLLLoss,
  "options:{!reduction:s,weight:0t,ignoreIndex:n}?",
  "forward input:t target:t",
);
export type NLLLoss = raw.NLLLoss;
export const BCELoss = /* @__PURE__ */ guardClass(
  "BCELoss",
  raw.BCELoss,
  "options:{!reduction:s,weight:0t}?",
  "forward input:t target:t",
);
export type BCELoss = raw.BCELoss;
export const BCEWithLogitsLoss = /* @__PURE__ */ guardClass(
  "BCEWithLogitsLoss",
  raw.BCEWithLogitsLoss,
  "options:{!reduction:s,weight:0t,posWeight:0t}?",
  "forward input:t target:t",
);
export type BCEWithLogitsLoss = raw.BCEWithLogitsLoss;
export const KLDivLoss = /* @__PURE__ */ guardClass(
  "KLDivLoss",
  raw.KLDivLoss,
  "options:{!reduction:s,logTarget:b}?",
  "forward input:t target:t",
);
export type KLDivLoss = raw.KLDivLoss;
export const CosineEmbeddingLoss = /* @__PURE__ */ guardClass(
  "CosineEmbeddingLoss",
  raw.CosineEmbeddingLoss,
  "options:{!reduction:s,margin:n}?",
  "forward input1:t input2:t target:t",
);
export type CosineEmbeddingLoss = raw.CosineEmbeddingLoss;
export const MarginRankingLoss = /* @__PURE__ */ guardClass(
  "MarginRankingLoss",
  raw.MarginRankingLoss,
  "options:{!reduction:s,margin:n}?",
  "forward input1:t input2:t target:t",
);
export type MarginRankingLoss = raw.MarginRankingLoss;
export const TripletMarginLoss = /* @__PURE__ */ guardClass(
  "TripletMarginLoss",
  raw.TripletMarginLoss,
  "options:{!reduction:s,margin:n,p:n,eps:n,swap:b}?",
  "forward anchor:t positive:t negative:t",
);
export type TripletMarginLoss = raw.TripletMarginLoss;
export const HingeEmbeddingLoss = /* @__PURE__ */ guardClass(
  "HingeEmbeddingLoss",
  raw.HingeEmbeddingLoss,
  "options:{!reduction:s,margin:n}?",
  "forward input:t target:t",
);
export type HingeEmbeddingLoss = raw.HingeEmbeddingLoss;
export const SoftMarginLoss = /* @__PURE__ */ guardClass(
  "SoftMarginLoss",
  raw.SoftMarginLoss,
  "options:{!reduction:s}?",
  "forward input:t target:t",
);
export type SoftMarginLoss = raw.SoftMarginLoss;
export const MultiMarginLoss = /* @__PURE__ */ guardClass(
  "MultiMarginLoss",
  raw.MultiMarginLoss,
  "options:{!reduction:s,margin:n,p:n,weight:0t}?",
  "forward input:t target:t",
);
export type MultiMarginLoss = raw.MultiMarginLoss;
export const MultiLabelMarginLoss = /* @__PURE__ */ guardClass(
  "MultiLabelMarginLoss",
  raw.MultiLabelMarginLoss,
  "options:{!reduction:s}?",
  "forward input:t target:t",
);
export type MultiLabelMarginLoss = raw.MultiLabelMarginLoss;
export const MultiLabelSoftMarginLoss = /* @__PURE__ */ guardClass(
  "MultiLabelSoftMarginLoss",
  raw.MultiLabelSoftMarginLoss,
  "options:{!reduction:s,weight:0t}?",
  "forward input:t target:t",
);
export type MultiLabelSoftMarginLoss = raw.MultiLabelSoftMarginLoss;
export const PoissonNLLLoss = /* @__PURE__ */ guardClass(
  "PoissonNLLLoss",
  raw.PoissonNLLLoss,
  "options:{!reduction:s,logInput:b,full:b,eps:n}?",
  "forward input:t target:t",
);
export type PoissonNLLLoss = raw.PoissonNLLLoss;
export const GaussianNLLLoss = /* @__PURE__ */ guardClass(
  "GaussianNLLLoss",
  raw.GaussianNLLLoss,
  "options:{!reduction:s,full:b,eps:n}?",
  "forward input:t target:t variance:t",
);
export type GaussianNLLLoss = raw.GaussianNLLLoss;
export const CosineSimilarity = /* @__PURE__ */ guardClass(
  "CosineSimilarity",
  raw.CosineSimilarity,
  "options:{dim:n,eps:n}?",
  "forward x1:t x2:t",
);
export type CosineSimilarity = raw.CosineSimilarity;
export const PairwiseDistance = /* @__PURE__ */ guardClass(
  "PairwiseDistance",
  raw.PairwiseDistance,
  "options:{p:n,eps:n,keepdim:b}?",
  "forward x1:t x2:t",
);
export type PairwiseDistance = raw.PairwiseDistance;
export const train = /* @__PURE__ */ guard(
  "train",
  raw.train,
  () => "model:z on:b?",
);
export const evaluate = /* @__PURE__ */ guard(
  "evaluate",
  raw.evaluate,
  () => "model:z",
);
export const Module = /* @__PURE__ */ guardClass(
  "Module",
  raw.Module,
  "",
  "train on:b?;eval",
);
export type Module = raw.Module;
export const BatchNorm = /* @__PURE__ */ guardClass(
  "BatchNorm",
  raw.BatchNorm,
  "numFeatures:n options:{!eps:n,!momentum:0n,!affine:b,!trackRunningStats:b,device:s,dtype:d,warmUp:b}?",
  "forward x:t;train on:b?;eval",
);
export type BatchNorm = raw.BatchNorm;
export const BatchNorm1d = /* @__PURE__ */ guardClass(
  "BatchNorm1d",
  raw.BatchNorm1d,
  "numFeatures:n options:{!eps:n,!momentum:0n,!affine:b,!trackRunningStats:b,device:s,dtype:d,warmUp:b}?",
  "forward x:t;train on:b?;eval",
);
export type BatchNorm1d = raw.BatchNorm1d;
export const BatchNorm2d = /* @__PURE__ */ guardClass(
  "BatchNorm2d",
  raw.BatchNorm2d,
  "numFeatures:n options:{!eps:n,!momentum:0n,!affine:b,!trackRunningStats:b,device:s,dtype:d,warmUp:b}?",
  "forward x:t;train on:b?;eval",
);
export type BatchNorm2d = raw.BatchNorm2d;
export const BatchNorm3d = /* @__PURE__ */ guardClass(
  "BatchNorm3d",
  raw.BatchNorm3d,
  "numFeatures:n options:{!eps:n,!momentum:0n,!affine:b,!trackRunningStats:b,device:s,dtype:d,warmUp:b}?",
  "forward x:t;train on:b?;eval",
);
export type BatchNorm3d = raw.BatchNorm3d;
export const InstanceNorm1d = /* @__PURE__ */ guardClass(
  "InstanceNorm1d",
  raw.InstanceNorm1d,
  "numFeatures:n options:{!eps:n,!momentum:0n,!affine:b,!trackRunningStats:b,device:s,dtype:d,warmUp:b}?",
  "forward input:t;train on:b?;eval",
);
export type InstanceNorm1d = raw.InstanceNorm1d;
export const InstanceNorm2d = /* @__PURE__ */ guardClass(
  "InstanceNorm2d",
  raw.InstanceNorm2d,
  "numFeatures:n options:{!eps:n,!momentum:0n,!affine:b,!trackRunningStats:b,device:s,dtype:d,warmUp:b}?",
  "forward input:t;train on:b?;eval",
);
export type InstanceNorm2d = raw.InstanceNorm2d;
export const InstanceNorm3d = /* @__PURE__ */ guardClass(
  "InstanceNorm3d",
  raw.InstanceNorm3d,
  "numFeatures:n options:{!eps:n,!momentum:0n,!affine:b,!trackRunningStats:b,device:s,dtype:d,warmUp:b}?",
  "forward input:t;train on:b?;eval",
);
export type InstanceNorm3d = raw.InstanceNorm3d;
export const LayerNorm = /* @__PURE__ */ guardClass(
  "LayerNorm",
  raw.LayerNorm,
  "normalizedShape:an options:{!eps:n,!elementwiseAffine:b,!bias:b,device:s,dtype:d}?",
  "forward x:t",
);
export type LayerNorm = raw.LayerNorm;
export const RMSNorm = /* @__PURE__ */ guardClass(
  "RMSNorm",
  raw.RMSNorm,
  "normalizedShape:an options:{!eps:n,!elementwiseAffine:b,device:s,dtype:d}?",
  "forward x:t",
);
export type RMSNorm = raw.RMSNorm;
export const GroupNorm = /* @__PURE__ */ guardClass(
  "GroupNorm",
  raw.GroupNorm,
  "numGroups:n numChannels:n options:{!eps:n,!affine:b,device:s,dtype:d}?",
  "forward x:t",
);
export type GroupNorm = raw.GroupNorm;
export const npyLoad = /* @__PURE__ */ guard(
  "npyLoad",
  raw.npyLoad,
  () => "~source:cksv options:{device:s}?",
);
export const npySave = /* @__PURE__ */ guard(
  "npySave",
  raw.npySave,
  () => "~t:t path:?/t:t path:s",
);
export const npzLoad = /* @__PURE__ */ guard(
  "npzLoad",
  raw.npzLoad,
  () => "~source:cksv options:{device:s,maxBytes:n}?",
);
export const npzSave = /* @__PURE__ */ guard(
  "npzSave",
  raw.npzSave,
  () => "~dict:r path:? options:{compress:b}?/dict:r path:s options:{compress:b}?",
);
export const ZeroPad1d = /* @__PURE__ */ guardClass(
  "ZeroPad1d",
  raw.ZeroPad1d,
  "padding:an",
  "forward x:t",
);
export type ZeroPad1d = raw.ZeroPad1d;
export const ZeroPad2d = /* @__PURE__ */ guardClass(
  "ZeroPad2d",
  raw.ZeroPad2d,
  "padding:an",
  "forward x:t",
);
export type ZeroPad2d = raw.ZeroPad2d;
export const ZeroPad3d = /* @__PURE__ */ guardClass(
  "ZeroPad3d",
  raw.ZeroPad3d,
  "padding:an",
  "forward x:t",
);
export type ZeroPad3d = raw.ZeroPad3d;
export const ConstantPad1d = /* @__PURE__ */ guardClass(
  "ConstantPad1d",
  raw.ConstantPad1d,
  "padding:an value:e",
  "forward x:t",
);
export type ConstantPad1d = raw.ConstantPad1d;
export const ConstantPad2d = /* @__PURE__ */ guardClass(
  "ConstantPad2d",
  raw.ConstantPad2d,
  "padding:an value:e",
  "forward x:t",
);
export type ConstantPad2d = raw.ConstantPad2d;
export const ConstantPad3d = /* @__PURE__ */ guardClass(
  "ConstantPad3d",
  raw.ConstantPad3d,
  "padding:an value:e",
  "forward x:t",
);
export type ConstantPad3d = raw.ConstantPad3d;
export const ReflectionPad1d = /* @__PURE__ */ guardClass(
  "ReflectionPad1d",
  raw.ReflectionPad1d,
  "padding:an",
  "forward x:t",
);
export type ReflectionPad1d = raw.ReflectionPad1d;
export const ReflectionPad2d = /* @__PURE__ */ guardClass(
  "ReflectionPad2d",
  raw.ReflectionPad2d,
  "padding:an",
  "forward x:t",
);
export type ReflectionPad2d = raw.ReflectionPad2d;
export const ReflectionPad3d = /* @__PURE__ */ guardClass(
  "ReflectionPad3d",
  raw.ReflectionPad3d,
  "padding:an",
  "forward x:t",
);
export type ReflectionPad3d = raw.ReflectionPad3d;
export const ReplicationPad1d = /* @__PURE__ */ guardClass(
  "ReplicationPad1d",
  raw.ReplicationPad1d,
  "padding:an",
  "forward x:t",
);
export type ReplicationPad1d = raw.ReplicationPad1d;
export const ReplicationPad2d = /* @__PURE__ */ guardClass(
  "ReplicationPad2d",
  raw.ReplicationPad2d,
  "padding:an",
  "forward x:t",
);
export type ReplicationPad2d = raw.ReplicationPad2d;
export const ReplicationPad3d = /* @__PURE__ */ guardClass(
  "ReplicationPad3d",
  raw.ReplicationPad3d,
  "padding:an",
  "forward x:t",
);
export type ReplicationPad3d = raw.ReplicationPad3d;
export const CircularPad1d = /* @__PURE__ */ guardClass(
  "CircularPad1d",
  raw.CircularPad1d,
  "padding:an",
  "forward x:t",
);
export type CircularPad1d = raw.CircularPad1d;
export const CircularPad2d = /* @__PURE__ */ guardClass(
  "CircularPad2d",
  raw.CircularPad2d,
  "padding:an",
  "forward x:t",
);
export type CircularPad2d = raw.CircularPad2d;
export const CircularPad3d = /* @__PURE__ */ guardClass(
  "CircularPad3d",
  raw.CircularPad3d,
  "padding:an",
  "forward x:t",
);
export type CircularPad3d = raw.CircularPad3d;
export const MaxPool1d = /* @__PURE__ */ guardClass(
  "MaxPool1d",
  raw.MaxPool1d,
  "kernelSize:an options:{!stride:0an,!padding:an,!dilation:an,!ceilMode:b}0an? padding:an?",
  "forward x:t",
);
export type MaxPool1d = raw.MaxPool1d;
export const MaxPool2d = /* @__PURE__ */ guardClass(
  "MaxPool2d",
  raw.MaxPool2d,
  "kernelSize:an options:{!stride:0an,!padding:an,!dilation:an,!ceilMode:b}0an? padding:an?",
  "forward x:t",
);
export type MaxPool2d = raw.MaxPool2d;
export const MaxPool3d = /* @__PURE__ */ guardClass(
  "MaxPool3d",
  raw.MaxPool3d,
  "kernelSize:an options:{!stride:0an,!padding:an,!dilation:an,!ceilMode:b}0an? padding:an?",
  "forward x:t",
);
export type MaxPool3d = raw.MaxPool3d;
export const AvgPool1d = /* @__PURE__ */ guardClass(
  "AvgPool1d",
  raw.AvgPool1d,
  "kernelSize:an options:{!stride:0an,!padding:an,!ceilMode:b,!countIncludePad:b,divisorOverride:0n}0an? padding:an?",
  "forward x:t",
);
export type AvgPool1d = raw.AvgPool1d;
export const AvgPool2d = /* @__PURE__ */ guardClass(
  "AvgPool2d",
  raw.AvgPool2d,
  "kernelSize:an options:{!stride:0an,!padding:an,!ceilMode:b,!countIncludePad:b,divisorOverride:0n}0an? padding:an?",
  "forward x:t",
);
export type AvgPool2d = raw.AvgPool2d;
export const AvgPool3d = /* @__PURE__ */ guardClass(
  "AvgPool3d",
  raw.AvgPool3d,
  "kernelSize:an options:{!stride:0an,!padding:an,!ceilMode:b,!countIncludePad:b,divisorOverride:0n}0an? padding:an?",
  "forward x:t",
);
export type AvgPool3d = raw.AvgPool3d;
export const AdaptiveAvgPool1d = /* @__PURE__ */ guardClass(
  "AdaptiveAvgPool1d",
  raw.AdaptiveAvgPool1d,
  "outputSize:mn",
  "forward x:t",
);
export type AdaptiveAvgPool1d = raw.AdaptiveAvgPool1d;
export const AdaptiveAvgPool2d = /* @__PURE__ */ guardClass(
  "AdaptiveAvgPool2d",
  raw.AdaptiveAvgPool2d,
  "outputSize:mn",
  "forward x:t",
);
export type AdaptiveAvgPool2d = raw.AdaptiveAvgPool2d;
export const AdaptiveAvgPool3d = /* @__PURE__ */ guardClass(
  "AdaptiveAvgPool3d",
  raw.AdaptiveAvgPool3d,
  "outputSize:mn",
  "forward x:t",
);
export type AdaptiveAvgPool3d = raw.AdaptiveAvgPool3d;
export const AdaptiveMaxPool1d = /* @__PURE__ */ guardClass(
  "AdaptiveMaxPool1d",
  raw.AdaptiveMaxPool1d,
  "outputSize:mn",
  "forward x:t",
);
export type AdaptiveMaxPool1d = raw.AdaptiveMaxPool1d;
export const AdaptiveMaxPool2d = /* @__PURE__ */ guardClass(
  "AdaptiveMaxPool2d",
  raw.AdaptiveMaxPool2d,
  "outputSize:mn",
  "forward x:t",
);
export type AdaptiveMaxPool2d = raw.AdaptiveMaxPool2d;
export const AdaptiveMaxPool3d = /* @__PURE__ */ guardClass(
  "AdaptiveMaxPool3d",
  raw.AdaptiveMaxPool3d,
  "outputSize:mn",
  "forward x:t",
);
export type AdaptiveMaxPool3d = raw.AdaptiveMaxPool3d;
export const Upsample = /* @__PURE__ */ guardClass(
  "Upsample",
  raw.Upsample,
  "options:{size:0an,scaleFactor:0an,mode:s,alignCorners:0b,recomputeScaleFactor:0b,antialias:0b}",
  "forward x:t",
);
export type Upsample = raw.Upsample;
export const PixelShuffle = /* @__PURE__ */ guardClass(
  "PixelShuffle",
  raw.PixelShuffle,
  "upscaleFactor:n",
  "forward x:t",
);
export type PixelShuffle = raw.PixelShuffle;
export const PixelUnshuffle = /* @__PURE__ */ guardClass(
  "PixelUnshuffle",
  raw.PixelUnshuffle,
  "downscaleFactor:n",
  "forward x:t",
);
export type PixelUnshuffle = raw.PixelUnshuffle;
export const ChannelShuffle = /* @__PURE__ */ guardClass(
  "ChannelShuffle",
  raw.ChannelShuffle,
  "groups:n",
  "forward x:t",
);
export type ChannelShuffle = raw.ChannelShuffle;
export const Flatten = /* @__PURE__ */ guardClass(
  "Flatten",
  raw.Flatten,
  "startDim:n? endDim:n?",
  "forward x:t",
);
export type Flatten = raw.Flatten;
export const Unflatten = /* @__PURE__ */ guardClass(
  "Unflatten",
  raw.Unflatten,
  "dim:n unflattenedSize:a",
  "forward x:t",
);
export type Unflatten = raw.Unflatten;
export const Identity = /* @__PURE__ */ guardClass(
  "Identity",
  raw.Identity,
  "_ignored:z*",
  "forward x:t",
);
export type Identity = raw.Identity;
export const profile = /* @__PURE__ */ guard(
  "profile",
  raw.profile,
  () => "~fn:f options:{model:z,warmup:n,print:b}?",
);
export const ProgressBar = /* @__PURE__ */ guardClass(
  "ProgressBar",
  raw.ProgressBar,
  "options:{total:n,label:s,show:f}?",
  "step figures:r?;set figures:r;end;line ms:n",
);
export type ProgressBar = raw.ProgressBar;
export const progress = /* @__PURE__ */ guard(
  "progress",
  raw.progress,
  () => "items:z options:{total:n,label:s,show:f}?",
);
export const dequantize = /* @__PURE__ */ guard(
  "dequantize",
  raw.dequantize,
  () => "format:k packed:t scale:t zero:t?",
);
export const LSTMCell = /* @__PURE__ */ guardClass(
  "LSTMCell",
  raw.LSTMCell,
  "inputSize:n hiddenSize:n options:{!bias:b,device:s,dtype:d}?",
  "forward x:t state:l?",
);
export type LSTMCell = raw.LSTMCell;
export const GRUCell = /* @__PURE__ */ guardClass(
  "GRUCell",
  raw.GRUCell,
  "inputSize:n hiddenSize:n options:{!bias:b,device:s,dtype:d}?",
  "forward x:t hidden:t?",
);
export type GRUCell = raw.GRUCell;
export const RNNCell = /* @__PURE__ */ guardClass(
  "RNNCell",
  raw.RNNCell,
  "inputSize:n hiddenSize:n options:{!bias:b,device:s,dtype:d,nonlinearity:s}?",
  "forward x:t hidden:t?",
);
export type RNNCell = raw.RNNCell;
export const RNN = /* @__PURE__ */ guardClass(
  "RNN",
  raw.RNN,
  "inputSize:n hiddenSize:n options:{device:s,dtype:d,bias:b,numLayers:n,batchFirst:b,dropout:n,bidirectional:b,nonlinearity:s}?",
  "forward x:t h:t? options:{lengths:at}?;train on:b?;eval",
);
export type RNN = raw.RNN;
export const LSTM = /* @__PURE__ */ guardClass(
  "LSTM",
  raw.LSTM,
  "inputSize:n hiddenSize:n options:{!numLayers:n,!bias:b,!batchFirst:b,!dropout:n,!bidirectional:b,device:s,dtype:d,projSize:n}?",
  "forward x:t state:l? options:{lengths:at}?;train on:b?;eval",
);
export type LSTM = raw.LSTM;
export const GRU = /* @__PURE__ */ guardClass(
  "GRU",
  raw.GRU,
  "inputSize:n hiddenSize:n options:{!numLayers:n,!bias:b,!batchFirst:b,!dropout:n,!bidirectional:b,device:s,dtype:d}?",
  "forward x:t h:t? options:{lengths:at}?;train on:b?;eval",
);
export type GRU = raw.GRU;
export const safeLoad = /* @__PURE__ */ guard(
  "safeLoad",
  raw.safeLoad,
  () => "~source:cksv options:{device:s,names:m}?",
);
export const safeHeader = /* @__PURE__ */ guard(
  "safeHeader",
  raw.safeHeader,
  () => "~source:cksv",
);
export const safeSave = /* @__PURE__ */ guard(
  "safeSave",
  raw.safeSave,
  () => "~dict:r path:? metadata:r?/dict:r path:s metadata:r?",
);
export const getStateDict = /* @__PURE__ */ guard(
  "getStateDict",
  raw.getStateDict,
  () => "model:z prefix:s?",
);
export const getParameters = /* @__PURE__ */ guard(
  "getParameters",
  raw.getParameters,
  () => "model:kmt",
);
export const loadStateDict = /* @__PURE__ */ guard(
  "loadStateDict",
  raw.loadStateDict,
  () => "~model:z state:r options:{strict:b}?",
);
export const Summary = /* @__PURE__ */ guardClass(
  "Summary",
  raw.Summary,
  "rows:m state:l",
  "toString",
);
export type Summary = raw.Summary;
export const summary = /* @__PURE__ */ guard(
  "summary",
  raw.summary,
  () => "model:z input:amt options:{dtype:d,device:s}?",
);
export const fetchCached = /* @__PURE__ */ guard(
  "fetchCached",
  raw.fetchCached,
  () => "~address:cs options:{revalidate:b,onProgress:f}?",
);
export const forgetCached = /* @__PURE__ */ guard(
  "forgetCached",
  raw.forgetCached,
  () => "~address:cs?",
);
