// All ops by name, with the domain before the name unless it is the standard's own.

import { math } from "./math.ts";
import type { OpTable } from "./op.ts";
import { reduce } from "./reduce.ts";
import { shape } from "./shape.ts";

export const OPS_OF_ONNX: OpTable = { ...math, ...reduce, ...shape };
