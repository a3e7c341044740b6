// gradloom/random: the methods of Tensor for permutations, samples, initial weights.

import { install } from "../areas.ts";
import * as functions from "../random/distributions.ts";
import { random } from "../signatures.ts";

install("random", functions, random);
