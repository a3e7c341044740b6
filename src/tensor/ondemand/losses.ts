// gradloom/losses: the methods of Tensor for losses.

import { install } from "../areas.ts";
import * as functions from "../losses/index.ts";

install("losses", functions);
