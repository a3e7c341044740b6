// gradloom/shard: the methods of Tensor for several devices.

import { install } from "../areas.ts";
import * as functions from "../movement/shard.ts";
import { shard } from "../signatures.ts";

install("shard", functions, shard);
