// gradloom/neural: the methods of Tensor for normalisation, attention and rarer activations.

import { install } from "../areas.ts";
import * as functions from "../neural/ondemand.ts";
import { neural } from "../signatures.ts";

install("neural", functions, neural);
