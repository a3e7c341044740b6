// The page of memory.test.ts: tensors that are made and dropped, what is held afterwards, and tensors beyond
// 4 GiB of a memory that may be larger.

import { Device, GlobalCounters, nn, Tensor, withEnv } from "gradloom";
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
  /** Computes with all tensors beyond 4 GiB. The block below is not touched, so it takes no memory. */
  async computeAbove(gigabytes: number): Promise<{ top: number; sum: number; product: number[] }> {
    const { allocator } = await withEnv({ WASM_MEMORY: gigabytes }, () => Device.open("WASM"));
    allocator.alloc(2 ** 32, false);
    const x = Tensor.arange(2 ** 20).contiguous();
    const m = Tensor.arange(4096).reshape(64, 64).cast("float32").contiguous();
    const product = await m
      .matmul(m)
      .shrink([[63, 64], null])
      .data();
    const sum = (await x.remainder(1000).sum().item()) as number;
    return { top: memory(), sum, product: Array.from(product, Number) };
  },
};
export type MemoryPage = typeof page;
Object.assign(globalThis, { gradloomMemory: page });
