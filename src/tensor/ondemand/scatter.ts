// gradloom/scatter: the methods of Tensor for writing by index.

import { install } from "../areas.ts";
import * as functions from "../indexing/ondemand.ts";

install("scatter", functions);
