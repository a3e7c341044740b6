// A network that learns digits, on one device: a step of training, a test and a guess, each captured by a
// TinyJit. In: plain arrays. Out: plain numbers. The page around it is mnist.ts.

import "gradloom/conv";
import "gradloom/losses";
import { Device, nn, Tensor, TinyJit } from "gradloom";
import { Convnet } from "../convnet.ts";
import type { Digits } from "./data.ts";
import { SIDE } from "./digit.ts";

/** Two convolutions and a linear layer, 5,994 weights: small enough for a phone. */
class Smallnet {
  layers = new nn.Sequential(
    (x) => x.cast("float32").div(255),
    new nn.Conv2d(1, 8, 5),
    (x) => x.relu().maxPool2d(2),
    new nn.Conv2d(8, 16, 5),
    (x) => x.relu().maxPool2d(2).flatten(1),
    new nn.Linear(256, 10),
  );
  forward(x: Tensor): Tensor {
    return this.layers.forward(x);
  }
}
type Model = Smallnet | Convnet;

/** The networks to choose from; the large one is that of `npm run mnist`. */
const NETWORKS = { small: () => new Smallnet(), large: () => new Convnet() };
export type Network = keyof typeof NETWORKS;

export interface Settings {
  readonly device: string;
  readonly network: Network;
  readonly batch: number;
}
interface Data {
  readonly train: nn.datasets.Batch;
  readonly test: nn.datasets.Batch;
}

/** Test digits for each test: enough to be right to about a percent. */
const TESTS = 1000;

const tensors = ({ images, labels }: Digits, count: number): nn.datasets.Batch => ({
  x: new Tensor(images.subarray(0, count * SIDE * SIDE)).reshape(count, 1, SIDE, SIDE),
  y: new Tensor(labels.subarray(0, count)),
});

export class Trainer {
  readonly settings: Settings;
  readonly #model: Model;
  readonly #data: Data;
  readonly #train: () => Promise<Tensor>;
  readonly #test: () => Promise<Tensor>;
  readonly #guess: (x: Tensor) => Promise<Tensor>;

  private constructor(settings: Settings, model: Model, data: Data) {
    [this.settings, this.#model, this.#data] = [settings, model, data];
    const optimizer = new nn.Adam(nn.getParameters(model), { lr: 0.003 });
    this.#train = new TinyJit(async () => {
      const { x, y } = nn.datasets.sample(data.train, settings.batch);
      const guess = model.forward(x);
      const loss = guess.crossEntropy(y);
      optimizer.zeroGrad();
      loss.backward();
      const figures = Tensor.stack([loss, guess.argmax(1).eq(y).mean()]);
      await optimizer.step(figures);
      return figures;
    });
    this.#test = new TinyJit(async () =>
      Tensor.noGrad(() => model.forward(data.test.x).argmax(1).eq(data.test.y).mean()).realize(),
    );
    this.#guess = new TinyJit(async (x: Tensor) =>
      Tensor.noGrad(() => model.forward(x.reshape(1, 1, SIDE, SIDE)).softmax(-1)).realize(),
    );
  }

  /** With new weights, or with those of `from`, which may have learned on another device. */
  static async make(
    settings: Settings,
    digits: { train: Digits; test: Digits },
    from?: Trainer,
  ): Promise<Trainer> {
    await Device.open(settings.device);
    Device.DEFAULT = settings.device; // of all tensors that are made from here on
    const model = NETWORKS[settings.network]();
    if (from !== undefined) await nn.loadStateDict(model, nn.getStateDict(from.#model));
    const data =
      from?.settings.device === settings.device
        ? from.#data
        : {
            train: tensors(digits.train, digits.train.labels.length),
            test: tensors(digits.test, TESTS),
          };
    return new Trainer(settings, model, data);
  }

  get weights(): number {
    return nn.getParameters(this.#model).reduce((sum, t) => sum + t.numel(), 0);
  }

  /** One step: the loss of its batch, and the share of digits in it that were read right. */
  async step(): Promise<{ loss: number; right: number }> {
    const [loss = Number.NaN, right = Number.NaN] = await (await this.#train()).data();
    return { loss, right };
  }
  /** The share of test digits that are read right. */
  async test(): Promise<number> {
    return Number(await (await this.#test()).item());
  }
  /** The probabilities of the ten digits for 28 x 28 pixels. */
  async guess(pixels: Uint8Array): Promise<number[]> {
    return Array.from(await (await this.#guess(new Tensor(pixels))).data(), Number);
  }
}
