// The works of works.ts in gradloom: captured, run without waiting, the result freed at once.

import { Tensor } from "../../src/index.ts";
import { mlp } from "../cpu/mlp.ts";
import { captured, mnistStep, type Run, random, trainingStep } from "../gpu/workloads.ts";
import { BATCH, COLUMNS, CONV, ELEMENTS, ROWS, type WorkName } from "./works.ts";

interface Work {
  /** operations, where these decide */
  readonly amount: number | undefined;
  prepare(): Promise<Run>;
}
const work = (prepare: () => Promise<Run>, amount?: number): Work => ({ amount, prepare });

const matmul = (side: number): Work =>
  work(
    () => captured([random(side, side), random(side, side)], (a, b) => (a as Tensor).matmul(b as Tensor)),
    2 * side ** 3,
  );
const { batch, channels, side, kernel } = CONV;

export const GRADLOOM: Readonly<Record<WorkName, Work>> = {
  add24: work(() => captured([random(ELEMENTS), random(ELEMENTS)], (a, b) => (a as Tensor).add(b as Tensor))),
  "matmul-1024": matmul(1024),
  "matmul-4096": matmul(4096),
  "softmax-4096": work(() => captured([random(ROWS, COLUMNS)], (x) => (x as Tensor).softmax(-1))),
  "layernorm-4096": work(() => captured([random(ROWS, COLUMNS)], (x) => (x as Tensor).layerNorm([COLUMNS]))),
  conv16: work(
    () =>
      captured([random(batch, channels, side, side), random(channels, channels, kernel, kernel)], (x, w) =>
        (x as Tensor).conv2d(w as Tensor, undefined, { padding: 1 }),
      ),
    2 * batch * side ** 2 * channels ** 2 * kernel ** 2,
  ),
  mlp: work(async () => {
    Tensor.manualSeed(1);
    return trainingStep(mlp(), await random(BATCH, 784).realize());
  }),
  mnist128: work(() => mnistStep(BATCH)),
};
