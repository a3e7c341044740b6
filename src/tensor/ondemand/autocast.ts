// gradloom/autocast: mixed precision, `Tensor.autocast` and the low-precision options of optimisers.

import { install } from "../areas.ts";
import * as functions from "../autocast/index.ts";
import { autocast } from "../signatures.ts";

install("autocast", functions, autocast);
