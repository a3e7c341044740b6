// Random cases of the attention ops of com.microsoft, and of what is fused around them.

import type { OnnxAttribute } from "gradloom/onnx";
import {
  type CaseDice,
  type CaseMaker,
  floats,
  type HostData,
  ints,
  list,
  makeCase,
  type OpCase,
} from "./cases.ts";

export type Inputs = readonly (HostData | undefined)[];

export const make = (
  op: string,
  inputs: Inputs,
  attributes: Record<string, OnnxAttribute> = {},
  rest: Partial<Pick<OpCase, "outputs" | "slack" | "weights">> = {},
): OpCase => makeCase(`com.microsoft.${op}`, inputs, attributes, { slack: 1e-5, ...rest });

export const f = (r: CaseDice, ...shape: number[]): HostData => r.tensor("float", shape, -2, 2);

export const one = (x: number): HostData => ({ ...floats([x]), shape: [] });

// ---- attention ----

/** A mask in one of its forms. */
function mask(
  r: CaseDice,
  batch: number,
  queries: number,
  keys: number,
  isPacked: boolean,
): HostData | undefined {
  const form = r.pick(["none", "ends", "keys", "all", ...(isPacked ? ["spans"] : [])]);
  const flags = (shape: number[]): HostData => r.tensor("int32", shape, 0, 1);
  if (form === "ends")
    return ints(
      list(batch, () => r.int(1, keys)),
      "int32",
    );
  if (form === "spans") return ints([...list(batch, () => r.int(1, keys)), ...list(batch, () => 0)], "int32");
  if (form === "keys") return flags([batch, keys]);
  return form === "all" ? flags([batch, queries, keys]) : undefined;
}

const options = (r: CaseDice): Record<string, OnnxAttribute> => ({
  ...(r.chance(30) ? { scale: r.int(2, 12) / 16 } : {}),
  ...(r.chance(40) ? { unidirectional: r.int(0, 1) } : {}),
  ...(r.chance(20) ? { mask_filter_value: -50 } : {}),
});

const multiHead: CaseMaker = (r) => {
  const [batch, n, size, queries] = [r.int(1, 2), r.int(1, 3), r.int(1, 4), r.int(1, 4)];
  const form = r.pick(["three", "three", "three", "cross"]);
  const fresh = r.int(1, 5);
  const hasPast = form === "three" && r.chance(40);
  const keys = fresh + (hasPast ? 2 : 0);
  const values = form === "three" && !hasPast ? r.int(1, 4) : size;
  const bias = r.chance(50) ? f(r, n * (2 * size + values)) : undefined;
  const qkv: Inputs =
    form === "cross"
      ? [f(r, batch, queries, n * size), f(r, batch, n, fresh, size), f(r, batch, n, fresh, size)]
      : [f(r, batch, queries, n * size), f(r, batch, fresh, n * size), f(r, batch, fresh, n * values)];
  const scores = r.chance(40) ? f(r, r.pick([1, batch]), r.pick([1, n]), queries, keys) : undefined;
  const past = (): HostData | undefined => (hasPast ? f(r, batch, n, 2, size) : undefined);
  const inputs = [...qkv, bias, mask(r, batch, queries, keys, false), scores, past(), past()];
  // onnxruntime does not hide the last of the keys if there are more of them than queries
  const { unidirectional = 0, ...others } = options(r);
  const chosen = fresh === queries ? { unidirectional, ...others } : others;
  return make(
    "MultiHeadAttention",
    inputs,
    { num_heads: n, ...chosen },
    { outputs: hasPast || (form === "three" && r.chance(50)) ? 3 : 1 },
  );
};

const packedAttention: CaseMaker = (r) => {
  const [batch, n, size, time, width] = [r.int(1, 2), r.int(1, 3), r.int(1, 4), r.int(1, 4), r.int(1, 5)];
  const hasPast = r.chance(30);
  const values = hasPast || r.chance(60) ? size : r.int(1, 4);
  const all = n * (2 * size + values);
  const keys = time + (hasPast ? 3 : 0);
  // onnxruntime has no kernel for both
  const hasScores = !hasPast && r.chance(30);
  const inputs = [
    f(r, batch, time, width),
    f(r, width, all),
    f(r, all),
    mask(r, batch, time, keys, true),
    hasPast ? f(r, 2, batch, n, 3, size) : undefined,
    hasScores ? f(r, r.pick([1, batch]), r.pick([1, n]), time, keys) : undefined,
  ];
  const sizes: Record<string, OnnxAttribute> =
    values === size ? {} : { qkv_hidden_sizes: [n * size, n * size, n * values] };
  return make(
    "Attention",
    inputs,
    { num_heads: n, ...sizes, ...options(r) },
    { outputs: hasPast || (values === size && r.chance(50)) ? 2 : 1, weights: [1] },
  );
};

const groupQuery: CaseMaker = (r) => {
  const [batch, m, each, size] = [r.int(1, 3), r.int(1, 2), r.int(1, 3), r.pick([16, 32])];
  const n = m * each;
  const isPrompt = r.chance(40);
  const past = isPrompt ? (r.chance(70) ? 0 : 6) : r.int(1, 5);
  // with a past, a longer sequence is only for one of them
  const time = isPrompt ? r.int(1, 5) : batch === 1 ? r.int(1, 3) : 1;
  const total = isPrompt ? time : past + time;
  const room = isPrompt ? past : r.chance(70) ? past : past + 4;
  const lengths = list(batch, (b) => (b === 0 ? total : r.int(time, total)) - 1);
  const isPacked = r.chance(30);
  const rotary = r.chance(50);
  const half = r.chance(70) ? size / 2 : 8;
  const cache = (): HostData | undefined => (rotary ? f(r, 16, half) : undefined);
  const before = (): HostData | undefined => (room === 0 ? undefined : f(r, batch, m, room, size));
  const inputs: Inputs = [
    ...(isPacked
      ? [f(r, batch, time, (n + 2 * m) * size), undefined, undefined]
      : [f(r, batch, time, n * size), f(r, batch, time, m * size), f(r, batch, time, m * size)]),
    before(),
    before(),
    ints(lengths, "int32"),
    { ...ints([total], "int32"), shape: [] },
    cache(),
    cache(),
    undefined,
    r.chance(30) ? f(r, r.pick([1, batch]), r.pick([1, n]), time, total) : undefined,
    r.chance(20) ? f(r, n) : undefined,
  ];
  const attributes = {
    num_heads: n,
    kv_num_heads: m,
    ...(rotary ? { do_rotary: 1, ...r.maybe({ rotary_interleaved: r.int(0, 1) }) } : {}),
    ...(r.chance(25) ? { local_window_size: r.int(1, 4) } : {}),
    ...(r.chance(25) ? { softcap: 2.5 } : {}),
    ...(r.chance(20) ? { scale: 0.3 } : {}),
    ...(r.chance(15) ? { smooth_softmax: 1 } : {}),
  };
  return make("GroupQueryAttention", inputs, attributes, { outputs: 3, weights: [6] });
};

const rotary: CaseMaker = (r) => {
  const [batch, n, time, size] = [r.int(1, 2), r.int(1, 3), r.int(1, 4), r.pick([4, 8])];
  const part: Record<string, number> = r.chance(30) ? { num_heads: n, rotary_embedding_dim: size / 2 } : {};
  const half = "num_heads" in part ? size / 4 : size / 2;
  const x = r.chance(30) ? f(r, batch, n, time, size) : f(r, batch, time, n * size);
  const positions = r.chance(50) ? ints([r.int(0, 5)]) : r.tensor("int64", [batch, time], 0, 9);
  return make("RotaryEmbedding", [x, positions, f(r, 10, half), f(r, 10, half)], {
    ...part,
    ...r.maybe({ interleaved: r.int(0, 1) }),
  });
};

// ---- floats ----

const skipNorm: CaseMaker = (r) => {
  const [batch, time, size] = [r.int(1, 3), r.int(1, 4), r.int(2, 6)];
  const isSimple = r.chance(50);
  const skip = r.pick([
    [batch, time, size],
    [1, time, size],
    [time, size],
  ]);
  const part = (): HostData | undefined => (r.chance(50) ? f(r, size) : undefined);
  const inputs = [
    f(r, batch, time, size),
    f(r, ...skip),
    f(r, size),
    ...(isSimple ? [part()] : [part(), part()]),
  ];
  const one_ = make(
    isSimple ? "SkipSimplifiedLayerNormalization" : "SkipLayerNormalization",
    inputs,
    r.maybe({ epsilon: 0.01 }),
    { slack: 1e-4 },
  );
  return one_;
};

const embed: CaseMaker = (r) => {
  const [batch, time, size] = [r.int(1, 3), r.int(1, 4), r.int(2, 6)];
  const ids = (most: number): HostData => r.tensor("int32", [batch, time], 0, most - 1);
  const hasSegments = r.chance(60);
  const masked = list(batch, () => r.int(1, time)).flatMap((n) => list(time, (i) => (i < n ? 1 : 0)));
  const inputs = [
    ids(7),
    hasSegments ? ids(2) : undefined,
    f(r, 7, size),
    f(r, 6, size),
    hasSegments ? f(r, 2, size) : undefined,
    f(r, size),
    f(r, size),
    r.chance(50) ? { type: "int32", shape: [batch, time], data: masked } : undefined,
    r.chance(40)
      ? r.tensor(
          "int32",
          r.pick([
            [batch, time],
            [1, time],
          ]),
          0,
          5,
        )
      : undefined,
  ];
  return make("EmbedLayerNormalization", inputs, r.maybe({ epsilon: 0.01 }), {
    outputs: r.int(2, 3),
    slack: 1e-4,
  });
};

export const HEADS: Readonly<Record<string, CaseMaker>> = {
  MultiHeadAttention: multiHead,
  "ms.Attention": packedAttention,
  GroupQueryAttention: groupQuery,
  "ms.RotaryEmbedding": rotary,
  SkipLayerNormalization: skipNorm,
  EmbedLayerNormalization: embed,
};
