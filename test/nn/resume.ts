// A training that can be saved and resumed, for checkpoint.test.ts. As a program it resumes each file that it
// is given and prints the losses: `resume.ts '[["WASM", true, "file"]]'`.

import { nn, Tensor, TinyJit } from "gradloom";

/** Dropout, running statistics, a schedule and random data: all that a resumed run could get wrong. */
export function training(device: string, isJitted: boolean) {
  Tensor.manualSeed(11);
  const model = new nn.Sequential(
    new nn.Dropout(0.3),
    new nn.Linear(6, 3, { device }),
    new nn.BatchNorm1d(3, { device }),
  );
  const optimizer = new nn.optim.NAdam(nn.getParameters(model), { lr: 0.05, weightDecay: 0.01 });
  const scheduler = new nn.optim.CosineAnnealingLR(optimizer, { tMax: 12 });
  const once = async (): Promise<Tensor> => {
    const x = Tensor.randn(16, 6, { device });
    const y = x.narrow(1, 0, 3).argmax(1);
    const loss = Tensor.train(() => model.forward(x)).crossEntropy(y);
    optimizer.zeroGrad();
    loss.backward();
    await optimizer.step(loss);
    return loss;
  };
  const step = isJitted ? new TinyJit(once) : once;
  const run = async (steps: number): Promise<number[]> => {
    const losses: number[] = [];
    for (let i = 0; i < steps; i++) {
      losses.push(await (await step()).item());
      scheduler.step();
    }
    return losses;
  };
  return { model, optimizer, scheduler, run };
}
export type Job = readonly [device: string, isJitted: boolean, file: string];

export async function resume([device, isJitted, file]: Job): Promise<{ step: unknown; losses: number[] }> {
  const { run, ...parts } = training(device, isJitted);
  const { step } = await nn.load(file, parts);
  return { step, losses: await run(5) };
}

if (process.argv[1]?.endsWith("resume.ts")) {
  const results: unknown[] = [];
  for (const job of JSON.parse(process.argv[2] as string) as Job[]) results.push(await resume(job));
  console.log(JSON.stringify(results));
}
