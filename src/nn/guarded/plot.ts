// Written by `npm run signatures` from the types of the sources: nn.plot, guarded.

import { guard } from "../../arguments.ts";
import * as raw from "../plot.ts";

export * from "../plot.ts";

export const ticks = /* @__PURE__ */ guard(
  "ticks",
  raw.ticks,
  () => "low:n high:n most:n?",
);
export const line = /* @__PURE__ */ guard(
  "line",
  raw.line,
  () => "series:mrv options:{title:s,width:n,height:n}?",
);
export const histogram = /* @__PURE__ */ guard(
  "histogram",
  raw.histogram,
  () => "values:mv options:{title:s,width:n,height:n,bins:n}?",
);
export const images = /* @__PURE__ */ guard(
  "images",
  raw.images,
  () => "~batch:t options:{columns:n,scale:n,gap:n}?",
);
export const textLine = /* @__PURE__ */ guard(
  "textLine",
  raw.textLine,
  () => "series:mrv options:{title:s,width:n,height:n}?",
);
export const textHistogram = /* @__PURE__ */ guard(
  "textHistogram",
  raw.textHistogram,
  () => "values:mv options:{title:s,width:n,height:n,bins:n}?",
);
