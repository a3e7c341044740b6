// The page of memory.test.ts: tensors that are made and dropped, and what is held afterwards.

import { Device, GlobalCounters, nn, Tensor } from "gradloom";
import "gradloom/losses";

const memory = (): number =>
  (Device.get("WASM").allocator as unknown as { memory: WebAssembly.Memory }).memory.buffer.byteLength;

const page = {
  /** Makes and drops so many tensors; the most that was held at once, in tensors. */
  async drop(bytes: number, times: number): Promise<{ held: number; memory: number }> {
    let most = 0;
    for (let i = 0; i < times; i++) {
      await Tensor.full([bytes / 4], i)
        .contiguous()
        .realize();
      most = Math.max(most, GlobalCounters.memUsed / bytes);
    }
    return { held: most, memory: memory() };
  },
  /** Eager steps of training: the memory after each quarter. */
  async train(steps: number): Promise<number[]> {
    const model = new nn.Sequential(new nn.Linear(256, 256), (x) => x.relu(), new nn.Linear(256, 10));
    const optimizer = new nn.optim.Adam(nn.getParameters(model));
    const [x, y] = [Tensor.rand(256, 256), Tensor.randint(0, 10, [256])];
    const sizes: number[] = [];
    for (let i = 1; i <= steps; i++) {
      optimizer.zeroGrad();
      await optimizer.step(model.forward(x).crossEntropy(y).backward());
      if (i % (steps / 4) === 0) sizes.push(memory());
    }
    return sizes;
  },
};
export type MemoryPage = typeof page;
Object.assign(globalThis, { gradloomMemory: page });
