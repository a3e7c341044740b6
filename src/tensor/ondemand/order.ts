// gradloom/order: the methods of Tensor for sorting, quantiles, running reductions.

import { install } from "../areas.ts";
import * as functions from "../reduce/ondemand.ts";

install("order", functions);
