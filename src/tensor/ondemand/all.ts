// gradloom/all: every area of Tensor.

import "./conv.ts";
import "./neural.ts";
import "./linalg.ts";
import "./losses.ts";
import "./order.ts";
import "./scatter.ts";
import "./shard.ts";
import "./special.ts";
