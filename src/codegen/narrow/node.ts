// Arithmetic on types that a target does not compute with: packed ones, and floats of 16 and 8 bits. In Node
// it comes with the package; browser.ts has it once it is loaded. `#codegen/narrow` is one of the two.

export { unpackTypes } from "../lower/unpack.ts";
export { emulate } from "../passes/emulate.ts";
