// Written by `npm run signatures` from the types of the sources: nn.transforms, guarded.

import { guard, guardClass } from "../../arguments.ts";
import * as raw from "../transforms.ts";

export * from "../transforms.ts";

export const resize = /* @__PURE__ */ guard(
  "resize",
  raw.resize,
  () => "x:t size:an",
);
export const crop = /* @__PURE__ */ guard(
  "crop",
  raw.crop,
  () => "x:t top:n left:n height:n width:n",
);
export const centerCrop = /* @__PURE__ */ guard(
  "centerCrop",
  raw.centerCrop,
  () => "x:t size:an",
);
export const hflip = /* @__PURE__ */ guard(
  "hflip",
  raw.hflip,
  () => "x:t",
);
export const vflip = /* @__PURE__ */ guard(
  "vflip",
  raw.vflip,
  () => "x:t",
);
export const normalize = /* @__PURE__ */ guard(
  "normalize",
  raw.normalize,
  () => "x:t mean:a std:a",
);
export const Compose = /* @__PURE__ */ guardClass(
  "Compose",
  raw.Compose,
  "transforms:m",
  "forward x:t",
);
export type Compose = raw.Compose;
export const Resize = /* @__PURE__ */ guardClass(
  "Resize",
  raw.Resize,
  "size:an",
  "forward x:t",
);
export type Resize = raw.Resize;
export const CenterCrop = /* @__PURE__ */ guardClass(
  "CenterCrop",
  raw.CenterCrop,
  "size:an",
  "forward x:t",
);
export type CenterCrop = raw.CenterCrop;
export const Normalize = /* @__PURE__ */ guardClass(
  "Normalize",
  raw.Normalize,
  "mean:a std:a",
  "forward x:t",
);
export type Normalize = raw.Normalize;
export const RandomHorizontalFlip = /* @__PURE__ */ guardClass(
  "RandomHorizontalFlip",
  raw.RandomHorizontalFlip,
  "options:{seed:n,p:n}?",
  "forward x:t",
);
export type RandomHorizontalFlip = raw.RandomHorizontalFlip;
export const RandomVerticalFlip = /* @__PURE__ */ guardClass(
  "RandomVerticalFlip",
  raw.RandomVerticalFlip,
  "options:{seed:n,p:n}?",
  "forward x:t",
);
export type RandomVerticalFlip = raw.RandomVerticalFlip;
export const RandomCrop = /* @__PURE__ */ guardClass(
  "RandomCrop",
  raw.RandomCrop,
  "size:an options:{seed:n,padding:n}?",
  "forward x:t",
);
export type RandomCrop = raw.RandomCrop;
