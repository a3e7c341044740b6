// The page of graphs.test.ts: random graphs on WEBGPU and on WASM, against the reference interpreter, all in
// the page; and a captured training step on both.

import { Device, DeviceError, Tensor, TinyJit, withEnv } from "gradloom";
import "gradloom/all";
import { check, settingOf } from "../../scripts/fuzz/execute.ts";
import { generate } from "../../scripts/fuzz/generate/generate.ts";
import { classOf, snippet } from "../../scripts/fuzz/language.ts";
import { unsuited } from "../../scripts/fuzz/suited.ts";

let dispatched = 0;
/** Counts what reaches the GPU: a device that computed elsewhere would be right as well. */
function countDispatches(): void {
  const passes = Reflect.get(globalThis, "GPUComputePassEncoder") as
    | { prototype: { dispatchWorkgroups(...sizes: number[]): void } }
    | undefined;
  if (passes === undefined) return;
  const { dispatchWorkgroups } = passes.prototype;
  passes.prototype.dispatchWorkgroups = function (...sizes) {
    dispatched++;
    dispatchWorkgroups.apply(this, sizes);
  };
}
countDispatches();

const page = {
  /** Why WebGPU does not open here; undefined: it does. `tier` holds it to less. */
  async open(device: string, tier: string): Promise<string | undefined> {
    try {
      await withEnv({ WEBGPU_TIER: tier }, () => Device.open(device));
      return undefined;
    } catch (e) {
      if (e instanceof DeviceError) return e.message;
      throw e;
    }
  },
  /** Runs so many programs from a seed on; gives what is wrong, and how many kernels the GPU was given. */
  async graphs(devices: string[], first: number, count: number, setting: string) {
    const bad: string[] = [];
    const before = dispatched;
    let ran = 0;
    for (let seed = first; ran < count; seed++) {
      const { program, want } = generate(seed, classOf(seed));
      if (devices.some((d) => unsuited(program, d) !== undefined)) continue;
      ran++;
      for (const device of devices) {
        const what = await check(program, device, settingOf(setting), want);
        if (what !== undefined) bad.push(`seed ${seed}: ${what}\n${snippet(program, device, {})}`);
      }
    }
    return { bad, kernels: dispatched - before };
  },
  /** The losses of a perceptron that a jit trains. */
  async losses(device: string, steps: number): Promise<number[]> {
    const at = (shape: number[], scale: number): Tensor =>
      Tensor.arange(
        shape.reduce((a, b) => a * b),
        { device },
      )
        .mul(0.37)
        .sin()
        .mul(scale)
        .reshape(shape);
    const weights = [at([20, 33], 0.3), at([33, 5], 0.2)].map((w) => w.contiguous());
    await Tensor.realize(...weights);
    for (const w of weights) w.requiresGrad = true;
    const [w1, w2] = weights as [Tensor, Tensor];
    const step = new TinyJit(async (x: Tensor) => {
      const loss = x.matmul(w1).relu().matmul(w2).logSoftmax(1).narrow(1, 0, 1).mean().neg();
      for (const w of weights) w.grad = undefined;
      loss.backward();
      for (const w of weights) w.assign(w.detach().sub((w.grad as Tensor).mul(0.5)));
      await Tensor.realize(loss, ...weights);
      return loss;
    });
    const losses: number[] = [];
    for (let i = 0; i < steps; i++) {
      const x = at([16, 20], 1 + i / 8).contiguous();
      await x.realize();
      losses.push(Number(await (await step(x)).item()));
    }
    return losses;
  },
};
export type GraphsPage = typeof page;
Object.assign(globalThis, { gradloomGraphs: page });
