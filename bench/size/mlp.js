// A page that trains a small network: XOR.
import { Tensor, TinyJit } from "gradloom";
import "gradloom/losses";
import { Adam, getParameters, Linear } from "gradloom/nn";

const [first, second] = [new Linear(2, 16), new Linear(16, 2)];
const forward = (x) => second.forward(first.forward(x).relu());
const x = new Tensor([0, 0, 0, 1, 1, 0, 1, 1], { dtype: "float32" }).reshape(4, 2);
const y = new Tensor([0, 1, 1, 0]);
const optimizer = new Adam(getParameters([first, second]), 0.05);
const step = new TinyJit(() =>
  Tensor.train(() => {
    optimizer.zeroGrad();
    const loss = forward(x).sparseCategoricalCrossentropy(y).backward();
    optimizer.step();
    return loss.realize();
  }),
);
for (let i = 0; i < 60; i++) await step();
console.log(String(await forward(x).argmax(1).tolist()));
