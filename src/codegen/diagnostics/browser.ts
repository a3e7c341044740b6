// What SPEC=1 and DEBUG=7 need, in a page: engine/ondemand loads it before the first kernel that is awaited,
// and puts it here. Few pages ever ask for it.

import { ArgumentError } from "../../errors.ts";

type Diagnostics = typeof import("./node.ts");
let loaded: Diagnostics | undefined;

export function setDiagnostics(diagnostics: Diagnostics): void {
  loaded = diagnostics;
}
function diagnostics(): Diagnostics {
  if (loaded !== undefined) return loaded;
  throw new ArgumentError(
    "SPEC=1 or DEBUG=7: a page loads the checks and texts of graphs with the first kernel that is awaited; " +
      "compute a value with await first",
  );
}
export const showGraph: Diagnostics["showGraph"] = (sink) => diagnostics().showGraph(sink);
export const checkGraph: Diagnostics["checkGraph"] = (sink, pass) => diagnostics().checkGraph(sink, pass);
export const checkList: Diagnostics["checkList"] = (list) => diagnostics().checkList(list);
