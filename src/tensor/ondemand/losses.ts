// gradloom/losses: the methods of Tensor for losses.

import { install } from "../areas.ts";
import * as functions from "../losses/index.ts";
import { losses } from "../signatures.ts";

install("losses", functions, losses);
