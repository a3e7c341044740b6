// The built package in Node: the first method of any area loads all of them.

import { rest } from "../../host/rest.ts";
import { loadWith } from "../areas.ts";

export function prepareAreas(): void {
  loadWith(rest);
}
