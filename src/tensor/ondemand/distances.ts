// gradloom/distances: the methods of Tensor for distances, and losses that fewer programs use.

import { install } from "../areas.ts";
import * as functions from "../losses/ondemand.ts";
import { distances } from "../signatures.ts";

install("distances", functions, distances);
