// The multilayer perceptron of the benchmarks.

import { nn } from "../../src/index.ts";

export const mlp = (): nn.Sequential =>
  new nn.Sequential(
    new nn.Linear(784, 512),
    (x) => x.relu(),
    new nn.Linear(512, 512),
    (x) => x.relu(),
    new nn.Linear(512, 10),
  );
