// The attention ops of com.microsoft: queries, keys and values in one tensor or in three, masks in several
// forms, a past that is joined in front, and positions that turn queries and keys.

import { dtypes } from "../../dtype.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { headed, maskedSoftmax, rotary, shared, unheaded } from "./attention.ts";
import { cast, sizeOf, sizes, wideOf } from "./common.ts";
import { type Call, flag, float, int, ints, type OpTable, type Output, op, string } from "./op.ts";
import { matmul } from "./reduce.ts";

export interface HeadOptions {
  readonly num_heads: number;
  readonly scale: number | undefined;
  readonly unidirectional: boolean;
  /** added to the scores of what a mask hides: a row of which all is hidden averages */
  readonly mask_filter_value: number;
}
export const HEADS = {
  num_heads: int.required,
  scale: float(),
  unidirectional: flag(false),
  mask_filter_value: float(-10000),
};

interface Weighing {
  readonly scale: number | undefined;
  /** added to the scores */
  readonly bias: Tensor | undefined;
  /** scores are kept within it */
  readonly softcap?: number;
  /** a score of each head that takes a part of the weights, and weighs nothing */
  readonly sink?: Tensor | undefined;
}
/** Scores of queries and keys of [batch, heads, time, size], and the values they weigh. */
export function attend(q: Tensor, k: Tensor, v: Tensor, how: Weighing): Tensor {
  const { scale, bias, softcap = 0, sink } = how;
  const wide = wideOf(q.dtype);
  const factor = scale === undefined || scale === 0 ? 1 / Math.sqrt(sizeOf(q, 3)) : scale;
  const raw = cast(q, wide).matmul(cast(k, wide).transpose(-2, -1)).mul(factor);
  const capped = softcap > 0 ? raw.div(softcap).tanh().mul(softcap) : raw;
  const scores = bias === undefined ? capped : capped.add(bias);
  const weights = sink === undefined ? maskedSoftmax(scores, bias) : withSink(scores, cast(sink, wide));
  return cast(weights.matmul(cast(v, wide)), q.dtype);
}
function withSink(scores: Tensor, sink: Tensor): Tensor {
  const column = sink.reshape([1, -1, 1, 1]).expand([...sizes(scores).slice(0, 3), 1]);
  const all = scores.cat(column, 3).softmax(-1);
  return all.shrink([null, null, null, [0, sizeOf(scores, 3)]]);
}

/** 0 where something may be seen, `closed` elsewhere. */
const opened = (allowed: Tensor, like: Tensor, closed = -Infinity): Tensor => {
  const options = { dtype: wideOf(like.dtype), device: like.device };
  return allowed.where(Tensor.zeros([], options), Tensor.full([], closed, options));
};
const row = (n: number, like: Tensor): Tensor =>
  Tensor.arange(n, { dtype: dtypes.int32, device: like.device });
const column = (n: number, like: Tensor): Tensor => row(n, like).reshape([n, 1]);
/** Each query sees the past, and as many of the new keys as there are queries up to it. */
const causal = (queries: number, keys: number, past: number, like: Tensor): Tensor =>
  opened(row(keys, like).le(column(queries, like).add(past)), like);
const sum = (...parts: readonly (Tensor | undefined)[]): Tensor | undefined =>
  parts.reduce((a, b) => (a === undefined ? b : b === undefined ? a : a.add(b)));

/**
 * A mask of ends [batch], of ends and starts [2 * batch], of keys [batch, keys], or of all
 * [batch, queries, keys].
 */
function maskBias(c: Call<HeadOptions>, given: Tensor, keys: number, like: Tensor): Tensor {
  const filtered = (allowed: Tensor): Tensor => opened(allowed, like, c.attr.mask_filter_value);
  const mask = cast(given, dtypes.int32);
  const batch = sizeOf(like, 0);
  if (mask.ndim === 1) {
    const part = (i: number): Tensor => mask.shrink([[i * batch, (i + 1) * batch]]).reshape([batch, 1, 1, 1]);
    if (mask.size === batch) return filtered(row(keys, like).lt(part(0)));
    if (mask.size === 2 * batch)
      return filtered(
        row(keys, like)
          .lt(part(0))
          .bitwiseAnd(row(keys, like).ge(part(1))),
      );
    return c.unsupported(`a mask of ${mask.size} numbers for ${batch} sequences`);
  }
  if (mask.ndim > 3) return c.unsupported(`a mask of ${mask.ndim} dims`);
  if (sizeOf(mask, -1) !== keys) c.fail(`the mask is for ${sizeOf(mask, -1)} keys, there are ${keys}`);
  return filtered(mask.gt(0)).reshape([sizeOf(mask, 0), 1, mask.ndim === 3 ? sizeOf(mask, 1) : 1, keys]);
}
const asBias = (c: Call, i: number, like: Tensor): Tensor | undefined =>
  c.has(i) ? cast(c.t(i), wideOf(like.dtype)) : undefined;

/** Query, key, value, bias, mask of keys, bias of scores, past key, past value. */
function multiHead(c: Call<HeadOptions>): readonly Output[] {
  const { num_heads: n, scale, unidirectional } = c.attr;
  if (c.has(8) || c.has(9)) c.unsupported("a past that is a part of a larger buffer");
  if (c.wants(3)) c.unsupported("the output qk");
  const [given, keyed, valued] = separate(c);
  const bias = c.maybe(3);
  const width = given.ndim === 3 ? sizeOf(given, 2) : sizeOf(given, 1) * sizeOf(given, 3);
  const biased = (x: Tensor, from: number): Tensor => {
    if (bias === undefined) return headed(c, x, n);
    // what has heads already is a past of another layer: it got its bias there
    if (x.ndim === 4 && c.has(1) && c.t(1).ndim === 4) return x;
    const size = x.ndim === 3 ? sizeOf(x, 2) : sizeOf(x, 1) * sizeOf(x, 3);
    const part = bias.shrink([[from, from + size]]);
    return x.ndim === 3 ? headed(c, x.add(part), n) : x.add(part.reshape([1, n, 1, -1]));
  };
  const q =
    given.ndim === 3 && bias !== undefined
      ? headed(c, given.add(bias.shrink([[0, width]])), n)
      : biased(given, 0);
  const [k1, v1] = [biased(keyed, width), biased(valued, 2 * width)];
  const k = c.has(6) ? c.t(6).cat(k1, 2) : k1;
  const v = c.has(7) ? c.t(7).cat(v1, 2) : v1;
  const [queries, keys] = [sizeOf(q, 2), sizeOf(k, 2)];
  const all = sum(
    c.has(4) ? maskBias(c, c.t(4), keys, q) : undefined,
    asBias(c, 5, q),
    unidirectional ? causal(queries, keys, keys - sizeOf(k1, 2), q) : undefined,
  );
  return [unheaded(attend(q, k, v, { scale, bias: all })), k, v];
}
/** Queries, keys and values; packed ones are [batch, time, heads, which, size]. */
function separate(c: Call<HeadOptions>): readonly [Tensor, Tensor, Tensor] {
  const q = c.t(0);
  const part = (x: Tensor, i: number): Tensor => x.select(3, i).transpose(1, 2);
  if (q.ndim === 5) return [part(q, 0), part(q, 1), part(q, 2)];
  const k = c.t(1);
  return k.ndim === 5 ? [q, part(k, 0), part(k, 1)] : [q, k, c.t(2)];
}

interface PackedOptions extends HeadOptions {
  readonly qkv_hidden_sizes: readonly number[] | undefined;
  readonly do_rotary: boolean;
  readonly past_present_share_buffer: boolean;
}
/** Input, weights of all three, bias, mask, past [2, batch, heads, time, size], bias of scores. */
function packedAttention(c: Call<PackedOptions>): readonly Output[] {
  const { do_rotary, past_present_share_buffer, qkv_hidden_sizes } = c.attr;
  if (do_rotary) c.unsupported("do_rotary");
  if (past_present_share_buffer || c.has(6)) c.unsupported("a past that is a part of a larger buffer");
  const product = matmul(c.t(0), c.t(1));
  const bias = c.maybe(2);
  const all = bias === undefined ? product : product.add(bias);
  const parts = { mask: c.maybe(3), past: c.maybe(4), scores: asBias(c, 5, all) };
  return attendPacked(c, all, qkv_hidden_sizes, parts);
}
export interface PackedParts {
  readonly mask: Tensor | undefined;
  readonly past: Tensor | undefined;
  readonly scores: Tensor | undefined;
}
/** Queries, keys and values side by side in the last dim. */
export function attendPacked(
  c: Call<HeadOptions>,
  all: Tensor,
  widths: readonly number[] | undefined,
  { mask, past, scores }: PackedParts,
): readonly Output[] {
  const { num_heads: n, scale, unidirectional } = c.attr;
  const third = sizeOf(all, 2) / 3;
  const [a, b, d] = (widths ?? [third, third, third]) as [number, number, number];
  const part = (from: number, to: number): Tensor => headed(c, all.shrink([null, null, [from, to]]), n);
  const behind = (i: number, x: Tensor): Tensor => (past === undefined ? x : past.select(0, i).cat(x, 2));
  const q = part(0, a);
  const [k, v] = [behind(0, part(a, a + b)), behind(1, part(a + b, a + b + d))];
  const [queries, keys] = [sizeOf(q, 2), sizeOf(k, 2)];
  const bias = sum(
    mask === undefined ? undefined : maskBias(c, mask, keys, q),
    scores,
    unidirectional ? causal(queries, keys, keys - queries, q) : undefined,
  );
  const y = unheaded(attend(q, k, v, { scale, bias }));
  return c.wants(1) ? [y, Tensor.stack([k, v], 0)] : [y];
}

// ---- heads in groups ----

interface Grouped {
  readonly num_heads: number;
  readonly kv_num_heads: number;
  readonly scale: number | undefined;
  readonly do_rotary: boolean;
  readonly rotary_interleaved: boolean;
  readonly local_window_size: number;
  readonly softcap: number;
  readonly smooth_softmax: boolean;
  readonly causal: boolean;
  readonly sliding_window_cache: boolean;
  readonly k_quant_type: string;
  readonly v_quant_type: string;
  readonly kv_cache_bit_width: number;
  readonly qk_output: number;
  readonly qk_norm_epsilon: number;
}
const GROUPED = {
  num_heads: int.required,
  kv_num_heads: int.required,
  scale: float(),
  do_rotary: flag(false),
  rotary_interleaved: flag(false),
  local_window_size: int(-1),
  softcap: float(0),
  smooth_softmax: flag(false),
  causal: flag(true),
  sliding_window_cache: flag(false),
  k_quant_type: string("NONE"),
  v_quant_type: string("NONE"),
  kv_cache_bit_width: int(0),
  qk_output: int(0),
  qk_norm_epsilon: float(1e-6),
};
function refuseGrouped(c: Call<Grouped>): void {
  const { k_quant_type, v_quant_type, kv_cache_bit_width, sliding_window_cache, qk_output } = c.attr;
  if (
    k_quant_type !== "NONE" ||
    v_quant_type !== "NONE" ||
    kv_cache_bit_width !== 0 ||
    c.has(12) ||
    c.has(13)
  )
    c.unsupported("a past of few bits");
  if (sliding_window_cache) c.unsupported("sliding_window_cache");
  if (qk_output !== 0 || c.wants(3)) c.unsupported("the output output_qk");
}

/** How long each sequence is: numbers where all are the same, or [batch, 1, 1, 1]. */
interface Lengths {
  readonly past: Tensor | number;
  readonly total: Tensor | number;
}
/**
 * Query, key, value, past key, past value, lengths minus one, the longest length, cosines, sines, positions,
 * bias of scores, sinks, two scales, weights of the norms of queries and keys.
 */
async function groupQuery(c: Call<Grouped>): Promise<readonly Output[]> {
  refuseGrouped(c);
  const { num_heads: n, kv_num_heads: m, scale, softcap, smooth_softmax } = c.attr;
  const given = c.t(0);
  const isPacked = !c.has(1);
  const size = sizeOf(given, 2) / (isPacked ? n + 2 * m : n);
  const part = (from: number, heads: number): Tensor =>
    headed(c, given.shrink([null, null, [from * size, (from + heads) * size]]), heads);
  const [q0, k0, v0] = isPacked
    ? [part(0, n), part(n, m), part(n + m, m)]
    : [headed(c, given, n), headed(c, c.t(1), m), headed(c, c.t(2), m)];
  const [batch, time] = [sizeOf(q0, 0), sizeOf(q0, 2)];
  const room = c.has(3) ? sizeOf(c.t(3), 2) : 0;
  const longest = await c.scalar(6);
  const isPrompt = time === longest;
  if (sizeOf(k0, 2) !== time || longest < time || longest > Math.max(room + time, room))
    c.unsupported(`${longest} tokens with a past of ${room}, ${time} queries and ${sizeOf(k0, 2)} new keys`);
  const total = batch === 1 ? longest : cast(c.t(5), dtypes.int32).reshape([batch, 1, 1, 1]).add(1);
  const past = isPrompt ? 0 : typeof total === "number" ? total - time : total.sub(time);
  const lengths = { past, total };
  const q1 = turned(c, normed(c, q0, 14), lengths, isPrompt);
  const k1 = turned(c, normed(c, k0, 15), lengths, isPrompt);
  const k = joined(c, 3, k1, past, Math.max(room, longest));
  const v = joined(c, 4, v0, past, Math.max(room, longest));
  const none = (): Tensor => Tensor.zeros([n], { dtype: dtypes.float32, device: given.device });
  const sink = c.maybe(11) ?? (smooth_softmax ? none() : undefined);
  const bias = sum(visible(c, q0, sizeOf(k, 2), lengths), scoreBias(c, q0, sizeOf(k, 2)));
  const y = attend(q1, shared(k, n), shared(v, n), { scale, bias, softcap, sink });
  return [unheaded(y), k, v];
}

/** Each head of unit size before it is turned, if the model says so. */
function normed(c: Call<Grouped>, x: Tensor, weight: number): Tensor {
  if (!c.has(weight)) return x;
  const wide = cast(x, wideOf(x.dtype));
  const unit = wide.mul(wide.square().mean(-1, true).add(c.attr.qk_norm_epsilon).rsqrt());
  return cast(unit, x.dtype).mul(c.t(weight));
}
function turned(c: Call<Grouped>, x: Tensor, { past }: Lengths, isPrompt: boolean): Tensor {
  if (!c.attr.do_rotary) return x;
  const [batch, time] = [sizeOf(x, 0), sizeOf(x, 2)];
  const given = c.has(9) ? cast(c.t(9), dtypes.int32) : undefined;
  // of a prompt only the first position counts
  const start = given === undefined ? past : given.reshape([-1]).shrink([[0, 1]]);
  const line = row(time, x).add(typeof start === "number" ? start : start.reshape([-1, 1]));
  const positions = isPrompt || given === undefined ? line.expand([batch, time]) : given;
  const attr = {
    interleaved: c.attr.rotary_interleaved,
    num_heads: 0,
    rotary_embedding_dim: 2 * sizeOf(c.t(7), 1),
  };
  return rotary(c.withAttributes(attr), x, positions, c.t(7), c.t(8));
}

/** The new ones behind the past ones that count; zeros behind both, up to `places`. */
function joined(c: Call, i: number, fresh: Tensor, past: Tensor | number, places: number): Tensor {
  if (!c.has(i)) return fresh;
  const before = c.t(i);
  const [room, time] = [sizeOf(before, 2), sizeOf(fresh, 2)];
  if (past === room && places === room + time) return room === 0 ? fresh : before.cat(fresh, 2);
  const at = row(places, fresh).reshape([places, 1]);
  const from = at.sub(past);
  const shape = sizes(fresh).with(2, places);
  const isNew = from.ge(0).bitwiseAnd(from.lt(time));
  const news = fresh.gather(
    2,
    from
      .maximum(0)
      .minimum(time - 1)
      .expand(shape),
  );
  const padded = before.pad(shape.map((_, d) => [0, d === 2 ? places - room : 0] as const));
  return isNew.where(news, from.lt(0).where(padded, padded.zerosLike()));
}

/** What each query may see: up to itself, within the window, and within its sequence. */
function visible(c: Call<Grouped>, q: Tensor, keys: number, { past, total }: Lengths): Tensor | undefined {
  const { local_window_size: window, causal: isCausal } = c.attr;
  const place = column(sizeOf(q, 2), q).add(past).add(1);
  const end = isCausal ? place.minimum(total) : total;
  const at = row(keys, q);
  const parts = [opened(at.lt(end), q)];
  if (window >= 0) parts.push(opened(at.ge(typeof end === "number" ? end - window : end.sub(window)), q));
  return !isCausal && window < 0 && total === keys ? undefined : sum(...parts);
}
/** A bias for fewer keys than there are places goes on with zeros: those are hidden. */
function scoreBias(c: Call, q: Tensor, keys: number): Tensor | undefined {
  const bias = asBias(c, 10, q);
  const missing = bias === undefined ? 0 : keys - sizeOf(bias, 3);
  return missing === 0
    ? bias
    : bias?.pad([
        [0, 0],
        [0, 0],
        [0, 0],
        [0, missing],
      ]);
}

// ---- positions ----

interface RotaryOf {
  readonly interleaved: boolean;
  readonly num_heads: number;
  readonly rotary_embedding_dim: number;
  readonly scale: number;
  readonly is_packed_batching: boolean;
}
/** Input, positions (one to begin with, or one a token), cosines, sines. */
function rotaryOf(c: Call<RotaryOf>): Tensor {
  if (c.attr.scale !== 1) c.unsupported(`a scale of ${c.attr.scale}`);
  const [x, given] = [c.t(0), c.t(1)];
  const size = 2 * sizeOf(c.t(2), 1);
  const heads = c.attr.num_heads > 0 ? c.attr.num_heads : x.ndim === 3 ? sizeOf(x, 2) / size : 0;
  const [batch, time] = [sizeOf(x, 0), sizeOf(x, x.ndim - 2)];
  const first = cast(given, dtypes.int32);
  const positions =
    given.ndim === 1
      ? row(time, x)
          .add(first.reshape([1]))
          .reshape([1, time])
          .expand([batch, time])
      : first;
  const attr = { ...c.attr, num_heads: heads, rotary_embedding_dim: size };
  return rotary(c.withAttributes(attr), x, positions, c.t(2), c.t(3));
}

export const heads: OpTable = {
  "com.microsoft.MultiHeadAttention": op(HEADS, multiHead),
  "com.microsoft.Attention": op(
    {
      ...HEADS,
      qkv_hidden_sizes: ints(),
      do_rotary: flag(false),
      rotary_embedding_dim: int(0),
      past_present_share_buffer: flag(false),
    },
    packedAttention,
  ),
  "com.microsoft.GroupQueryAttention": op(GROUPED, groupQuery),
  "com.microsoft.RotaryEmbedding": op(
    {
      interleaved: flag(false),
      num_heads: int(0),
      rotary_embedding_dim: int(0),
      scale: float(1),
      is_packed_batching: flag(false),
    },
    rotaryOf,
  ),
};
