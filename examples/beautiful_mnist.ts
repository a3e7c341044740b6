// A small convnet that reads handwritten digits. `npm run mnist` trains it and tests it on 10,000 digits that
// it has never seen. STEPS and BATCH set the length of the training and the batch size, TESTS the number of
// test digits, DEV the device, SAVE the file of weights. JIT=0 trains without the jit, with the same losses.

import { Device, GlobalCounters, nn, Tensor, TinyJit } from "gradloom";
import { Convnet } from "./convnet.ts";

const setting = (name: string, otherwise: number): number => Number(process.env[name] ?? otherwise);
const STEPS = setting("STEPS", 300);
const BATCH = setting("BATCH", 128);
const TESTS = setting("TESTS", 10_000);
const SAVE = process.env.SAVE ?? "beautiful_mnist.safetensors";

/** The percentage of `x` that the model labels as in `y`, in batches of 500. */
async function accuracy(model: Convnet, x: Tensor, y: Tensor): Promise<number> {
  let right = 0;
  for (const batch of nn.datasets.batches({ x, y }, 500, { shuffle: false })) {
    const guess = Tensor.noGrad(() => model.forward(batch.x).argmax(1));
    right += Number(await guess.eq(batch.y).sum().item());
  }
  return (100 * right) / (y.shape[0] as number);
}

function bar(step: number, words: string): void {
  const done = Math.round((24 * step) / STEPS);
  const line = `${"█".repeat(done)}${"░".repeat(24 - done)} ${String(step).padStart(4)}/${STEPS}  ${words}`;
  if (process.stdout.isTTY) process.stdout.write(`\r${line}${step === STEPS ? "\n" : ""}`);
  else if (step === STEPS || step % 10 === 0) console.log(line);
}

const { xTrain, yTrain, xTest, yTest } = await nn.datasets.mnist();
console.log(
  `${xTrain.shape[0]} digits to learn from, ${xTest.shape[0]} to be tested on; device ${Device.DEFAULT}`,
);

const model = new Convnet();
const optimizer = new nn.optim.Adam(nn.getParameters(model), { lr: 0.002 });
const rates = new nn.optim.CosineAnnealingLR(optimizer, { tMax: STEPS });
// captured at its second call; from the third call its kernels are replayed without this function
const train = new TinyJit(async () => {
  const { x, y } = nn.datasets.sample({ x: xTrain, y: yTrain }, BATCH);
  const guess = model.forward(x);
  const loss = guess.crossEntropy(y);
  const right = guess.argmax(1).eq(y).mean();
  optimizer.zeroGrad();
  loss.backward();
  await optimizer.step(loss, right);
  return { loss, right };
});
let start = performance.now();
for (let step = 1; step <= STEPS; step++) {
  GlobalCounters.reset();
  const { loss, right } = await train();
  rates.step();
  const [l, r] = [Number(await loss.item()), Number(await right.item())];
  const rate = ((step === 1 ? 1 : step - 1) * 1000) / (performance.now() - start);
  const speed = `${rate.toFixed(2)} steps/s  ${GlobalCounters.kernelCount} kernels`;
  bar(step, `loss ${l.toFixed(3)}  accuracy ${(100 * r).toFixed(1).padStart(5)} %  ${speed}`);
  if (step === 1) start = performance.now(); // the first step compiles
}

if (train.memory !== undefined) {
  const { planned, apart, buffers } = train.memory;
  const mb = (bytes: number): string => (bytes / 1e6).toFixed(1);
  console.log(
    `memory between the kernels of a step: ${buffers} buffers of ${mb(apart)} MB share ${mb(planned)} MB`,
  );
}

const n = Math.min(TESTS, yTest.shape[0] as number);
const [x, y] = [xTest.narrow(0, 0, n), yTest.narrow(0, 0, n)];
console.log(`test accuracy on ${n} digits: ${(await accuracy(model, x, y)).toFixed(2)} %`);

await nn.safeSave(nn.getStateDict(model), SAVE, { model: "beautiful_mnist" });
const again = new Convnet();
await nn.loadStateDict(again, await nn.safeLoad(SAVE));
console.log(`saved to ${SAVE} and loaded: ${(await accuracy(again, x, y)).toFixed(2)} %`);
