// Written by `npm run signatures` from the types of the sources: nn.optim, guarded.

import { guard, guardClass } from "../../arguments.ts";
import * as raw from "../optimizers.ts";

export * from "../optimizers.ts";

export const RMSprop = /* @__PURE__ */ guardClass(
  "RMSprop",
  raw.RMSprop,
  "params:kmt options:{!lr:n,!alpha:n,!eps:n,!weightDecay:n,!momentum:n,!centered:b,masterWeights:b,stateDtype:s,maximize:b}?",
  "zeroGrad;step ~also:t*",
);
export type RMSprop = raw.RMSprop;
export const Adagrad = /* @__PURE__ */ guardClass(
  "Adagrad",
  raw.Adagrad,
  "params:kmt options:{!lr:n,!lrDecay:n,!weightDecay:n,!initialAccumulatorValue:n,!eps:n,masterWeights:b,stateDtype:s,maximize:b}?",
  "zeroGrad;step ~also:t*",
);
export type Adagrad = raw.Adagrad;
export const Adadelta = /* @__PURE__ */ guardClass(
  "Adadelta",
  raw.Adadelta,
  "params:kmt options:{!lr:n,!rho:n,!eps:n,!weightDecay:n,masterWeights:b,stateDtype:s,maximize:b}?",
  "zeroGrad;step ~also:t*",
);
export type Adadelta = raw.Adadelta;
export const NAdam = /* @__PURE__ */ guardClass(
  "NAdam",
  raw.NAdam,
  "params:kmt options:{!lr:n,!betas:a,!eps:n,!weightDecay:n,masterWeights:b,stateDtype:s,maximize:b,momentumDecay:n,decoupledWeightDecay:b}?",
  "zeroGrad;step ~also:t*",
);
export type NAdam = raw.NAdam;
export const SGD = /* @__PURE__ */ guardClass(
  "SGD",
  raw.SGD,
  "params:kmt options:{!lr:n,!momentum:n,!dampening:n,!weightDecay:n,!nesterov:b,masterWeights:b,stateDtype:s,maximize:b}?",
  "zeroGrad;step ~also:t*",
);
export type SGD = raw.SGD;
export const Adam = /* @__PURE__ */ guardClass(
  "Adam",
  raw.Adam,
  "params:kmt options:{!lr:n,!betas:a,!eps:n,!weightDecay:n,!amsgrad:b,masterWeights:b,stateDtype:s,maximize:b}?",
  "zeroGrad;step ~also:t*",
);
export type Adam = raw.Adam;
export const AdamW = /* @__PURE__ */ guardClass(
  "AdamW",
  raw.AdamW,
  "params:kmt options:{!lr:n,!betas:a,!eps:n,!weightDecay:n,!amsgrad:b,masterWeights:b,stateDtype:s,maximize:b}?",
  "zeroGrad;step ~also:t*",
);
export type AdamW = raw.AdamW;
export const LRScheduler = /* @__PURE__ */ guardClass(
  "LRScheduler",
  raw.LRScheduler,
  "optimizer:k rule:f lastStep:n?",
  "stateDict;loadStateDict state:{+lastStep:n,+bases:a};step to:n?",
);
export type LRScheduler = raw.LRScheduler;
export const cosine = /* @__PURE__ */ guard(
  "cosine",
  raw.cosine,
  () => "options:{+steps:n,min:n}",
);
export const linear = /* @__PURE__ */ guard(
  "linear",
  raw.linear,
  () => "options:{+steps:n,start:n,end:n}",
);
export const warmup = /* @__PURE__ */ guard(
  "warmup",
  raw.warmup,
  () => "steps:n after:f?",
);
export const stepDecay = /* @__PURE__ */ guard(
  "stepDecay",
  raw.stepDecay,
  () => "options:{+size:n,gamma:n}",
);
export const oneCycle = /* @__PURE__ */ guard(
  "oneCycle",
  raw.oneCycle,
  () => "options:{+maxLr:n,+totalSteps:n,pctStart:n,divFactor:n,finalDivFactor:n,annealStrategy:s}",
);
export const CosineAnnealingLR = /* @__PURE__ */ guardClass(
  "CosineAnnealingLR",
  raw.CosineAnnealingLR,
  "optimizer:k options:{+tMax:n,etaMin:n} lastStep:n?",
  "stateDict;loadStateDict state:{+lastStep:n,+bases:a};step to:n?",
);
export type CosineAnnealingLR = raw.CosineAnnealingLR;
export const OneCycleLR = /* @__PURE__ */ guardClass(
  "OneCycleLR",
  raw.OneCycleLR,
  "optimizer:k options:{+maxLr:n,+totalSteps:n,pctStart:n,divFactor:n,finalDivFactor:n,annealStrategy:s} lastStep:n?",
  "stateDict;loadStateDict state:{+lastStep:n,+bases:a};step to:n?",
);
export type OneCycleLR = raw.OneCycleLR;
export const LinearLR = /* @__PURE__ */ guardClass(
  "LinearLR",
  raw.LinearLR,
  "optimizer:k options:{startFactor:n,endFactor:n,totalIters:n}? lastStep:n?",
  "stateDict;loadStateDict state:{+lastStep:n,+bases:a};step to:n?",
);
export type LinearLR = raw.LinearLR;
export const StepLR = /* @__PURE__ */ guardClass(
  "StepLR",
  raw.StepLR,
  "optimizer:k options:{+stepSize:n,gamma:n} lastStep:n?",
  "stateDict;loadStateDict state:{+lastStep:n,+bases:a};step to:n?",
);
export type StepLR = raw.StepLR;
export const LambdaLR = /* @__PURE__ */ guardClass(
  "LambdaLR",
  raw.LambdaLR,
  "optimizer:k factor:f lastStep:n?",
  "stateDict;loadStateDict state:{+lastStep:n,+bases:a};step to:n?",
);
export type LambdaLR = raw.LambdaLR;
export const LARS = /* @__PURE__ */ guardClass(
  "LARS",
  raw.LARS,
  "params:kmt options:{!lr:n,masterWeights:b,stateDtype:s,maximize:b,momentum:n,weightDecay:n,nesterov:b,trustCoefficient:n,eps:n}?",
  "zeroGrad;step ~also:t*",
);
export type LARS = raw.LARS;
export const LAMB = /* @__PURE__ */ guardClass(
  "LAMB",
  raw.LAMB,
  "params:kmt options:{!lr:n,!betas:a,!eps:n,!weightDecay:n,masterWeights:b,stateDtype:s,maximize:b}?",
  "zeroGrad;step ~also:t*",
);
export type LAMB = raw.LAMB;
export const Muon = /* @__PURE__ */ guardClass(
  "Muon",
  raw.Muon,
  "params:kmt options:{!lr:n,masterWeights:b,stateDtype:s,maximize:b,momentum:n,nesterov:b,weightDecay:n,nsSteps:n,nsCoefficients:a,eps:n}?",
  "zeroGrad;step ~also:t*",
);
export type Muon = raw.Muon;
export const clipGradNorm = /* @__PURE__ */ guard(
  "clipGradNorm",
  raw.clipGradNorm,
  () => "params:lk maxNorm:n",
);
