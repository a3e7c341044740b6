// gradloom/scatter: the methods of Tensor for writing by index.

import { install } from "../areas.ts";
import * as functions from "../indexing/ondemand.ts";
import { scatter } from "../signatures.ts";

install("scatter", functions, scatter);
