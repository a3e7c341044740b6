// What SPEC=1 and DEBUG=7 need: checks of graphs and lists, and graphs as text. In Node they come with the
// package; browser.ts has them once they are loaded. `#codegen/diagnostics` is one of the two.

export { listing } from "../../uop/listing.ts";
export { showGraph } from "../../uop/print.ts";
export { checkGraph, checkList } from "../../uop/spec.ts";
