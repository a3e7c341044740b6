// The functions of Tensor's methods that layers call. A layer does not call the method itself: a page would
// have to load the method's area. So that `Tensor.autocast` holds for layers as it does for methods, the
// functions that it has a class for (src/tensor/autocast/classes.ts) are taken from here.

import { asMethod } from "../arguments.ts";
import * as conv from "../tensor/conv/conv.ts";
import * as distance from "../tensor/losses/distance.ts";
import * as embedding from "../tensor/losses/embedding.ts";
import * as likelihood from "../tensor/losses/likelihood.ts";
import * as loss from "../tensor/losses/loss.ts";
import * as margin from "../tensor/losses/margin.ts";
import * as activations from "../tensor/neural/activations.ts";
import * as further from "../tensor/neural/further.ts";
import * as layers from "../tensor/neural/layers.ts";
import * as soft from "../tensor/neural/softmax.ts";
import type { Tensor } from "../tensor/tensor.ts";

// ---- products ----

export const linear = /* @__PURE__ */ asMethod("linear", layers.linear);
export const scaledDotProductAttention = /* @__PURE__ */ asMethod(
  "scaledDotProductAttention",
  layers.scaledDotProductAttention,
);
export const conv1d = /* @__PURE__ */ asMethod("conv1d", conv.conv1d);
export const conv2d = /* @__PURE__ */ asMethod("conv2d", conv.conv2d);
export const conv3d = /* @__PURE__ */ asMethod("conv3d", conv.conv3d);
export const convTranspose1d = /* @__PURE__ */ asMethod("convTranspose1d", conv.convTranspose1d);
export const convTranspose2d = /* @__PURE__ */ asMethod("convTranspose2d", conv.convTranspose2d);
export const convTranspose3d = /* @__PURE__ */ asMethod("convTranspose3d", conv.convTranspose3d);
export const prelu = /* @__PURE__ */ asMethod("prelu", further.prelu);
/** A weight as `linear` would take it: for a loop that multiplies by it in every step. */
export const asFactor = /* @__PURE__ */ asMethod("linear", (weight: Tensor) => weight);

// ---- in float32 ----

export const layerNorm = /* @__PURE__ */ asMethod("layerNorm", layers.layerNorm);
export const groupNorm = /* @__PURE__ */ asMethod("groupNorm", layers.groupNorm);
export const rmsNorm = /* @__PURE__ */ asMethod("rmsNorm", layers.rmsNorm);
export const softmax = /* @__PURE__ */ asMethod("softmax", soft.softmax);
export const logSoftmax = /* @__PURE__ */ asMethod("logSoftmax", soft.logSoftmax);
export const softmin = /* @__PURE__ */ asMethod("softmin", further.softmin);
export const softplus = /* @__PURE__ */ asMethod("softplus", activations.softplus);
export const logsigmoid = /* @__PURE__ */ asMethod("logsigmoid", activations.logsigmoid);
export const cosineSimilarity = /* @__PURE__ */ asMethod("cosineSimilarity", distance.cosineSimilarity);
export const pairwiseDistance = /* @__PURE__ */ asMethod("pairwiseDistance", distance.pairwiseDistance);
export const crossEntropy = /* @__PURE__ */ asMethod("crossEntropy", loss.crossEntropy);
export const nllLoss = /* @__PURE__ */ asMethod("nllLoss", loss.nllLoss);
export const binaryCrossEntropy = /* @__PURE__ */ asMethod("binaryCrossEntropy", loss.binaryCrossEntropy);
export const bceWithLogits = /* @__PURE__ */ asMethod("bceWithLogits", loss.bceWithLogits);
export const mseLoss = /* @__PURE__ */ asMethod("mseLoss", loss.mseLoss);
export const l1Loss = /* @__PURE__ */ asMethod("l1Loss", loss.l1Loss);
export const smoothL1Loss = /* @__PURE__ */ asMethod("smoothL1Loss", likelihood.smoothL1Loss);
export const huberLoss = /* @__PURE__ */ asMethod("huberLoss", likelihood.huberLoss);
export const klDiv = /* @__PURE__ */ asMethod("klDiv", likelihood.klDiv);
export const poissonNllLoss = /* @__PURE__ */ asMethod("poissonNllLoss", likelihood.poissonNllLoss);
export const gaussianNllLoss = /* @__PURE__ */ asMethod("gaussianNllLoss", likelihood.gaussianNllLoss);
export const cosineEmbeddingLoss = /* @__PURE__ */ asMethod(
  "cosineEmbeddingLoss",
  embedding.cosineEmbeddingLoss,
);
export const marginRankingLoss = /* @__PURE__ */ asMethod("marginRankingLoss", embedding.marginRankingLoss);
export const tripletMarginLoss = /* @__PURE__ */ asMethod("tripletMarginLoss", embedding.tripletMarginLoss);
export const hingeEmbeddingLoss = /* @__PURE__ */ asMethod(
  "hingeEmbeddingLoss",
  embedding.hingeEmbeddingLoss,
);
export const softMarginLoss = /* @__PURE__ */ asMethod("softMarginLoss", embedding.softMarginLoss);
export const multiMarginLoss = /* @__PURE__ */ asMethod("multiMarginLoss", margin.multiMarginLoss);
export const multilabelMarginLoss = /* @__PURE__ */ asMethod(
  "multilabelMarginLoss",
  margin.multilabelMarginLoss,
);
export const multilabelSoftMarginLoss = /* @__PURE__ */ asMethod(
  "multilabelSoftMarginLoss",
  margin.multilabelSoftMarginLoss,
);
