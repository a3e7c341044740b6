// gradloom/all: every area of Tensor.

import "./autocast.ts";
import "./conv.ts";
import "./neural.ts";
import "./image.ts";
import "./linalg.ts";
import "./distances.ts";
import "./losses.ts";
import "./movement.ts";
import "./order.ts";
import "./random.ts";
import "./scatter.ts";
import "./shard.ts";
import "./special.ts";
