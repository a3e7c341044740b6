// RNN, GRU and LSTM, with every option of the standard. A sequence is a chain of steps in the lazy graph; one
// that ends early keeps its state from there. In: [time, batch, features], or the batch first.

import { range } from "../../helpers.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { cast, cut, sizeOf, sizes, wideOf } from "./common.ts";
import { reversed } from "./indexing.ts";
import { type Call, flag, float, floats, int, type OpTable, type Output, op, string, strings } from "./op.ts";

type Activation = (x: Tensor) => Tensor;
/** By name: the function, and what alpha and beta are if nothing is said, where it has them. */
const ACTIVATIONS: Readonly<
  Record<string, readonly [f: (x: Tensor, a: number, b: number) => Tensor, alpha?: number, beta?: number]>
> = {
  relu: [(x) => x.relu()],
  tanh: [(x) => x.tanh()],
  sigmoid: [(x) => x.sigmoid()],
  affine: [(x, a, b) => x.mul(a).add(b), 1, 0],
  leakyrelu: [(x, a) => x.lt(0).where(x.mul(a), x), 0.01],
  thresholdedrelu: [(x, a) => x.gt(a).where(x, x.zerosLike()), 1],
  scaledtanh: [(x, a, b) => x.mul(b).tanh().mul(a), 1, 1],
  hardsigmoid: [(x, a, b) => x.mul(a).add(b).maximum(0).minimum(1), 0.2, 0.5],
  elu: [(x, a) => x.elu(a), 1],
  softsign: [(x) => x.softsign()],
  softplus: [(x) => x.softplus()],
};

export interface RecurrentAttributes {
  readonly activation_alpha: readonly number[] | undefined;
  readonly activation_beta: readonly number[] | undefined;
  readonly activations: readonly string[] | undefined;
  readonly clip: number | undefined;
  readonly direction: string;
  readonly hidden_size: number | undefined;
  readonly layout: number;
}
export const RECURRENT = {
  activation_alpha: floats(),
  activation_beta: floats(),
  activations: strings(),
  clip: float(),
  direction: string("forward"),
  hidden_size: int(),
  layout: int(0),
};

/** The functions of each direction. Those that have an alpha or a beta take the next of its list. */
function activationsOf(
  c: Call<RecurrentAttributes>,
  usual: readonly string[],
  directions: number,
): Activation[][] {
  const names = c.attr.activations ?? range(directions).flatMap(() => usual);
  if (names.length !== usual.length * directions)
    c.fail(`${names.length} activations, expected ${usual.length * directions}`);
  const { clip } = c.attr;
  const [alphas, betas] = [[...(c.attr.activation_alpha ?? [])], [...(c.attr.activation_beta ?? [])]];
  const next = (list: number[], usual: number | undefined): number =>
    usual === undefined ? 0 : (list.shift() ?? usual);
  const all = names.map((name): Activation => {
    const key = name.toLowerCase();
    const known = Object.hasOwn(ACTIVATIONS, key) ? ACTIVATIONS[key] : undefined;
    if (known === undefined) return c.fail(`activation "${name}" is not known`);
    const [f, alpha, beta] = known;
    const [a, b] = [next(alphas, alpha), next(betas, beta)];
    return (x) => f(clip === undefined ? x : x.maximum(-clip).minimum(clip), a, b);
  });
  return range(directions).map((d) => all.slice(d * usual.length, (d + 1) * usual.length));
}

/** What one direction has: its part of each weight, in float32. */
interface GateWeights {
  readonly w: Tensor;
  readonly r: Tensor;
  readonly bias: readonly [input: Tensor, hidden: Tensor] | undefined;
  readonly f: readonly Activation[];
  readonly peepholes: Tensor | undefined;
}
/** From the input's part of the gates and the states to the next states; the first is the output. */
type RecurrentStep = (gates: Tensor, states: readonly Tensor[], cell: GateWeights) => readonly Tensor[];

interface RecurrentKind {
  readonly gates: number;
  readonly states: number;
  readonly usual: readonly string[];
  readonly step: RecurrentStep;
}

function run(c: Call<RecurrentAttributes>, kind: RecurrentKind): readonly Output[] {
  const { direction, layout } = c.attr;
  const directions = direction === "bidirectional" ? 2 : 1;
  if (!["forward", "reverse", "bidirectional"].includes(direction)) c.fail(`direction is "${direction}"`);
  const given = c.t(0);
  const dtype = wideOf(given.dtype);
  const wide = (t: Tensor): Tensor => cast(t, dtype);
  const x = wide(layout === 1 ? given.transpose(0, 1) : given);
  const [time, batch] = [sizeOf(x, 0), sizeOf(x, 1)];
  const hidden = sizeOf(c.t(2), -1);
  const functions = activationsOf(c, kind.usual, directions);
  const lengths = c.maybe(4);
  const ends = range(directions).map((d) => {
    const part = (i: number): Tensor | undefined => (c.has(i) ? wide(c.t(i).select(0, d)) : undefined);
    const bias = part(3);
    const cell: GateWeights = {
      w: part(1) as Tensor,
      r: part(2) as Tensor,
      bias:
        bias === undefined
          ? undefined
          : [
              bias.shrink([[0, kind.gates * hidden]]),
              bias.shrink([[kind.gates * hidden, 2 * kind.gates * hidden]]),
            ],
      f: functions[d] as Activation[],
      peepholes: part(7),
    };
    const states = range(kind.states).map((i) => {
      const initial = c.maybe(5 + i);
      if (initial === undefined) return Tensor.zeros([batch, hidden], { dtype, ...c.on });
      return wide(layout === 1 ? initial.select(1, d) : initial.select(0, d));
    });
    const isBack = direction === "reverse" || d === 1;
    return chain(x, cell, states, kind.step, isBack, lengths, time);
  });
  const y = Tensor.stack(
    ends.map((e) => e.outputs),
    1,
  );
  const last = (i: number): Tensor => {
    const all = Tensor.stack(
      ends.map((e) => e.states[i] as Tensor),
      0,
    );
    return cast(layout === 1 ? all.transpose(0, 1) : all, given.dtype);
  };
  const whole = layout === 1 ? y.permute(2, 0, 1, 3) : y;
  return [cast(whole, given.dtype), ...range(kind.states).map(last)];
}

function chain(
  x: Tensor,
  cell: GateWeights,
  initial: readonly Tensor[],
  step: RecurrentStep,
  isBack: boolean,
  lengths: Tensor | undefined,
  time: number,
): { outputs: Tensor; states: readonly Tensor[] } {
  const turn = (t: Tensor): Tensor =>
    !isBack ? t : lengths === undefined ? t.flip(0) : reversed(t, lengths, 1, 0);
  // the inputs' part of all steps is one product
  const product = turn(x).matmul(cell.w.transpose(0, 1));
  const gates = cell.bias === undefined ? product : product.add(cell.bias[0]);
  let states = initial;
  const outputs: Tensor[] = [];
  for (let t = 0; t < time; t++) {
    const next = step(gates.select(0, t), states, cell);
    const isOn = lengths?.gt(t).reshape([-1, 1]);
    states = isOn === undefined ? next : next.map((s, i) => isOn.where(s, states[i] as Tensor));
    const [h] = states as [Tensor];
    outputs.push(isOn === undefined ? h : isOn.where(h, h.zerosLike()));
  }
  const none = (): Tensor =>
    Tensor.zeros([0, ...sizes(initial[0] as Tensor)], { dtype: x.dtype, device: x.device });
  return { outputs: outputs.length === 0 ? none() : turn(Tensor.stack(outputs, 0)), states };
}

const gate = (gates: Tensor, i: number, n: number): Tensor => {
  const each = sizeOf(gates, -1) / n;
  return cut(
    gates,
    sizes(gates).map((count, d) =>
      d === gates.ndim - 1 ? { start: i * each, step: 1, count: each } : { start: 0, step: 1, count },
    ),
  );
};
const hiddenPart = (h: Tensor, cell: GateWeights): Tensor => {
  const product = h.matmul(cell.r.transpose(0, 1));
  return cell.bias === undefined ? product : product.add(cell.bias[1]);
};
const call = (cell: GateWeights, i: number, x: Tensor): Tensor => (cell.f[i] as Activation)(x);

const simple: RecurrentKind = {
  gates: 1,
  states: 1,
  usual: ["Tanh"],
  step: (gates, [h], cell) => [call(cell, 0, gates.add(hiddenPart(h as Tensor, cell)))],
};

/** Gates: update, reset, hidden. */
const gru = (isLinear: boolean): RecurrentKind => ({
  gates: 3,
  states: 1,
  usual: ["Sigmoid", "Tanh"],
  step: (gates, [state], cell) => {
    const h = state as Tensor;
    const recurrent = hiddenPart(h, cell);
    const z = call(cell, 0, gate(gates, 0, 3).add(gate(recurrent, 0, 3)));
    const r = call(cell, 0, gate(gates, 1, 3).add(gate(recurrent, 1, 3)));
    const n = isLinear ? r.mul(gate(recurrent, 2, 3)) : resetFirst(r.mul(h), cell);
    const candidate = call(cell, 1, gate(gates, 2, 3).add(n));
    return [candidate.mul(z.neg().add(1)).add(z.mul(h))];
  },
});
/** The hidden gate of a state that was reset before the product. */
function resetFirst(h: Tensor, { r, bias }: GateWeights): Tensor {
  const own = gate(r.transpose(0, 1), 2, 3);
  return bias === undefined ? h.matmul(own) : h.matmul(own).add(gate(bias[1], 2, 3));
}

/** Gates: input, output, forget, cell. */
const lstm = (isCoupled: boolean): RecurrentKind => ({
  gates: 4,
  states: 2,
  usual: ["Sigmoid", "Tanh", "Tanh"],
  step: (gates, [h, c], cell) => {
    const memory = c as Tensor;
    const sums = gates.add(hiddenPart(h as Tensor, cell));
    const look = (x: Tensor, at: Tensor, i: number): Tensor =>
      cell.peepholes === undefined ? x : x.add(gate(cell.peepholes, i, 3).mul(at));
    const i = call(cell, 0, look(gate(sums, 0, 4), memory, 0));
    const f = isCoupled ? i.neg().add(1) : call(cell, 0, look(gate(sums, 2, 4), memory, 2));
    const next = f.mul(memory).add(i.mul(call(cell, 1, gate(sums, 3, 4))));
    const o = call(cell, 0, look(gate(sums, 1, 4), next, 1));
    return [o.mul(call(cell, 2, next)), next];
  },
});

export const runLstm = (c: Call<RecurrentAttributes & { input_forget: boolean }>): ReturnType<typeof run> =>
  run(c, lstm(c.attr.input_forget));

export const rnn: OpTable = {
  RNN: op({ ...RECURRENT, output_sequence: int(0) }, (c) => run(c, simple)),
  GRU: op({ ...RECURRENT, linear_before_reset: flag(false), output_sequence: int(0) }, (c) =>
    run(c, gru(c.attr.linear_before_reset)),
  ),
  LSTM: op({ ...RECURRENT, input_forget: flag(false), output_sequence: int(0) }, runLstm),
};
