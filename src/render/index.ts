// gradloom/render: the renderers and the languages they write, for programs that look at kernels. A device
// loads its own.

export { type CStyleLanguage, uopsToCStyle } from "./cstyle.ts";
export { HIPLanguage, HIPRenderer } from "./hip.ts";
export {
  ClangLanguage,
  ClangRenderer,
  CUDALanguage,
  CUDARenderer,
} from "./languages.ts";
export { MetalLanguage, MetalRenderer } from "./metal.ts";
export { OpenCLLanguage, OpenCLRenderer } from "./opencl.ts";
export { WASMRenderer } from "./wasm/renderer.ts";
export { WGSLRenderer } from "./webgpu.ts";
export { uopsToWGSL } from "./wgsl.ts";
