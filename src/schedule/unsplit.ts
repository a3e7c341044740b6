// In the place of splitreduce.ts, in a page: only GPUs split reductions, and no device of a page has compute
// units to fill (devices/browser.ts). `#schedule/splitreduce` is one of the two files.

import type * as node from "./splitreduce.ts";

export const leavesUnitsIdle: typeof node.leavesUnitsIdle = () => false;
export const splitReduction: typeof node.splitReduction = (item) => [item];
