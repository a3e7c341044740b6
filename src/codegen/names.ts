// The names of codegen that the package exports. They have a file of their own because a page gets
// nameslater.ts in its place: it loads codegen with its first compiled kernel, and not at its start.

export { UOps } from "../uop/node.ts";
export { UOpGraph } from "../uop/written.ts";
export { resetKernelNames, toKernel } from "./kernel.ts";
