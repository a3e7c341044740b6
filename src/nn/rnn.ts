// Recurrent networks over whole sequences: RNN, LSTM and GRU, with layers, both directions, dropout between
// layers and sequences of different lengths. Parameters, gates and results are those of torch. In: a
// sequence, time first unless `batchFirst`. Out: the output of every step, and the last states. Each layer
// and direction is one scan; the inputs of all steps are multiplied before it, in one matmul.

import { ArgumentError, ShapeError } from "../errors.ts";
import { range } from "../helpers.ts";
import { type ScanOptions, scan } from "../tensor/scan.ts";
import { showShape } from "../tensor/show.ts";
import { Tensor } from "../tensor/tensor.ts";
import { type BiasOptions, positive, uniform } from "./layers.ts";
import { Module, trains } from "./module.ts";
import { asFactor, linear } from "./operations.ts";
import { gruGates, lstmGates } from "./recurrent.ts";

export interface RecurrentOptions extends BiasOptions {
  /** layers on top of each other, each on the outputs of the one before; default: 1 */
  readonly numLayers?: number;
  /** whether inputs and outputs are [batch, time, features]; default: false, [time, batch, features] */
  readonly batchFirst?: boolean;
  /** the part of each layer's outputs that is dropped in training, except for the last layer; default: 0 */
  readonly dropout?: number;
  /** whether a second network reads the sequence from its end; default: false */
  readonly bidirectional?: boolean;
}
export interface RNNOptions extends RecurrentOptions {
  /** default: tanh */
  readonly nonlinearity?: "tanh" | "relu";
}
export interface LSTMOptions extends RecurrentOptions {
  /** the size that the hidden state is projected to; default: not projected */
  readonly projSize?: number;
}
export interface SequenceOptions {
  /**
   * The length of each sequence of the batch, in any order; a tensor of integers where they change inside a
   * jit. Outputs behind the length are zero, the last state is that at the length, and the network in the
   * other direction starts there.
   */
  readonly lengths?: readonly number[] | Tensor;
}

/** The weights of one layer in one direction. */
interface Weights {
  readonly ih: Tensor;
  readonly hh: Tensor;
  readonly biasIh: Tensor | undefined;
  readonly biasHh: Tensor | undefined;
  readonly hr: Tensor | undefined;
}
/** The parts of a state: h, and c of an LSTM. */
type StateParts = readonly Tensor[];
type Rows = { readonly x: Tensor; readonly on: Tensor | undefined };

abstract class Recurrent extends Module {
  training: boolean | undefined = undefined;
  readonly [name: `weight${string}`]: Tensor;
  readonly [name: `bias${string}`]: Tensor;
  readonly inputSize: number;
  readonly hiddenSize: number;
  readonly numLayers: number;
  readonly batchFirst: boolean;
  readonly dropout: number;
  readonly bidirectional: boolean;
  /** the size of the output of a direction, and of h */
  readonly #outputSize: number;

  constructor(
    inputSize: number,
    hiddenSize: number,
    options: RecurrentOptions,
    { gates, projSize = 0 }: { readonly gates: number; readonly projSize?: number },
  ) {
    super();
    const { numLayers = 1, batchFirst = false, dropout = 0, bidirectional = false, bias = true } = options;
    const name = this.constructor.name;
    positive(name, { inputSize, hiddenSize, numLayers });
    if (!(dropout >= 0 && dropout <= 1)) {
      throw new ArgumentError(`${name}: dropout is ${dropout}, expected a probability from 0 to 1`);
    }
    if (projSize !== 0) positive(name, { projSize });
    if (projSize >= hiddenSize) {
      throw new ArgumentError(
        `${name}: projSize is ${projSize}, expected less than hiddenSize ${hiddenSize}`,
      );
    }
    this.inputSize = inputSize;
    this.hiddenSize = hiddenSize;
    this.numLayers = numLayers;
    this.batchFirst = batchFirst;
    this.dropout = dropout;
    this.bidirectional = bidirectional;
    this.#outputSize = projSize || hiddenSize;
    const bound = 1 / Math.sqrt(hiddenSize);
    const own = this as unknown as Record<string, Tensor>;
    for (const { layer, suffix } of this.#directions()) {
      const inputs = layer === 0 ? inputSize : this.#outputSize * (bidirectional ? 2 : 1);
      const rows = gates * hiddenSize;
      own[`weightIh${suffix}`] = uniform([rows, inputs], bound, options);
      own[`weightHh${suffix}`] = uniform([rows, this.#outputSize], bound, options);
      if (bias) own[`biasIh${suffix}`] = uniform([rows], bound, options);
      if (bias) own[`biasHh${suffix}`] = uniform([rows], bound, options);
      if (projSize !== 0) own[`weightHr${suffix}`] = uniform([projSize, hiddenSize], bound, options);
    }
  }

  /** The layers and directions in the order of the states: layer 0 forward, layer 0 backward, layer 1 … */
  #directions(): { layer: number; reverse: boolean; suffix: string }[] {
    const both = this.bidirectional ? [false, true] : [false];
    return range(this.numLayers).flatMap((layer) =>
      both.map((reverse) => ({ layer, reverse, suffix: `L${layer}${reverse ? "Reverse" : ""}` })),
    );
  }
  #weights(suffix: string): Weights {
    const get = (name: string): Tensor | undefined => {
      const own = (this as unknown as Record<string, Tensor | undefined>)[name + suffix];
      return own === undefined ? undefined : asFactor(own);
    };
    return {
      ih: get("weightIh") as Tensor,
      hh: get("weightHh") as Tensor,
      biasIh: get("biasIh"),
      biasHh: get("biasHh"),
      hr: get("weightHr"),
    };
  }

  /** The inputs of all steps times their weights. */
  protected abstract project(x: Tensor, w: Weights): Tensor;
  /** The state after a step. */
  protected abstract step(x: Tensor, state: StateParts, w: Weights): StateParts;
  /** The size of each part of the state. */
  protected abstract readonly stateSizes: readonly number[];

  /** The outputs of all steps, and the last states: [layers and directions, batch, size] for each part. */
  protected run(x: Tensor, given: StateParts | undefined, { lengths }: SequenceOptions): [Tensor, Tensor[]] {
    const isBatch = this.#requireInput(x);
    const timeFirst = !isBatch ? x.unsqueeze(1) : this.batchFirst ? x.transpose(0, 1) : x;
    const [time, batch] = timeFirst.shape as [number, number, number];
    const state = this.#stateFor(timeFirst, given, isBatch);
    const on = lengths === undefined ? undefined : this.#active(lengths, time, batch, x.device);
    const lasts: StateParts[] = [];
    // what lies behind the length may be anything, NaN too, and must not reach a gradient
    let sequence = on === undefined ? timeFirst : on.where(timeFirst, 0);
    let outputs: Tensor[] = [];
    for (const [i, { layer, reverse, suffix }] of this.#directions().entries()) {
      const first = state.map((part) => part.select(0, i));
      const [last, ys] = this.#direction(sequence, first, this.#weights(suffix), on, { reverse });
      lasts.push(last);
      outputs.push(ys);
      if (outputs.length < (this.bidirectional ? 2 : 1)) continue;
      const output = outputs.length === 2 ? Tensor.cat(outputs, -1) : ys;
      const isDropped = this.dropout > 0 && layer < this.numLayers - 1 && trains(this);
      sequence = isDropped ? output.dropout(this.dropout, true) : output;
      outputs = [];
    }
    const ends = state.map((_, k) => Tensor.stack(lasts.map((s) => s[k] as Tensor)));
    if (!isBatch) return [sequence.squeeze(1), ends.map((t) => t.squeeze(1))];
    return [this.batchFirst ? sequence.transpose(0, 1) : sequence, ends];
  }

  #direction(
    x: Tensor,
    first: StateParts,
    w: Weights,
    on: Tensor | undefined,
    options: ScanOptions,
  ): [StateParts, Tensor] {
    return scan(
      (state: StateParts, { x, on }: Rows): readonly [StateParts, Tensor] => {
        const next = this.step(x, state, w).map((part, k) => sameType(part, state[k] as Tensor));
        const h = next[0] as Tensor;
        if (on === undefined) return [next, h];
        return [next.map((part, k) => on.where(part, state[k] as Tensor)), on.where(h, 0)];
      },
      first,
      { x: this.project(x, w), on } as Rows,
      options,
    );
  }

  #requireInput(x: Tensor): boolean {
    const name = this.constructor.name;
    if (x.ndim !== 2 && x.ndim !== 3) {
      const dims = this.batchFirst ? "[batch, time, features]" : "[time, batch, features]";
      throw new ShapeError(
        `${name}: input has shape ${showShape(x.shape)}, expected ${dims}, or [time, features] for one sequence`,
      );
    }
    if (x.shape.at(-1) === this.inputSize) return x.ndim === 3;
    throw new ShapeError(
      `${name}: input has shape ${showShape(x.shape)}, expected ${this.inputSize} features in the last dim`,
    );
  }
  #stateFor(x: Tensor, given: StateParts | undefined, isBatch: boolean): StateParts {
    const count = this.numLayers * (this.bidirectional ? 2 : 1);
    const batch = x.shape[1] as number;
    const parts = this.stateSizes.length;
    if (given !== undefined && given.length !== parts) {
      const wanted = parts === 2 ? "[h, c]" : "one Tensor";
      throw new ArgumentError(
        `${this.constructor.name}: the first state has ${given.length} parts, expected ${wanted}`,
      );
    }
    return this.stateSizes.map((size, k) => {
      const shape = [count, batch, size];
      const part = given?.[k];
      if (part === undefined) return Tensor.zeros(shape, { device: x.device, dtype: x.dtype });
      const wanted = isBatch ? shape : [count, size];
      if (showShape(part.shape) === showShape(wanted)) return isBatch ? part : part.unsqueeze(1);
      throw new ShapeError(
        `${this.constructor.name}: the first state has shape ${showShape(part.shape)}, expected ${showShape(wanted)}: ` +
          "[layers and directions, batch, size]",
      );
    });
  }
  /** Where a step belongs to the sequence: [time, batch, 1]. */
  #active(lengths: readonly number[] | Tensor, time: number, batch: number, device: string): Tensor {
    const name = this.constructor.name;
    const shape = lengths instanceof Tensor ? lengths.shape : [lengths.length];
    if (shape.length !== 1 || shape[0] !== batch) {
      throw new ShapeError(
        `${name}: lengths has shape ${showShape(shape)}, expected ${showShape([batch])}: a length for each sequence`,
      );
    }
    if (lengths instanceof Tensor) {
      if (lengths.dtype.isFloat)
        throw new ArgumentError(`${name}: lengths is ${lengths.dtype.name}, expected integers`);
    } else {
      const bad = lengths.findIndex((n) => !Number.isInteger(n) || n < 1 || n > time);
      if (bad >= 0) {
        throw new ArgumentError(
          `${name}: lengths[${bad}] is ${lengths[bad]}, expected an integer from 1 to the ${time} steps of the input`,
        );
      }
    }
    const ends = (lengths instanceof Tensor ? lengths : new Tensor([...lengths], { device })).cast("int32");
    return Tensor.arange(time, { device, dtype: "int32" })
      .reshape(time, 1, 1)
      .lt(ends.reshape(1, batch, 1));
  }
}

/** A state keeps its type, whatever the gates are computed in. */
const sameType = (next: Tensor, { dtype }: Tensor): Tensor =>
  next.dtype === dtype ? next : next.cast(dtype);
const sum = (a: Tensor | undefined, b: Tensor | undefined): Tensor | undefined =>
  a === undefined || b === undefined ? a : a.add(b);

/**
 * A recurrent network: h' = tanh(W_ih x + b_ih + W_hh h + b_hh), for each step of a sequence. `forward` takes
 * the sequence and h of every layer and direction (zeros if not given), and returns the outputs of the last
 * layer and the last h of all.
 * @example
 * const [output, h] = new nn.RNN(3, 4, { numLayers: 2 }).forward(Tensor.ones(5, 2, 3));
 * [output.shape, h.shape] // => [[5, 2, 4], [2, 2, 4]]
 */
export class RNN extends Recurrent {
  static override readonly name: string = "RNN";
  readonly nonlinearity: "tanh" | "relu";
  constructor(inputSize: number, hiddenSize: number, options: RNNOptions = {}) {
    super(inputSize, hiddenSize, options, { gates: 1 });
    const { nonlinearity = "tanh" } = options;
    if (nonlinearity !== "tanh" && nonlinearity !== "relu")
      throw new ArgumentError(`RNN: nonlinearity is ${String(nonlinearity)}, expected "tanh" or "relu"`);
    this.nonlinearity = nonlinearity;
  }
  protected get stateSizes(): readonly number[] {
    return [this.hiddenSize];
  }
  protected project(x: Tensor, w: Weights): Tensor {
    return linear(x, w.ih, sum(w.biasIh, w.biasHh));
  }
  protected step(x: Tensor, [h]: StateParts, w: Weights): StateParts {
    return [x.add(linear(h as Tensor, w.hh))[this.nonlinearity]()];
  }
  forward(x: Tensor, h?: Tensor, options: SequenceOptions = {}): [output: Tensor, h: Tensor] {
    const [output, [last]] = this.run(x, h === undefined ? undefined : [h], options);
    return [output, last as Tensor];
  }
}

/**
 * Long short-term memory over a sequence. `forward` takes the sequence and (h, c) of every layer and
 * direction, and returns the outputs of the last layer and the last (h, c) of all.
 * @example
 * const [output, [h, c]] = new nn.LSTM(3, 4, { bidirectional: true }).forward(Tensor.ones(5, 2, 3));
 * [output.shape, h.shape, c.shape] // => [[5, 2, 8], [2, 2, 4], [2, 2, 4]]
 */
export class LSTM extends Recurrent {
  static override readonly name: string = "LSTM";
  readonly projSize: number;
  constructor(inputSize: number, hiddenSize: number, options: LSTMOptions = {}) {
    const { projSize = 0 } = options;
    super(inputSize, hiddenSize, options, { gates: 4, projSize });
    this.projSize = projSize;
  }
  protected get stateSizes(): readonly number[] {
    return [this.projSize || this.hiddenSize, this.hiddenSize];
  }
  protected project(x: Tensor, w: Weights): Tensor {
    return linear(x, w.ih, sum(w.biasIh, w.biasHh));
  }
  protected step(x: Tensor, [h, c]: StateParts, w: Weights): StateParts {
    const [next, memory] = lstmGates(x.add(linear(h as Tensor, w.hh)), c as Tensor);
    return [w.hr === undefined ? next : linear(next, w.hr), memory];
  }
  forward(
    x: Tensor,
    state?: readonly [h: Tensor, c: Tensor],
    options: SequenceOptions = {},
  ): [output: Tensor, state: [h: Tensor, c: Tensor]] {
    const [output, [h, c]] = this.run(x, state, options);
    return [output, [h as Tensor, c as Tensor]];
  }
}

/**
 * Gated recurrent units over a sequence. `forward` takes the sequence and h of every layer and direction, and
 * returns the outputs of the last layer and the last h of all.
 * @example
 * const gru = new nn.GRU(3, 4, { batchFirst: true });
 * const [output] = gru.forward(Tensor.ones(2, 5, 3), undefined, { lengths: [5, 2] });
 * await output.select(0, 1).abs().sum(-1).ne(0).tolist() // => [true, true, false, false, false]
 */
export class GRU extends Recurrent {
  static override readonly name: string = "GRU";
  constructor(inputSize: number, hiddenSize: number, options: RecurrentOptions = {}) {
    super(inputSize, hiddenSize, options, { gates: 3 });
  }
  protected get stateSizes(): readonly number[] {
    return [this.hiddenSize];
  }
  protected project(x: Tensor, w: Weights): Tensor {
    return linear(x, w.ih, w.biasIh);
  }
  protected step(x: Tensor, [h]: StateParts, w: Weights): StateParts {
    return [gruGates(x, linear(h as Tensor, w.hh, w.biasHh), h as Tensor)];
  }
  forward(x: Tensor, h?: Tensor, options: SequenceOptions = {}): [output: Tensor, h: Tensor] {
    const [output, [last]] = this.run(x, h === undefined ? undefined : [h], options);
    return [output, last as Tensor];
  }
}
