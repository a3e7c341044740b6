// Attention in its variants, rotary embeddings, and the recurrences that take its place in newer models.

import { dtypes } from "../../dtype.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { typeOfCode } from "../elements.ts";
import type { Plan } from "../plan.ts";
import { TensorValue } from "../values.ts";
import { cast, cut, sizeOf, sizes, typed, wideOf } from "./common.ts";
import { type Call, flag, float, graph, int, type OpTable, type Output, op, string } from "./op.ts";

/** [batch, time, heads * size] as [batch, heads, time, size]; four dims are that already. */
export function headed(c: Call, x: Tensor, heads: number | undefined): Tensor {
  if (x.ndim === 4) return x;
  if (x.ndim !== 3) return c.fail(`got ${x.ndim} dims, expected 3 or 4`);
  if (heads === undefined || heads < 1) return c.fail("inputs of three dims need the number of heads");
  const [batch, time, hidden] = sizes(x) as [number, number, number];
  if (hidden % heads !== 0) c.fail(`${hidden} features do not make ${heads} heads`);
  return x.reshape([batch, time, heads, hidden / heads]).transpose(1, 2);
}
export const unheaded = (y: Tensor): Tensor => {
  const [batch, heads, time, size] = sizes(y) as [number, number, number, number];
  return y.transpose(1, 2).reshape([batch, time, heads * size]);
};
/** Each head of keys and values serves several queries. */
export function shared(x: Tensor, heads: number): Tensor {
  const [batch, own, time, size] = sizes(x) as [number, number, number, number];
  if (own === heads) return x;
  return x
    .unsqueeze(2)
    .expand([batch, own, heads / own, time, size])
    .reshape([batch, heads, time, size]);
}

/** Places of a dim, so that they broadcast against [.., queries, keys]. */
const places = (n: number, like: Tensor, isColumn: boolean): Tensor => {
  const at = Tensor.arange(n, { dtype: dtypes.int32, device: like.device });
  return isColumn ? at.reshape([n, 1]) : at;
};

interface Masked {
  readonly is_causal: boolean;
  readonly left_window_size?: number;
  readonly right_window_size?: number;
}
interface Bias {
  /** added to the scores; -inf where nothing may be seen */
  readonly bias: Tensor | undefined;
}

/** What a mask, the past, padding and a window leave to be seen. */
function biasOf(c: Call<Masked>, q: Tensor, k: Tensor, past: number): Bias["bias"] {
  const { is_causal, left_window_size = -1, right_window_size = -1 } = c.attr;
  const dtype = wideOf(q.dtype);
  const [queries, keys] = [sizeOf(q, 2), sizeOf(k, 2)];
  const valid = c.maybe(6);
  const parts: Tensor[] = [];
  const where = (allowed: Tensor): Tensor =>
    allowed.where(
      Tensor.zeros([], { dtype, device: q.device }),
      Tensor.full([], -Infinity, { dtype, device: q.device }),
    );
  const mask = c.maybe(3);
  if (mask !== undefined) {
    const missing = keys - sizeOf(mask, -1);
    const isBool = mask.dtype === dtypes.bool;
    const whole = isBool ? where(mask) : cast(mask, dtype);
    parts.push(
      missing > 0
        ? whole.pad(
            sizes(mask).map((_, d) => [0, d === mask.ndim - 1 ? missing : 0]),
            "constant",
            -Infinity,
          )
        : whole,
    );
  }
  const offset: Tensor | number =
    valid === undefined || c.has(4) ? past : cast(valid, dtypes.int32).sub(queries).reshape([-1, 1, 1, 1]);
  const position = places(queries, q, true).add(offset);
  const column = places(keys, q, false);
  if (is_causal) parts.push(where(column.le(position)));
  if (left_window_size >= 0) parts.push(where(column.ge(position.sub(left_window_size))));
  if (right_window_size >= 0) parts.push(where(column.le(position.add(right_window_size))));
  if (valid !== undefined) parts.push(where(column.lt(cast(valid, dtypes.int32).reshape([-1, 1, 1, 1]))));
  return parts.length === 0 ? undefined : parts.reduce((a, b) => a.add(b));
}

/** A row in which nothing may be seen is zero, and not NaN. */
export function maskedSoftmax(scores: Tensor, bias: Tensor | undefined): Tensor {
  if (bias === undefined) return scores.softmax(-1);
  const isEmpty = bias.max(-1, true).eq(-Infinity);
  const safe = isEmpty.where(scores.zerosLike(), scores);
  const weights = safe.softmax(-1);
  return isEmpty.where(weights.zerosLike(), weights);
}

interface AttentionAttributes extends Masked {
  readonly q_num_heads: number | undefined;
  readonly kv_num_heads: number | undefined;
  readonly scale: number | undefined;
  readonly softcap: number;
  readonly softmax_precision: number | undefined;
  readonly qk_matmul_output_mode: number;
}
function attend(c: Call<AttentionAttributes>): readonly Output[] {
  const {
    q_num_heads,
    kv_num_heads,
    scale,
    softcap,
    softmax_precision,
    qk_matmul_output_mode: mode,
  } = c.attr;
  const given = c.t(0);
  const { dtype } = given;
  const q = headed(c, given, q_num_heads);
  const behind = (i: number, x: Tensor): Tensor => (c.has(i) ? c.t(i).cat(x, 2) : x);
  const [k, v] = [behind(4, headed(c, c.t(1), kv_num_heads)), behind(5, headed(c, c.t(2), kv_num_heads))];
  const past = c.has(4) ? sizeOf(c.t(4), 2) : 0;
  const heads = sizeOf(q, 1);
  const wide = wideOf(dtype);
  const root = Math.sqrt(scale ?? 1 / Math.sqrt(sizeOf(q, 3)));
  const half = (x: Tensor): Tensor => cast(x, wide).mul(root);
  const raw = half(q).matmul(half(shared(k, heads)).transpose(-2, -1));
  const capped = softcap > 0 ? raw.div(softcap).tanh().mul(softcap) : raw;
  const bias = biasOf(c, q, k, past);
  const scores = bias === undefined ? capped : capped.add(bias);
  const precision = softmax_precision === undefined ? wide : typeOfCode(softmax_precision, c.where).dtype;
  const weights = cast(maskedSoftmax(cast(scores, precision), bias), wide);
  const y = cast(weights.matmul(cast(shared(v, heads), wide)), dtype);
  const shown =
    [raw, capped, scores, weights][mode] ?? c.fail(`qk_matmul_output_mode is ${mode}, expected 0 to 3`);
  return [given.ndim === 3 ? unheaded(y) : y, k, v, cast(shown.add(shown.zerosLike()), dtype)];
}
const ATTENTION = {
  is_causal: flag(false),
  q_num_heads: int(),
  kv_num_heads: int(),
  scale: float(),
  softcap: float(0),
  softmax_precision: int(),
  qk_matmul_output_mode: int(0),
  left_window_size: int(-1),
  right_window_size: int(-1),
};

/** A graph of the model changes the scores, and another one the weights. */
interface Flex {
  readonly scale: number | undefined;
  readonly softmax_precision: number | undefined;
  readonly score_mod: Plan | undefined;
  readonly prob_mod: Plan | undefined;
}
async function flexAttention(c: Call<Flex>): Promise<Output> {
  const { scale, softmax_precision, score_mod, prob_mod } = c.attr;
  const q = c.t(0);
  const type = c.type(0);
  const heads = sizeOf(q, 1);
  const [k, v] = [shared(c.t(1), heads), shared(c.t(2), heads)];
  const precision =
    softmax_precision === undefined ? wideOf(q.dtype) : typeOfCode(softmax_precision, c.where).dtype;
  const wide = wideOf(q.dtype);
  const modified = async (x: Tensor, plan: Plan | undefined): Promise<Tensor> => {
    if (plan === undefined) return x;
    const [result] = await c.env.subgraph(plan, [TensorValue.of(x, undefined, c.sources)], c);
    return result instanceof TensorValue ? result.tensor : c.fail("a graph of it gives no tensor");
  };
  const raw = cast(q, wide)
    .matmul(cast(k, wide).transpose(-2, -1))
    .mul(scale ?? 1 / Math.sqrt(sizeOf(q, 3)));
  const scores = await modified(cast(raw, precision), score_mod);
  const isEmpty = scores.max(-1, true).eq(-Infinity);
  const weights = isEmpty.where(scores.zerosLike(), isEmpty.where(scores.zerosLike(), scores).softmax(-1));
  const final = await modified(weights, prob_mod);
  return typed(cast(final, wide).matmul(cast(v, wide)), type);
}

// ---- positions ----

/** Pairs of features turn by an angle: the halves, or neighbours. */
export function rotate(x: Tensor, cos: Tensor, sin: Tensor, isInterleaved: boolean): Tensor {
  const size = sizeOf(x, -1);
  const half = size / 2;
  const pick = (start: number, step: number): Tensor =>
    cut(
      x,
      sizes(x).map((count, d) =>
        d === x.ndim - 1 ? { start, step, count: half } : { start: 0, step: 1, count },
      ),
    );
  const [a, b] = isInterleaved ? [pick(0, 2), pick(1, 2)] : [pick(0, 1), pick(half, 1)];
  const [real, imaginary] = [cos.mul(a).sub(sin.mul(b)), sin.mul(a).add(cos.mul(b))];
  return isInterleaved ? Tensor.stack([real, imaginary], -1).reshape(sizes(x)) : real.cat(imaginary, -1);
}
interface Rotary {
  readonly interleaved: boolean;
  readonly num_heads: number;
  readonly rotary_embedding_dim: number;
}
/** `cos` and `sin` are [positions, half], or [batch, time, half] where no positions are given. */
export function rotary(
  c: Call<Rotary>,
  given: Tensor,
  positions: Tensor | undefined,
  cosines: Tensor,
  sines: Tensor,
): Tensor {
  const x = headed(c, given, c.attr.num_heads);
  const part = c.attr.rotary_embedding_dim === 0 ? sizeOf(x, 3) : c.attr.rotary_embedding_dim;
  const angles = (cache: Tensor): Tensor => {
    if (positions === undefined) return cache.unsqueeze(1);
    const rows = cache.indexSelect(0, cast(positions, dtypes.int32).reshape([-1]));
    return rows.reshape([...sizes(positions), sizeOf(cache, -1)]).unsqueeze(1);
  };
  const span = (start: number, count: number): Tensor =>
    cut(
      x,
      sizes(x).map((n, d) => (d === 3 ? { start, step: 1, count } : { start: 0, step: 1, count: n })),
    );
  const turned = rotate(span(0, part), angles(cosines), angles(sines), c.attr.interleaved);
  const whole = part === sizeOf(x, 3) ? turned : turned.cat(span(part, sizeOf(x, 3) - part), 3);
  return cast(given.ndim === 3 ? unheaded(whole) : whole, given.dtype);
}
const ROTARY = { interleaved: flag(false), num_heads: int(0), rotary_embedding_dim: int(0) };

// ---- recurrences ----

function causalConv(c: Call<{ activation: string }>): readonly Output[] {
  const [x, w] = [c.t(0), c.t(1)];
  const k = sizeOf(w, 2);
  const wide = wideOf(x.dtype);
  const past = c.maybe(3) ?? Tensor.zeros([sizeOf(x, 0), sizeOf(x, 1), k - 1], { dtype: x.dtype, ...c.on });
  const whole = k === 1 ? x : past.cat(x, 2);
  const bias = c.maybe(2);
  const y = cast(whole, wide).conv1d(cast(w, wide), bias === undefined ? null : cast(bias, wide), {
    groups: sizeOf(x, 1),
  });
  const { activation } = c.attr;
  if (!["none", "silu", "swish"].includes(activation)) c.fail(`activation is "${activation}"`);
  const n = sizeOf(whole, 2);
  const state = cut(
    whole,
    sizes(whole).map((count, d) =>
      d === 2 ? { start: n - (k - 1), step: 1, count: k - 1 } : { start: 0, step: 1, count },
    ),
  );
  return [cast(activation === "none" ? y : y.silu(), x.dtype), state];
}

interface LinearAttributes {
  readonly q_num_heads: number;
  readonly kv_num_heads: number;
  readonly scale: number;
  readonly update_rule: string;
  readonly chunk_size: number;
}
const RULES = ["linear", "gated", "delta", "gated_delta"];
/** A state of keys by values, which each step adds to, after it has faded or been corrected. */
function linearAttention(c: Call<LinearAttributes>): readonly Output[] {
  const { q_num_heads, kv_num_heads, scale, update_rule } = c.attr;
  if (!RULES.includes(update_rule))
    c.fail(`update_rule is "${update_rule}", expected one of ${RULES.join(", ")}`);
  const given = c.t(0);
  const wide = wideOf(given.dtype);
  const split = (i: number, heads: number): Tensor => cast(headed(c, c.t(i), heads), wide);
  const [q, k, v] = [split(0, q_num_heads), split(1, kv_num_heads), split(2, kv_num_heads)];
  const [batch, time, dk, dv] = [sizeOf(q, 0), sizeOf(q, 2), sizeOf(k, 3), sizeOf(v, 3)];
  const isGated = update_rule.startsWith("gated");
  const isDelta = update_rule.endsWith("delta");
  if (isGated && !c.has(4)) c.fail(`update_rule "${update_rule}" needs the input decay`);
  if (isDelta && !c.has(5)) c.fail(`update_rule "${update_rule}" needs the input beta`);
  const decay = isGated ? split(4, kv_num_heads).exp() : undefined;
  const beta = isDelta ? cast(c.t(5), wide).transpose(1, 2).unsqueeze(3) : undefined;
  const first = c.maybe(3);
  let state =
    first === undefined
      ? Tensor.zeros([batch, kv_num_heads, dk, dv], { dtype: wide, ...c.on })
      : cast(first, wide);
  const at = (x: Tensor, t: number): Tensor => x.select(2, t);
  const outs: Tensor[] = [];
  for (let t = 0; t < time; t++) {
    if (decay !== undefined) state = state.mul(at(decay, t).unsqueeze(-1));
    const key = at(k, t).unsqueeze(-1);
    const value = at(v, t).unsqueeze(-2);
    const seen = isDelta ? value.sub(state.mul(key).sum(2, true)) : value;
    const update = key.mul(seen);
    state = state.add(beta === undefined ? update : update.mul(at(beta, t).unsqueeze(-1)));
    const query = at(q, t).unsqueeze(-1);
    outs.push(shared(state, q_num_heads).mul(query).sum(2));
  }
  const factor = scale === 0 ? 1 / Math.sqrt(sizeOf(q, 3)) : scale;
  const y = unheaded(Tensor.stack(outs, 2).mul(factor));
  return [cast(y, given.dtype), cast(state, first?.dtype ?? given.dtype)];
}

export const attention: OpTable = {
  Attention: op(ATTENTION, attend, 23),
  "ai.onnx.preview.FlexAttention": op(
    { scale: float(), softmax_precision: int(), score_mod: graph(), prob_mod: graph() },
    flexAttention,
  ),
  RotaryEmbedding: op(ROTARY, (c) => rotary(c, c.t(0), c.maybe(3), c.t(1), c.t(2)), 23),
  CausalConvWithState: op({ activation: string("none") }, causalConv, 27),
  LinearAttention: op(
    {
      q_num_heads: int.required,
      kv_num_heads: int.required,
      scale: float(0),
      update_rule: string("gated_delta"),
      chunk_size: int(64),
    },
    linearAttention,
    27,
  ),
};
