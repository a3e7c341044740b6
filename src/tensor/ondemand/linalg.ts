// gradloom/linalg: the methods of Tensor for einsum, solving, factorizations, norms of matrices.

import { install } from "../areas.ts";
import * as functions from "../linalg/ondemand.ts";
import { linalg } from "../signatures.ts";

install("linalg", functions, linalg);
