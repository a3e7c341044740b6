// gradloom/special: the methods of Tensor for functions of statistics and number theory.

import { install } from "../areas.ts";
import * as functions from "../math/ondemand.ts";

install("special", functions);
