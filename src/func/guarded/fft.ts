// Written by `npm run signatures` from the types of the sources: fft, guarded.

import { guard } from "../../arguments.ts";
import * as raw from "../fft.ts";

export * from "../fft.ts";

export const fft = /* @__PURE__ */ guard(
  "fft",
  raw.fft,
  () => "x:t options:{n:n,dim:n,norm:s}?",
);
export const ifft = /* @__PURE__ */ guard(
  "ifft",
  raw.ifft,
  () => "x:t options:{n:n,dim:n,norm:s}?",
);
export const rfft = /* @__PURE__ */ guard(
  "rfft",
  raw.rfft,
  () => "x:t options:{n:n,dim:n,norm:s}?",
);
export const irfft = /* @__PURE__ */ guard(
  "irfft",
  raw.irfft,
  () => "x:t options:{n:n,dim:n,norm:s}?",
);
export const fft2 = /* @__PURE__ */ guard(
  "fft2",
  raw.fft2,
  () => "x:t options:{s:a,dim:a,norm:s}?",
);
export const ifft2 = /* @__PURE__ */ guard(
  "ifft2",
  raw.ifft2,
  () => "x:t options:{s:a,dim:a,norm:s}?",
);
export const fftn = /* @__PURE__ */ guard(
  "fftn",
  raw.fftn,
  () => "x:t options:{s:a,dim:a,norm:s}?",
);
export const ifftn = /* @__PURE__ */ guard(
  "ifftn",
  raw.ifftn,
  () => "x:t options:{s:a,dim:a,norm:s}?",
);
export const rfft2 = /* @__PURE__ */ guard(
  "rfft2",
  raw.rfft2,
  () => "x:t options:{s:a,dim:a,norm:s}?",
);
export const rfftn = /* @__PURE__ */ guard(
  "rfftn",
  raw.rfftn,
  () => "x:t options:{s:a,dim:a,norm:s}?",
);
export const irfft2 = /* @__PURE__ */ guard(
  "irfft2",
  raw.irfft2,
  () => "x:t options:{s:a,dim:a,norm:s}?",
);
export const irfftn = /* @__PURE__ */ guard(
  "irfftn",
  raw.irfftn,
  () => "x:t options:{s:a,dim:a,norm:s}?",
);
export const complex = /* @__PURE__ */ guard(
  "complex",
  raw.complex,
  () => "re:t im:t?",
);
export const real = /* @__PURE__ */ guard(
  "real",
  raw.real,
  () => "x:t",
);
export const imag = /* @__PURE__ */ guard(
  "imag",
  raw.imag,
  () => "x:t",
);
export const conj = /* @__PURE__ */ guard(
  "conj",
  raw.conj,
  () => "x:t",
);
export const abs = /* @__PURE__ */ guard(
  "abs",
  raw.abs,
  () => "x:t",
);
export const angle = /* @__PURE__ */ guard(
  "angle",
  raw.angle,
  () => "x:t",
);
export const mul = /* @__PURE__ */ guard(
  "mul",
  raw.mul,
  () => "x:t y:t",
);
export const fftfreq = /* @__PURE__ */ guard(
  "fftfreq",
  raw.fftfreq,
  () => "n:n d:n? options:{requiresGrad:b,dtype:d,device:s}?",
);
export const rfftfreq = /* @__PURE__ */ guard(
  "rfftfreq",
  raw.rfftfreq,
  () => "n:n d:n? options:{requiresGrad:b,dtype:d,device:s}?",
);
export const fftshift = /* @__PURE__ */ guard(
  "fftshift",
  raw.fftshift,
  () => "x:t dim:an",
);
export const ifftshift = /* @__PURE__ */ guard(
  "ifftshift",
  raw.ifftshift,
  () => "x:t dim:an",
);
