// What runs inside the page: the browser test bundles this file and calls `gradloomPage` from outside.

import { Tensor } from "gradloom";

const page = {
  async dot(a: number[], b: number[]) {
    return await new Tensor(a).dot(new Tensor(b)).item();
  },
  async matmul(a: number[][], b: number[][]) {
    const data = await new Tensor(a).matmul(new Tensor(b)).data();
    return { type: data.constructor.name, values: Array.from(data as Float32Array) };
  },
};

export type Page = typeof page;
Object.assign(globalThis, { gradloomPage: page });
