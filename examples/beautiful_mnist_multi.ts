// beautiful_mnist.ts on several devices at once: every device has a replica of the weights and of the digits
// and computes its shard of each batch; an allreduce adds up the gradients. The losses are those of one
// device. DEVICES names the devices, SEED seeds the random numbers; STEPS, BATCH, TESTS and SAVE are as in
// beautiful_mnist.ts.

import { GlobalCounters, nn, Tensor } from "gradloom";
import { Convnet } from "./convnet.ts";

const setting = (name: string, otherwise: number): number => Number(process.env[name] ?? otherwise);
const DEVICES = (process.env.DEVICES ?? "WASM:0,WASM:1").split(",");
const STEPS = setting("STEPS", 300);
const BATCH = setting("BATCH", 128);
const TESTS = setting("TESTS", 10_000);
const SAVE = process.env.SAVE ?? "beautiful_mnist.safetensors";

/** The percentage of `x` that the model labels as in `y`, in batches of 500 sharded over all devices. */
async function accuracy(model: Convnet, x: Tensor, y: Tensor): Promise<number> {
  let right = 0;
  for (const batch of nn.datasets.batches({ x, y }, 500, { shuffle: false })) {
    const guess = Tensor.noGrad(() => model.forward(batch.x.shard(DEVICES, 0)).argmax(1));
    right += Number(await guess.eq(batch.y.shard(DEVICES, 0)).sum().item());
  }
  return (100 * right) / (y.shape[0] as number);
}

Tensor.manualSeed(setting("SEED", 42));
const { xTrain, yTrain, xTest, yTest } = await nn.datasets.mnist();
// Without a dim: a replica on each device. The running statistics of the batch norms are part of the state,
// so they are replicated too.
const model = new Convnet();
for (const t of [xTrain, yTrain, ...Object.values(nn.getStateDict(model))]) t.shard_(DEVICES);
console.log(`${xTrain.shape[0]} digits to learn from; devices ${xTrain.device}`);

const optimizer = new nn.optim.Adam(nn.getParameters(model));
let start = performance.now();
for (let step = 1; step <= STEPS; step++) {
  GlobalCounters.reset();
  // each device draws its shard of the batch from its own replica
  const { x, y } = nn.datasets.sample({ x: xTrain, y: yTrain }, BATCH, { sharded: true });
  const loss = model.forward(x).crossEntropy(y);
  optimizer.zeroGrad();
  loss.backward();
  await optimizer.step(loss);
  const l = Number(await loss.item());
  const rate = ((step === 1 ? 1 : step - 1) * 1000) / (performance.now() - start);
  if (step === STEPS || step < 10 || step % 10 === 0) {
    const { kernelCount, copyCount } = GlobalCounters;
    console.log(
      `step ${String(step).padStart(4)}/${STEPS}  loss ${l.toFixed(6)}  ${rate.toFixed(2)} steps/s  ` +
        `${kernelCount} kernels, ${copyCount} copies`,
    );
  }
  if (step === 1) start = performance.now(); // the first step compiles
}

const n = Math.min(TESTS, yTest.shape[0] as number);
const [x, y] = [xTest.narrow(0, 0, n), yTest.narrow(0, 0, n)];
console.log(`test accuracy on ${n} digits: ${(await accuracy(model, x, y)).toFixed(2)} %`);

// A model that was trained on several devices is saved and loaded like any other.
await nn.safeSave(nn.getStateDict(model), SAVE, { model: "beautiful_mnist" });
const again = new Convnet();
for (const t of Object.values(nn.getStateDict(again))) t.shard_(DEVICES);
await nn.loadStateDict(again, await nn.safeLoad(SAVE));
console.log(`saved to ${SAVE} and loaded: ${(await accuracy(again, x, y)).toFixed(2)} %`);
