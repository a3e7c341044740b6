// gradloom/conv: the methods of Tensor for convolution, pooling, images.

import { install } from "../areas.ts";
import * as functions from "../conv/index.ts";
import { conv } from "../signatures.ts";

install("conv", functions, conv);
