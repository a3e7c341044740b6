import { nn, Tensor } from "../../dist/node/index.js";

const model = new nn.Sequential(
  (x) => x.cast("float32").div(255),
  new nn.Conv2d(1, 32, 5),
  (x) => x.relu(),
  new nn.Conv2d(32, 32, 5),
  (x) => x.relu(),
  new nn.BatchNorm2d(32),
  (x) => x.maxPool2d(2),
  new nn.Conv2d(32, 64, 3),
  (x) => x.relu(),
  new nn.Conv2d(64, 64, 3),
  (x) => x.relu(),
  new nn.BatchNorm2d(64),
  (x) => x.maxPool2d(2),
  (x) => x.flatten(1),
  new nn.Linear(576, 10),
);
const optimizer = new nn.optim.Adam(nn.getParameters(model));
const x = Tensor.randint(0, 256, [128, 1, 28, 28], { dtype: "uint8" });
const loss = Tensor.train(() => model.forward(x)).crossEntropy(Tensor.randint(0, 10, [128]));
loss.backward();
await optimizer.step(loss);
console.log(Number.isFinite(await loss.item()) ? "finite" : "not finite");
