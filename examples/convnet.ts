// The small convnet of the MNIST examples, the benchmarks and the tests: bytes of digits in, ten logits out.

import { nn, type Tensor } from "gradloom";

/** A model is a plain class: nn.getStateDict finds its tensors in the properties. */
export class Convnet {
  layers = new nn.Sequential(
    (x) => x.cast("float32").div(255),
    new nn.Conv2d(1, 32, 5),
    (x) => x.relu(),
    new nn.Conv2d(32, 32, 5),
    (x) => x.relu(),
    new nn.BatchNorm2d(32, { warmUp: true }),
    (x) => x.maxPool2d(2),
    new nn.Conv2d(32, 64, 3),
    (x) => x.relu(),
    new nn.Conv2d(64, 64, 3),
    (x) => x.relu(),
    new nn.BatchNorm2d(64, { warmUp: true }),
    (x) => x.maxPool2d(2),
    (x) => x.flatten(1),
    new nn.Linear(576, 10),
  );
  forward(x: Tensor): Tensor {
    return this.layers.forward(x);
  }
}
