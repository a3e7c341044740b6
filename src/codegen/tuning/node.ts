// What makes large kernels fast on a CPU: its OptOps, and the heuristic that chooses among them. In Node it
// comes with the package; browser.ts has it once it is loaded. `#codegen/tuning` is one of the two.

export { CPU_OPS } from "../opt/cpuops.ts";
export { cpuLists } from "../opt/heuristics/cpu.ts";
