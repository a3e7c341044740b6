// The program of wide.test.ts: works on a WASM memory with 64-bit addresses, all tensors above 4 GiB, and
// prints what it found as JSON. The block below is never touched, so that it takes no memory of the machine.

import { Device, dtypes, nn, Tensor, TinyJit, withEnv } from "gradloom";
import { sizedMemory } from "../../../src/devices/wasm/sized.ts";
import type { WasmDevice } from "../../../src/devices/wasm.ts";
import { Buffer } from "../../../src/runtime/buffer.ts";

const wasm = (await Device.open("WASM")) as WasmDevice;
const { memory } = wasm.hardware;
const below = new Buffer("WASM", 2 ** 29, dtypes.int64).allocate();

/** What some methods give; the numbers are small integers where they are added up. */
async function values(): Promise<unknown[]> {
  const x = Tensor.arange(6 * 50)
    .remainder(7)
    .reshape(6, 50)
    .contiguous();
  const y = Tensor.arange(50 * 9)
    .remainder(5)
    .reshape(50, 9)
    .contiguous();
  const image = Tensor.arange(2 * 3 * 10 * 10)
    .remainder(11)
    .cast("float32")
    .reshape(2, 3, 10, 10);
  const filter = Tensor.arange(4 * 27)
    .remainder(3)
    .cast("float32")
    .reshape(4, 3, 3, 3);
  const results: Tensor[] = [
    x.matmul(y),
    x.cast("float32").matmul(y.cast("float32")),
    image.contiguous().conv2d(filter.contiguous()),
    x.cast("int8").sum(0),
    x.cast("float64").add(0.5).max(1),
    x.gt(3),
    x.cast("float16").mul(2),
    x.flip(1).shrink([
      [1, 4],
      [7, 30],
    ]),
    x.get(y.shrink([[0, 5], null]).remainder(6)),
    x.cumsum(1),
    x.sort(1)[0],
    Tensor.cat([x, x.add(1)]),
    x.cast("uint8").bitcast("int8"),
    Tensor.arange(2 ** 18)
      .remainder(13)
      .cast("float32")
      .add(1)
      .sum(),
  ];
  await Tensor.realize(...results);
  return Promise.all(results.map((t) => t.tolist()));
}

/** A captured step with other inputs at each call. */
async function replayed(): Promise<unknown[]> {
  const w = Tensor.arange(256).reshape(16, 16).contiguous();
  const step = new TinyJit((v: Tensor) => v.matmul(w).add(1).contiguous().realizeSync());
  const out: unknown[] = [];
  for (let i = 0; i < 4; i++)
    out.push(await (await step(Tensor.full([2, 16], i).contiguous().realizeSync())).tolist());
  return out;
}

/** A network that learns: its losses. */
async function trained(): Promise<number[]> {
  Tensor.manualSeed(3);
  const layer = new nn.Linear(8, 4);
  const optim = new nn.optim.SGD(nn.getParameters(layer), { lr: 0.1 });
  const x = Tensor.arange(32).reshape(4, 8).div(32);
  const losses: number[] = [];
  await Tensor.train(async () => {
    for (let i = 0; i < 5; i++) {
      const loss = layer.forward(x).square().mean();
      optim.zeroGrad();
      loss.backward();
      await optim.step();
      losses.push((await loss.item()) as number);
    }
  });
  return losses;
}

const all = async () => [await values(), await replayed(), await trained()];

async function failure(): Promise<string> {
  try {
    await Tensor.empty([2 ** 31], { dtype: "int64" }).realize();
    return "";
  } catch (e) {
    return `${(e as Error).name}: ${(e as Error).message}`;
  }
}

/** Blocks of the runtime's own, more than their first room has. */
const room = sizedMemory(false, 8);
const own = Array.from({ length: 5 }, () => room.allocOwn(2 ** 24, false) as number);
for (const at of own) room.free(at, 2 ** 24);

const above = await Tensor.full([1000], 7).contiguous().realize();
const large = await Tensor.arange(2 ** 22)
  .add(1)
  .contiguous()
  .realize();
const clang = await Device.open("CLANG").then(
  () => true,
  () => false,
);
const report = {
  isWide: memory.isWide,
  maxBytes: memory.maxBytes,
  heldBelow: below.nbytes,
  /** where a buffer is: what was looked for is that it lies above */
  at: ((above.lazydata.base.realized as Buffer).handle as { vaAddr: number }).vaAddr,
  wasm: await withEnv({ DEV: "WASM" }, all),
  js: await withEnv({ DEV: "JS" }, all),
  /** by all threads, and copied to where another device has it */
  last: await large.shrink([[2 ** 22 - 2, 2 ** 22]]).tolist(),
  moved: await large.to("WASM:1").sum().item(),
  native: clang ? await large.to("CLANG").add(0).to("WASM").sum().item() : undefined,
  own,
  again: room.allocOwn(2 ** 24, false),
  failure: await failure(),
  bytes: memory.memory.buffer.byteLength,
};
console.log(JSON.stringify(report, (_, x: unknown) => (typeof x === "bigint" ? Number(x) : x)));
