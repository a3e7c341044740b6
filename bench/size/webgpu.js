// A page that computes on the GPU with twenty methods: a layer forward, normalised, and some statistics.
import { Device, Tensor } from "gradloom";

await Device.open("WEBGPU");
Device.DEFAULT = "WEBGPU";
const x = Tensor.arange(32).reshape(4, 8).div(8).sub(2);
const w = Tensor.arange(64).reshape(8, 8).mul(0.01).sin();
const h = x.dot(w).add(0.5).relu();
const p = h.sub(h.max(1, true)).exp();
const y = p.div(p.sum(1, true)).permute(1, 0).contiguous();
const loss = y.square().mean().sqrt().neg().tanh();
const parts = [
  loss.mul(-100),
  y.argmax(0).cast("float32").mean(),
  y
    .pad([
      [1, 1],
      [0, 0],
    ])
    .sum(),
  x.abs().min(),
];
const values = await Promise.all(parts.map((t) => t.item()));
console.log(values.map((v) => v.toFixed(1)).join());
