// gradloom/neural: the methods of Tensor for normalisation and attention.

import { install } from "../areas.ts";
import * as functions from "../neural/layers.ts";

install("neural", functions);
