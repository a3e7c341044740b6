// gradloom/image: Tensor.fromImage, toImage and toCanvas.

import { install } from "../areas.ts";
import * as functions from "../image/index.ts";
import { image } from "../signatures.ts";

install("image", functions, image);
