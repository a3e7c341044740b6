// gradloom/movement: the methods of Tensor for rolling, diagonals, windows, rows, columns and blocks.

import { install } from "../areas.ts";
import * as functions from "../movement/rearrange.ts";
import { movement } from "../signatures.ts";

install("movement", functions, movement);
