// gradloom/special: the methods of Tensor for functions of statistics and number theory.

import { install } from "../areas.ts";
import * as functions from "../math/ondemand.ts";
import { special } from "../signatures.ts";

install("special", functions, special);
