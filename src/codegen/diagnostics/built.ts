// What SPEC=1 and DEBUG=7 need, in the built package of Node: node.ts, loaded on first use.

import { rest } from "../../host/rest.ts";

type Diagnostics = typeof import("./node.ts");
const diagnostics = (): Diagnostics => rest<{ engine: { diagnostics: Diagnostics } }>().engine.diagnostics;

export const showGraph: Diagnostics["showGraph"] = (sink) => diagnostics().showGraph(sink);
export const checkGraph: Diagnostics["checkGraph"] = (sink, pass) => diagnostics().checkGraph(sink, pass);
export const checkList: Diagnostics["checkList"] = (list) => diagnostics().checkList(list);
