// Cells of recurrent networks: one time step, with gates and names as in torch.

import { ShapeError } from "../errors.ts";
import { showShape } from "../tensor/show.ts";
import { Tensor } from "../tensor/tensor.ts";
import { type BiasOptions, positive, uniform } from "./layers.ts";
import { linear } from "./operations.ts";

/** Weights of the input and of the hidden state, all gates stacked. */
abstract class RecurrentCell {
  weightIh: Tensor;
  weightHh: Tensor;
  biasIh: Tensor | undefined;
  biasHh: Tensor | undefined;
  readonly inputSize: number;
  readonly hiddenSize: number;

  constructor(inputSize: number, hiddenSize: number, gates: number, options: BiasOptions) {
    positive(this.constructor.name, { inputSize, hiddenSize });
    this.inputSize = inputSize;
    this.hiddenSize = hiddenSize;
    const bound = 1 / Math.sqrt(hiddenSize);
    const rows = gates * hiddenSize;
    this.weightIh = uniform([rows, inputSize], bound, options);
    this.weightHh = uniform([rows, hiddenSize], bound, options);
    if (options.bias === false) return;
    this.biasIh = uniform([rows], bound, options);
    this.biasHh = uniform([rows], bound, options);
  }
  protected fromInput(x: Tensor): Tensor {
    return linear(x, this.weightIh, this.biasIh);
  }
  protected fromHidden(h: Tensor): Tensor {
    return linear(h, this.weightHh, this.biasHh);
  }
  /** The given state, or zeros. */
  protected stateFor(x: Tensor, h: Tensor | undefined): Tensor {
    const name = this.constructor.name;
    if (x.shape.at(-1) !== this.inputSize) {
      throw new ShapeError(
        `${name}: input has shape ${showShape(x.shape)}, expected ${this.inputSize} features in the last dim`,
      );
    }
    const shape = [...x.shape.slice(0, -1), this.hiddenSize];
    if (h === undefined) return Tensor.zeros(shape, { device: x.device, dtype: x.dtype });
    if (showShape(h.shape) === showShape(shape)) return h;
    throw new ShapeError(`${name}: the state has shape ${showShape(h.shape)}, expected ${showShape(shape)}`);
  }
}

/**
 * Long short-term memory: takes an input and (h, c), returns the next (h, c).
 * @example
 * new nn.LSTMCell(3, 4).forward(Tensor.ones(2, 3))[0].shape // => [2, 4]
 */
export class LSTMCell extends RecurrentCell {
  static override readonly name: string = "LSTMCell";
  constructor(inputSize: number, hiddenSize: number, options: BiasOptions = {}) {
    super(inputSize, hiddenSize, 4, options);
  }
  forward(x: Tensor, state?: readonly [Tensor, Tensor]): [h: Tensor, c: Tensor] {
    const [h, c] = [this.stateFor(x, state?.[0]), this.stateFor(x, state?.[1])];
    return lstmGates(this.fromInput(x).add(this.fromHidden(h)), c);
  }
}
/** The next (h, c), of the sums of all gates and c. */
export function lstmGates(gates: Tensor, c: Tensor): [h: Tensor, c: Tensor] {
  const [i, f, g, o] = gates.chunk(4, -1) as [Tensor, Tensor, Tensor, Tensor];
  const next = f.sigmoid().mul(c).add(i.sigmoid().mul(g.tanh()));
  return [o.sigmoid().mul(next.tanh()), next];
}

/**
 * Gated recurrent unit: takes an input and h, returns the next h.
 * @example
 * new nn.GRUCell(3, 4).forward(Tensor.ones(2, 3)).shape // => [2, 4]
 */
export class GRUCell extends RecurrentCell {
  static override readonly name: string = "GRUCell";
  constructor(inputSize: number, hiddenSize: number, options: BiasOptions = {}) {
    super(inputSize, hiddenSize, 3, options);
  }
  forward(x: Tensor, hidden?: Tensor): Tensor {
    const h = this.stateFor(x, hidden);
    return gruGates(this.fromInput(x), this.fromHidden(h), h);
  }
}
/** The next h, of the sums of all gates from the input and from h, which differ in the candidate. */
export function gruGates(fromInput: Tensor, fromHidden: Tensor, h: Tensor): Tensor {
  const [ir, iz, inew] = fromInput.chunk(3, -1) as [Tensor, Tensor, Tensor];
  const [hr, hz, hnew] = fromHidden.chunk(3, -1) as [Tensor, Tensor, Tensor];
  const z = iz.add(hz).sigmoid();
  const candidate = inew.add(ir.add(hr).sigmoid().mul(hnew)).tanh();
  return candidate.add(z.mul(h.sub(candidate)));
}

/**
 * A recurrent unit: takes an input and h, returns the next h: tanh or relu of the sum of both times weights.
 * @example
 * new nn.RNNCell(3, 4).forward(Tensor.ones(2, 3)).shape // => [2, 4]
 */
export class RNNCell extends RecurrentCell {
  static override readonly name: string = "RNNCell";
  readonly nonlinearity: "tanh" | "relu";
  constructor(
    inputSize: number,
    hiddenSize: number,
    options: BiasOptions & { readonly nonlinearity?: "tanh" | "relu" } = {},
  ) {
    super(inputSize, hiddenSize, 1, options);
    this.nonlinearity = options.nonlinearity ?? "tanh";
  }
  forward(x: Tensor, hidden?: Tensor): Tensor {
    return this.fromInput(x)
      .add(this.fromHidden(this.stateFor(x, hidden)))
      [this.nonlinearity]();
  }
}
