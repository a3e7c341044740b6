// What makes large kernels fast: the OptOps of a CPU, the heuristic that chooses among them, the parts of
// lowering that only OptOps give something to do, loop collapsing, gathers as indexed loads, and joins in
// blocks. In Node it comes with the package; browser.ts has it once it is loaded. `#codegen/tuning` is one of
// the two.

export { inBlocks } from "../lower/blocks.ts";
export { mergeDims } from "../lower/merge.ts";
export { collapsed } from "../opt/collapse.ts";
export { CPU_OPS } from "../opt/cpuops.ts";
export { cpuLists } from "../opt/heuristics/cpu.ts";
export { findKeepable } from "../opt/keep.ts";
export { requireValid } from "../opt/list.ts";
export { axisOrder } from "../opt/swap.ts";
export { expand } from "../passes/expand.ts";
export { BY_INDEX } from "../passes/scatter.ts";
