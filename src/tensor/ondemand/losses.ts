// gradloom/losses: the methods of Tensor for losses and distances.

import { install } from "../areas.ts";
import * as functions from "../losses/index.ts";

install("losses", functions);
