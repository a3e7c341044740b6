// Ops of com.microsoft that exporters and optimisers put into files: fused forms of what the standard says
// with several nodes. Attention, positions, normalisations, products of packed weights.

import { dtypes } from "../../dtype.ts";
import { prod } from "../../helpers.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { headed, maskedSoftmax, rotary, shared, unheaded } from "./attention.ts";
import { castOps } from "./cast.ts";
import { cast, sizeOf, sizes, widened, wideOf } from "./common.ts";
import { type Call, flag, float, int, type OpTable, type Output, op, type Versions } from "./op.ts";
import { matmul } from "./reduce.ts";

const fastGelu = (x: Tensor, bias: Tensor | undefined): Tensor =>
  widened(bias === undefined ? x : x.add(bias), (y) => y.gelu("tanh"));

interface Fused {
  readonly alpha: number;
  readonly transA: boolean;
  readonly transB: boolean;
  readonly transBatchA: boolean;
  readonly transBatchB: boolean;
}
function fusedMatMul(c: Call<Fused>): Tensor {
  const { alpha, transA, transB, transBatchA, transBatchB } = c.attr;
  if (transBatchA || transBatchB) c.unsupported("batches that are transposed");
  const flip = (x: Tensor, isOn: boolean): Tensor => (isOn && x.ndim > 1 ? x.transpose(-2, -1) : x);
  const y = matmul(flip(c.t(0), transA), flip(c.t(1), transB));
  return alpha === 1 ? y : y.mul(alpha);
}

// ---- normalisations of a sum ----

/** The outputs after the first are the mean, the inverse deviation, and the sum that was normalised. */
function skipNorm(c: Call<{ epsilon: number }>, isSimple: boolean): readonly Output[] {
  const bias = isSimple ? c.maybe(3) : c.maybe(4);
  const added = c.t(0).add(c.t(1));
  const sum = bias === undefined ? added : added.add(bias);
  const x = cast(sum, wideOf(sum.dtype));
  const mean = isSimple ? undefined : x.mean(-1, true);
  const centred = mean === undefined ? x : x.sub(mean);
  const inverse = centred.square().mean(-1, true).add(c.attr.epsilon).rsqrt();
  const scaled = cast(centred.mul(inverse), sum.dtype).mul(c.t(2));
  const beta = isSimple ? undefined : c.maybe(3);
  return [beta === undefined ? scaled : scaled.add(beta), mean, inverse, sum];
}
const SKIP = { epsilon: float(1e-5) };

// ---- attention ----

interface Heads {
  readonly num_heads: number;
  readonly scale: number | undefined;
  readonly unidirectional: boolean;
}
interface FilteredHeads extends Heads {
  /** added to the scores of what a mask hides: a row of which all is hidden averages */
  readonly mask_filter_value: number;
}
/** Scores of queries and keys of [batch, heads, time, size], and the values they weigh. */
function attend(
  q: Tensor,
  k: Tensor,
  v: Tensor,
  scale: number | undefined,
  bias: Tensor | undefined,
): Tensor {
  const wide = wideOf(q.dtype);
  const factor = scale === undefined || scale === 0 ? 1 / Math.sqrt(sizeOf(q, 3)) : scale;
  const scores = cast(q, wide).matmul(cast(k, wide).transpose(-2, -1)).mul(factor);
  const weights = maskedSoftmax(bias === undefined ? scores : scores.add(bias), bias);
  return cast(weights.matmul(cast(v, wide)), q.dtype);
}
/** 0 where something may be seen, `closed` elsewhere. */
const opened = (allowed: Tensor, like: Tensor, closed = -Infinity): Tensor => {
  const options = { dtype: wideOf(like.dtype), device: like.device };
  return allowed.where(Tensor.zeros([], options), Tensor.full([], closed, options));
};
const row = (n: number, like: Tensor): Tensor =>
  Tensor.arange(n, { dtype: dtypes.int32, device: like.device });
const causal = (queries: number, keys: number, like: Tensor): Tensor =>
  opened(
    row(keys, like).le(
      row(queries, like)
        .reshape([-1, 1])
        .add(keys - queries),
    ),
    like,
  );

/** A mask of lengths [batch], of keys [batch, keys], or of all [batch, queries, keys]. */
function maskBias(c: Call<FilteredHeads>, mask: Tensor, keys: number, like: Tensor): Tensor {
  const filtered = (allowed: Tensor): Tensor => opened(allowed, like, c.attr.mask_filter_value);
  const flags = (x: Tensor): Tensor => filtered(cast(x, dtypes.int32).ne(0));
  if (mask.ndim === 1) return filtered(row(keys, like).lt(cast(mask, dtypes.int32).reshape([-1, 1, 1, 1])));
  if (mask.ndim === 2) return flags(mask).reshape([sizeOf(mask, 0), 1, 1, keys]);
  if (mask.ndim === 3) return flags(mask).unsqueeze(1);
  return c.unsupported(`a mask of ${mask.ndim} dims`);
}
const sum = (...parts: readonly (Tensor | undefined)[]): Tensor | undefined =>
  parts.reduce((a, b) => (a === undefined ? b : b === undefined ? a : a.add(b)));

/** Query, key, value, bias, mask of keys, bias of scores, past key, past value. */
function multiHead(c: Call<FilteredHeads>): readonly Output[] {
  const { num_heads: n, scale, unidirectional } = c.attr;
  const given = c.t(0);
  if (given.ndim !== 3) c.unsupported("queries, keys and values packed into one tensor");
  const bias = c.maybe(3);
  const width = sizeOf(given, 2);
  const withBias = (x: Tensor, from: number): Tensor =>
    bias === undefined || x.ndim === 4 ? x : x.add(bias.shrink([[from, from + sizeOf(x, 2)]]));
  const q = headed(c, withBias(given, 0), n);
  const fresh = [headed(c, withBias(c.t(1), width), n), headed(c, withBias(c.t(2), 2 * width), n)] as const;
  const k = c.has(6) ? c.t(6).cat(fresh[0], 2) : fresh[0];
  const v = c.has(7) ? c.t(7).cat(fresh[1], 2) : fresh[1];
  const [queries, keys] = [sizeOf(q, 2), sizeOf(k, 2)];
  const all = sum(
    c.has(4) ? maskBias(c, c.t(4), keys, q) : undefined,
    c.has(5) ? cast(c.t(5), wideOf(q.dtype)) : undefined,
    unidirectional ? causal(queries, keys, q) : undefined,
  );
  return [unheaded(attend(q, k, v, scale, all)), k, v];
}

/** Input, weights of all three, bias, mask, past [2, batch, heads, time, size], bias of scores. */
function packedAttention(c: Call<FilteredHeads>): readonly Output[] {
  const { num_heads: n, scale, unidirectional } = c.attr;
  const product = matmul(c.t(0), c.t(1));
  const bias = c.maybe(2);
  const all = bias === undefined ? product : product.add(bias);
  const width = sizeOf(all, 2) / 3;
  const part = (i: number): Tensor => headed(c, all.shrink([null, null, [i * width, (i + 1) * width]]), n);
  const past = c.maybe(4);
  const behind = (i: number): Tensor =>
    past === undefined ? part(i + 1) : past.select(0, i).cat(part(i + 1), 2);
  const [q, k, v] = [part(0), behind(0), behind(1)];
  const [queries, keys] = [sizeOf(q, 2), sizeOf(k, 2)];
  const mask = sum(
    c.has(3) ? maskBias(c, c.t(3), keys, q) : undefined,
    c.has(5) ? cast(c.t(5), wideOf(q.dtype)) : undefined,
    unidirectional ? causal(queries, keys, q) : undefined,
  );
  return [unheaded(attend(q, k, v, scale, mask)), Tensor.stack([k, v], 0)];
}

interface Grouped {
  readonly num_heads: number;
  readonly kv_num_heads: number;
  readonly scale: number | undefined;
  readonly do_rotary: boolean;
  readonly rotary_interleaved: boolean;
  readonly local_window_size: number;
  readonly softcap: number;
}
/**
 * Query, key, value, past key, past value, lengths minus one, the longest length, cosines, sines. The past
 * is as long as it says: a buffer that is larger than what is in it is refused.
 */
async function groupQuery(c: Call<Grouped>): Promise<readonly Output[]> {
  const {
    num_heads: n,
    kv_num_heads: m,
    scale,
    do_rotary,
    rotary_interleaved,
    local_window_size,
    softcap,
  } = c.attr;
  if (softcap !== 0) c.unsupported("softcap");
  const packed = !c.has(1);
  const given = c.t(0);
  const size = packed ? sizeOf(given, 2) / (n + 2 * m) : sizeOf(given, 2) / n;
  const part = (from: number, heads: number): Tensor =>
    headed(c, given.shrink([null, null, [from * size, (from + heads) * size]]), heads);
  const fresh = packed ? part(n, m) : headed(c, c.t(1), m);
  const v0 = packed ? part(n + m, m) : headed(c, c.t(2), m);
  const q0 = packed ? part(0, n) : headed(c, given, n);
  const past = c.has(3) ? sizeOf(c.t(3), 2) : 0;
  const lengths = c.has(5) ? await c.ints(5) : [];
  const time = sizeOf(q0, 2);
  if (lengths.some((l) => l + 1 !== past + time))
    c.unsupported(
      `sequences of ${lengths.map((l) => l + 1).join(", ")} with a past of ${past} and ${time} new tokens`,
    );
  const turn = (x: Tensor): Tensor => {
    if (!do_rotary) return x;
    const positions = row(time, x)
      .add(past)
      .reshape([1, time])
      .expand([sizeOf(x, 0), time]);
    const attr = {
      interleaved: rotary_interleaved,
      num_heads: 0,
      rotary_embedding_dim: 2 * sizeOf(c.t(7), 1),
    };
    return rotary(c.withAttributes(attr), x, positions, c.t(7), c.t(8));
  };
  const [q, k1] = [turn(q0), turn(fresh)];
  const k = c.has(3) && past > 0 ? c.t(3).cat(k1, 2) : k1;
  const v = c.has(4) && past > 0 ? c.t(4).cat(v0, 2) : v0;
  const keys = sizeOf(k, 2);
  const window =
    local_window_size > 0
      ? opened(
          row(keys, q).gt(
            row(time, q)
              .reshape([-1, 1])
              .add(keys - time - local_window_size),
          ),
          q,
        )
      : undefined;
  const y = attend(q, shared(k, n), shared(v, n), scale, sum(causal(time, keys, q), window));
  return [unheaded(y), k, v];
}

interface RotaryOf {
  readonly interleaved: boolean;
  readonly num_heads: number;
  readonly rotary_embedding_dim: number;
  readonly scale: number;
  readonly is_packed_batching: boolean;
}
/** Input, positions (one to begin with, or one a token), cosines, sines. */
function rotaryOf(c: Call<RotaryOf>): Tensor {
  const [x, given] = [c.t(0), c.t(1)];
  const size = 2 * sizeOf(c.t(2), 1);
  const heads = c.attr.num_heads > 0 ? c.attr.num_heads : x.ndim === 3 ? sizeOf(x, 2) / size : 0;
  const [batch, time] = [sizeOf(x, 0), sizeOf(x, x.ndim - 2)];
  const first = cast(given, dtypes.int32);
  const positions =
    given.size === 1
      ? row(time, x)
          .add(first.reshape([1]))
          .reshape([1, time])
          .expand([batch, time])
      : first;
  return rotary(c.withAttributes({ ...c.attr, num_heads: heads }), x, positions, c.t(2), c.t(3));
}

// ---- packed weights ----

interface NBits {
  readonly K: number;
  readonly N: number;
  readonly bits: number;
  readonly block_size: number;
  readonly accuracy_level: number;
}
/** A product with weights of 2, 4 or 8 bits: [N, blocks, bytes], a scale and a zero point for each block. */
function matMulNBits(c: Call<NBits>): Tensor {
  const { K, N, bits, block_size } = c.attr;
  if (![2, 4, 8].includes(bits)) c.unsupported(`weights of ${bits} bits`);
  if (c.has(4)) c.unsupported("weights in groups (g_idx)");
  const blocks = Math.ceil(K / block_size);
  const each = 8 / bits;
  const unpacked = (bytes: Tensor): Tensor => {
    const wide = cast(bytes, dtypes.int32).unsqueeze(-1);
    const shifts = row(each, bytes).mul(bits);
    return wide.rshift(shifts).bitwiseAnd(2 ** bits - 1);
  };
  const x = c.t(0);
  const wide = wideOf(x.dtype);
  const codes = unpacked(c.t(1).reshape([N, -1])).reshape([N, blocks, block_size]);
  const scale = cast(c.t(2), wide).reshape([N, blocks, 1]);
  const zero = c.maybe(3);
  const perRow = zero === undefined ? 0 : prod(sizes(zero)) / N;
  const centre =
    zero === undefined
      ? cast(codes, wide).sub(2 ** (bits - 1))
      : zero.dtype.isFloat
        ? cast(codes, wide).sub(cast(zero, wide).reshape([N, blocks, 1]))
        : cast(codes, wide).sub(
            cast(
              unpacked(zero.reshape([N, perRow]))
                .reshape([N, perRow * each])
                .shrink([null, [0, blocks]]),
              wide,
            ).unsqueeze(-1),
          );
  const weights = centre
    .mul(scale)
    .reshape([N, blocks * block_size])
    .shrink([null, [0, K]]);
  const y = cast(cast(x, wide).matmul(weights.transpose(0, 1)), x.dtype);
  const bias = c.maybe(5);
  return bias === undefined ? y : y.add(bias);
}

const same = (table: OpTable, name: string): Versions => table[name] as Versions;
const HEADS = {
  num_heads: int.required,
  scale: float(),
  unidirectional: flag(false),
  mask_filter_value: float(-10000),
};

export const microsoft: OpTable = {
  "com.microsoft.Gelu": op({}, (c) => widened(c.t(0), (x) => x.gelu("none"))),
  "com.microsoft.FastGelu": op({}, (c) => fastGelu(c.t(0), c.maybe(1))),
  "com.microsoft.BiasGelu": op({}, (c) => widened(c.t(0).add(c.t(1)), (x) => x.gelu("none"))),
  "com.microsoft.QuickGelu": op({ alpha: float(1.702) }, (c) =>
    widened(c.t(0), (x) => x.mul(x.mul(c.attr.alpha).sigmoid())),
  ),
  "com.microsoft.FusedMatMul": op(
    {
      alpha: float(1),
      transA: flag(false),
      transB: flag(false),
      transBatchA: flag(false),
      transBatchB: flag(false),
    },
    fusedMatMul,
  ),
  "com.microsoft.SkipLayerNormalization": op(SKIP, (c) => skipNorm(c, false)),
  "com.microsoft.SkipSimplifiedLayerNormalization": op(SKIP, (c) => skipNorm(c, true)),
  "com.microsoft.MultiHeadAttention": op(HEADS, multiHead),
  "com.microsoft.Attention": op(HEADS, packedAttention),
  "com.microsoft.GroupQueryAttention": op(
    {
      num_heads: int.required,
      kv_num_heads: int.required,
      scale: float(),
      do_rotary: flag(false),
      rotary_interleaved: flag(false),
      local_window_size: int(-1),
      softcap: float(0),
    },
    groupQuery,
  ),
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
  "com.microsoft.MatMulNBits": op(
    { K: int.required, N: int.required, bits: int(4), block_size: int.required, accuracy_level: int(0) },
    matMulNBits,
  ),
  "com.microsoft.QuantizeLinear": same(castOps, "QuantizeLinear"),
  "com.microsoft.DequantizeLinear": same(castOps, "DequantizeLinear"),
  // exporters write these without a domain, too
  SimplifiedLayerNormalization: op({ axis: int(-1), epsilon: float(1e-5), stash_type: int(1) }, (c) => {
    const x = cast(c.t(0), wideOf(c.t(0).dtype));
    return cast(x.mul(x.square().mean(-1, true).add(c.attr.epsilon).rsqrt()), c.t(0).dtype).mul(c.t(1));
  }),
};
