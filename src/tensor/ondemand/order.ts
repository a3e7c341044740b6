// gradloom/order: the methods of Tensor for sorting, quantiles, running reductions.

import { install } from "../areas.ts";
import * as functions from "../reduce/ondemand.ts";
import { order } from "../signatures.ts";

install("order", functions, order);
