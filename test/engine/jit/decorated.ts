// Run by jit.test.ts through a compiler that knows decorators: prints what a jitted
// method gave, and how often it ran.

import { Tensor, TinyJit } from "../../../src/index.ts";

class Model {
  runs = 0;
  weight = new Tensor([1, 2]);

  @TinyJit
  async forward(x: Tensor): Promise<Tensor> {
    this.runs++;
    return x.mul(this.weight).sum();
  }
}

const model = new Model();
const sums: number[] = [];
for (let i = 1; i <= 4; i++) sums.push(await (await model.forward(new Tensor([i, i * i]))).item());
console.log(JSON.stringify({ sums, runs: model.runs }));
