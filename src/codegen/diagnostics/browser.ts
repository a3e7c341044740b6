// What SPEC=1 and DEBUG=7 need, in a page: engine/ondemand loads it before the first kernel that is awaited,
// and puts it here. Few pages ever ask for it.

import { requireLoaded } from "../../deferred.ts";

type Diagnostics = typeof import("./node.ts");
let loaded: Diagnostics | undefined;

export function setDiagnostics(diagnostics: Diagnostics): void {
  loaded = diagnostics;
}
const diagnostics = (): Diagnostics =>
  requireLoaded(loaded, "SPEC=1 or DEBUG=7", "the checks and texts of graphs");
export const showGraph: Diagnostics["showGraph"] = (sink) => diagnostics().showGraph(sink);
export const checkGraph: Diagnostics["checkGraph"] = (sink, pass) => diagnostics().checkGraph(sink, pass);
export const checkList: Diagnostics["checkList"] = (list) => diagnostics().checkList(list);
