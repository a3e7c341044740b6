// Written by `npm run signatures` from the types of the sources: nn.metrics, guarded.

import { guard, guardClass } from "../../arguments.ts";
import * as raw from "../metrics.ts";

export * from "../metrics.ts";

export const accuracy = /* @__PURE__ */ guard(
  "accuracy",
  raw.accuracy,
  () => "predictions:t target:t threshold:n?",
);
export const topkAccuracy = /* @__PURE__ */ guard(
  "topkAccuracy",
  raw.topkAccuracy,
  () => "scores:t target:t k:n?",
);
export const confusionMatrix = /* @__PURE__ */ guard(
  "confusionMatrix",
  raw.confusionMatrix,
  () => "predictions:t target:t numClasses:n",
);
export const mse = /* @__PURE__ */ guard(
  "mse",
  raw.mse,
  () => "predictions:t target:t",
);
export const rmse = /* @__PURE__ */ guard(
  "rmse",
  raw.rmse,
  () => "predictions:t target:t",
);
export const mae = /* @__PURE__ */ guard(
  "mae",
  raw.mae,
  () => "predictions:t target:t",
);
export const r2 = /* @__PURE__ */ guard(
  "r2",
  raw.r2,
  () => "predictions:t target:t",
);
export const Mean = /* @__PURE__ */ guardClass(
  "Mean",
  raw.Mean,
  "",
  "update ~value:et n:n?;compute;reset",
);
export type Mean = raw.Mean;
export const Accuracy = /* @__PURE__ */ guardClass(
  "Accuracy",
  raw.Accuracy,
  "options:{k:n}?",
  "update ~predictions:t target:t;compute;reset",
);
export type Accuracy = raw.Accuracy;
export const Confusion = /* @__PURE__ */ guardClass(
  "Confusion",
  raw.Confusion,
  "numClasses:n",
  "update ~predictions:t target:t;compute;accuracy;perClass;figures average:s?;reset",
);
export type Confusion = raw.Confusion;
export const Regression = /* @__PURE__ */ guardClass(
  "Regression",
  raw.Regression,
  "",
  "update ~predictions:t target:t;compute;reset",
);
export type Regression = raw.Regression;
